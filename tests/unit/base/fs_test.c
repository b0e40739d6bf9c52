// SPDX-License-Identifier: Apache-2.0
/* Files in a temporary directory. */
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"

static char dir_path[] = "/tmp/orbweaver-fs-XXXXXX";
static int dir = -1;

static int make_dir(void **state)
{
	memcpy(dir_path + strlen(dir_path) - 6, "XXXXXX", 6);
	if (!mkdtemp(dir_path))
		return -1;
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : mkdirat(dir, "sub", 0700);
}

static int remove_dir(void **state)
{
	(void)unlinkat(dir, "sub/file", 0);
	(void)unlinkat(dir, "sub", AT_REMOVEDIR);
	(void)unlinkat(dir, "file", 0);
	(void)close(dir);
	return rmdir(dir_path);
}

static int entries(void)
{
	auto_closedir DIR *d = opendir(dir_path);
	int n = 0;

	while (readdir(d))
		n++;
	return n - 2;
}

TEST_WITH(what_was_written_is_read, make_dir, remove_dir)
{
	auto_strbuf struct strbuf b = {0};
	char big[40000];
	struct stat st;

	memset(big, 'x', sizeof(big));
	strbuf_adds(&b, "before ");
	assert_int_equal(fs_write_atomic(dir, "file", big, sizeof(big), 0600, NULL), 0);
	assert_int_equal(fs_write_atomic(dir, "file", "a\0b", 3, 0600, NULL), 0);
	assert_int_equal(fs_read(dir, "file", 3, &b, NULL), 0);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "before a\0b", 11);
	assert_int_equal(fstatat(dir, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(entries(), 2);

	assert_int_equal(fs_write_atomic(dir, "sub/file", big, sizeof(big), 0600, NULL), 0);
	strbuf_reset(&b);
	assert_int_equal(fs_read(dir, "sub/file", sizeof(big), &b, NULL), 0);
	assert_int_equal(b.len, sizeof(big));
	assert_memory_equal(b.data, big, sizeof(big));
}

TEST_WITH(a_file_beyond_the_limit_is_refused, make_dir, remove_dir)
{
	auto_strbuf struct strbuf b = {0};
	struct err err = {0};

	strbuf_adds(&b, "before");
	assert_int_equal(fs_write_atomic(dir, "file", "abcd", 4, 0600, NULL), 0);
	assert_int_equal(fs_read(dir, "file", 3, &b, &err), -1);
	assert_int_equal(err.class, ERR_INVALID);
	assert_string_equal(err.reason, "FileTooLarge");
	assert_string_equal(err.text, "file: more than the 3 bytes that are accepted");
	assert_string_equal(b.data, "before");
	/* Without an end, so only the limit stops it. */
	assert_int_equal(fs_read(AT_FDCWD, "/dev/zero", 100000, &b, &err), -1);
	assert_string_equal(err.reason, "FileTooLarge");
	assert_int_equal(b.len, 6);
}

TEST_WITH(files_that_the_kernel_makes_up_are_read, make_dir, remove_dir)
{
	auto_strbuf struct strbuf b = {0};

	assert_int_equal(fs_read(AT_FDCWD, "/proc/self/status", 65536, &b, NULL), 0);
	assert_non_null(strstr(b.data, "Name:"));
}

TEST_WITH(errors_of_the_system_are_told, make_dir, remove_dir)
{
	auto_strbuf struct strbuf b = {0};
	struct err err = {0};

	assert_int_equal(fs_read(dir, "none", 10, &b, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.reason, "FileUnreadable");
	assert_string_equal(err.text, "open none: No such file or directory");
	assert_int_equal(fs_read(dir, "sub", 10, &b, &err), -1);
	assert_int_equal(err.sys, EISDIR);
	assert_null(b.data);

	assert_int_equal(fs_write_atomic(dir, "none/file", "x", 1, 0600, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.reason, "FileNotWritten");
	/* The new file is complete here and has to go again. */
	assert_int_equal(fs_write_atomic(dir, "sub", "x", 1, 0600, &err), -1);
	assert_int_equal(err.sys, EISDIR);
	assert_int_equal(entries(), 1);
}

// SPDX-License-Identifier: Apache-2.0
/* Small files, read and written whole. */
#include "lib/base/fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/random.h"

static ssize_t read_some(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n;
}

int fs_read(int dirfd, const char *path, size_t max, struct strbuf *ret, struct err *err)
{
	size_t before = ret->len;
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char chunk[16384];
	ssize_t n;

	assert(path && max > 0 && ret);
	if (fd < 0)
		return err_sys(err, "FileUnreadable", "open %s", path);

	/* Not by st_size: it is 0 or 4096 for files that the kernel makes up. */
	while ((n = read_some(fd, chunk, sizeof(chunk))) > 0) {
		if ((size_t)n > max - (ret->len - before)) {
			strbuf_cut(ret, before);
			return err_set(err, ERR_INVALID, "FileTooLarge",
				       "%s: more than the %zu bytes that are accepted", path, max);
		}
		strbuf_add(ret, chunk, (size_t)n);
	}
	if (n < 0) {
		strbuf_cut(ret, before);
		return err_sys(err, "FileUnreadable", "read %s", path);
	}
	return 0;
}

int fs_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The new name lives in the directory, so that has to reach the disk as well. */
static int sync_parent(int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? str_ndup(path, (size_t)(slash - path) + 1) : str_dup(".");
	auto_close int fd = openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : fsync(fd);
}

static int write_new(int dirfd, const char *path, const void *data, size_t len, unsigned int mode)
{
	auto_close int fd =
		openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	int closing;

	if (fd < 0 || fs_write_all(fd, data, len) < 0 || fsync(fd) < 0)
		return -1;
	closing = take_fd(&fd);
	return close(closing);
}

int fs_write_atomic(int dirfd, const char *path, const void *data, size_t len, unsigned int mode,
		    struct err *err)
{
	auto_free char *temporary = NULL;
	uint64_t number;

	assert(path && (data || len == 0));
	random_bytes(&number, sizeof(number));
	temporary = str_printf("%s.%016llx.tmp", path, (unsigned long long)number);

	/* Errors without the number: what fails each time alike is to be said once. */
	if (write_new(dirfd, temporary, data, len, mode) < 0) {
		(void)err_sys(err, "FileNotWritten", "write a new %s", path);
		(void)unlinkat(dirfd, temporary, 0);
		return -1;
	}
	if (renameat(dirfd, temporary, dirfd, path) < 0) {
		(void)err_sys(err, "FileNotWritten", "put a new %s in place", path);
		(void)unlinkat(dirfd, temporary, 0);
		return -1;
	}
	if (sync_parent(dirfd, path) < 0)
		return err_sys(err, "FileNotWritten", "sync the directory of %s", path);
	return 0;
}

int fs_make_dirs(const char *path, unsigned int mode)
{
	auto_free char *part = str_dup(path);

	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(part, mode);
		*p = '/';
	}
	return mkdir(part, mode) < 0 && errno != EEXIST ? -1 : 0;
}

void fs_close_between(unsigned int first, unsigned int last)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	int64_t fd;

	if (close_range(first, last, 0) == 0)
		return;
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)))
		if (str_to_int(entry->d_name, first, last, &fd) && fd != dirfd(dir))
			(void)close((int)fd);
}

void fs_proc_link_errno(int folder, const char *name)
{
	struct stat st;

	assert(name);
	if (errno == EACCES && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		errno = EACCES;
}

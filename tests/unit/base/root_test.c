// SPDX-License-Identifier: Apache-2.0
/*
 * Paths below a root, in a temporary directory whose links lead out of it when they are followed
 * plainly.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"

static char path[64];
static int root = -1;

/*
 *	run/netns/cni-1         var/run -> /run
 *	data/lib/               var/lib -> /data/lib
 *	data/etc/               etc -> ../../../../data/etc
 */
static int make_tree(void **state)
{
	(void)snprintf(path, sizeof(path), "/tmp/orbweaver-root-XXXXXX");
	if (!mkdtemp(path))
		return -1;
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || root_make_dirs(root, "/run/netns", 0755) < 0 ||
	    root_make_dirs(root, "data/lib", 0755) < 0 ||
	    root_make_dirs(root, "data/etc/", 0755) < 0 || root_make_dirs(root, "var", 0755) < 0)
		return -1;
	return symlinkat("/run", root, "var/run") || symlinkat("/data/lib", root, "var/lib") ||
	       symlinkat("../../../../data/etc", root, "etc") ||
	       fs_write_atomic(root, "run/netns/cni-1", "x", 1, 0600, NULL);
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *walk)
{
	return remove(name);
}

static int remove_tree(void **state)
{
	(void)close(root);
	return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_there(const char *name)
{
	struct stat st;

	return root_stat(root, name, &st) == 0;
}

TEST(absolute_links_stay_below_the_root)
{
	auto_close int fd = root_open(root, "var/run/netns/cni-1", O_RDONLY, 0);

	assert_true(fd >= 0);
	assert_true(is_there("/var/run/netns/cni-1"));
	assert_false(is_there("var/run/netns/cni-2"));
	assert_int_equal(errno, ENOENT);
}

TEST(dots_do_not_lead_above_the_root)
{
	assert_true(is_there("../../../../../run/netns/cni-1"));
	assert_true(is_there("var/run/../../../run"));
	assert_false(is_there("../../../../../usr/bin/env"));
}

TEST(files_are_written_and_removed_where_links_of_the_host_lead)
{
	struct err err = {0};

	assert_int_equal(root_make_dirs(root, "etc/udev/rules.d", 0755), 0);
	assert_int_equal(root_write_atomic(root, "etc/udev/rules.d/x", "y", 1, 0644, &err), 0);
	assert_int_equal(faccessat(root, "data/etc/udev/rules.d/x", F_OK, 0), 0);
	assert_int_equal(root_make_dirs(root, "var/lib/orbweaver", 0700), 0);
	assert_int_equal(faccessat(root, "data/lib/orbweaver", F_OK, 0), 0);
	assert_int_equal(root_remove(root, "/etc/udev/rules.d/x"), 0);
	assert_false(is_there("data/etc/udev/rules.d/x"));
	assert_int_equal(root_remove(root, "etc/udev/rules.d/x"), -1);
	assert_int_equal(errno, ENOENT);
}

TEST(a_file_that_cannot_be_written_is_named_as_the_host_has_it)
{
	struct err err = {0};

	assert_int_equal(root_write_atomic(root, "opt/x/y", "y", 1, 0644, &err), -1);
	assert_string_equal(err.reason, "FileNotWritten");
	assert_non_null(strstr(err.text, "/opt/x/y"));
	/* The folder is a file. */
	assert_int_equal(root_make_dirs(root, "run/netns/cni-1/x", 0755), -1);
	assert_int_equal(errno, ENOTDIR);
}

TEST(removing_a_link_leaves_what_it_leads_to)
{
	auto_free char *target = root_read_link(root, "var/run");

	assert_string_equal(target, "/run");
	assert_null(root_read_link(root, "run/netns/cni-1"));
	assert_int_equal(root_remove(root, "var/run"), 0);
	assert_true(is_there("run/netns/cni-1"));
}

TEST(a_real_path_is_one_for_plain_calls)
{
	auto_free char *real = root_real_path(root, "var/lib");
	auto_free char *want = str_printf("%s/data/lib", path);

	assert_string_equal(real, want);
	assert_null(root_real_path(root, "var/nothing"));
}

TEST(magic_links_are_refused)
{
	auto_close int slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(root_open(slash, "proc/self/ns/net", O_RDONLY, 0), -1);
	assert_int_equal(errno, EXDEV);
}

TEST_GROUP(make_tree, remove_tree)

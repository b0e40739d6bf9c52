// SPDX-License-Identifier: Apache-2.0
/* What a power cut left in the runtime's cache of CNI results. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "nodeagent/cni/state/result_cache.h"
#include "tests/support/scratch.h"

static void put(int dir, const char *name, const char *text, bool is_old)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	auto_close int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	if (is_old)
		assert_int_equal(futimens(fd, long_ago), 0);
}

static bool is_there(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The host has its /var/lib elsewhere, by an absolute link, as some do. */
TEST(an_empty_one_of_an_earlier_boot_goes)
{
	char *path = scratch_new();
	auto_close int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;

	assert_int_equal(result_cache_remove_empty(root), 0);
	assert_int_equal(mkdirat(root, "data", 0700), 0);
	assert_int_equal(mkdirat(root, "data/cni", 0700), 0);
	assert_int_equal(mkdirat(root, "data/cni/results", 0700), 0);
	assert_int_equal(mkdirat(root, "var", 0700), 0);
	assert_int_equal(symlinkat("/data", root, "var/lib"), 0);
	dir = openat(root, "data/cni/results", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(dir, "pods-cut-eth0", "", true);
	put(dir, "pods-new-eth0", "", false);
	put(dir, "pods-whole-eth0", "{}", true);
	put(root, "outside", "", true);
	assert_int_equal(symlinkat("/outside", dir, "pods-link-eth0"), 0);
	assert_int_equal(result_cache_remove_empty(root), 1);
	assert_false(is_there(dir, "pods-cut-eth0"));
	assert_true(is_there(dir, "pods-new-eth0"));
	assert_true(is_there(dir, "pods-whole-eth0"));
	assert_true(is_there(dir, "pods-link-eth0") && is_there(root, "outside"));
	assert_int_equal(result_cache_remove_empty(root), 0);
	scratch_free(path);
}

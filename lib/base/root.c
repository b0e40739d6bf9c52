// SPDX-License-Identifier: Apache-2.0
/*
 * openat2(2) with RESOLVE_IN_ROOT does the work; the other functions split off the last part of a
 * path, open its folder and use the *at() call. The agent's view of the host goes through here, and
 * so do tests on a tree of their own.
 */
#include "lib/base/root.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

/*
 * A rename or mount anywhere makes a lookup through ".." fail with EAGAIN; openat2(2) says to try
 * again.
 */
#define LOOKUP_TRIES 32

static bool is_own_root(int root)
{
	struct stat own, other;

	return stat("/", &own) == 0 && fstat(root, &other) == 0 && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

int root_open(int root, const char *path, int flags, unsigned int mode)
{
	struct open_how how = {
		/* With O_PATH the kernel takes no flag that is about opening. */
		.flags = (unsigned int)flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_IN_ROOT,
	};
	long fd = -1;

	assert(path);
	for (int i = 0; i < LOOKUP_TRIES; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd < 0 && errno == ENOSYS && is_own_root(root))
		return openat(root, path, (int)how.flags, mode);
	return (int)fd;
}

/* The folder that has the last part of path, and that part. */
static int open_folder_of(int root, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	auto_free char *folder = slash ? str_ndup(path, (size_t)(slash - path) + 1) : NULL;

	*ret_name = slash ? slash + 1 : path;
	return root_open(root, folder ? folder : ".", O_PATH | O_DIRECTORY, 0);
}

int root_stat(int root, const char *path, struct stat *ret)
{
	auto_close int fd = root_open(root, path, O_PATH, 0);

	assert(path && ret);
	return fd < 0 ? -1 : fstat(fd, ret);
}

char *root_read_link(int root, const char *path)
{
	auto_close int fd = root_open(root, path, O_PATH | O_NOFOLLOW, 0);
	char target[PATH_MAX];
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target));

	return n < 0 ? NULL : str_ndup(target, (size_t)n);
}

int root_make_dirs(int root, const char *path, unsigned int mode)
{
	const char *end = path;

	assert(path);
	while (*end) {
		auto_free char *folder = NULL;
		auto_close int above = -1;
		const char *name;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		folder = str_ndup(path, (size_t)(end - path));
		above = open_folder_of(root, folder, &name);
		if (above < 0 || (mkdirat(above, name, mode) < 0 && errno != EEXIST))
			return -1;
		end += strspn(end, "/");
	}
	return 0;
}

int root_remove(int root, const char *path)
{
	const char *name;
	auto_close int folder = open_folder_of(root, path, &name);

	return folder < 0 ? -1 : unlinkat(folder, name, 0);
}

int root_write_atomic(int root, const char *path, const void *data, size_t len, unsigned int mode,
		      struct err *err)
{
	const char *name;
	auto_close int folder = open_folder_of(root, path, &name);

	assert(path && (data || len == 0));
	if (folder < 0)
		return err_sys(err, "FileNotWritten", "open the folder of /%s", path);
	return fs_write_atomic(folder, name, data, len, mode, err) < 0 ? err_in(err, "/%s", path)
								       : 0;
}

char *root_real_path(int root, const char *path)
{
	auto_close int fd = root_open(root, path, O_PATH, 0);
	char link[32], target[PATH_MAX];
	ssize_t n;

	if (fd < 0)
		return NULL;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target));
	return n < 0 ? NULL : str_ndup(target, (size_t)n);
}

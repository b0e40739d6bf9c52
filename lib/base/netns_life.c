// SPDX-License-Identifier: Apache-2.0
/*
 * One answer to "does this network namespace exist", for all that is kept about pods on the disk.
 *
 * Idea: list the few errors that prove that it is gone; every other one is "unknown". Used by the
 * server of CNI plugins (sandboxes, notes of sriov-cni) and by the evidence that hostd gathers.
 */
#include "lib/base/netns_life.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"

/* Symbolic links that are followed by hand: "/run/netns/x" -> "/proc/42/ns/net". */
#define LINKS_MAX 8

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_on_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* The text of a symbolic link, new, as a path below the root; NULL with errno. */
static char *read_link_at(int folder, const char *folder_path, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(folder, name, target, sizeof(target));
	auto_free char *text = n < 0 ? NULL : str_ndup(target, (size_t)n);

	if (!text)
		return NULL;
	return text[0] == '/' ? take_ptr(text) : str_printf("%s%s", folder_path, text);
}

/*
 * A magic link has no path in any root, so openat2() refuses it: its folder is opened below the
 * root, and only a folder of procfs is left by what is in it.
 */
static int open_magic(int root, const char *path)
{
	auto_free char *at = str_dup(path);

	for (int i = 0; i < LINKS_MAX; i++) {
		const char *slash = strrchr(at, '/');
		const char *name = slash ? slash + 1 : at;
		auto_free char *folder = str_ndup(at, (size_t)(name - at));
		auto_close int fd =
			root_open(root, *folder ? folder : ".", O_PATH | O_DIRECTORY, 0);
		char *next;

		if (fd < 0)
			return -1;
		if (is_on_proc(fd)) {
			int found = openat(fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

			if (found < 0)
				fs_proc_link_errno(fd, name);
			return found;
		}
		next = read_link_at(fd, folder, name);
		if (!next)
			return -1;
		free(at);
		at = next;
	}
	errno = ELOOP;
	return -1;
}

int netns_path_open(int root, const char *path)
{
	int fd = root_open(root, path, O_RDONLY | O_NONBLOCK, 0);

	return fd < 0 && (errno == EXDEV || errno == EACCES) ? open_magic(root, path) : fd;
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Is the first process there? Else the root has no procfs, or one that hides processes from us. */
static bool shows_processes(int root)
{
	struct stat st;

	return root_stat(root, "proc/1", &st) == 0;
}

static bool is_below_proc(const char *path)
{
	return str_starts(path + strspn(path, "/"), "proc/");
}

bool netns_path_is_of_process(int root, const char *path)
{
	/* That of a process itself is "net:[4026531840]". */
	auto_free char *target = is_below_proc(path) ? NULL : root_read_link(root, path);

	return is_below_proc(target ? target : path);
}

enum netns_life netns_life(int root, const struct netns_known *known, int *ret_fd)
{
	auto_close int fd = -1;
	struct statfs fs;
	struct stat st;

	if (ret_fd)
		*ret_fd = -1;
	if (!str_empty(known->boot) && !str_empty(known->boot_now) &&
	    !str_eq(known->boot, known->boot_now))
		return NETNS_GONE;
	if (str_empty(known->path))
		return NETNS_UNKNOWN;
	fd = netns_path_open(root, known->path);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ESRCH))
		return netns_path_is_of_process(root, known->path) && !shows_processes(root)
			       ? NETNS_UNKNOWN
			       : NETNS_GONE;
	/* A plain file is what a mount looks like that was not propagated to us. */
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC || fstat(fd, &st) < 0)
		return NETNS_UNKNOWN;
	if (known->inode && (st.st_dev != known->device || st.st_ino != known->inode))
		return NETNS_GONE;
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return NETNS_EXISTS;
}

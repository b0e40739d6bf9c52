// SPDX-License-Identifier: Apache-2.0
/*
 * Write a draft, sync it if that is asked for, rename, sync the folder. sandboxes.c and devices.c
 * hold a lock over the name meanwhile; sandboxes_prepare() removes drafts of processes that were
 * killed.
 */
#include "nodeagent/cni/state/atomic_file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

static char *atomic_file_of(const char *folder, const char *name)
{
	return str_printf("%s/.%s" ATOMIC_FILE_SUFFIX, folder, name);
}

static int sync_folder(int dir, const char *folder)
{
	auto_close int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : fsync(fd);
}

int atomic_file_write(int dir, const char *folder, const char *name, const void *data, size_t len,
		      bool sync, int *ret_fd)
{
	auto_free char *draft = atomic_file_of(folder, name), *path = str_below(folder, name);
	auto_close int fd =
		openat(dir, draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int failed;

	assert(folder && name && (data || len == 0));
	if (fd >= 0 && fs_write_all(fd, data, len) == 0 && (!sync || fsync(fd) == 0) &&
	    renameat(dir, draft, dir, path) == 0) {
		if (ret_fd)
			*ret_fd = take_fd(&fd);
		return sync ? sync_folder(dir, folder) : 0;
	}
	failed = errno;
	(void)unlinkat(dir, draft, 0);
	errno = failed;
	return -1;
}

int atomic_file_remove(int dir, const char *folder, const char *name, bool sync)
{
	auto_free char *draft = atomic_file_of(folder, name), *path = str_below(folder, name);

	assert(folder && name);
	(void)unlinkat(dir, draft, 0);
	if (unlinkat(dir, path, 0) < 0 && errno != ENOENT)
		return -1;
	return sync ? sync_folder(dir, folder) : 0;
}

void atomic_file_clean(int dir, const char *folder)
{
	auto_close int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *list = fd >= 0 ? fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0)) : NULL;
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (entry->d_name[0] == '.' && str_ends(entry->d_name, ATOMIC_FILE_SUFFIX))
			(void)unlinkat(fd, entry->d_name, 0);
}

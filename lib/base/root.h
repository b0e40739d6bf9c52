// SPDX-License-Identifier: Apache-2.0
/*
 * Paths below a root directory that is not this process's own: the host's root as a container sees
 * it, a test's tree.
 *
 * A container's "/host/var/run" may be a symbolic link to "/run": the host means its own /run,
 * plain calls open the container's. Here absolute links and ".." stay below the root (openat2(2),
 * RESOLVE_IN_ROOT). Magic links (/proc/PID/ns/net, /proc/PID/fd/3) lead out of any root and are
 * refused with EXDEV.
 *
 * openat2 came with Linux 5.6. Before that, and below a seccomp filter that does not know it, a
 * root that is this process's own "/" is opened with openat(2), which means the same there; any
 * other root is refused with ENOSYS: a path that leads elsewhere is worse than none.
 *
 * Paths may begin with a slash. Descriptors are close-on-exec. Functions that return int or a
 * descriptor return -1 with errno set, unless they have an err.
 */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "lib/base/err.h"

/* As openat(2); mode counts with O_CREAT. */
int root_open(int root, const char *path, int flags, unsigned int mode);

/* What the path leads to. */
int root_stat(int root, const char *path, struct stat *ret);

/* The text of the symbolic link at path itself, new; NULL with errno. */
char *root_read_link(int root, const char *path);

/* Make each folder of path that is missing. */
int root_make_dirs(int root, const char *path, unsigned int mode);

/* Remove the name, be it a file or a symbolic link: what a link leads to stays. */
int root_remove(int root, const char *path);

/* fs_write_atomic() in the folder that the path leads to; same errors. */
int root_write_atomic(int root, const char *path, const void *data, size_t len, unsigned int mode,
		      struct err *err);

/*
 * Where the path leads to, as a path of this process, new; NULL with errno. For those who take
 * paths only (AF_UNIX, inotify). It is right until a link is changed.
 */
char *root_real_path(int root, const char *path);

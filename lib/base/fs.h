// SPDX-License-Identifier: Apache-2.0
/*
 * Small files, read and written whole, with paths relative to a directory descriptor (the host's
 * root, a test's tree).
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Read the file, at most max bytes (a larger file is ERR_INVALID "FileTooLarge"); dirfd may be
 * AT_FDCWD. ret is appended to, and unchanged on failure. Errors: ERR_HOST "FileUnreadable" with
 * errno.
 */
int fs_read(int dirfd, const char *path, size_t max, struct strbuf *ret, struct err *err);

/*
 * Write so that readers see the old or the new content, never a part: temporary file next to it,
 * fsync, rename. mode as in open(2), the umask applies. Errors: ERR_HOST "FileNotWritten" with
 * errno; the old content is still there, except when only the directory could not be synced.
 */
int fs_write_atomic(int dirfd, const char *path, const void *data, size_t len, unsigned int mode,
		    struct err *err);

/* Write all of it. -1 with errno set; part may have been written. */
int fs_write_all(int fd, const void *data, size_t len);

/*
 * Close all descriptors from first to last, close_range(2) or not (Linux before 5.9, and seccomp
 * filters of that time). Not between fork and exec of a program with threads: it may allocate.
 */
void fs_close_between(unsigned int first, unsigned int last);

/* Make the folder and those above that are missing. Returns 0, or -1 with errno set. */
int fs_make_dirs(const char *path, unsigned int mode);

/*
 * After a look at a link of procfs failed: errno is ENOENT instead of EACCES, if the link is gone.
 * Linux says EACCES, too, of a process that ends between the look-up of the link and its use
 * (proc_ns_get_link() and proc_fd_access_allowed() of fs/proc).
 */
void fs_proc_link_errno(int folder, const char *name);

// SPDX-License-Identifier: Apache-2.0
/*
 * A file replaced as a whole by whoever holds its lock. Unlike fs_write_atomic() the new one is
 * written under a name that is always the same: what a crash leaves is overwritten, or removed with
 * the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ATOMIC_FILE_SUFFIX ".draft"

/*
 * folder/name below dir, of mode 0600. sync: on the disk when it returns. ret_fd, which may be
 * NULL, gets a descriptor of the file, also where only the folder could not be synced; else it
 * stays. -1 with errno set.
 */
int atomic_file_write(int dir, const char *folder, const char *name, const void *data, size_t len,
		      bool sync, int *ret_fd);

/* The file, and a draft of it; none is fine. -1 with errno set. */
int atomic_file_remove(int dir, const char *folder, const char *name, bool sync);

/* Drafts of all files of the folder. */
void atomic_file_clean(int dir, const char *folder);

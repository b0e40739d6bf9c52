// SPDX-License-Identifier: Apache-2.0
/*
 * A file replaced as a whole by whoever holds its lock. Unlike fs_write_atomic() the new one is
 * written under a name that is always the same: what a crash leaves is overwritten, or removed with
 * the file.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_STATE_DRAFT_H
#define ORBWEAVER_NODEAGENT_CNI_STATE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#define DRAFT_SUFFIX ".draft"

/* folder/name below dir, of mode 0600. sync: on the disk when it returns. -1 with errno set. */
int draft_write(int dir, const char *folder, const char *name, const void *data, size_t len,
		bool sync);

/* The file, and a draft of it; none is fine. -1 with errno set. */
int draft_remove(int dir, const char *folder, const char *name, bool sync);

/* Drafts of all files of the folder. */
void draft_clean(int dir, const char *folder);

#endif

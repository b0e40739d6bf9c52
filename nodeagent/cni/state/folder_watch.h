// SPDX-License-Identifier: Apache-2.0
/*
 * When to look at folders of the host again: one inotify(7) descriptor between two processes. The
 * server, which sees no file of the host, opens and reads it; a worker, which gets a copy with its
 * job, names the folders, each time before it looks at them.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

/*
 * Non-blocking. The user that opens it has its instances and watches counted. -1 with err ERR_HOST
 * "WatchUnavailable".
 */
int folder_watch_open(struct err *err);

/* Read all that is there. Did something happen? */
bool folder_watch_drain(int watch);

/*
 * Have the descriptor become readable when a name in the folder comes, goes or changes, or the
 * folder itself does: `path` below the directory `root`. A folder that does not exist is waited for
 * where it will be. May be repeated at any time; what another folder at this path had is forgotten
 * when that folder is removed.
 *
 * Not seen: a mount over the folder, and another target of a symbolic link on the way to it.
 *
 * Returns 0, or -1 with err ERR_HOST "WatchUnavailable": the descriptor is none of inotify, or the
 * user has too many watches.
 */
int folder_watch_add(int watch, int root, const char *path, struct err *err);

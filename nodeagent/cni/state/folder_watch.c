// SPDX-License-Identifier: Apache-2.0
/*
 * A watch on each folder of a path: on the last one for its names, on those above only for their
 * own end, and for new names where the next one is missing. Between node_keeper.c, which waits for
 * events, and node_job.c, which looks.
 */
#include "nodeagent/cni/state/folder_watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"

/* The folder itself. One folder may be on the way to two: what was asked for before is kept. */
#define ENDS (IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_MASK_ADD)
/* Names that come. */
#define COMES (ENDS | IN_CREATE | IN_MOVED_TO)
/* All that changes what a look finds. Reading is not among it. */
#define CHANGES (COMES | IN_DELETE | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_ATTRIB)

int folder_watch_open(struct err *err)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	return fd < 0 ? err_sys(err, "WatchUnavailable", "watch folders with inotify") : fd;
}

bool folder_watch_drain(int watch)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool has_come = false;

	while (read(watch, buffer, sizeof(buffer)) > 0)
		has_come = true;
	return has_come;
}

static int watch_folder(int watch, int folder, uint32_t mask)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
	return inotify_add_watch(watch, path, mask);
}

int folder_watch_add(int watch, int root, const char *path, struct err *err)
{
	auto_free char *so_far = str_dup(path);
	auto_close int folder = -1;
	size_t len = strspn(path, "/");

	assert(watch >= 0 && root >= 0);
	folder = root_open(root, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	while (folder >= 0 && path[len]) {
		int next;

		len += strcspn(path + len, "/");
		so_far[len] = '\0';
		next = root_open(root, so_far, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (watch_folder(watch, folder, next < 0 ? COMES : ENDS) < 0) {
			own_close_p(&next);
			return err_sys(err, "WatchUnavailable", "watch the way to %s", path);
		}
		/* It may have come before it was waited for. */
		if (next < 0)
			next = root_open(root, so_far, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (next < 0)
			return 0;
		so_far[len] = path[len];
		len += strspn(path + len, "/");
		own_close_p(&folder);
		folder = next;
	}
	return folder < 0 || watch_folder(watch, folder, CHANGES) < 0
		       ? err_sys(err, "WatchUnavailable", "watch %s", path)
		       : 0;
}

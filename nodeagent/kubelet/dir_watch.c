// SPDX-License-Identifier: Apache-2.0
/*
 * Not uv_fs_event_t: it says nothing when the directory itself is replaced, and its descriptor is
 * shared by the loop.
 */
#include "nodeagent/kubelet/dir_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define EVENTS                                                                                     \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |     \
	 IN_ONLYDIR)

struct dir_watch {
	char *path;
	loop_fn *fn;
	void *arg;
	int fd; /* -1: no inotify */
	struct poller *poller;
	int wd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

/* What happened does not matter: the callback reads the directory. */
static void on_readable(void *arg, int events)
{
	struct dir_watch *watch = arg;
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(watch->fd, buffer, sizeof(buffer))) > 0)
		for (const char *p = buffer; p < buffer + n;) {
			const struct inotify_event *event = (const void *)p;

			if ((event->mask & IN_IGNORED) && event->wd == watch->wd)
				watch->wd = -1;
			p += sizeof(*event) + event->len;
		}
	watch->fn(watch->arg);
}

struct dir_watch *dir_watch_new(struct loop *loop, const char *path, loop_fn *fn, void *arg)
{
	struct dir_watch *watch = mem_new(struct dir_watch);

	watch->path = str_dup(path);
	watch->fn = fn;
	watch->arg = arg;
	watch->wd = -1;
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd < 0) {
		log_warn("cannot use inotify, polling the directory", F_STR("dir", path),
			 F_STR("error", strerror(errno)));
		return watch;
	}
	watch->poller = poller_new(loop, watch->fd, on_readable, watch);
	poller_want(watch->poller, POLL_READ);
	return watch;
}

void dir_watch_free(struct dir_watch *watch)
{
	if (!watch)
		return;
	if (watch->fd >= 0) {
		poller_free(watch->poller);
		(void)close(watch->fd);
	}
	mem_free(watch->path);
	mem_free(watch);
}

bool dir_watch_renew(struct dir_watch *watch)
{
	struct stat st;

	if (stat(watch->path, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (watch->fd < 0 || (watch->wd >= 0 && watch->dev == st.st_dev && watch->ino == st.st_ino))
		return true;
	if (watch->wd >= 0)
		(void)inotify_rm_watch(watch->fd, watch->wd);
	watch->wd = inotify_add_watch(watch->fd, watch->path, EVENTS);
	watch->dev = st.st_dev;
	watch->ino = st.st_ino;
	return true;
}

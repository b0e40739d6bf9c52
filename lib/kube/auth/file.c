// SPDX-License-Identifier: Apache-2.0
/*
 * Looking costs one stat(2); reading happens when the identity changed, or a minute has passed and
 * some file system did not show it.
 */
#include "lib/kube/auth/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/own_fd.h"

static struct file_id id_of(const struct stat *st)
{
	return (struct file_id){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.modified = st->st_mtim,
		.changed = st->st_ctim,
	};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_id(const struct file_id *a, const struct file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       same_time(&a->modified, &b->modified) && same_time(&a->changed, &b->changed);
}

static int read_all(int fd, const char *path, size_t max, struct strbuf *ret, struct err *err)
{
	size_t before = ret->len;
	char chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(err, "FileUnreadable", "%s", path);
			break;
		}
		strbuf_add(ret, chunk, (size_t)n);
		if (ret->len - before > max) {
			err_set(err, ERR_INVALID, "FileTooLarge", "%s is larger than %zu bytes",
				path, max);
			n = -1;
			break;
		}
	}
	explicit_bzero(chunk, sizeof(chunk));
	if (n < 0)
		strbuf_cut(ret, before);
	return (int)n;
}

int file_read(const char *path, size_t max, struct strbuf *ret, struct file_id *ret_id,
	      struct err *err)
{
	assert(path && max > 0 && ret);
	/* Without O_NONBLOCK the open alone would wait for a FIFO's writer. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "FileUnreadable", "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "FileUnreadable",
			       "%s is %s, must be a regular file", path,
			       S_ISDIR(st.st_mode) ? "a directory" : "a device or a pipe");
	if (read_all(fd, path, max, ret, err) < 0)
		return -1;
	if (ret_id)
		*ret_id = id_of(&st);
	return 0;
}

static bool must_read(struct file_watch *w, int64_t now_ms)
{
	struct file_id id;
	struct stat st;

	if (!w->seen || w->stale || now_ms - w->read_ms >= FILE_REREAD_MS)
		return true;
	/* A name that is gone must be read too: that is where the error comes from. */
	if (stat(w->path, &st) < 0)
		return true;
	id = id_of(&st);
	return !same_id(&id, &w->id);
}

int file_watch_look(struct file_watch *w, int64_t now_ms, struct strbuf *ret, struct err *err)
{
	assert(w->path && w->max > 0);
	if (w->seen && !w->stale && now_ms - w->looked_ms < FILE_LOOK_MS)
		return 0;
	if (!must_read(w, now_ms)) {
		w->looked_ms = now_ms;
		return 0;
	}
	w->looked_ms = now_ms;
	w->stale = false;
	if (file_read(w->path, w->max, ret, &w->id, err) < 0) {
		/* No identity matches this one, so the next look tries again. */
		w->id = (struct file_id){0};
		w->seen = true;
		return -1;
	}
	w->seen = true;
	w->read_ms = now_ms;
	return 1;
}

void file_watch_stale(struct file_watch *w)
{
	w->stale = true;
}

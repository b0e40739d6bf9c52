// SPDX-License-Identifier: Apache-2.0
/* Small files that other programs replace while we run: tokens, certificates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Which content a name stood for: changes on rename over it, on symlink swap, on writing in place.
 */
struct file_id {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified;
	struct timespec changed;
};

/*
 * Read a regular file whole; anything else, a FIFO for example, is refused and never waited for.
 * ret is appended to; ret_id (may be NULL) identifies what was read. Errors: ERR_HOST
 * "FileUnreadable" with errno, ERR_INVALID "FileUnreadable" for another type of file, ERR_INVALID
 * "FileTooLarge". The text starts with the path.
 */
int file_read(const char *path, size_t max, struct strbuf *ret, struct file_id *ret_id,
	      struct err *err);

/* Follows one file. `struct file_watch w = {.path = p, .max = n};`; the path is borrowed. */
struct file_watch {
	const char *path;
	size_t max;
	bool seen;         /* id and the times are set */
	struct file_id id; /* what was read last */
	int64_t looked_ms;
	int64_t read_ms;
	bool stale; /* read again at the next look, whenever it was */
};

enum {
	FILE_LOOK_MS = 1000,    /* stat(2) no more often than this */
	FILE_REREAD_MS = 60000, /* and read no less often than this */
};

/*
 * 1: read again, ret holds the content (which may be what it was); 0: nothing to do; -1: cannot be
 * read now, tried again at the next look. After set-up or file_watch_stale, the first look reads.
 */
int file_watch_look(struct file_watch *w, int64_t now_ms, struct strbuf *ret, struct err *err);

void file_watch_stale(struct file_watch *w);

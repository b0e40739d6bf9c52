// SPDX-License-Identifier: Apache-2.0
/*
 * A connected stream socket on the loop, with the bytes that have come and those that are still to
 * go. What the bytes mean is its user's: one dialect for each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/loop/loop.h"

struct stream;

struct stream_config {
	struct loop *loop;
	int fd; /* the stream's from now on */
	/*
	 * Take one whole message off `in`, which holds all that has come. False: there is none; it
	 * is called again when more has come. May free the stream; `in` is gone then.
	 */
	bool (*take)(void *arg, struct strbuf *in);
	/*
	 * Nothing comes or goes any more: ERR_TRANSIENT "ChannelClosed" when the other side has
	 * ended, or what stream_lose() said. Once, never from a call of the stream's user. May free
	 * the stream.
	 */
	void (*lost)(void *arg, const struct err *err);
	/*
	 * A descriptor came along, before the bytes that it came with; close-on-exec, the callee's.
	 * NULL: none can come. May not free the stream.
	 */
	void (*descriptor)(void *arg, int fd);
	void *arg;
};

struct stream *stream_new(const struct stream_config *config);
/* What was sent and is not on its way yet is dropped. At any time. Accepts NULL. */
void stream_free(struct stream *stream);

/*
 * Never waits: what the socket does not take now goes later. On a stream that is lost nothing
 * happens. Of one whose other side reads no more, what it had said before is still taken.
 */
void stream_send(struct stream *stream, const void *data, size_t len);
/* Bytes that are still to go. */
size_t stream_waiting(const struct stream *stream);

/* `lost` comes, with this; nothing is taken or sent before. */
void stream_lose(struct stream *stream, const struct err *why);
/* The same, but what was sent goes first. */
void stream_finish(struct stream *stream, const struct err *why);

/*
 * Read what has come until now, for a user that cannot wait for the loop. Returns all that was not
 * taken yet, borrowed, to be taken from. Calls nothing back.
 */
struct strbuf *stream_rest(struct stream *stream);

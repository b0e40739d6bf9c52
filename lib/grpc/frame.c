// SPDX-License-Identifier: Apache-2.0
/*
 * Cutting a stream of bytes into messages. Memory grows with what has arrived, never with what a
 * length announces.
 */
#include "lib/grpc/frame.h"

#include <assert.h>

enum {
	FLAG_PLAIN = 0,
	FLAG_COMPRESSED = 1,
};

void grpc_frames_init(struct grpc_frames *frames, size_t max)
{
	assert(frames && max > 0);
	*frames = (struct grpc_frames){.max = max};
}

void grpc_frames_done(struct grpc_frames *frames)
{
	strbuf_done(&frames->body);
}

bool grpc_frames_is_partial(const struct grpc_frames *frames)
{
	return frames->head_len > 0;
}

void grpc_frame_head(uint8_t out[GRPC_FRAME_HEAD], uint32_t len)
{
	out[0] = FLAG_PLAIN;
	out[1] = (uint8_t)(len >> 24);
	out[2] = (uint8_t)(len >> 16);
	out[3] = (uint8_t)(len >> 8);
	out[4] = (uint8_t)len;
}

static int read_head(struct grpc_frames *frames, struct grpc_status *status)
{
	const uint8_t *head = frames->head;

	frames->want =
		(size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
	if (head[0] == FLAG_COMPRESSED)
		return grpc_status_set(status, GRPC_UNIMPLEMENTED,
				       "compressed messages are not supported");
	if (head[0] != FLAG_PLAIN)
		return grpc_status_set(status, GRPC_INTERNAL,
				       "a message starts with flag %u; there are 0 and 1", head[0]);
	if (frames->want > frames->max)
		return grpc_status_set(status, GRPC_RESOURCE_EXHAUSTED,
				       "a message of %zu bytes; at most %zu are taken",
				       frames->want, frames->max);
	return 0;
}

/* Read bytes of the head. Return how many were used; the rest comes with the next call. */
static size_t take_head(struct grpc_frames *frames, const uint8_t *data, size_t len)
{
	size_t missing = GRPC_FRAME_HEAD - frames->head_len;
	size_t n = len < missing ? len : missing;

	memcpy(frames->head + frames->head_len, data, n);
	frames->head_len += n;
	return n;
}

static bool deliver(struct grpc_frames *frames, const uint8_t *data, grpc_frame_fn *fn, void *arg)
{
	bool go_on = fn(arg, frames->want ? data : NULL, frames->want);

	frames->head_len = 0;
	/*
	 * Messages differ in size by far; the room of a large one is not kept for the small ones
	 * that follow.
	 */
	strbuf_done(&frames->body);
	frames->has_failed = !go_on;
	return go_on;
}

int grpc_frames_feed(struct grpc_frames *frames, const void *data, size_t len, grpc_frame_fn *fn,
		     void *arg, struct grpc_status *status)
{
	const uint8_t *at = data, *end = at + len;

	assert(frames && (data || len == 0) && fn && status);
	if (len == 0)
		return 0;
	while (!frames->has_failed) {
		size_t missing;

		if (frames->head_len < GRPC_FRAME_HEAD) {
			if (at == end)
				return 0;
			at += take_head(frames, at, (size_t)(end - at));
			if (frames->head_len < GRPC_FRAME_HEAD)
				return 0;
			if (read_head(frames, status) < 0) {
				frames->has_failed = true;
				strbuf_done(&frames->body);
				return -1;
			}
		}
		missing = frames->want - frames->body.len;
		if ((size_t)(end - at) < missing) {
			strbuf_add(&frames->body, at, (size_t)(end - at));
			return 0;
		}
		/* A message that lies in one piece is not copied. */
		if (frames->body.len == 0) {
			if (!deliver(frames, at, fn, arg))
				return 0;
		} else {
			strbuf_add(&frames->body, at, missing);
			if (!deliver(frames, (const uint8_t *)frames->body.data, fn, arg))
				return 0;
		}
		at += missing;
	}
	return 0;
}

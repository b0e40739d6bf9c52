// SPDX-License-Identifier: Apache-2.0
/*
 * Readiness of the socket becomes one read, or as many writes as it takes. Between the loop and
 * what gives the bytes their meaning (nodeagent).
 */
#include "lib/loop/stream.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/packet.h"

#define CHUNK 65536

struct stream {
	struct stream_config config;
	struct poller *poller;
	struct deferred *losing; /* says why, where a call of the user may not */
	struct strbuf in, out;   /* without memory when empty: it rests for most of its time */
	bool is_finishing;       /* it is lost when `out` is on its way */
	bool is_lost, is_told;
	struct err why;
	/* A callback frees it: its memory stays until on_socket() has seen that. */
	bool is_in_turn, is_freed;
};

/* ---- its end --------------------------------------------------------------------------------- */

static void say_lost(void *arg)
{
	struct stream *stream = arg;

	if (stream->is_told)
		return;
	stream->is_told = true;
	stream->config.lost(stream->config.arg, &stream->why);
}

void stream_lose(struct stream *stream, const struct err *why)
{
	if (stream->is_lost)
		return;
	stream->is_lost = true;
	stream->why = *why;
	poller_want(stream->poller, 0);
	deferred_run(stream->losing);
}

static void lose_closed(struct stream *stream)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "ChannelClosed", "the other process has ended");
	stream_lose(stream, &err);
}

/* ---- both ways ------------------------------------------------------------------------------- */

/* Bytes that the socket took. What is dropped counts as taken. */
static size_t send_some(struct stream *stream, const char *data, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		ssize_t n = send(stream->config.fd, data + sent, len - sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0) {
			sent += (size_t)n;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			/* Its last words may wait to be read; after them reading finds the end. */
			return len;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			lose_closed(stream);
			break;
		}
	}
	return sent;
}

/* After something was sent. */
static void settle(struct stream *stream)
{
	if (stream->is_lost)
		return;
	if (stream->out.len == 0)
		strbuf_done(&stream->out);
	if (stream->out.len == 0 && stream->is_finishing)
		stream_lose(stream, &stream->why);
	else
		poller_want(stream->poller, POLL_READ | (stream->out.len > 0 ? POLL_WRITE : 0));
}

void stream_send(struct stream *stream, const void *data, size_t len)
{
	size_t sent;

	if (stream->is_lost || stream->is_finishing)
		return;
	sent = stream->out.len > 0 ? 0 : send_some(stream, data, len);
	strbuf_add(&stream->out, (const char *)data + sent, len - sent);
	settle(stream);
}

/* One reading at a time: what is left calls again. False: there was nothing. */
static bool receive(struct stream *stream)
{
	char *to;
	ssize_t n;
	int fd = -1;

	strbuf_reserve(&stream->in, CHUNK);
	to = stream->in.data + stream->in.len;
	do
		n = stream->config.descriptor ? packet_receive(stream->config.fd, to, CHUNK, &fd)
					      : recv(stream->config.fd, to, CHUNK, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (fd >= 0)
		stream->config.descriptor(stream->config.arg, fd);
	if (n > 0)
		stream->in.len += (size_t)n;
	else if (n == 0 || errno != EAGAIN)
		lose_closed(stream);
	return n > 0;
}

static void on_socket(void *arg, int events)
{
	struct stream *stream = arg;
	bool goes_on = true;

	if (events & POLL_WRITE) {
		strbuf_consume(&stream->out, send_some(stream, stream->out.data, stream->out.len));
		settle(stream);
	}
	stream->is_in_turn = true;
	if (!stream->is_lost && (events & ~POLL_WRITE) && receive(stream))
		while (goes_on && !stream->is_freed && !stream->is_lost)
			goes_on = stream->config.take(stream->config.arg, &stream->in);
	if (!stream->is_freed && stream->in.len == 0)
		strbuf_done(&stream->in);
	if (!stream->is_freed && stream->is_lost)
		say_lost(stream);
	stream->is_in_turn = false;
	if (stream->is_freed)
		mem_free(stream);
}

struct strbuf *stream_rest(struct stream *stream)
{
	while (!stream->is_lost && receive(stream))
		;
	return &stream->in;
}

size_t stream_waiting(const struct stream *stream)
{
	return stream->out.len;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void stream_finish(struct stream *stream, const struct err *why)
{
	if (stream->is_lost || stream->is_finishing)
		return;
	stream->is_finishing = true;
	stream->why = *why;
	settle(stream);
}

struct stream *stream_new(const struct stream_config *config)
{
	struct stream *stream = mem_new(struct stream);

	assert(config->take && config->lost);
	stream->config = *config;
	stream->losing = deferred_new(config->loop, say_lost, stream);
	stream->poller = poller_new(config->loop, config->fd, on_socket, stream);
	poller_want(stream->poller, POLL_READ);
	return stream;
}

void stream_free(struct stream *stream)
{
	if (!stream)
		return;
	poller_free(stream->poller);
	deferred_free(stream->losing);
	(void)close(stream->config.fd);
	strbuf_done(&stream->in);
	strbuf_done(&stream->out);
	stream->is_freed = true;
	if (!stream->is_in_turn)
		mem_free(stream);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/kubeletd/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"

#define CHUNK 65536
/* Of what the other side has not read yet. */
#define WAITING_MAX (2 * JSON_FRAME_MAX)

struct channel {
	struct channel_config config;
	struct poller *poller;
	struct deferred *losing; /* says why, where channel_send() may not */
	struct strbuf in, out;   /* without memory when empty: it rests for most of its time */
	bool is_lost;
	struct err why;
	bool *freed; /* while a callback runs: set when it frees us */
};

/* ---- its end --------------------------------------------------------------------------------- */

static void say_lost(void *arg)
{
	struct channel *channel = arg;

	channel->config.lost(channel->config.arg, &channel->why);
}

static void lose(struct channel *channel, const struct err *why)
{
	if (channel->is_lost)
		return;
	channel->is_lost = true;
	channel->why = *why;
	poller_want(channel->poller, 0);
	deferred_run(channel->losing);
}

static void lose_closed(struct channel *channel)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "ChannelClosed", "the other process has ended");
	lose(channel, &err);
}

/* ---- both ways ------------------------------------------------------------------------------- */

static void transmit(struct channel *channel)
{
	while (channel->out.len > 0) {
		ssize_t n = send(channel->config.fd, channel->out.data, channel->out.len,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0) {
			strbuf_consume(&channel->out, (size_t)n);
		} else if (errno == EAGAIN) {
			break;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			/* Its last words may wait to be read; after them reading finds the end. */
			strbuf_reset(&channel->out);
		} else if (errno != EINTR) {
			lose_closed(channel);
			return;
		}
	}
	if (channel->out.len == 0)
		strbuf_done(&channel->out);
	poller_want(channel->poller, POLL_READ | (channel->out.len > 0 ? POLL_WRITE : 0));
}

void channel_send(struct channel *channel, const json_t *message)
{
	struct err err = {0};

	if (channel->is_lost)
		return;
	if (json_frame_write(message, &channel->out, &err) < 0) {
		lose(channel, &err);
		return;
	}
	transmit(channel);
	if (channel->out.len <= WAITING_MAX)
		return;
	(void)err_set(&err, ERR_BUG, "ChannelFull", "the other process has not read %zu bytes",
		      channel->out.len);
	lose(channel, &err);
}

/* False: the callback has freed us, or there is nothing more to be had. */
static bool hear(struct channel *channel)
{
	json_auto_t *message = NULL;
	struct err err = {0};
	bool freed = false;

	if (json_frame_read(&channel->in, &message, &err) < 0) {
		lose(channel, &err);
		return false;
	}
	if (!message) {
		if (channel->in.len == 0)
			strbuf_done(&channel->in);
		return false;
	}
	channel->freed = &freed;
	channel->config.heard(channel->config.arg, message);
	if (freed)
		return false;
	channel->freed = NULL;
	return !channel->is_lost;
}

/* One reading at a time: what is left calls again. */
static void receive(struct channel *channel)
{
	ssize_t n;

	strbuf_reserve(&channel->in, CHUNK);
	do
		n = recv(channel->config.fd, channel->in.data + channel->in.len, CHUNK,
			 MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		lose_closed(channel);
		return;
	}
	channel->in.len += (size_t)n;
	while (hear(channel))
		;
}

static void on_socket(void *arg, int events)
{
	struct channel *channel = arg;

	if (events & POLL_WRITE)
		transmit(channel);
	if (!channel->is_lost && (events & ~POLL_WRITE))
		receive(channel);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct channel *channel_new(const struct channel_config *config)
{
	struct channel *channel = mem_new(struct channel);

	channel->config = *config;
	channel->losing = deferred_new(config->loop, say_lost, channel);
	channel->poller = poller_new(config->loop, config->fd, on_socket, channel);
	poller_want(channel->poller, POLL_READ);
	return channel;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	if (channel->freed)
		*channel->freed = true;
	poller_free(channel->poller);
	deferred_free(channel->losing);
	(void)close(channel->config.fd);
	strbuf_done(&channel->in);
	strbuf_done(&channel->out);
	mem_free(channel);
}

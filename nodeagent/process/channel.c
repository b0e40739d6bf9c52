// SPDX-License-Identifier: Apache-2.0
/*
 * Frames (lib/json/frame.h) on a stream (lib/loop/stream.h); between the stream and kubeletd, cnid,
 * their workers and the agent.
 */
#include "nodeagent/process/channel.h"

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "lib/loop/stream.h"

/* Of what the other side has not read yet. */
#define WAITING_MAX (2 * JSON_FRAME_MAX)

struct channel {
	struct channel_config config;
	struct stream *stream;
};

void channel_send(struct channel *channel, const json_t *message)
{
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};

	if (json_frame_write(message, &out, &err) < 0) {
		stream_lose(channel->stream, &err);
		return;
	}
	stream_send(channel->stream, out.data, out.len);
	if (stream_waiting(channel->stream) <= WAITING_MAX)
		return;
	(void)err_set(&err, ERR_BUG, "ChannelFull", "the other process has not read %zu bytes",
		      stream_waiting(channel->stream));
	stream_lose(channel->stream, &err);
}

static bool take(void *arg, struct strbuf *in)
{
	const struct channel *channel = arg;
	json_auto_t *message = NULL;
	struct err err = {0};

	if (json_frame_read(in, &message, &err) < 0)
		stream_lose(channel->stream, &err);
	if (!message)
		return false;
	channel->config.heard(channel->config.arg, message);
	return true;
}

static void on_lost(void *arg, const struct err *err)
{
	const struct channel *channel = arg;

	channel->config.lost(channel->config.arg, err);
}

struct channel *channel_new(const struct channel_config *config)
{
	struct channel *channel = mem_new(struct channel);

	channel->config = *config;
	channel->stream = stream_new(&(struct stream_config){
		.loop = config->loop,
		.fd = config->fd,
		.take = take,
		.lost = on_lost,
		.arg = channel,
	});
	return channel;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	stream_free(channel->stream);
	mem_free(channel);
}

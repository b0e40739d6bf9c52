// SPDX-License-Identifier: Apache-2.0
/*
 * Messages of the plugin (nodeagent/cni/plugin/wire.h) on a stream (lib/loop/stream.h), and how
 * long they may take to come whole. Between the server and each connection.
 */
#include "nodeagent/cni/server/plugin_connection.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "lib/loop/stream.h"
#include "nodeagent/cni/worker/exec_wire.h"

/* For a call to come whole, or an answer to go. */
enum { PATIENCE_MS = 30000 };

struct plugin_connection {
	struct plugin_connection_config config;
	struct stream *stream;
	struct timer *patience;
	int netns; /* came along; -1 */
	bool has_called, is_done;
};

static void lose(const struct plugin_connection *c, const char *why)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "ChannelClosed", "%s", why);
	stream_lose(c->stream, &err);
}

static void on_lost(void *arg, const struct err *err)
{
	const struct plugin_connection *c = arg;

	timer_stop(c->patience);
	c->config.closed(c->config.arg);
}

static void on_patience(void *arg)
{
	lose(arg, "the plugin takes too long");
}

static bool take(void *arg, struct strbuf *in)
{
	struct plugin_connection *c = arg;
	auto_strbuf struct strbuf bytes = {0};
	struct wire_message message;
	int rc = wire_read(in->data, in->len, &message);

	if (rc == 0)
		return false;
	if (rc < 0 || message.kind != (c->has_called ? WIRE_RESULT : WIRE_CALL)) {
		lose(c, "the plugin sent no message that may come now");
		return false;
	}
	/* A copy, since what is called now may free us. */
	strbuf_add(&bytes, in->data, message.bytes);
	strbuf_consume(in, message.bytes);
	(void)wire_read(bytes.data, bytes.len, &message);
	if (c->has_called) {
		uint32_t id;
		json_auto_t *end = exec_wire_read(&message, &id);

		c->config.resulted(c->config.arg, id, end);
	} else {
		c->has_called = true;
		timer_stop(c->patience);
		c->config.called(c->config.arg, &message, take_fd(&c->netns));
	}
	return true;
}

/* Of several the first counts. */
static void on_descriptor(void *arg, int fd)
{
	struct plugin_connection *c = arg;

	if (c->netns < 0 && !c->has_called)
		c->netns = fd;
	else
		(void)close(fd);
}

struct plugin_connection *plugin_connection_new(const struct plugin_connection_config *config)
{
	struct plugin_connection *c = mem_new(struct plugin_connection);

	c->config = *config;
	c->netns = -1;
	c->patience = timer_new(config->loop, on_patience, c);
	timer_start(c->patience, PATIENCE_MS);
	c->stream = stream_new(&(struct stream_config){
		.loop = config->loop,
		.fd = config->fd,
		.take = take,
		.lost = on_lost,
		.descriptor = on_descriptor,
		.arg = c,
	});
	return c;
}

int plugin_connection_exec(struct plugin_connection *c, uint32_t id, const json_t *exec)
{
	struct wire_buffer out = {0};
	int rc = exec_wire_write(&out, id, exec);

	if (rc == 0)
		stream_send(c->stream, out.data, out.len);
	free(out.data);
	return rc;
}

void plugin_connection_done(struct plugin_connection *c, const char *text, int status)
{
	struct wire_buffer out = {0};
	struct err err = {0};
	size_t begun;

	if (c->is_done)
		return;
	begun = wire_begin(&out, WIRE_DONE);
	wire_add_number(&out, WIRE_STATUS, (uint32_t)status);
	if (text)
		wire_add_text(&out, WIRE_STDOUT, text);
	/* A plugin that hears nothing says to try again. */
	(void)wire_end(&out, begun);
	stream_send(c->stream, out.data, out.len);
	free(out.data);
	c->is_done = true;
	timer_start(c->patience, PATIENCE_MS);
	(void)err_set(&err, ERR_TRANSIENT, "ChannelClosed", "the plugin has its answer");
	stream_finish(c->stream, &err);
}

void plugin_connection_free(struct plugin_connection *c)
{
	if (!c)
		return;
	stream_free(c->stream);
	timer_free(c->patience);
	own_close_p(&c->netns);
	mem_free(c);
}

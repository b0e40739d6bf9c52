// SPDX-License-Identifier: Apache-2.0
/*
 * The worker's end of the line. Programs run side by side, so replies are kept by id until they are
 * asked for; one that is not waited for any more is passed over.
 */
#include "nodeagent/cni/worker/worker_channel.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/worker/attachment.h"

enum { KEY_SIZE = 24 };

static const char *key_of(int64_t id, char ret[KEY_SIZE])
{
	(void)snprintf(ret, KEY_SIZE, "%lld", (long long)id);
	return ret;
}

void worker_channel_pass(struct worker_channel *line, const json_t *message)
{
	auto_strbuf struct strbuf out = {0};

	if (json_frame_write(message, &out, NULL) == 0)
		(void)json_frame_send(line->fd, &out);
}

void worker_channel_send(struct worker_channel *line, const char *key, json_t *value)
{
	json_auto_t *message = json_object();

	json_put(message, key, value);
	worker_channel_pass(line, message);
}

int64_t worker_channel_begin(struct worker_channel *line, json_t *request)
{
	char key[KEY_SIZE];

	if (!line->replies)
		line->replies = json_object();
	json_put(line->replies, key_of(++line->last_id, key), json_null());
	json_put_int(request, "id", line->last_id);
	worker_channel_pass(line, request);
	json_decref(request);
	return line->last_id;
}

void worker_channel_read(struct worker_channel *line)
{
	bool is_there = json_frame_take_in(line->fd, &line->in, MSG_DONTWAIT);

	for (;;) {
		json_auto_t *message = NULL;
		char key[KEY_SIZE];

		is_there = json_frame_read(&line->in, &message, NULL) == 0 && is_there;
		if (!message)
			break;
		(void)key_of(json_integer_value(json_at(message, "id")), key);
		if (json_object_get(line->replies, key))
			json_put(line->replies, key, json_incref(message));
	}
	line->is_lost |= !is_there;
}

bool worker_channel_has(const struct worker_channel *line, int64_t id)
{
	char key[KEY_SIZE];

	return line->is_lost || json_is_object(json_object_get(line->replies, key_of(id, key)));
}

/* Until then, clock_ms(); 0: for ever. */
static json_t *end_until(struct worker_channel *line, int64_t id, int64_t until, struct err *err)
{
	json_auto_t *reply = NULL;
	const json_t *result = NULL;
	struct err why = {0};
	int64_t left = 1;
	char key[KEY_SIZE];

	while (!worker_channel_has(line, id) && (!until || (left = until - clock_ms()) > 0)) {
		struct pollfd fd = {.fd = line->fd, .events = POLLIN};

		if (poll(&fd, 1, until ? (int)left : -1) > 0)
			worker_channel_read(line);
	}
	reply = json_incref(json_object_get(line->replies, key_of(id, key)));
	(void)json_object_del(line->replies, key);
	if (json_is_object(reply)) {
		if (ask_reply_read(reply, &result, &why, &why) == 0 && result)
			return json_incref((json_t *)result);
	} else if (line->is_lost) {
		(void)err_set(
			&why, ERR_TRANSIENT, "ServerGone",
			"the server of this node's networks has ended; the runtime tries again");
	} else {
		(void)err_set(&why, ERR_TRANSIENT, "AgentAway",
			      "the agent of this node did not answer in time");
	}
	if (err)
		*err = why;
	return NULL;
}

void worker_channel_drop(struct worker_channel *line, int64_t id)
{
	char key[KEY_SIZE];

	(void)json_object_del(line->replies, key_of(id, key));
}

json_t *worker_channel_end(struct worker_channel *line, int64_t id, struct err *err)
{
	return end_until(line, id, 0, err);
}

json_t *worker_channel_ask(struct worker_channel *line, json_t *request, struct err *err)
{
	return end_until(line, worker_channel_begin(line, request), 0, err);
}

json_t *worker_channel_ask_within(struct worker_channel *line, json_t *request, int64_t wait_ms,
				  struct err *err)
{
	int64_t until = clock_ms() + wait_ms;

	return end_until(line, worker_channel_begin(line, request), until, err);
}

void worker_channel_note_step(struct attachment *attachment, const char *step, int64_t took_us,
			      bool ok)
{
	json_t *entry = json_object();

	json_put_str(entry, "step", step);
	json_put(entry, "seconds", json_real((double)took_us / 1e6));
	json_put_bool(entry, "ok", ok);
	json_array_append_new(attachment->steps, entry);
}

json_t *worker_channel_ask_for(struct attachment *attachment, const char *step, json_t *request,
			       struct err *err)
{
	int64_t begun = clock_us();
	json_t *answer = worker_channel_ask(attachment->line, request, err);

	worker_channel_note_step(attachment, step, clock_us() - begun, answer != NULL);
	return answer;
}

json_t *worker_channel_request_new(const struct attachment *attachment, const char *kind)
{
	json_t *request = json_object();

	json_put_str(request, "kind", kind);
	json_put_str(request, "container", attachment->container);
	json_put_str(request, "ifname", attachment->key.ifname);
	json_put_str(request, "netns", json_str_at(attachment->env, "CNI_NETNS"));
	json_put(request, "pod", json_deep_copy(attachment->pod));
	return request;
}

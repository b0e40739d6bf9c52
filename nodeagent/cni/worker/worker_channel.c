// SPDX-License-Identifier: Apache-2.0
/*
 * The worker's and the crew's end of a line. A request waits for the reply with its id: a late
 * reply to the request before is passed over.
 */
#include "nodeagent/cni/worker/worker_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/worker/attachment.h"

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

/* The reply with this id, new. NULL with err: none has come until then, clock_ms(); 0: for ever. */
static json_t *await_reply(struct worker_channel *line, int64_t id, int64_t until, struct err *err)
{
	for (;;) {
		struct pollfd fd = {.fd = line->fd, .events = POLLIN};
		json_auto_t *message = NULL;
		bool is_there = json_frame_read(&line->in, &message, NULL) == 0;
		int64_t left = until - clock_ms();

		if (message && json_integer_value(json_at(message, "id")) == id)
			return take_ptr(message);
		if (message)
			continue;
		if (until && left <= 0) {
			(void)err_set(err, ERR_TRANSIENT, "AgentAway",
				      "the agent of this node did not answer in time");
			return NULL;
		}
		if (!is_there || (poll(&fd, 1, until ? (int)left : -1) > 0 &&
				  !json_frame_take_in(line->fd, &line->in, MSG_DONTWAIT))) {
			(void)err_set(err, ERR_TRANSIENT, "ServerGone",
				      "the server of this node's networks has ended; the runtime "
				      "tries again");
			return NULL;
		}
	}
}

static json_t *ask_until(struct worker_channel *line, json_t *request, int64_t until,
			 struct err *err)
{
	json_auto_t *reply = NULL;
	const json_t *result = NULL;
	struct err why = {0};

	json_put_int(request, "id", ++line->last_id);
	worker_channel_pass(line, request);
	json_decref(request);
	reply = await_reply(line, line->last_id, until, &why);
	if (reply && ask_reply_read(reply, &result, &why, &why) == 0 && result)
		return json_incref((json_t *)result);
	if (err)
		*err = why;
	return NULL;
}

json_t *worker_channel_ask(struct worker_channel *line, json_t *request, struct err *err)
{
	return ask_until(line, request, 0, err);
}

json_t *worker_channel_ask_within(struct worker_channel *line, json_t *request, int64_t wait_ms,
				  struct err *err)
{
	return ask_until(line, request, clock_ms() + wait_ms, err);
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

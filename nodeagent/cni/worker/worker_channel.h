// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's line to the server that forked it: JSON frames on a stream socket, in blocking code.
 *
 * To the server: requests (lib/json/ask.h), of one process one at a time, and {"done": {…}}, the
 * last. The agent replies to a request, but to
 *
 *	{"kind": "exec", "path", "env": ["K=V"], "stdin"}
 *
 * a program on the host, run by the plugin: {"status": 0, "stdout": "…", "stderr": "…"}.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_WORKER_WORKER_CHANNEL_H
#define ORBWEAVER_NODEAGENT_CNI_WORKER_WORKER_CHANNEL_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

struct attachment;

struct worker_channel {
	int fd;
	struct strbuf in;
	int64_t last_id;
};

/* Send {"key": value}; takes the value. A server that is gone ends us by a signal. */
void worker_channel_send(struct worker_channel *line, const char *key, json_t *value);
/* Send a whole message as it is. */
void worker_channel_pass(struct worker_channel *line, const json_t *message);

/*
 * Send a request, taken, of which the id is set here, and wait for the reply: its result, new. NULL
 * with err: the error of the reply, or ERR_TRANSIENT "ServerGone".
 */
json_t *worker_channel_ask(struct worker_channel *line, json_t *request, struct err *err);
/* The same, but no longer than this; ERR_TRANSIENT "AgentAway" then. */
json_t *worker_channel_ask_within(struct worker_channel *line, json_t *request, int64_t wait_ms,
				  struct err *err);

/* A request of the agent about this attachment, new; what is known of it goes along. */
json_t *worker_channel_request_new(const struct attachment *attachment, const char *kind);

#endif

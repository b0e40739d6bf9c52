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
#ifndef ORBWEAVER_NODEAGENT_PROCESS_LINE_H
#define ORBWEAVER_NODEAGENT_PROCESS_LINE_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

struct attachment;

struct line {
	int fd;
	struct strbuf in;
	int64_t last_id;
};

/* Send {"key": value}; takes the value. A server that is gone ends us by a signal. */
void line_send(struct line *line, const char *key, json_t *value);
/* Send a whole message as it is. */
void line_pass(struct line *line, const json_t *message);

/*
 * Send a request, taken, of which the id is set here, and wait for the reply: its result, new. NULL
 * with err: the error of the reply, or ERR_TRANSIENT "ServerGone".
 */
json_t *line_ask(struct line *line, json_t *request, struct err *err);
/* The same, but no longer than this; ERR_TRANSIENT "AgentAway" then. */
json_t *line_ask_within(struct line *line, json_t *request, int64_t wait_ms, struct err *err);

/* A request of the agent about this attachment, new; what is known of it goes along. */
json_t *line_request_new(const struct attachment *attachment, const char *kind);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's line to the server that forked it: JSON frames on a stream socket, in blocking code.
 *
 * To the server: requests (lib/json/ask.h), and {"done": {…}}, the last. The agent replies to a
 * request, one at a time, but to
 *
 *	{"kind": "exec", "path", "env": ["K=V"], "stdin"}
 *
 * programs on the host, run side by side by the plugin: {"status": 0, "stdout": "…", "stderr":
 * "…"}.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

struct attachment;

struct worker_channel {
	int fd;
	struct strbuf in;
	int64_t last_id;
	json_t *replies; /* by id: those that are waited for, null until they come; NULL: none */
	bool is_lost;    /* nothing comes any more */
};

/* Send {"key": value}; takes the value. A server that is gone ends us by a signal. */
void worker_channel_send(struct worker_channel *line, const char *key, json_t *value);
/* Send a whole message as it is. */
void worker_channel_pass(struct worker_channel *line, const json_t *message);

/* Send a request, taken, of which the id is set here and returned. worker_channel_end() is due. */
int64_t worker_channel_begin(struct worker_channel *line, json_t *request);
/* Read what has come, without waiting: the descriptor is readable. */
void worker_channel_read(struct worker_channel *line);
/* worker_channel_end() does not wait. */
bool worker_channel_has(const struct worker_channel *line, int64_t id);
/*
 * Wait for the reply to this request: its result, new. NULL with err: the error of the reply, or
 * ERR_TRANSIENT "ServerGone".
 */
json_t *worker_channel_end(struct worker_channel *line, int64_t id, struct err *err);
/* Do not wait for it any more. */
void worker_channel_drop(struct worker_channel *line, int64_t id);
/* Begin, and wait for the end. */
json_t *worker_channel_ask(struct worker_channel *line, json_t *request, struct err *err);
/* The same, but wait no longer than this; ERR_TRANSIENT "AgentAway" then. */
json_t *worker_channel_ask_within(struct worker_channel *line, json_t *request, int64_t wait_ms,
				  struct err *err);

/* A part of a call took so long: `step` is a label of the metrics, which `done` brings along. */
void worker_channel_note_step(struct attachment *attachment, const char *step, int64_t took_us,
			      bool ok);

/* worker_channel_ask() for an attachment, on its line, and worker_channel_note_step(). */
json_t *worker_channel_ask_for(struct attachment *attachment, const char *step, json_t *request,
			       struct err *err);

/* A request of the agent about this attachment, new; what is known of it goes along. */
json_t *worker_channel_request_new(const struct attachment *attachment, const char *kind);

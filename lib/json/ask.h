// SPDX-License-Identifier: Apache-2.0
/*
 * What one process of ours asks of another, each a frame (frame.h):
 *
 *	{"id": 7, "kind": "step", …}	a request; what else it has depends on its kind
 *	{"id": 7, "result": {…}}	the reply, or
 *	{"id": 7, "error": {"class": "Host", "sys": 16, "reason": "RdmaModeBusy", "text": "…"}}
 *
 * The id is the asker's, and comes back as it is. Beside requests there may be messages without a
 * reply; they have no "kind". Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* {"id", "kind"}, new. */
json_t *ask_new(int64_t id, const char *kind);

/* Takes result; NULL: the error. request, borrowed, has the id. Returns new. */
json_t *ask_reply_new(const json_t *request, json_t *result, const struct err *error);
/*
 * *ret_result borrowed, or NULL and *ret_error filled. -1 with err ERR_BUG "BadAnswer" when this is
 * not a reply, nothing else is changed then. Whose reply it is the caller sees by its id.
 */
int ask_reply_read(const json_t *reply, const json_t **ret_result, struct err *ret_error,
		   struct err *err);

/* A copy with another id, new, for a process that relays messages; members are shared. */
json_t *ask_with_id(const json_t *message, int64_t id);

/* An error alone, where it stands in another message: {"class", "sys", "reason", "text"}, new. */
json_t *ask_error_new(const struct err *error);
/* False: it is none, and ret is ERR_BUG "BadAnswer". */
bool ask_error_read(const json_t *error, struct err *ret);

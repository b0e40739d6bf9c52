// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's line to the server that forked it: JSON frames on a stream socket, in blocking code.
 *
 * To the server:
 *
 *	{"ask": {…}}	of the agent: answered by {"answer": …} or {"error": {…}}
 *	{"exec": {…}}	a program on the host, run by the plugin: answered by {"status": 0,
 *			"stdout": "…", "stderr": "…"} or {"error": {…}}, with "id" where it had one:
 *			several may run then
 *	{"done": {…}}	the last
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_LINE_H
#define ORBWEAVER_NODEAGENT_CNI_LINE_H

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

struct line {
	int fd;
	struct strbuf in;
};

/* Send {"key": value}; takes the value. A server that is gone ends us by a signal. */
void line_send(struct line *line, const char *key, json_t *value);

/*
 * The same, and wait for what comes back, new. NULL with err: the error of the answer, or
 * ERR_TRANSIENT "ServerGone".
 */
json_t *line_ask(struct line *line, const char *key, json_t *value, struct err *err);

/* Send a whole message as it is. */
void line_pass(struct line *line, const json_t *message);

/* Errors in frames: {"class": 3, "sys": 0, "reason": "…", "text": "…"}, new; and back. */
json_t *line_error_new(const struct err *err);
/* Returns -1 and fills err in. Anything else than an error is ERR_BUG "BadAnswer". */
int line_error_read(const json_t *error, struct err *err);

#endif

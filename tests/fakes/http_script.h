// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP/1.1 server on loopback that says exactly what a test wrote down, on the test's own loop.
 *
 * A fake stands here for behaviour that a healthy API server does not show on demand: cut
 * connections, 429, 410 in the middle of a list, silence, garbage. What a real server does by
 * itself is tested on a real one (tests/integration).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/loop/loop.h"

enum http_after {
	HTTP_KEEP, /* Content-Length and all of the body; the connection serves the next request */
	HTTP_CUT,  /* the body without its end, then the connection is closed */
	/* the body without its end, and nothing more: a stream; http_script_push adds to it */
	HTTP_OPEN,
};

struct http_reply {
	int status;          /* 0: 200; -1: no answer at all, then as `after` says (KEEP: hang) */
	const char *headers; /* more of them: "Retry-After: 1\r\n"; NULL: none */
	const char *body;    /* NULL: empty */
	int64_t delay_ms;
	enum http_after after;
	bool always; /* for every request that matches, not for one */
	/* Called when the request is there, before the answer goes. */
	loop_fn *seen;
	void *arg;
};

struct http_script;

/* Serves at once, on a port of its own. */
struct http_script *http_script_new(struct loop *loop);
void http_script_free(struct http_script *script);
uint16_t http_script_port(const struct http_script *script);

/*
 * Answer a request whose "METHOD target" begins with `start` like this. Replies are used in the
 * order in which they were added; strings are copied. A request without a reply is answered with
 * 418.
 */
void http_script_add(struct http_script *script, const char *start, const struct http_reply *reply);

/*
 * Lists as streams (KEP-3157) are answered from the script from now on. Until then they are refused
 * as API servers before 1.27 do, and such requests do not count as any.
 */
void http_script_stream_lists(struct http_script *script);

/* More bytes on all connections that were left open (HTTP_OPEN). */
void http_script_push(struct http_script *script, const char *bytes);
/* Close all connections, as a server that dies. */
void http_script_drop(struct http_script *script);

/* What came: "GET /x HTTP/1.1\r\nheaders\r\n\r\nbody"; NULL behind the last one. */
const char *http_script_request(const struct http_script *script, size_t i);
size_t http_script_count(const struct http_script *script, const char *start);
/* Replies that nobody asked for (`always` ones aside), and requests that none was written for. */
size_t http_script_unused(const struct http_script *script);
size_t http_script_unexpected(const struct http_script *script);

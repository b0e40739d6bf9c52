// SPDX-License-Identifier: Apache-2.0
/*
 * The client's side of a WebSocket (RFC 6455): bytes in, messages and bytes out. No socket, no
 * clock; pod_exec.h has the connection.
 *
 * Nothing that a server sends is trusted: heads, frames and messages have a size that they may not
 * exceed, and what the RFC forbids ends the connection.
 */
#ifndef ORBWEAVER_LIB_KUBE_WEBSOCKET_H
#define ORBWEAVER_LIB_KUBE_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

enum {
	/* Of the answer to the request, and of what a server says that refuses. */
	WEBSOCKET_HEAD_MAX = 64 * 1024,
	/* All fragments of a message together. */
	WEBSOCKET_MESSAGE_MAX = 1024 * 1024,
	/* Answers to pings that the server does not take. */
	WEBSOCKET_REPLIES_MAX = 64 * 1024,
};

enum websocket_state {
	WEBSOCKET_ASKED,   /* the server has not answered */
	WEBSOCKET_REFUSED, /* it answered with an error, whose text is not complete yet */
	WEBSOCKET_OPEN,
	WEBSOCKET_CLOSED, /* the server said so: nothing comes any more */
};

struct websocket {
	enum websocket_state state;
	/* Fill with bytes that nobody can guess (RFC 6455, 10.3); set by the caller. */
	void (*random)(void *bytes, size_t len);
	const char *protocols; /* asked for, with ", " between them; borrowed */
	struct strbuf in;      /* not understood yet */
	struct strbuf message; /* the fragments that came so far */
	bool in_message;
	int status; /* of HTTP, once it has answered */
	char accept[32];
};

struct websocket_request {
	const char *target; /* "/api/v1/…?command=ls" */
	const char *host;   /* value of the Host header */
	const char *agent;
	const char *authorization; /* value of the header; NULL: none */
};

/* A whole message; borrowed. -1 with err ends the connection. */
typedef int websocket_message_fn(void *arg, const char *bytes, size_t len, struct err *err);

/* Append the request that asks for the WebSocket to out. ws has `random` and `protocols`. */
void websocket_ask(struct websocket *ws, const struct websocket_request *request,
		   struct strbuf *out);

/*
 * The next bytes from the server. What has to be answered is appended to out. Returns 0, or -1 with
 * err: that of fn; of the server's refusal, as status.h has it; ERR_TRANSIENT "BadWebSocket" when
 * it does not keep to the RFC. Nothing may be fed after an error or in WEBSOCKET_CLOSED.
 */
int websocket_feed(struct websocket *ws, const char *bytes, size_t len, struct strbuf *out,
		   websocket_message_fn *fn, void *arg, struct err *err);

/*
 * The server has closed the connection. 0 if it had said so before, else -1 with err: its refusal,
 * or ERR_TRANSIENT "ConnectionLost".
 */
int websocket_end(struct websocket *ws, struct err *err);

void websocket_done(struct websocket *ws);

#endif

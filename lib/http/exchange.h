// SPDX-License-Identifier: Apache-2.0
/*
 * Requests and responses of one connection, without the connection: bytes come in, handlers are
 * called, bytes go out into a buffer. Knows no socket and no loop. Internal to lib/http.
 *
 * One request is in work at a time; what a client sends ahead waits in `in`. While EXCHANGE_GATED
 * and EXCHANGE_SENDING the caller reads no more; while EXCHANGE_STREAMING it reads, to notice a
 * client that goes, and one that sends more than a head ahead is cut off. So a connection holds at
 * most a head, a body of the size its route allows, one read, and a response or one fill of it.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "lib/http/chunks.h"
#include "lib/http/request.h"
#include "lib/http/server.h"

struct exchange;

/* What all connections of a server share. */
struct exchange_site {
	const char *name; /* for metrics */
	const struct http_route *routes;
	size_t n_routes;
	struct metric *requests, *duration;
	/*
	 * A gate or handler has answered later than it was asked, or a stream goes on: there is
	 * something to send.
	 */
	void (*answered)(struct exchange *x);
	struct exchange *large; /* those that hold room for a large body */
};

enum exchange_state {
	EXCHANGE_IDLE,    /* between requests */
	EXCHANGE_HEAD,    /* a request has begun */
	EXCHANGE_BODY,    /* its head is there, the body is coming */
	EXCHANGE_GATED,   /* it is whole, and the route's gate or handler has not answered yet */
	EXCHANGE_SENDING, /* the response is in `out` */
	/* a response goes on; what there is of it now is in `out` */
	EXCHANGE_STREAMING,
	/* all is said; what else comes is thrown away until the peer ends its side */
	EXCHANGE_DRAINING,
	EXCHANGE_OVER, /* all is said; close */
};

struct exchange {
	struct exchange_site *site;
	struct in6_addr peer;
	enum exchange_state state;

	/*
	 * To be sent now: in EXCHANGE_SENDING and EXCHANGE_STREAMING the response, in EXCHANGE_BODY
	 * "100 Continue", else empty. The caller calls exchange_sent when all of it has gone.
	 */
	struct strbuf out;
	/* Of the request: its first byte; then its whole head; then each fill of a stream. */
	int64_t started_us;
	void *arg;      /* the caller's */
	bool has_asked; /* a whole head has come on this connection, and it was a request */

	/* The rest is exchange.c's. */
	struct strbuf in; /* what has come and is not yet used */
	size_t large;     /* bytes of room for the body; in site->large while not 0 */
	struct exchange *prev_large, *next_large;
	char *head;                     /* of the current request */
	struct request req;             /* points into head */
	const struct http_route *route; /* NULL: none, and a refusal */
	struct http_asked *asked;       /* in EXCHANGE_GATED, of a gate */
	struct http_later *later;       /* in EXCHANGE_GATED, of a handler */
	struct http_stream {
		const struct http_source *source; /* NULL: none, or it has ended */
		void *arg;
		bool is_filling;
	} stream;
	int refusal; /* the status to answer with instead of asking the handler, 0 for none */
	unsigned int allowed; /* the methods that the path has */
	bool close_after;
	struct chunks chunks;
	struct strbuf body; /* what came in chunks */
	bool is_body_left;  /* the answer goes out before the request's end has come */
};

/* site is borrowed until exchange_done. */
void exchange_init(struct exchange *x, struct exchange_site *site, const struct in6_addr *peer);
void exchange_done(struct exchange *x);

/* Bytes have come; any number of them, in any state. May call a handler. */
void exchange_received(struct exchange *x, const void *data, size_t len);
/* `out` has been sent: go on, perhaps with a request that came ahead. May call a handler. */
void exchange_sent(struct exchange *x);
/* The request takes too long: 408. Only in EXCHANGE_HEAD and EXCHANGE_BODY. */
void exchange_timeout(struct exchange *x);

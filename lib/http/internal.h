/*
 * What server.c (listening, connections, the end) and exchange.c (requests and their responses) share.
 */
#ifndef ORBWEAVER_LIB_HTTP_INTERNAL_H
#define ORBWEAVER_LIB_HTTP_INTERNAL_H

#include <libwebsockets.h>
#include <stdbool.h>

#include "lib/http/request.h"
#include "lib/http/server.h"

/* What one call of lws_write carries. */
#define HTTP_CHUNK_SIZE 16384
/* After an answer to a request whose body we do not want, the client has this long to stop sending it. */
#define HTTP_DRAIN_MS 2000

enum conn_phase {
	CONN_IDLE,     /* between requests */
	CONN_HEAD,     /* a request has begun */
	CONN_BODY,     /* its head is there, the body is coming */
	CONN_SENDING,  /* the response is going out */
	CONN_DRAINING, /* all is said, what else comes is thrown away */
	CONN_ENDING,   /* closed by us, libwebsockets has not yet reported it */
};

/* One connection; lives from accept until libwebsockets reports its end. */
struct conn {
	struct http_server *server;
	struct lws *wsi;
	struct conn *prev,
		*next; /* all connections; among those that are idle, the longest idle come first */
	enum conn_phase phase;
	int64_t idle_since_ms;
	bool has_spoken; /* the first bytes have come, so TLS is established */

	struct strbuf in;               /* what has come and is not yet used */
	size_t large;                   /* its part of server->large */
	char *head;                     /* of the current request */
	struct request req;             /* points into head */
	const struct http_route *route; /* NULL with a refusal */
	int refusal; /* the status that we answer instead of asking the handler, 0 for none */
	unsigned int allowed; /* the methods that the path has */
	int64_t started_us;

	struct strbuf out; /* LWS_PRE bytes of room, headers, body */
	size_t sent;
	bool close_after;
	bool is_body_left; /* the answer goes out before the request's end has come */
	bool rx_stopped;
};

struct http_server {
	struct loop *loop;
	char *name;
	const struct http_route *routes;
	size_t n_routes;
	unsigned int timeout_s;
	unsigned int connections_max;
	struct metric *requests;
	struct metric *duration;

	int listen_fd;
	struct poller *poller;
	struct timer *accept_again;
	bool is_paused; /* the listener is not polled */
	bool accept_complained;

	struct lws_context *context; /* libwebsockets sets it to NULL when it has freed it */
	struct lws_vhost *vhost;
	SSL_CTX *tls; /* the vhost's, NULL without TLS */

	struct conn *first, *last;
	size_t n_conns;
	size_t large;          /* bytes of large bodies that are here or on their way */
	struct conn *adopting; /* handed to lws_adopt_…, until it has a wsi */

	struct deferred *closing;
	bool destroy_called;
	void (*done)(void *arg);
	void *done_arg;
};

/* The events of a connection; -1 closes it. */
int exchange_start(struct conn *conn);
int exchange_received(struct conn *conn, const void *data, size_t len);
int exchange_writable(struct conn *conn);
int exchange_timeout(struct conn *conn);
/* Free the buffers of an exchange. */
void exchange_done(struct conn *conn);

/* The connection is between requests now. */
void conn_is_idle(struct conn *conn);

#endif

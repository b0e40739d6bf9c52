// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP(S) server for metrics, health and admission webhooks: a route table of pure handlers on
 * one listening address.
 *
 * HTTP/1.1 with keep-alive, over TCP or TLS, on a libuv loop without threads. The process must
 * ignore SIGPIPE. A handler sees a whole request in memory and answers before it returns:
 *
 *	static void hello(const struct http_request *req, struct http_response *resp, void *arg)
 *	{
 *		strbuf_adds(&resp->body, "hello\n");
 *	}
 *	static const struct http_route routes[] = {
 *		{ .path = "/hello", .methods = HTTP_GET, .handle = hello },
 *	};
 *	server = http_server_new(loop, &(struct http_server_config){
 *		.name = "metrics", .listen = ":8080", .routes = routes, .n_routes =
 *		ARRAY_LEN(routes) }, &err);
 *
 * The server itself answers
 *
 *	400  malformed
 *	401  and 403, 503: where a route's gate says so
 *	404  no such path
 *	405  not with this method; with Allow
 *	408  too slow
 *	411  a transfer coding instead of a length, unless the route takes chunks
 *	413  body too large
 *	417  an Expect other than 100-continue
 *	431  headers too large
 *	503  too many large bodies at a time, or a second one of the same peer
 *	505  not HTTP/1
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"

struct loop; /* lib/loop/loop.h */
struct http_server;

enum http_method {
	HTTP_GET = 1 << 0, /* a route with GET also answers HEAD: the same without the body */
	HTTP_POST = 1 << 1,
	HTTP_PUT = 1 << 2,
	HTTP_PATCH = 1 << 3,
	HTTP_DELETE = 1 << 4,
};

/* Request bodies are at most this long unless the route says otherwise. */
#define HTTP_BODY_MAX (64 * 1024)
/*
 * A body longer than this is a large one. A peer has one of them at a time, and all together are at
 * most HTTP_LARGE_BODIES_MAX bytes, while they come and are worked on. So no crowd of strangers can
 * make the process outgrow its memory limit.
 */
#define HTTP_LARGE_BODY       (256 * 1024)
#define HTTP_LARGE_BODIES_MAX (16 * 1024 * 1024)
/* All headers of a request with its request line. */
#define HTTP_HEADERS_MAX 8192
/* The most parameters in a query string; more of them are answered with 400. */
#define HTTP_QUERY_MAX 32
/*
 * Connections of one server unless configured, and of them: those that have not sent the head of a
 * request yet, those of one peer, and those of one peer that have not sent a head yet. A peer is an
 * IPv4 address or a /64 of IPv6.
 *
 *	                 all    one peer
 *	any              max    3/4 max
 *	without a head   3/4    1/2
 *
 * Where one more comes, connections without a head give way at once, the oldest first; then one
 * that has been idle for a second, or whose request or response has been on its way for three
 * (crowd.h). Is there none: a peer with its share is refused, other peers wait in the kernel until
 * a connection ends.
 */
#define HTTP_CONNECTIONS_MAX 384
/*
 * A request has to be complete this long after its first byte, a response has to be taken within
 * it.
 */
#define HTTP_TIMEOUT_S 15
/*
 * A keep-alive connection may idle this long: longer than kube-apiserver's client keeps it (90 s),
 * so that it is not us who cut it while a request is on its way.
 */
#define HTTP_IDLE_S 120

/* What a handler sees; all of it is borrowed until the handler returns. */
struct http_request {
	enum http_method method; /* GET also for HEAD */
	const char *path;        /* decoded, starts with '/' */
	/* Decoded "name=value" or "name", in the order they came; see http_query_get. */
	const char *const *query;
	size_t n_query;
	const char *content_type;  /* "" when there is none */
	const char *authorization; /* "" when there is none */
	const char *accept;        /* "" when there is none */
	const char *user_agent;    /* "" when there is none */
	const char *body;          /* NUL-terminated, "" when there is none; may hold NULs */
	size_t body_len;
};

/* What it fills in; on entry 200, plain text, empty. The server frees the body. */
struct http_response {
	int status;
	const char *content_type; /* static text */
	struct strbuf body;
	struct exchange *exchange; /* lib/http's own */
};

/*
 * Answer later: the handler returns, and http_later_answer ends the request, once, from anywhere on
 * the loop but not before the handler has returned; the connection may be gone by then. What the
 * handler has put into resp is dropped. The request is not valid any more by then.
 */
struct http_later;
struct http_later *http_response_later(struct http_response *resp);
/* Takes later, and the body of resp. */
void http_later_answer(struct http_later *later, struct http_response *resp);

/*
 * A response whose length is not known when it begins: a handler names a source, and the body is
 * what the source gives, in chunks (RFC 9112 section 7.1). The source is asked only when all that
 * it gave before is with the kernel, so that a slow client costs the memory of one fill, whatever
 * happens meanwhile. A client that takes nothing for the server's timeout is cut off; a stream that
 * has nothing to send may last for ever.
 */
struct http_stream;

struct http_source {
	/*
	 * Append what comes next, as much as one fill may cost. Nothing appended: the source is
	 * asked again after http_stream_wake. Return false when the body is complete.
	 */
	bool (*fill)(struct strbuf *out, void *arg);
	/* The body is complete, or the connection has ended: the stream is gone. */
	void (*ended)(void *arg);
};

/*
 * In a handler, once: status and content type are those of resp, its body is not used. source is
 * static; arg is borrowed until ended(arg), which comes exactly once, and may come before the
 * handler's caller goes on. The first fill comes after the handler has returned.
 */
struct http_stream *http_response_stream(struct http_response *resp,
					 const struct http_source *source, void *arg);
/* There is something to fill. Not from inside of fill; may call fill and ended. */
void http_stream_wake(struct http_stream *stream);

#define HTTP_TEXT "text/plain; charset=utf-8"
#define HTTP_JSON "application/json"

/*
 * Which clients may use a route, and when: where another server has to be asked first, or what the
 * handler shows has to be gathered. The request is whole by then, its body is not shown. ask() ends
 * with http_asked_answer, once, at once or later; the connection may be gone by then.
 */
struct http_asked;

struct http_gate {
	void (*ask)(const struct http_request *req, struct http_asked *asked, void *arg);
	void *arg;
};

/*
 * 200: the handler is called; anything else is the answer (401, 403, 503). Takes asked; not from
 * inside of a handler.
 */
void http_asked_answer(struct http_asked *asked, int status);

struct http_route {
	const char *path;     /* exact, unless is_prefix */
	bool is_prefix;       /* every path that begins with it; the first route that fits counts */
	unsigned int methods; /* HTTP_GET | … */
	size_t body_max;      /* bytes, up to HTTP_LARGE_BODIES_MAX; 0 means HTTP_BODY_MAX */
	/* Bodies may come in chunks: each of them takes the room of body_max while it comes. */
	bool takes_chunks;
	void (*handle)(const struct http_request *req, struct http_response *resp, void *arg);
	void *arg;                    /* borrowed until the server's done callback */
	const struct http_gate *gate; /* likewise; NULL: all may */
};

/*
 * How a server speaks TLS, besides the certificate. The names are those of Kubernetes' own
 * components (their flags --tls-min-version and --tls-cipher-suites).
 */
struct http_tls_policy {
	const char *min_version; /* "VersionTLS12" or "VersionTLS13"; NULL: the former */
	/*
	 * Names of the IANA registry, separated by commas; NULL: those that OpenSSL prefers. Suites
	 * of TLS 1.2 and of TLS 1.3 are told apart by name; a list with only the latter makes 1.3
	 * the lowest version, one with only the former leaves those of 1.3 as they are.
	 */
	const char *cipher_suites;
	/*
	 * Authorities: clients have to show a certificate that one of them has signed. NULL: none
	 * is asked for.
	 */
	const char *client_ca_pem;
};

/*
 * Could a server follow it? Errors:
 *
 *	ERR_INVALID "BadTlsVersion"   a min_version that is not known, or is too old
 *	ERR_INVALID "BadCipherSuite"  a suite that is not known, or that OpenSSL does not offer;
 *                                    names it
 *	ERR_INVALID "BadCertificate"  authorities that are not PEM
 */
int http_tls_policy_check(const struct http_tls_policy *policy, struct err *err);

struct http_server_config {
	const char *name; /* "metrics", "webhook": for logs and as a metric label */
	/*
	 * "127.0.0.1:8080", "[::1]:8080", ":8080" for all addresses of both families. No names:
	 * what to listen on does not depend on DNS. Port 0 picks a free one.
	 */
	const char *listen;
	const struct http_route *routes; /* borrowed until the done callback */
	size_t n_routes;
	/* The leaf first, then intermediates; with key_pem makes it HTTPS. */
	const char *certificate_pem;
	const char *key_pem;
	struct http_tls_policy tls;   /* all NULL is a good one */
	unsigned int connections_max; /* 0 means HTTP_CONNECTIONS_MAX */
	unsigned int timeout_s;       /* 0 means HTTP_TIMEOUT_S */
	/*
	 * May be NULL: http_requests_total{server,path,method,code},
	 * http_request_duration_seconds{server,path}
	 */
	struct metrics *metrics;
};

/*
 * Listen and serve on `loop` until http_server_close. Strings of the config are copied. Errors:
 *
 *	ERR_INVALID "BadAddress"      not an address to listen on
 *	ERR_INVALID "BadCertificate"  not PEM, or the key is not the certificate's
 *	ERR_HOST "ListenFailed"       "cannot listen on 127.0.0.1:8080: Address already in use"
 *	those of http_tls_policy_check
 */
struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
				    struct err *err);

/* The port it listens on. */
unsigned int http_server_port(const struct http_server *server);

/*
 * Use another certificate and key for new connections, by the same policy; those that are open keep
 * theirs until they end. Only for a server that was made with a certificate. On failure the old
 * pair stays in use. Errors:
 *
 *	ERR_INVALID "BadCertificate"  not PEM, or the key is not the certificate's
 */
int http_server_set_certificate(struct http_server *server, const char *certificate_pem,
				const char *key_pem, struct err *err);

/*
 * Stop listening at once, drop all connections, release everything; then done(arg) from the loop,
 * never from inside this call. The server may not be used after the call; the loop has to run until
 * done. NULL server: done is not called. May be called from a handler.
 */
void http_server_close(struct http_server *server, void (*done)(void *arg), void *arg);

/*
 * The value of the query parameter `name`: "" for a parameter without '=', NULL when absent; the
 * first one counts.
 */
const char *http_query_get(const struct http_request *req, const char *name);

/* "GET", …; "" for a value that is not one method. */
const char *http_method_name(enum http_method method);

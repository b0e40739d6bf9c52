// SPDX-License-Identifier: Apache-2.0
/*
 * One connection to the API server as an object: known by what it carries, counted, aged, and cut
 * by itself.
 *
 * libcurl opens and shares connections as it sees fit and says little about them, so each
 * connection has a multi handle of its own, which is refused a second socket. The client decides
 * which call goes where.
 *
 * A connection that was made and has received nothing yet takes one call; the others wait for the
 * server's settings, or they would be refused (RFC 9113, 5.1.2). After that it takes as many as it
 * has streams. How many the server allows is not asked for (libcurl does not say): when libcurl
 * wants a second socket, they are used up. The connection then takes no more calls, and after the
 * same happened at the same count twice in a row, the next ones take fewer.
 *
 * A retired connection keeps its calls and takes no new ones; it is freed when the last one has
 * ended. Connections retire with age, so that several API servers behind one address share the
 * load, after an error, after a time without calls, and when the certificates of either side have
 * changed.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/kube/fence.h"
#include "lib/loop/loop.h"

enum {
	/*
	 * What API servers announce since 2023 (golang.org/x/net 0.17, CVE-2023-44487); before that
	 * 250.
	 */
	CONNECTION_STREAMS = 100,
	/*
	 * A server that seems to allow fewer than this has closed the connection to new streams
	 * (GOAWAY) instead.
	 */
	CONNECTION_STREAMS_LEAST = 8,
	/* With up to as much again. */
	CONNECTION_AGE_MS = 600000,
	/*
	 * Go's servers close a connection that was idle for 90 s; it must not happen while a call
	 * is on its way.
	 */
	CONNECTION_IDLE_MS = 80000,
	/*
	 * Others wait this long for the first response on a new connection; then another one is
	 * opened for them.
	 */
	CONNECTION_OPENING_MS = 1000,
};

struct connection;

/* A call on a connection. Embedded in the call. */
struct connection_stream {
	struct connection *connection; /* NULL: on none */
	CURL *easy;                    /* NULL: the place is kept, nothing is sent */
	bool no_room;                  /* it ended because the server allows no more streams */
};

/* What connections of one client share. Borrowed. */
struct connection_owner {
	struct loop *loop;
	bool multiplexed;    /* HTTP/2 is to be expected; else one call at a time */
	struct fence *fence; /* gets the sockets; NULL: none */
	size_t streams_max;  /* learned; CONNECTION_STREAMS at first */
	size_t full_at;      /* where the last connection was full; 0: never yet */
	/* Call `silent` each time that nothing was received for this long while calls are on it. */
	int64_t silence_ms;
	/* Bytes may move next. */
	void (*entering)(void *arg);
	/* A transfer has ended; followed by connection_leave. */
	void (*ended)(void *arg, CURL *easy, CURLcode code);
	/* There may be room, or a connection to free. From a turn of its own. */
	loop_fn *changed;
	void (*silent)(void *arg, struct connection *connection);
	void *arg;
};

TAILQ_HEAD(connection_list, connection);

/* In front of the opaque rest, so that lists can be walked. */
struct connection {
	TAILQ_ENTRY(connection) link;
	struct connection_owner *owner;
	CURLM *multi;
	struct timer *timer;    /* curl's */
	struct timer *patience; /* silence, idleness, age */
	struct deferred *soon;  /* curl's timer of 0 ms */
	struct deferred *collector;
	int fds[4]; /* -1: free. More than one only while addresses are tried */
	size_t n_fds;
	size_t n_streams; /* calls, those included that are not sent yet */
	size_t n_refused; /* of them, in the present turn */
	size_t streams_max;
	uint64_t tls_generation; /* of the certificates it was made with; 0: not yet */
	int64_t made_ms, used_ms, retire_ms;
	int64_t spoke_ms; /* when something last came, or it was made */
	int64_t asked_ms; /* since when silence counts */
	bool opening;     /* nothing was received since the socket was made */
	bool retired;
	bool has_spare; /* it was full, and a call has left it since: the owner's */
};

struct connection *connection_new(struct connection_owner *owner);
/* Nothing may be on it. */
void connection_free(struct connection *c);

/* One more call may be put on it. */
bool connection_has_room(const struct connection *c);
/* It will have room, or not, in a moment. */
bool connection_is_opening(const struct connection *c);

/* Keep a place for the stream. There need not be room. */
void connection_reserve(struct connection *c, struct connection_stream *stream);
/* Send. The handle's socket options are set here, everything else is the caller's. */
void connection_send(struct connection_stream *stream, CURL *easy);
/* The handle is the caller's again; the place is free. */
void connection_leave(struct connection_stream *stream);

/*
 * Something came on it. `version`: of the answer, CURL_HTTP_VERSION_…; HTTP/1 carries one call at a
 * time.
 */
void connection_heard(struct connection *c, long version);

void connection_retire(struct connection *c);
/* Everything on it ends with an error, and it takes no new calls. */
void connection_cut(struct connection *c);

// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP calls to one API server: many at a time over a few multiplexed HTTP/2 connections, on the
 * loop.
 *
 * A call is retried while its deadline allows: 429 and 503 after the time that the server names
 * (Retry-After), other 5xx and lost connections with jittered, growing pauses; 401 at once with
 * fresh credentials. What was sent twice that way either has the same effect (GET, merge patches,
 * deletes with preconditions) or fails with ERR_CONFLICT (a create whose first answer was lost),
 * and the caller looks again. api.h has the Kubernetes verbs on top.
 *
 * The fence: a predicate asked before any byte of a write leaves, and again before each time the
 * connection is served. When it says no, writes in flight are abandoned and fail with ERR_TRANSIENT
 * "NotLeader", and the connections that may still hold bytes of them are cut; everything else on
 * those starts again. A caller that knows when the answer turns to no calls
 * kube_client_writes_end_at: then the kernel cuts them at that time, also when the process is
 * stopped in that very moment (fence.h), so that "may I still write" is true when the bytes leave,
 * not only when it was asked.
 *
 * Watches have connections apart from all other calls (connection.h). A connection is not trusted
 * for ever: one on which nothing is acknowledged is given up by the kernel; one that receives
 * nothing for a while although calls wait for it is probed (GET /livez), and is cut when that, or
 * any other call on it, runs out of time and nothing was received meanwhile. What was on it starts
 * again on another one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/kube/auth/config.h"
#include "lib/loop/loop.h"

/* The most that is collected of an answer; streams are not limited here. */
#define KUBE_MAX_BODY (32 * 1024 * 1024)

#define KUBE_CONNECT_TIMEOUT_MS 10000
/* A call without another deadline ends after this. */
#define KUBE_CALL_TIMEOUT_MS 30000
/*
 * A connection that carries calls and receives nothing is probed after this time; the response has
 * as long.
 */
#define KUBE_PROBE_MS 5000
/*
 * One that carries watches, unless kube_client_set_watch_silence says otherwise: bookmarks come
 * once a minute.
 */
#define KUBE_WATCH_SILENCE_MS 75000
/*
 * What was sent and is not acknowledged by then (by the server's machine, or a proxy) is not sent
 * again.
 */
#define KUBE_DELIVERY_MS 4000
/* Servers are updated: one that refused to stream a list is asked again after this time. */
#define KUBE_STREAMS_AGAIN_MS 3600000

struct kube_client;
struct kube_call;

struct kube_response {
	int status; /* HTTP status; 0 when there was no answer */
	/*
	 * What was collected: the whole body, or, of a stream, nothing. NUL-terminated, borrowed.
	 */
	const char *body;
	size_t body_len;
	/* The server's Retry-After in milliseconds, or -1. */
	int64_t retry_after_ms;
};

/*
 * Called once per call, never from inside kube_call. err is NULL exactly when the status is 2xx and
 * a stream was taken to its end. Reasons: the API's own (NotFound, AlreadyExists, Conflict,
 * Forbidden, Invalid, Expired, …); "NotServed" (404 that no Status explains: the server has no such
 * resource), "ServerUnreachable", "ServerUntrusted", "ConnectionLost", "DeadlineExceeded",
 * "Stalled" (a stream that was silent for too long), "BodyTooLarge", "NotLeader"; those of
 * credentials.h. A time that the server asks to wait and that is beyond the call's deadline is in
 * the error, retry_after_ms.
 */
typedef void kube_done_fn(void *arg, const struct kube_response *response, const struct err *err);

/*
 * The next bytes of a stream. -1 with err ends the call with that error. Must not start or cancel
 * calls of this client.
 */
typedef int kube_bytes_fn(void *arg, const char *bytes, size_t len, struct err *err);

struct kube_request {
	/* For metrics and messages: "get", "list", "watch", "create", …; static text. */
	const char *verb;
	const char *method;       /* static text */
	const char *path;         /* "/api/v1/nodes?limit=500"; copied */
	const char *content_type; /* static text; NULL without a body */
	char *body;               /* taken; NULL: none */
	size_t body_len;
	/* the whole call, retries included; 0: KUBE_CALL_TIMEOUT_MS; -1: none */
	int64_t timeout_ms;
	/* a stream that is silent this long fails with "Stalled"; 0: no limit */
	int64_t silence_ms;
	bool once;               /* never retry */
	bool faults_once;        /* nor after HTTP 500: an admission webhook may be away for days */
	bool fenced;             /* a write that only the leader may make */
	kube_bytes_fn *on_bytes; /* a stream: bytes of a 2xx answer come here */
	void (*on_open)(
		/* a stream: a 2xx answer begins; restrictions as on_bytes. May be NULL */
		void *arg);
	kube_done_fn *done;
	void *arg;
	void (*free_arg)(
		/* called once nothing will use arg any more, cancelled or not; may be NULL */
		void *arg);
};

/*
 * config is borrowed and must outlive the client. Nothing is sent yet. metrics may be NULL:
 *
 *	orbweaver_kube_requests_total{verb,code}, orbweaver_kube_request_duration_seconds{verb}:
 *	calls, with their retries;
 *	rest_client_requests_total{code,method,host},
 *	rest_client_request_retries_total{code,verb,host},
 *	rest_client_request_duration_seconds{verb,host},
 *	rest_client_rate_limiter_duration_seconds{verb,host}: each
 *	attempt, as client-go counts (its `verb` is the method, too; "<error>": no answer came).
 */
struct kube_client *kube_client_new(struct loop *loop, const struct kube_config *config,
				    struct metrics *metrics);

/*
 * Calls in flight are dropped without a callback. Not from inside a callback of one of them;
 * informers, leases and recorders that use the client have to go first.
 */
void kube_client_free(struct kube_client *client);

/* may_write(arg) is asked for fenced calls; NULL: always yes. */
void kube_client_set_fence(struct kube_client *client, bool (*may_write)(void *arg), void *arg);

/*
 * From then on (clock_ms) no byte of a fenced call leaves, whatever this process does; INT64_MAX:
 * never mind. To be moved on with each renewal. A lease does that for the client that it was given;
 * fenced writes of another client need it said.
 */
void kube_client_writes_end_at(struct kube_client *client, int64_t at_ms);

/*
 * Receive the server's warnings: fields that it does not know, versions that will go. `lines` has
 * one for each warning, the same as often as it comes. Called before the call's `done`, with the
 * same freedom. NULL, the default: warnings are dropped.
 */
void kube_client_set_warned(struct kube_client *client,
			    void (*warned)(void *arg, const char *lines), void *arg);

/*
 * How long a connection with watches may be silent before it is asked. Short for few processes that
 * must not be blind; ten thousand agents that ask every few seconds are a load.
 */
void kube_client_set_watch_silence(struct kube_client *client, int64_t silence_ms);

enum kube_lane {
	KUBE_LANE_WATCHES,
	KUBE_LANE_CALLS,
};

/*
 * Whether to ask for lists of a kind ("nodes", "GROUP/PLURAL") as streams (informer.h): yes, unless
 * its server refused within the last KUBE_STREAMS_AGAIN_MS. Known to all who use the client; for
 * each kind apart, since several servers may stand behind one address, of different ages.
 */
bool kube_client_may_stream(const struct kube_client *client, const char *kind);
void kube_client_refused_stream(struct kube_client *client, const char *kind);

/* A connection, for gauges and /debug. */
struct kube_connection {
	enum kube_lane lane;
	bool retired;   /* takes no new calls */
	size_t streams; /* calls on it */
	int64_t age_ms;
	int64_t silent_ms; /* since it last received anything */
};

/* Fill at most `max` of them; returns how many there are. */
size_t kube_client_connections(const struct kube_client *client, struct kube_connection *ret,
			       size_t max);

/* Returns a call that stays valid until its done callback or kube_call_cancel. */
struct kube_call *kube_call(struct kube_client *client, const struct kube_request *request);

/* No callback comes any more. NULL is fine. Not from inside on_bytes or on_open. */
void kube_call_cancel(struct kube_call *call);

/*
 * HTTP calls to one API server: many at a time over one multiplexed HTTP/2 connection, on the loop.
 *
 * A call is retried while its deadline allows: 429 and 503 after the time that the server names (Retry-After), other 5xx
 * and lost connections with jittered, growing pauses; 401 at once with fresh credentials. What was sent twice that way
 * either has the same effect (GET, merge patches, deletes with preconditions) or fails with ERR_CONFLICT (a create whose
 * first answer was lost), and the caller looks again. api.h has the Kubernetes verbs on top.
 *
 * The fence: a predicate asked before any byte of a write leaves, and again before each time the connection is served.
 * When it says no, writes in flight are abandoned and fail with ERR_TRANSIENT "NotLeader", and the connections that may still
 * hold bytes of them are cut; everything else on those starts again. Who knows when the answer turns to no tells it with
 * kube_client_writes_end_at: then the kernel cuts them at that time, also when the process is stopped in that very moment
 * (fence.h), so that "may I still write" is true when the bytes leave, not only when it was asked.
 *
 * Connections are not trusted for ever: one on which nothing is acknowledged, or a server that tells nobody anything while a
 * call runs out of time, leads to a new one.
 */
#ifndef ORBWEAVER_LIB_KUBE_CLIENT_H
#define ORBWEAVER_LIB_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/kube/config.h"
#include "lib/loop/loop.h"

/* The most that is collected of an answer; streams are not limited here. */
#define KUBE_MAX_BODY (32 * 1024 * 1024)

#define KUBE_CONNECT_TIMEOUT_MS 10000
/* A call without another deadline ends after this. */
#define KUBE_CALL_TIMEOUT_MS 30000
/* What was sent and is not acknowledged by then (by the server's machine, or a proxy) is not sent again. */
#define KUBE_DELIVERY_MS 4000

struct kube_client;
struct kube_call;

struct kube_response {
	int status; /* HTTP status; 0 when there was no answer */
	/* What was collected: the whole body, or, of a stream, nothing. NUL-terminated, borrowed. */
	const char *body;
	size_t body_len;
	/* The server's Retry-After in milliseconds, or -1. */
	int64_t retry_after_ms;
};

/*
 * Called once per call, never from inside kube_call. err is NULL exactly when the status is 2xx and a stream was taken to
 * its end. Reasons: the API's own (NotFound, AlreadyExists, Conflict, Forbidden, Invalid, Expired, …); "NotServed" (404
 * that no Status explains: the server has no such resource), "ServerUnreachable", "ServerUntrusted", "ConnectionLost",
 * "DeadlineExceeded", "Stalled" (a stream that was silent for too long), "BodyTooLarge", "NotLeader"; those of credentials.h.
 */
typedef void kube_done_fn(void *arg, const struct kube_response *response, const struct err *err);

/* The next bytes of a stream. -1 with err ends the call with that error. Must not start or cancel calls of this client. */
typedef int kube_bytes_fn(void *arg, const char *bytes, size_t len, struct err *err);

struct kube_request {
	const char *
		verb; /* for metrics and messages: "get", "list", "watch", "create", … static text */
	const char *method;       /* static text */
	const char *path;         /* "/api/v1/nodes?limit=500"; copied */
	const char *content_type; /* static text; NULL without a body */
	char *body;               /* taken; NULL: none */
	size_t body_len;
	int64_t timeout_ms; /* the whole call, retries included; 0: KUBE_CALL_TIMEOUT_MS; -1: none */
	int64_t silence_ms; /* a stream that is silent for so long has "Stalled"; 0: any silence is fine */
	bool once;          /* never retry */
	bool fenced;        /* a write that only the leader may make */
	kube_bytes_fn *on_bytes; /* a stream: bytes of a 2xx answer come here */
	void (*on_open)(
		void *arg); /* a stream: a 2xx answer begins; restrictions as on_bytes. May be NULL */
	kube_done_fn *done;
	void *arg;
	void (*free_arg)(
		void *arg); /* called once nothing will use arg any more, cancelled or not; may be NULL */
};

/*
 * config is borrowed and must outlive the client; metrics may be NULL: orbweaver_kube_requests_total{verb,code},
 * orbweaver_kube_request_duration_seconds{verb}. Nothing is sent yet.
 */
struct kube_client *kube_client_new(struct loop *loop, const struct kube_config *config,
				    struct metrics *metrics);

/*
 * Calls in flight are dropped without a callback. Not from inside a callback of one of them; informers, leases and
 * recorders that use the client have to go first.
 */
void kube_client_free(struct kube_client *client);

/* may_write(arg) is asked for fenced calls; NULL: always yes. */
void kube_client_set_fence(struct kube_client *client, bool (*may_write)(void *arg), void *arg);

/*
 * From then on (clock_ms) no byte of a fenced call leaves, whatever this process does; INT64_MAX: never mind. To be moved on with
 * each renewal. A lease does that for the client that it was given; fenced writes of another client need it said.
 */
void kube_client_writes_end_at(struct kube_client *client, int64_t at_ms);

/* Fenced calls that have not ended. */
size_t kube_client_writes_in_flight(const struct kube_client *client);

/* Returns a call that stays valid until its done callback or kube_call_cancel. */
struct kube_call *kube_call(struct kube_client *client, const struct kube_request *request);

/* No callback comes any more. NULL is fine. Not from inside on_bytes or on_open. */
void kube_call_cancel(struct kube_call *call);

#endif

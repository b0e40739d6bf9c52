// SPDX-License-Identifier: Apache-2.0
/*
 * What a request proves itself with, kept fresh: the transport asks before each request and says
 * when the server refused (401).
 *
 * Tokens and certificates in files are read again when the file changes (the kubelet swaps a
 * symlink) and at least once a minute; a file that cannot be read for a moment keeps its last
 * content in use. Exec plugins run beside the loop, one at a time; what they print is kept until
 * shortly before it expires.
 *
 * Secrets leave this module in struct kube_secret only, never in logs or errors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/kube/auth/config.h"

/* An exec plugin that has not finished by then is killed. */
#define KUBE_EXEC_TIMEOUT_MS 30000
/*
 * A plugin that failed, or whose fresh credentials the server refuses, waits: 1 s, doubled each
 * time up to this.
 */
#define KUBE_EXEC_MAX_HOLD_MS 30000

/* Valid during the callback; strings are borrowed. */
struct kube_secret {
	/*
	 * Grows by one each time anything below changes. A request remembers it and gives it to
	 * kube_credentials_reject on 401.
	 */
	uint64_t generation;
	const char *authorization;   /* value of the Authorization header; NULL: send none */
	const char *client_cert_pem; /* both or neither */
	const char *client_key_pem;
	const char *ca_pem; /* trust these only; NULL: the system's */
	/*
	 * Grows when certificate, key or authorities change: connections made with earlier ones
	 * must take no new requests. Never 0.
	 */
	uint64_t tls_generation;
};

struct kube_credentials;
struct loop;

/*
 * Exactly one of secret and err is NULL. Errors come from exec plugins only, as files keep their
 * last content: ERR_INVALID "ExecPluginMissing" or "BadExecCredential"; ERR_TRANSIENT
 * "ExecPluginFailed", "ExecPluginTimeout", "BadExecCredential" (had expired already) or
 * "CredentialsRejected" (the server refuses what the plugin gives, again and again).
 */
typedef void kube_credentials_ready_fn(void *arg, const struct kube_secret *secret,
				       const struct err *err);

/*
 * One question. The caller's memory, zeroed at first; untouched by the caller until the answer or
 * the cancel.
 */
struct kube_credentials_wait {
	kube_credentials_ready_fn *ready; /* NULL while nothing is asked */
	void *arg;
	struct kube_credentials_wait *next;
	uint64_t round;
};

/* Time, for tests. */
struct kube_credentials_clock {
	int64_t (*now_ms)(void);
	int64_t (*wall_us)(void);
};

/* loop and config are borrowed and must outlive the credentials. clock NULL: clock.h. */
struct kube_credentials *kube_credentials_new(struct loop *loop, const struct kube_config *config,
					      const struct kube_credentials_clock *clock);

/*
 * Ask. `ready` is called exactly once, perhaps before this returns (always so without an exec
 * plugin), unless cancelled first. It may call any function of this module but
 * kube_credentials_free.
 */
void kube_credentials_get(struct kube_credentials *c, struct kube_credentials_wait *wait,
			  kube_credentials_ready_fn *ready, void *arg);

/*
 * The answer is no longer wanted; nothing happens when it has been given, or was never asked for.
 */
void kube_credentials_cancel(struct kube_credentials *c, struct kube_credentials_wait *wait);

/*
 * The server answered 401 to a request sent with this generation: the next question reads the
 * files, or runs the plugin, again. Nothing happens when the credentials have changed since.
 * Returns true when asking again can bring something else, false when the credentials are constant.
 */
bool kube_credentials_reject(struct kube_credentials *c, uint64_t generation);

/*
 * Kills a running plugin and frees everything; may be called at any time but from inside `ready`.
 * Unanswered questions are dropped without a call. NULL is fine.
 */
void kube_credentials_free(struct kube_credentials *c);

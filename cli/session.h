// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to the API server for the time of one command: calls that return when they were
 * answered.
 */
#pragma once

#include "cli/command.h"
#include "lib/kube/api.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"

struct session {
	struct loop *loop;
	struct kube_config config;
	struct kube_client *client;
	struct strbuf warned; /* what the server warned of, so that it is printed once */
};

/* Nothing is sent yet. Errors: ERR_INVALID, there is no usable kubeconfig. */
int session_open(const struct cli *cli, struct session *ret, struct err *err);
void session_close(struct session *s);

/*
 * Check whether a server responds: what cannot be reached at once is an error at once,
 * ERR_TRANSIENT. A server that refuses to say its version is there. *ret_version: its answer as
 * JSON, new; NULL when it refused. May be NULL.
 */
int session_hello(struct session *s, json_t **ret_version, struct err *err);

/* An object of a list; borrowed. */
typedef void session_object_fn(void *arg, json_t *object);

/*
 * List objects page by page. ns NULL: of all namespaces. selector: "fieldSelector=…", or NULL. A
 * kind that the server does not have is empty; *ret_served, which may be NULL, is false then.
 * PodDisruptionBudgets come in whichever version the server has. Errors: those of client.h;
 * objects of earlier pages were handed out then.
 */
int session_list(struct session *s, const struct kube_resource *resource, const char *ns,
		 const char *selector, session_object_fn *fn, void *arg, bool *ret_served,
		 struct err *err);

/*
 * Append the body of a GET of this path. It is tried once and takes timeout_ms at most. Errors:
 * those of client.h; out is unchanged then.
 */
int session_get(struct session *s, const char *path, int64_t timeout_ms, struct strbuf *out,
		struct err *err);

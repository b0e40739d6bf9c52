// SPDX-License-Identifier: Apache-2.0
/*
 * What a running operator knows, for an administrator who looks for a fault: on loopback only, with
 * --debug-addr.
 *
 *	/debug/queues    per controller: keys that wait, are at work, are delayed
 *	/debug/caches    per kind: objects, the resourceVersion seen last, synced, what is wrong
 *	/debug/connections  to the API server: calls on each, age, silence
 *	/debug/errors    per key: the last failure, until it succeeds
 *	/debug/loglevel  GET says it, PUT sets it: "info,lib/kube=debug"
 *
 * Counts, names and messages; no objects, nothing that authenticates. `kubectl port-forward`
 * reaches it.
 */
#pragma once

#include "lib/http/server.h"
#include "operator/manager.h"

struct debug;

/*
 * listen: as in http_server_config, or "0": no pages, only debug_toggle_log. log_level: what was
 * configured, borrowed. Errors: those of http_server_new, with the flag --debug-addr in front.
 */
struct debug *debug_new(struct loop *loop, const char *listen, const char *log_level,
			struct err *err);

/* From now on there is a manager to ask, and a client; borrowed until debug_close. */
void debug_attach(struct debug *debug, const struct manager *manager,
		  const struct kube_client *client);

/* Switch between all debug lines and the level that was set last. */
void debug_toggle_log(struct debug *debug);

/* Ends as http_server_close does; it is freed before done is called. */
void debug_close(struct debug *debug, void (*done)(void *arg), void *arg);

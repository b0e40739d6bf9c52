// SPDX-License-Identifier: Apache-2.0
/*
 * Whether the agent is alive and ready: its checks, what it serves at its address for metrics, and
 * the word to the supervisor, which writes the file that probes look at.
 *
 * At the address there may still be the agent before this one; the file is this agent's.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/http/server.h"
#include "lib/loop/loop.h"

struct readiness;

/*
 * Make the checks "host", "nodestate" and "resources", which fail at first. loop and metrics are
 * borrowed. `orders` is the agent's socket to the supervisor (process/workers.h), also borrowed.
 */
struct readiness *readiness_new(struct loop *loop, struct metrics *metrics, int orders);
/* After readiness_close() has ended, or where nothing was served. NULL is fine. */
void readiness_free(struct readiness *readiness);

/*
 * Set a check; why_not counts when it fails. Each change of the whole is reported to the
 * supervisor.
 */
void readiness_set(struct readiness *readiness, const char *check, bool ok, const char *why_not);

/*
 * Serve /metrics, behind `gate`, /healthz and /readyz at `listen` (lib/http/probes.h; both borrowed
 * until the server is closed). An address in use is tried again until readiness_stop(): a node does
 * not go without its agent because another process has the port. -1 with err ERR_INVALID when it is
 * not an address.
 */
int readiness_serve(struct readiness *readiness, const char *listen, const struct http_gate *gate,
		    struct err *err);
/* Try no more to have the address; what is served stays. */
void readiness_stop(struct readiness *readiness);
/* Stop serving, then call `done`; at once when nothing is served. */
void readiness_close(struct readiness *readiness, loop_fn *done, void *arg);

// SPDX-License-Identifier: Apache-2.0
/*
 * A world that is kept up to date: with the API server by watches, or with files by looking at them
 * again.
 */
#pragma once

#include "cli/command.h"
#include "lib/loop/loop.h"

struct watching;

/*
 * The world, or whether it is up to date, may have changed. May come often, and while an informer
 * receives: it may start timers, and nothing else of lib/kube.
 */
typedef void watching_fn(void *arg);

/*
 * Starts at once; cli->world is what was read before. Errors: ERR_INVALID, there is no usable
 * kubeconfig. What fails later is reported by watching_trouble(), and tried again with growing
 * pauses.
 */
struct watching *watching_new(struct loop *loop, const struct cli *cli, const char *const *kinds,
			      watching_fn *changed, void *arg, struct err *err);
/* Accepts NULL. */
void watching_free(struct watching *w);

/*
 * As source_read() has it, with CLI_LEASES; keys are sorted. NULL: not all kinds have come yet, or
 * nothing has changed since the last call. Returns new.
 */
json_t *watching_world(struct watching *w);

/*
 * Why the world is not up to date, borrowed until the next turn of the loop; NULL: it is up to
 * date. *ret_since_us: since when, microseconds since the epoch.
 */
const char *watching_trouble(const struct watching *w, int64_t *ret_since_us);

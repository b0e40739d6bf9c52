// SPDX-License-Identifier: Apache-2.0
/* The kernel's notifications on the loop: when to look at the host again, and at what. */
#pragma once

#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/host/watch.h"

enum {
	/*
	 * A broken socket is opened again after that; one that this kernel lacks is looked for as
	 * often.
	 */
	HOST_EVENTS_RETRY_MS = 10000,
};

struct host_events;

/*
 * fn: as for watch_read(); `lost` also after a time in which nothing could be received. Takes
 * `watch`, which was opened while there was the right to a large buffer.
 */
struct host_events *host_events_new(struct loop *loop, struct watch *watch, watch_event_fn fn,
				    void *arg, struct metrics *metrics);
void host_events_free(struct host_events *events);

// SPDX-License-Identifier: Apache-2.0
/*
 * Scrapes of the agent's /metrics: each waits until what devices have counted is fresh, and no
 * crowd gets more text at a time than there is memory for. The gate of that route.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/http/server.h"

enum {
	/*
	 * Text about devices that is given out in SCRAPES_WINDOW_MS; a request then gets 503. A
	 * reader may take HTTP_TIMEOUT_S for it, so that four times as much can be on its way. The
	 * first one of a window gets it, however long it is.
	 */
	SCRAPES_BYTES_MAX = 6 * 1024 * 1024,
	SCRAPES_WINDOW_MS = 5000,
};

struct scrapes;

struct scrapes *scrapes_new(void);
/* Requests that wait are answered. Before the server's loop goes; accepts NULL. */
void scrapes_free(struct scrapes *scrapes);

/* The scrapes' own. */
const struct http_gate *scrapes_gate(const struct scrapes *scrapes);

/*
 * From now on `refresh` is called at each scrape. True: what is there is fresh; false:
 * scrapes_fresh() follows. NULL, as at the start: there is nothing to wait for.
 */
void scrapes_on(struct scrapes *scrapes, bool (*refresh)(void *arg), void *arg);
/* What is there is fresh, and so long: answer all who wait. Not from `refresh`. */
void scrapes_fresh(struct scrapes *scrapes, size_t size_bytes);

// SPDX-License-Identifier: Apache-2.0
/*
 * Gathers what devices have counted when a scrape wants to know: has meters find the devices, then
 * read one after the other, and keeps the text that /metrics shows
 * (nodeagent/devices/exposition.h).
 *
 * A gathering takes COUNTER_COLLECTOR_LIMIT_MS at most. A device that is not read by then, or
 * fails, is missing from it; one that did not answer at all is left alone for a while: each
 * question more may be a process more that is asleep in the kernel for ever.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/devices/exposition.h"

enum {
	/* How long what was gathered counts as fresh. */
	COUNTER_COLLECTOR_FRESH_MS = 5000,
	/* Prometheus gives up after 10 s by default. */
	COUNTER_COLLECTOR_LIMIT_MS = 4000,
	/* For how long a device that did not answer is left alone: twice as long each time. */
	COUNTER_COLLECTOR_ALONE_MS = 60000,
	COUNTER_COLLECTOR_ALONE_MAX_MS = 3600000,
};

struct counter_collector;

struct counter_collector_config {
	struct loop *loop;
	int meters;       /* socket to the supervisor (process/workers.h); taken */
	const char *node; /* name of the Node; strings are borrowed */
	enum exposition_scope scope;
	const char *excluded; /* exposition_is_excluded() */
	/*
	 * As meter_pods() has them, borrowed until the loop turns; NULL: not known. Asked when a
	 * gathering begins.
	 */
	const json_t *(*allocated)(void *arg);
	const json_t *(*attachments)(void *arg);
	/* { "ns/pod": meter_owner() } of those pods that are known, borrowed likewise. */
	const json_t *(*owners)(void *arg, const json_t *pods);
	/* "list" of nodeagent/model/rails.h, likewise. */
	const json_t *(*rails)(void *arg);
	/*
	 * What counter_collector_refresh() asked for is shown now; size of it all, and what was
	 * read (exposition_input.devices), borrowed; NULL: nothing. From the loop.
	 */
	void (*gathered)(void *arg, size_t size_bytes, const json_t *devices);
	/* The supervisor is gone. Once. */
	void (*lost)(void *arg);
	void *arg;
	struct metrics *metrics; /* which show the text; not NULL */
};

struct counter_collector *counter_collector_new(const struct counter_collector_config *config);
/* No callback comes after it. Accepts NULL. */
void counter_collector_free(struct counter_collector *counting);

/* True: what is shown is fresh. False: it is being gathered, and `gathered` comes. */
bool counter_collector_refresh(struct counter_collector *counting);

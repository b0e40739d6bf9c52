// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers about addresses of pods: under the names that Spiderpool documents, for dashboards that
 * ask for them, and what those lack.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/metrics.h"

struct address_metrics;

struct address_metrics *address_metrics_new(struct metrics *metrics);
void address_metrics_free(struct address_metrics *m);

/* An object in a cache changed: old and now as of cache_changed_fn; now_ms: clock_ms. */
void address_metrics_changed(struct address_metrics *m, const char *kind, const char *key,
			     const json_t *old, const json_t *now, int64_t now_ms);

/*
 * The ledgers have what the endpoint of this key says; the first time that counts from the pod's
 * appearance.
 */
void address_metrics_allocated(struct address_metrics *m, const char *key, int64_t now_ms);
/* The pod of this key waits for nothing. */
void address_metrics_settled(struct address_metrics *m, const char *key);
/* What the pod of this key had was given back; or records that no endpoint named. */
void address_metrics_released(struct address_metrics *m);
void address_metrics_repaired(struct address_metrics *m);
/* A pod cannot have addresses, for another reason than before. */
void address_metrics_refused(struct address_metrics *m, const char *reason);
/* So many pools have a status that the API server refuses to store. */
void address_metrics_unwritten(struct address_metrics *m, size_t pools);
/* The write of a pool met a version of somebody else. */
void address_metrics_conflict(struct address_metrics *m);

// SPDX-License-Identifier: Apache-2.0
/*
 * Trouble with what the operator depends on: a kind that it watches, or the lease.
 *
 * Ready means: each of them was seen once, so this replica can serve. Trouble that begins later
 * takes no readiness away. It would hit all replicas alike, and without a ready one the API server
 * has nobody to send reviews to and a rolling update that would help does not move. Such trouble is
 * a gauge instead, orbweaver_informer_broken_seconds{kind,reason}: present while it lasts. An alert
 * belongs on that.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/http/health.h"

struct dependency_health;

/* Both are borrowed and must outlive it. */
struct dependency_health *dependency_health_new(struct metrics *metrics, struct health *ready);
/* Accepts NULL. */
void dependency_health_free(struct dependency_health *troubles);

/*
 * Add a subject. Unless it is optional, readiness waits until it works for the first time. The name
 * is copied.
 */
void dependency_health_add(struct dependency_health *troubles, const char *name, bool optional);

/* The subject works: for the first time, or again. Return true if trouble ended with that. */
bool dependency_health_end(struct dependency_health *troubles, const char *name);

/*
 * The subject is in trouble. The time counts from the first of several calls in a row. The text,
 * copied, is shown by /readyz as long as the subject never worked: what is wrong, and what to do.
 */
void dependency_health_begin(struct dependency_health *troubles, const char *name,
			     const char *reason, const char *text);

/*
 * Visit all that is in trouble at present, in the order in which it was added. Strings are
 * borrowed.
 */
void dependency_health_visit(const struct dependency_health *troubles,
			     void (*visit)(void *arg, const char *name, const char *reason,
					   const char *text),
			     void *arg);

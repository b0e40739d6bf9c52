// SPDX-License-Identifier: Apache-2.0
/*
 * What is found wrong with objects that have no status of ours to say it in (plan.h, plan_finding):
 * remembered, so that it is emitted once and can be counted.
 *
 * All of it follows from the cluster and is found anew after a start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct findings;

struct findings *findings_new(void);
void findings_free(struct findings *findings);

/* Of a message, so many bytes are kept. */
enum { FINDINGS_MESSAGE_MAX = 1024 };

/*
 * What is wrong with the object from now on; reason NULL: nothing. True when that is something else
 * than before. The uid tells an object from an earlier one of its name.
 */
bool findings_set(struct findings *findings, const char *kind, const char *key, const char *uid,
		  const char *reason, const char *message);

bool findings_has(const struct findings *findings, const char *kind, const char *key);

/* fn for each object of the kind of which this was said, in no order. */
void findings_visit(const struct findings *findings, const char *kind, const char *reason,
		    void (*fn)(void *arg, const char *key, const char *message), void *arg);

/* fn for each kind and reason of which there is something, in no order. */
void findings_count(const struct findings *findings,
		    void (*fn)(void *arg, const char *kind, const char *reason, size_t count),
		    void *arg);

// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions (lib/json/condition.h) of objects that reconcilers judge, and the events that go with
 * them.
 */
#pragma once

#include "lib/json/condition.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/core/problems.h"

/* What is said of an object. All borrowed. */
struct judgement {
	enum condition_status ready;
	bool waits; /* not ready, and it goes on without an administrator */
	const char *reason;
	const char *message;
	const struct problems *warnings; /* what is wrong besides; NULL: nothing */
};

/*
 * Set Ready and Degraded in a list that is being built: the one place that has the rule of
 * docs/conditions.md. What is not ready and does not wait is Degraded, with the same reason.
 */
void conditions_judge(json_t *list, const json_t *previous, const struct judgement *judgement,
		      int64_t generation, const char *now);

/*
 * Append an event for each condition whose status or reason differs from `previous`, with reason
 * and message of the condition: Warning for Degraded/Blocked=True, for Injected=False and for
 * Ready=False that does not pass by itself (Progressing is not True), else Normal. One event for
 * one cause: conditions with the same reason share it where the message of one contains that of the
 * other, and it has the longer one. None is appended when something new is well from the start
 * (5,000 good objects would be 5,000 events), nor for Progressing, which Ready's reason says too.
 */
void conditions_emit(struct plan *plan, const char *kind, const char *key, const json_t *previous,
		     const json_t *list);

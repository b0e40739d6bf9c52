// SPDX-License-Identifier: Apache-2.0
/*
 * What failed, and when it is tried again. Pure: time and chance come in.
 *
 * A step that fails waits by itself; the planner leaves it out meanwhile, with what has to come
 * after it, and the rest of the host goes on (planner.h, "refused"). A step that succeeds again and
 * again has another program working against it and counts as failed.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

enum {
	/* The longest pause. */
	ATTEMPTS_MAX_MS = 300000,
	/*
	 * What is left of it, at most, for a step that is not needed any more; doubled with each
	 * failure in a row.
	 */
	ATTEMPTS_MENDED_MS = 5000,
	/* How many of its pauses an order of set-eswitch waits after the other one failed, too. */
	ATTEMPTS_OTHER_ORDER = 60,
	ATTEMPTS_OTHER_ORDER_MAX_MS = 3600000,
	/*
	 * A setting of which the driver makes another value: each try may take the link of all VFs.
	 */
	ATTEMPTS_ROUNDED_MS = 3600000,
	/* A step may succeed so often within that time. */
	ATTEMPTS_SAME_MAX = 5,
	ATTEMPTS_SAME_MS = 60000,
};

struct attempts;

struct attempts *attempts_new(void);
void attempts_free(struct attempts *attempts);

/*
 * Note that a step failed, and put off the next try. entry: of a plan's "steps". The first pause:
 *
 *   a conflict                        a moment
 *   something is not there yet        some seconds
 *   refused by the host               doubled with each failure in a row, up to ATTEMPTS_MAX_MS
 *   wrong input, a bug of ours        ATTEMPTS_MAX_MS at once
 *   NotAsAsked of set-nic-setting     ATTEMPTS_ROUNDED_MS at once
 *   RdmaModeBusy                      until attempts_forget_all(): a reboot is asked for instead
 *
 * set-eswitch has two orders, with "afterVfs" and without. After one failed, the other may be tried
 * at once. After both failed, the one that failed last keeps its pauses, and the other waits
 * ATTEMPTS_OTHER_ORDER times its own: changing the order makes or removes all VFs.
 *
 * chance: 0 to 999, spreads the pauses of nodes that fail together. True when the failure differs
 * from the last one of this step.
 */
bool attempts_step_failed(struct attempts *attempts, const json_t *entry, const struct err *err,
			  int64_t now_ms, int chance);
/* The same for work that is not a step of a plan. */
bool attempts_failed(struct attempts *attempts, const char *name, const struct err *err,
		     int64_t now_ms, int chance);

/* A step succeeded. -1 with err ERR_HOST "StepDoesNotLast" when it did too often. */
int attempts_step_succeeded(struct attempts *attempts, const json_t *entry, int64_t now_ms,
			    struct err *err);

/* May this work, not a step, be tried: it did not fail, or its pause is over. */
bool attempts_may_try(const struct attempts *attempts, const char *name, int64_t now_ms);

/* Steps that wait, for the planner: a list, new. */
json_t *attempts_refused(const struct attempts *attempts, int64_t now_ms);

/* A step of that PF has hung (HostHung) and was not made good. */
bool attempts_has_hung(const struct attempts *attempts, const char *pf);

/* Is there any step that failed, or whose pause goes on. */
bool attempts_has_steps(const struct attempts *attempts);

/*
 * Forget one that is not a step; steps that are not among `steps`, a plan's, made with nothing
 * refused; all there is. Of a step that is not needed any more the pause goes on for a moment, in
 * case that changes back at once, and nothing is reported; StepDoesNotLast stays as it is until its
 * own is over.
 */
void attempts_forget(struct attempts *attempts, const char *name);
void attempts_keep_steps(struct attempts *attempts, const json_t *steps, int64_t now_ms);
void attempts_forget_all(struct attempts *attempts);

/* When the next pause after `now_ms` ends; INT64_MAX when nothing waits. */
int64_t attempts_next_ms(const struct attempts *attempts, int64_t now_ms);

/* [{"pf", "reason", "message"}], sorted; pf absent where there is none. New. */
json_t *attempts_failures(const struct attempts *attempts);

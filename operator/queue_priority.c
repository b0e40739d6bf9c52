// SPDX-License-Identifier: Apache-2.0
/*
 * schedule.c asks before it takes a key, and says when a decision wrote. Two times decide: the end
 * of the quiet, and when the later lane is overdue; in between the caller is told how long to
 * wait.
 */
#include "operator/queue_priority.h"

void queue_priority_wrote(struct queue_priority *lanes, int64_t now_ms)
{
	lanes->last_main_ms = now_ms;
}

enum queue_priority_next queue_priority_next(struct queue_priority *lanes, bool has_main,
					     bool has_later, bool patient, int64_t now_ms,
					     int64_t *ret_wait_ms)
{
	int64_t quiet_ms = lanes->last_main_ms + QUEUE_PRIORITY_QUIET_MS;
	int64_t overdue_ms = 0;

	*ret_wait_ms = -1;
	if (!has_later)
		lanes->later_since_ms = 0;
	else if (lanes->later_since_ms == 0)
		lanes->later_since_ms = now_ms;
	overdue_ms = lanes->later_since_ms +
		     (patient ? QUEUE_PRIORITY_PATIENT_MS : QUEUE_PRIORITY_LATER_MS);

	if (has_main && !(has_later && now_ms >= overdue_ms && !lanes->later_was_last)) {
		lanes->later_was_last = false;
		return QUEUE_PRIORITY_MAIN;
	}
	if (!has_later)
		return QUEUE_PRIORITY_NOTHING;
	if (now_ms >= quiet_ms || now_ms >= overdue_ms) {
		lanes->later_was_last = true;
		return QUEUE_PRIORITY_LATER;
	}
	*ret_wait_ms = (quiet_ms < overdue_ms ? quiet_ms : overdue_ms) - now_ms;
	return QUEUE_PRIORITY_NOTHING;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One comparison of times. See the header.
 */
#include "operator/lanes.h"

void lanes_wrote(struct lanes *lanes, int64_t now_ms)
{
	lanes->last_main_ms = now_ms;
}

enum lanes_next lanes_next(struct lanes *lanes, bool has_main, bool has_later, bool patient,
			   int64_t now_ms, int64_t *ret_wait_ms)
{
	int64_t quiet_ms = lanes->last_main_ms + LANES_QUIET_MS;
	int64_t overdue_ms = 0;

	*ret_wait_ms = -1;
	if (!has_later)
		lanes->later_since_ms = 0;
	else if (lanes->later_since_ms == 0)
		lanes->later_since_ms = now_ms;
	overdue_ms = lanes->later_since_ms + (patient ? LANES_PATIENT_MS : LANES_LATER_MS);

	if (has_main && !(has_later && now_ms >= overdue_ms && !lanes->later_was_last)) {
		lanes->later_was_last = false;
		return LANES_MAIN;
	}
	if (!has_later)
		return LANES_NOTHING;
	if (now_ms >= quiet_ms || now_ms >= overdue_ms) {
		lanes->later_was_last = true;
		return LANES_LATER;
	}
	*ret_wait_ms = (quiet_ms < overdue_ms ? quiet_ms : overdue_ms) - now_ms;
	return LANES_NOTHING;
}

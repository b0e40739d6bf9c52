// SPDX-License-Identifier: Apache-2.0
/*
 * Node and policies → SriovNetworkNodeState on any world: see reconcile_fuzz.h; and reports keep
 * within their bounds.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_report.h"

#define WHY_MAX (POLICY_WHY_LINES * 400)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_report(const json_t *report)
{
	const char *why = json_str_or(json_at(report, "why"), "");
	const char *reason = json_str_at(report, "reason");
	bool is_ready = json_is_true(json_at(report, "ready"));
	size_t lines = *why != '\0';

	for (const char *c = why; *c; c++)
		lines += *c == '\n';
	fuzz_check(lines <= POLICY_WHY_LINES && strlen(why) <= WHY_MAX, "a report is bounded");
	fuzz_check(!json_at(report, "why") || *why, "a report that says why says something");
	fuzz_check(!reason || policy_standing_find(reason) != STANDING_READY, "reasons are known");
	fuzz_check(is_ready || reason, "who is not ready has a reason");
}

static void check_reports(const struct plan *plan)
{
	const char *key;
	json_t *op, *report;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		json_each (json_at(op, "policies"), key, report)
			if (!str_starts(key,
					"pool:")) /* what a pool config hears of the node's mode */
				check_report(report);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reconcile(data, size, node_state_reconcile, check_reports);
	return 0;
}

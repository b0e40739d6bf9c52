// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetworkNodePolicy → status on any reports: see reconcile_fuzz.h; and the status keeps within
 * the CRD's schema.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/sriov/policy_status.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_status(const json_t *status)
{
	static const char *const counts[] = {"matchedNodes", "readyNodes", "wantedVfs",
					     "presentVfs"};
	const json_t *lines = json_at(status, "explanation"), *line;
	size_t i;

	for (i = 0; i < ARRAY_LEN(counts); i++) {
		const json_t *count = json_at(status, counts[i]);

		fuzz_check(json_is_integer(count) && json_integer_value(count) >= 0 &&
				   json_integer_value(count) <= INT32_MAX,
			   "a count is an int32 that is not negative");
	}
	fuzz_check(json_array_size(json_at(status, "conditions")) == 3, "all conditions are there");
	fuzz_check(json_array_size(lines) <= POLICY_EXPLANATION_MAX, "the explanation is bounded");
	json_array_foreach ((json_t *)lines, i, line)
		fuzz_check(json_string_length(line) <= POLICY_EXPLANATION_LINE_MAX,
			   "a line is bounded");
}

static void check_plan(const struct plan *plan)
{
	json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		if (str_eq(json_str_at(op, "op"), "status"))
			check_status(json_at(op, "status"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reconcile(data, size, policy_status_reconcile, check_plan);
	return 0;
}

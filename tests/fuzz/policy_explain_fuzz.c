// SPDX-License-Identifier: Apache-2.0
/*
 * The long answer about a policy on any world: it agrees with the status that the operator writes,
 * and leaves none of its lines out.
 *
 * Input: {"key": a policy's, "world": {…}}.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_explain.h"
#include "reconcilers/sriov/policy_status.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* What each node reports for the policy; NULL when a node cannot be looked at. */
static json_t *reports_for(const json_t *world, const char *key)
{
	json_t *reports = json_object(), *node;
	const char *name;

	json_each (world_kind(world, KIND_NODE), name, node) {
		auto_plan struct plan plan = {0};
		struct err err = {0};
		json_t *report;

		if (node_state_reconcile(world, name, &plan, &err) < 0) {
			json_decref(reports);
			return NULL;
		}
		report = json_at(json_find(plan.ops, "op", "report"), "policies", key);
		if (report)
			json_object_set(reports, name, report);
	}
	return reports;
}

static void compare(const json_t *full, const json_t *bounded)
{
	json_auto_t *a = json_copy((json_t *)full), *b = json_copy((json_t *)bounded);
	const json_t *all = json_at(full, "explanation"), *line;
	size_t i;

	json_array_foreach (json_at(bounded, "explanation"), i, line) {
		const char *text = json_string_value(line);

		fuzz_check(json_list_has(all, text) || str_starts(text, "and "),
			   "no line is left out");
	}
	json_object_del(a, "explanation");
	json_object_del(b, "explanation");
	fuzz_check(json_same(a, b), "counts and conditions are those of the status");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *world = fuzz_world(json_at(input, "world"));
	json_auto_t *before = json_deep_copy(world), *answer = NULL, *reports = NULL;
	const char *key = json_str_at(input, "key");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	if (!key)
		return 0;
	answer = policy_explain(world, key, &err);
	fuzz_check(json_same(world, before), "the world is not changed");
	fuzz_check(!answer == !world_get(world, KIND_POLICY, key), "a policy has an answer");
	if (!answer || !(reports = reports_for(world, key)))
		return 0;
	json_object_set(world, KIND_POLICY_REPORT, reports);
	fuzz_check(policy_status_reconcile(world, key, &plan, &err) == 0, "a policy has a status");
	compare(json_at(answer, "status"), json_at(json_find(plan.ops, "op", "status"), "status"));
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Shared resources that no node has: what counts as none, and when that can be said. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/sriov/shared_offers.h"
#include "tests/support/yaml.h"

#define KEY "sys/" SHARED_CONFIG_NAME

/* Of a node of ours that has reported. */
#define REPORTED "syncStatus: Succeeded, agentVersion: '1'"
#define HCA(offered)                                                                               \
	"{name: x/hca, kind: shared, wanted: 500, healthy: 0, offered: " offered ", "              \
	"cause: 'p0: vendor 15b3, wanted 1af4'}"
#define AWAY "conditions: [{type: Ready, status: 'False', reason: NoAgent}]"
#define NONE REPORTED ", resources: [" HCA("0") "]"
#define SOME REPORTED ", resources: [" HCA("500") "]"

/* What is planned with one or two NodeStates; NULL: nothing. The plan owns it. */
static const json_t *decide(struct plan *plan, const char *first, const char *second)
{
	const char *const statuses[] = {first, second};
	json_auto_t *world = yaml("{env: {namespace: sys}, " LEFTOVER_SHARED_CONFIG ": {" KEY
				  ": {metadata: {name: x}}}, sriovnetworknodestates: {}}");
	struct err err = {0};

	/* The second by name is the first in the world. */
	for (size_t i = ARRAY_LEN(statuses); i-- > 0;) {
		auto_free char *text =
			statuses[i] ? str_printf("{metadata: {name: w%zu}, status: {%s}}", i + 1,
						 statuses[i])
				    : NULL;
		auto_free char *key = str_printf("sys/w%zu", i + 1);

		if (text)
			json_put(json_at(world, KIND_NODE_STATE), key, yaml(text));
	}
	assert_int_equal(shared_offers_reconcile(world, KEY, plan, &err), 0);
	assert_true(json_array_size(plan->ops) <= 1);
	return json_array_get(plan->ops, 0);
}

TEST(an_entry_that_selects_nothing_anywhere_is_found)
{
	auto_plan struct plan plan = {0};
	const json_t *op = decide(&plan, NONE, NONE);

	assert_string_equal(json_str_at(op, "kind"), LEFTOVER_SHARED_CONFIG);
	assert_string_equal(json_str_at(op, "key"), KEY);
	assert_string_equal(json_str_at(op, "reason"), "OfferedNowhere");
	assert_string_equal(json_str_at(op, "message"),
			    "no node offers x/hca (node w1: p0: vendor 15b3, wanted 1af4): "
			    "correct the selectors, or remove the entry");
}

TEST(one_that_is_for_other_nodes_is_not)
{
	auto_plan struct plan first = {0}, second = {0};

	assert_null(json_at(decide(&first, NONE, SOME), "reason"));
	assert_null(json_at(decide(&second, SOME, NONE), "reason"));
}

/* The agent says so of what the annotation orbweaver.io/dra gives to claims. */
TEST(one_that_claims_have_somewhere_is_not)
{
	static const char given[] = REPORTED ", resources: [{name: x/hca, kind: shared, wanted: 0, "
					     "healthy: 0, offered: 500}]";
	auto_plan struct plan first = {0}, second = {0};

	assert_null(json_at(decide(&first, NONE, given), "reason"));
	assert_null(json_at(decide(&second, given, NONE), "reason"));
}

/* It is meant for nodes in mode shared; where there is none, nobody has it. */
TEST(one_that_nodes_withhold_is_found_where_no_other_has_it)
{
	static const char withheld[] =
		REPORTED ", system: {rdmaMode: exclusive}, resources: [{name: x/hca, kind: shared, "
			 "wanted: 0, healthy: 0, offered: 0, cause: mode}]";
	auto_plan struct plan first = {0}, second = {0};

	assert_null(json_at(decide(&first, withheld, SOME), "reason"));
	assert_string_equal(json_str_at(decide(&second, withheld, withheld), "message"),
			    "no node offers x/hca (node w1: mode): set rdmaMode: shared for nodes "
			    "that are to offer it, or remove the entry");
}

TEST(nothing_is_said_before_all_have_reported)
{
	/* Away may be a boot, of the only node that has it: the finding would come and go. */
	static const char *const silent[] = {
		"",
		REPORTED,
		AWAY,
		AWAY ", " NONE,
		AWAY ", " SOME,
		/* Upstream's agent: it has no word for it. */
		"syncStatus: Succeeded",
	};

	for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
		auto_plan struct plan plan = {0};

		assert_null(decide(&plan, NONE, silent[i]));
	}
}

TEST(only_what_is_shared_and_wanted_counts)
{
	static const char *const statuses[] = {
		REPORTED ", resources: [{name: x/vf, kind: sriov, wanted: 4, offered: 0}]",
		REPORTED ", resources: [{name: x/hca, kind: shared, wanted: 0, offered: 0}]",
		REPORTED ", resources: []",
	};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		auto_plan struct plan plan = {0};
		const json_t *op = decide(&plan, statuses[i], NULL);

		assert_string_equal(json_str_at(op, "op"), "finding");
		assert_null(json_at(op, "reason"));
	}
}

TEST(a_config_map_that_is_gone_has_no_finding)
{
	json_auto_t *world = yaml("{env: {namespace: sys}, sriovnetworknodestates: {sys/w1: "
				  "{metadata: {name: w1}, status: {" NONE "}}}}");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(shared_offers_reconcile(world, KEY, &plan, &err), 0);
	assert_string_equal(json_str_at(json_array_get(plan.ops, 0), "op"), "finding");
	assert_null(json_at(json_array_get(plan.ops, 0), "reason"));
}

TEST(a_node_that_was_deleted_has_no_say)
{
	json_auto_t *kept = yaml("{metadata: {annotations: "
				 "{sriovnetwork.openshift.io/keep-state-until: x}}, "
				 "status: {" SOME "}}");

	assert_null(shared_offers_of(kept));
	assert_null(shared_offers_of(NULL));
}

TEST(many_are_counted)
{
	auto_strbuf struct strbuf status = {0};
	auto_plan struct plan plan = {0};
	const json_t *op;

	strbuf_adds(&status, REPORTED ", resources: [");
	for (int i = 0; i < 10; i++)
		strbuf_addf(&status, "{name: x/r%d, kind: shared, wanted: 1, offered: 0},", i);
	strbuf_adds(&status, "]");
	op = decide(&plan, strbuf_str(&status), NULL);
	assert_string_equal(json_str_at(op, "message"),
			    "no node offers x/r0 (node w1: no cause is said), x/r1, x/r2, "
			    "x/r3, x/r4, x/r5, x/r6, x/r7 and 2 more: correct the selectors, or "
			    "remove the entry");
}

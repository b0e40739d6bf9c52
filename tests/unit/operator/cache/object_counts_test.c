// SPDX-License-Identifier: Apache-2.0
/* Numbers follow objects as they come, change and go. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/object_counts.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/node_state.h"
#include "tests/support/yaml.h"

static void note_condition(void *arg, const char *kind, const char *type, const char *status,
			   const char *reason, size_t count)
{
	json_t *lines = arg;

	json_put(lines, str_eq(type, "Ready") ? "ready" : "other",
		 json_fmt("%s %s %s %s %zu", kind, type, status, reason, count));
}

static void note_finding(void *arg, const char *kind, const char *reason, size_t count)
{
	auto_free char *key = str_printf("%s %s", kind, reason);

	json_put_int(arg, key, (int64_t)count);
}

static void note_policy(void *arg, const char *policy, int64_t wanted, int64_t present)
{
	json_put(arg, policy, json_fmt("%d of %d", (int)present, (int)wanted));
}

static void note_resource(void *arg, const char *resource, size_t nodes, size_t empty,
			  size_t unselected)
{
	json_put(arg, resource, json_fmt("%zu of %zu, %zu", empty, nodes, unselected));
}

static void expect_findings(const struct object_counts *counts, const char *want)
{
	json_auto_t *got = json_object(), *wanted = yaml(want);
	auto_free char *text = NULL;

	object_counts_findings(counts, note_finding, got);
	text = json_text(got);
	if (!json_same(got, wanted))
		fail_msg("%s instead of %s", text, want);
}

TEST(an_object_that_needs_somebody_counts_once)
{
	static const struct {
		const char *conditions, *findings;
	} rows[] = {
		{"{type: Ready, status: 'True', reason: Rendered}", "{}"},
		{"{type: Ready, status: 'False', reason: Bad}", "{k Bad: 1}"},
		{"{type: Ready, status: 'False', reason: Syncing}, "
		 "{type: Progressing, status: 'True', reason: Syncing}",
		 "{}"},
		{"{type: Ready, status: 'False', reason: VfHeld}, "
		 "{type: Blocked, status: 'True', reason: VfHeld}",
		 "{}"},
		{"{type: Ready, status: 'False', reason: Bad}, "
		 "{type: Degraded, status: 'True', reason: Worse}",
		 "{k Worse: 1}"},
		{"{type: Ready, status: 'True', reason: Rendered}, "
		 "{type: Degraded, status: 'True', reason: PoolMissing}",
		 "{k PoolMissing: 1}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct object_counts *counts = object_counts_new();
		auto_free char *text =
			str_printf("{status: {conditions: [%s]}}", rows[i].conditions);
		json_auto_t *object = yaml(text);

		object_counts_update(counts, "k", NULL, object);
		expect_findings(counts, rows[i].findings);
		object_counts_update(counts, "k", object, NULL);
		expect_findings(counts, "{}");
		object_counts_free(counts);
	}
}

TEST(conditions_are_counted_by_reason)
{
	struct object_counts *counts = object_counts_new();
	json_auto_t *bad =
		yaml("{status: {conditions: [{type: Ready, status: 'False', reason: Bad}]}}");
	json_auto_t *good =
		yaml("{status: {conditions: [{type: Ready, status: 'True', reason: Usable}]}}");
	json_auto_t *lines = json_object();

	object_counts_update(counts, "k", NULL, bad);
	object_counts_update(counts, "k", NULL, bad);
	object_counts_update(counts, "k", bad, good);
	object_counts_update(counts, "k", bad, NULL);
	object_counts_update(counts, KIND_NODE, NULL, bad);
	object_counts_conditions(counts, note_condition, lines);
	assert_int_equal(json_object_size(lines), 1);
	assert_string_equal(json_str_at(lines, "ready"), "k Ready True Usable 1");
	object_counts_free(counts);
}

TEST(vfs_are_those_of_each_policy)
{
	struct object_counts *counts = object_counts_new();
	json_auto_t *before = yaml("{metadata: {name: a, namespace: lab}, status: {wantedVfs: 8}}");
	json_auto_t *after = yaml("{metadata: {name: a, namespace: lab}, "
				  "status: {wantedVfs: 8, presentVfs: 6}}");
	json_auto_t *lines = json_object(), *none = json_object();

	object_counts_update(counts, KIND_POLICY, NULL, before);
	object_counts_update(counts, KIND_POLICY, before, after);
	object_counts_policies(counts, note_policy, lines);
	assert_string_equal(json_str_at(lines, "lab/a"), "6 of 8");
	object_counts_update(counts, KIND_POLICY, after, NULL);
	object_counts_policies(counts, note_policy, none);
	assert_int_equal(json_object_size(none), 0);
	object_counts_free(counts);
}

/* Users may make any number of those. */
TEST(a_policy_of_an_untrusted_namespace_has_no_series)
{
	struct object_counts *counts = object_counts_new();
	json_auto_t *policy = yaml("{metadata: {name: a, namespace: lab}, status: {wantedVfs: 0, "
				   "conditions: [{type: Ready, status: 'False', "
				   "reason: NamespaceNotTrusted}]}}");
	json_auto_t *lines = json_object();

	object_counts_update(counts, KIND_POLICY, NULL, policy);
	object_counts_policies(counts, note_policy, lines);
	assert_int_equal(json_object_size(lines), 0);
	object_counts_update(counts, KIND_POLICY, policy, NULL);
	object_counts_free(counts);
}

TEST(a_resource_is_missed_where_it_is_wanted)
{
	struct object_counts *counts = object_counts_new();
	json_auto_t *has =
		yaml("{status: {resources: [{name: x/hca, wanted: 500, healthy: 500}]}}");
	json_auto_t *lacks = yaml("{status: {resources: [{name: x/hca, wanted: 500, healthy: 0, "
				  "offered: 500, kind: shared}, "
				  "{name: x/gone, wanted: 0, healthy: 0}]}}");
	json_auto_t *other = yaml("{status: {resources: [{name: x/hca, wanted: 500, healthy: 0, "
				  "offered: 0, kind: shared}]}}");
	json_auto_t *lines = json_object();

	object_counts_update(counts, KIND_NODE_STATE, NULL, has);
	object_counts_update(counts, KIND_NODE_STATE, NULL, lacks);
	object_counts_update(counts, KIND_NODE_STATE, NULL, other);
	object_counts_resources(counts, note_resource, lines);
	assert_int_equal(json_object_size(lines), 1);
	assert_string_equal(json_str_at(lines, "x/hca"), "2 of 3, 1");
	object_counts_free(counts);
}

/* Claims have it there: no healthy one of a device plugin, and none is missed. */
TEST(a_resource_that_claims_have_is_there)
{
	struct object_counts *counts = object_counts_new();
	json_auto_t *lacks = yaml("{status: {resources: [{name: x/hca, wanted: 500, healthy: 0, "
				  "offered: 0, kind: shared}]}}");
	json_auto_t *given = yaml("{status: {resources: [{name: x/hca, wanted: 0, healthy: 0, "
				  "offered: 500, kind: shared}]}}");
	json_auto_t *lines = json_object();

	object_counts_update(counts, KIND_NODE_STATE, NULL, lacks);
	object_counts_update(counts, KIND_NODE_STATE, NULL, given);
	object_counts_resources(counts, note_resource, lines);
	assert_string_equal(json_str_at(lines, "x/hca"), "1 of 2, 1");
	object_counts_free(counts);
}

TEST(a_node_that_was_taken_away_needs_nobody)
{
	struct object_counts *counts = object_counts_new();
	json_auto_t *before = yaml("{status: {resources: [{name: x/hca, wanted: 500, healthy: 0}], "
				   "conditions: [{type: Degraded, status: 'True', reason: Bad}]}}");
	json_auto_t *kept = json_deep_copy(before);
	json_auto_t *resources = json_object(), *lines = json_object();

	json_put_str(json_need_object(json_need_object(kept, "metadata"), "annotations"),
		     NODE_STATE_KEEP_UNTIL, "2026-01-31T10:30:00Z");
	object_counts_update(counts, KIND_NODE_STATE, NULL, before);
	expect_findings(counts, "{sriovnetworknodestates Bad: 1}");
	object_counts_update(counts, KIND_NODE_STATE, before, kept);
	expect_findings(counts, "{}");
	object_counts_resources(counts, note_resource, resources);
	assert_int_equal(json_object_size(resources), 0);
	object_counts_conditions(counts, note_condition, lines);
	assert_string_equal(json_str_at(lines, "other"),
			    "sriovnetworknodestates Degraded True Bad 1");
	object_counts_update(counts, KIND_NODE_STATE, kept, NULL);
	expect_findings(counts, "{}");
	object_counts_free(counts);
}

// SPDX-License-Identifier: Apache-2.0
/* What nodes reported for a policy → its status. */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/policy_status.h"
#include "tests/support/reasons.h"
#include "tests/support/yaml.h"

static json_t *world_with(const char *reports)
{
	json_t *world = yaml("env: {now: '2026-01-31T10:00:00Z', namespace: sys, policyNamespaces: "
			     "[lab, other]}\n"
			     "sriovnetworknodepolicies:\n"
			     "  lab/a:\n"
			     "    metadata: {name: a, namespace: lab, generation: 4}\n"
			     "    spec: {resourceName: r, nodeSelector: {gpu: 'yes'}, numVfs: 8,"
			     " nicSelector: {vendor: 15b3}}\n");

	json_put(world, KIND_POLICY_REPORT, yaml(reports));
	return world;
}

static json_t *policy_of(const json_t *world)
{
	return json_at(world, KIND_POLICY, "lab/a");
}

static json_t *status_of(const json_t *world)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(policy_status_reconcile(world, "lab/a", &plan, &err), 0);
	conditions_keep_the_rule(
		json_at(json_find(plan.ops, "op", "status"), "status", "conditions"));
	return json_incref(json_at(json_find(plan.ops, "op", "status"), "status"));
}

static void assert_condition(const json_t *status, const char *type, const char *value,
			     const char *reason, const char *message)
{
	const json_t *condition = condition_find(json_at(status, "conditions"), type);

	assert_string_equal(json_str_or(json_at(condition, "status"), ""), value);
	assert_string_equal(json_str_or(json_at(condition, "reason"), ""), reason);
	assert_string_equal(json_str_or(json_at(condition, "message"), ""), message);
	assert_int_equal(json_integer_value(json_at(condition, "observedGeneration")), 4);
}

static void assert_counts(const json_t *status, int matched, int ready, int wanted, int present)
{
	assert_int_equal(json_integer_value(json_at(status, "matchedNodes")), matched);
	assert_int_equal(json_integer_value(json_at(status, "readyNodes")), ready);
	assert_int_equal(json_integer_value(json_at(status, "wantedVfs")), wanted);
	assert_int_equal(json_integer_value(json_at(status, "presentVfs")), present);
}

#define READY "{reported: true, matched: true, ready: true, wantedVfs: 8, presentVfs: 8}"
#define NO_NIC                                                                                     \
	"{reported: true, matched: false, ready: false, wantedVfs: 0, presentVfs: 0, reason: "     \
	"NoNicMatches,"
#define SYNCING                                                                                    \
	"{reported: true, matched: true, ready: false, wantedVfs: 8, presentVfs: 0, reason: "      \
	"Syncing,"                                                                                 \
	" why: 'agent: syncStatus is InProgress'}"

TEST(is_ready_when_every_matched_node_is)
{
	json_auto_t *world = world_with("{w1: " READY ", w2: " READY ", w3: " NO_NIC
					" why: 'ens1f0: vendor 8086, wanted 15b3'}}");
	json_auto_t *status = status_of(world);

	assert_counts(status, 2, 2, 16, 16);
	assert_condition(status, "Ready", "True", "NodesReady", "2 nodes ready, 16 VFs");
	assert_condition(status, "Progressing", "False", "NothingToDo",
			 "there is nothing that passes by itself");
	assert_condition(status, "Degraded", "False", "AsExpected", "nothing is wrong");
	assert_string_equal(json_string_value(json_array_get(json_at(status, "explanation"), 0)),
			    "node w3 ens1f0: vendor 8086, wanted 15b3");
}

/* kubectl wait must not pass before every agent has spoken. */
TEST(is_not_ready_while_a_selected_node_is_silent)
{
	json_auto_t *world =
		world_with("{w1: " READY ", ghost: {reported: false, matched: false, ready: false,"
			   " wantedVfs: 0, presentVfs: 0, reason: NicsNotReported,"
			   " why: 'agent: no NICs are reported yet'}}");
	json_auto_t *status = status_of(world);

	assert_counts(status, 1, 1, 8, 8);
	assert_int_equal(json_integer_value(json_at(status, "selectedNodes")), 2);
	assert_int_equal(json_integer_value(json_at(status, "reportingNodes")), 1);
	assert_condition(status, "Ready", "False", "NicsNotReported",
			 "1 of 1 node ready, 8 of 8 VFs: 1 of 2 selected nodes have reported NICs: "
			 "node ghost agent: no NICs are reported yet; if this lasts, look whether "
			 "the agent runs there");
}

/* A virtio NIC for management is no candidate; a PF that lacks one selector is. */
TEST(the_candidate_that_comes_closest_is_in_the_headline)
{
	json_auto_t *world =
		world_with("{w1: " NO_NIC " failing: 3, why: 'mgmt0: vendor 1af4, wanted 15b3;"
			   " deviceID 1041, wanted 1017; name mgmt0, wanted ens1'}, w2: " NO_NIC
			   " failing: 1, why: 'ens1: deviceID 1019, wanted 1017'}}");
	json_auto_t *status = status_of(world);

	assert_condition(
		status, "Ready", "False", "NoNicMatches",
		"nicSelector picks no PF on 2 selected nodes: node w2 ens1: deviceID 1019, "
		"wanted 1017; correct nicSelector");
}

/* A wrong name fails once on each. */
TEST(of_candidates_as_close_one_that_can_have_vfs_is_in_the_headline)
{
	json_auto_t *world = world_with(
		"{w1: " NO_NIC " failing: 1, plain: true, why: 'mgmt0: name mgmt0, wanted ens9'}, "
		"w2: " NO_NIC " failing: 1, why: 'ens1: name ens1, wanted ens9'}}");
	json_auto_t *status = status_of(world);

	assert_condition(status, "Ready", "False", "NoNicMatches",
			 "nicSelector picks no PF on 2 selected nodes: node w2 ens1: name ens1, "
			 "wanted ens9; correct nicSelector");
}

TEST(waiting_is_not_called_failing)
{
	static const struct {
		const char *reason, *why, *message;
	} rows[] = {
		/* The remedy is the agent's, and stands there once. */
		{"Blocked",
		 "ens1: VF 0000:02:10.0 is held by default/vf1; delete that pod, or leave it: "
		 "nothing is taken from it",
		 "node w1 ens1: VF 0000:02:10.0 is held by default/vf1; delete that pod, or leave "
		 "it: nothing is taken from it"},
		{"RebootRequired", "agent: exclusive from the next boot on",
		 "node w1 agent: exclusive from the next boot on; drain and reboot the node when "
		 "it suits you; for an rdmaMode, maxUnavailable of its SriovNetworkPoolConfig has "
		 "it done"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *reports = str_printf(
			"{w1: {reported: true, matched: true, ready: false, wantedVfs: 6, "
			"presentVfs: 4, reason: %s, why: '%s'}}",
			rows[i].reason, rows[i].why);
		auto_free char *ready =
			str_printf("0 of 1 node ready, 4 of 6 VFs: %s", rows[i].message);
		json_auto_t *world = world_with(reports);
		json_auto_t *status = status_of(world);

		assert_condition(status, "Ready", "False", rows[i].reason, ready);
		assert_condition(status, "Progressing", "True", rows[i].reason, rows[i].message);
		assert_condition(status, "Degraded", "False", "AsExpected", "nothing is wrong");
	}
}

TEST(says_the_agents_own_reason)
{
	json_auto_t *world = world_with(
		"{w1: {reported: true, matched: true, ready: false, wantedVfs: 4, presentVfs: 0, "
		"reason: SyncFailed, cause: VfCountRefused, why: 'ens1: no memory'}, "
		"w2: {reported: true, matched: true, ready: false, wantedVfs: 4, presentVfs: 0, "
		"reason: SyncFailed, cause: 'not a word', why: 'ens1: ?'}}");
	json_auto_t *status = status_of(world);

	assert_condition(status, "Degraded", "True", "VfCountRefused", "node w1 ens1: no memory");
	json_object_del(json_at(world, KIND_POLICY_REPORT), "w1");
	json_auto_t *other = status_of(world);
	assert_condition(other, "Degraded", "True", "SyncFailed", "node w2 ens1: ?");
}

TEST(says_who_is_still_at_work)
{
	json_auto_t *world = world_with("{w2: " SYNCING ", w1: " READY "}");
	json_auto_t *status = status_of(world);

	assert_counts(status, 2, 1, 16, 8);
	assert_condition(
		status, "Ready", "False", "Syncing",
		"1 of 2 nodes ready, 8 of 16 VFs: node w2 agent: syncStatus is InProgress; "
		"wait; if this lasts, see the status of its SriovNetworkNodeState");
	assert_string_equal(condition_status_of(json_at(status, "conditions"), "Progressing"),
			    "True");
	assert_condition(status, "Degraded", "False", "AsExpected", "nothing is wrong");
}

TEST(says_the_first_selector_that_failed_when_nothing_matches)
{
	json_auto_t *world = world_with(
		"{w3: " NO_NIC " why: \"ens1f0: vendor 8086, wanted 15b3\\nens1f1: vendor 8086,"
		" wanted 15b3\"}}");
	json_auto_t *status = status_of(world);

	assert_counts(status, 0, 0, 0, 0);
	assert_condition(status, "Ready", "False", "NoNicMatches",
			 "nicSelector picks no PF on 1 selected node: node w3 ens1f0: vendor 8086, "
			 "wanted 15b3; correct nicSelector");
	assert_int_equal(json_array_size(json_at(status, "explanation")), 2);
	assert_string_equal(json_string_value(json_array_get(json_at(status, "explanation"), 1)),
			    "node w3 ens1f1: vendor 8086, wanted 15b3");
}

TEST(says_which_labels_no_node_has)
{
	json_auto_t *world = world_with("{}");
	json_auto_t *status = status_of(world);

	assert_condition(status, "Ready", "False", "NoNodeSelected",
			 "no node has all labels of spec.nodeSelector (gpu=yes); label a node or "
			 "correct nodeSelector");
	assert_null(json_at(status, "explanation"));
}

TEST(waits_for_nodes_that_have_not_reported)
{
	json_auto_t *world =
		world_with("{w1: {matched: false, ready: false, wantedVfs: 0, presentVfs: 0,"
			   " reason: NicsNotReported, why: 'agent: no NICs are reported yet'}}");
	json_auto_t *status = status_of(world);

	assert_condition(status, "Ready", "False", "NicsNotReported",
			 "nicSelector picks no PF on 1 selected node: node w1 agent: no NICs are "
			 "reported yet; if this lasts, look whether the agent runs there");
	assert_string_equal(condition_status_of(json_at(status, "conditions"), "Progressing"),
			    "True");
}

TEST(a_selector_that_failed_is_said_before_nodes_that_are_silent)
{
	json_auto_t *world =
		world_with("{w1: {matched: false, ready: false, reason: NicsNotReported,"
			   " why: 'agent: no NICs are reported yet'},"
			   " w2: " NO_NIC " why: 'ens1f0: vendor 8086, wanted 15b3'}}");
	json_auto_t *status = status_of(world);

	assert_condition(
		status, "Ready", "False", "NoNicMatches",
		"nicSelector picks no PF on 2 selected nodes: node w2 ens1f0: vendor 8086, "
		"wanted 15b3; correct nicSelector");
	assert_condition(status, "Progressing", "True", "NicsNotReported",
			 "node w1 agent: no NICs are reported yet; if this lasts, look whether the "
			 "agent runs there");
}

TEST(a_refused_policy_says_what_would_be_right)
{
	json_auto_t *world = world_with("{w1: " READY "}");
	json_auto_t *status = NULL;

	json_put(json_at(policy_of(world), "spec"), "nicSelector", yaml("{pfNames: ['p0#5']}"));
	status = status_of(world);
	assert_counts(status, 0, 0, 0, 0);
	assert_condition(status, "Ready", "False", "BadRange",
			 "policy lab/a: spec.nicSelector.pfNames[0]: \"p0#5\" has a range without "
			 "'-'; write NAME or NAME#FIRST-LAST, for example ens1f0#0-3");
	assert_string_equal(condition_status_of(json_at(status, "conditions"), "Degraded"), "True");
}

TEST(an_overruled_policy_is_degraded)
{
	json_auto_t *world =
		world_with("{w1: {matched: true, ready: false, wantedVfs: 8, presentVfs: 0,"
			   " reason: Overruled, why: 'p0: VFs 0-7 lost to VFs 0-7 of policy lab/b, "
			   "priority 10'}}");
	json_auto_t *status = status_of(world);

	assert_condition(status, "Degraded", "True", "Overruled",
			 "node w1 p0: VFs 0-7 lost to VFs 0-7 of policy lab/b, priority 10; make "
			 "the VF ranges "
			 "disjoint, or give the policy that is to win a lower priority number");
	assert_string_equal(condition_status_of(json_at(status, "conditions"), "Ready"), "False");
}

TEST(a_policy_without_vfs_is_never_ready)
{
	json_auto_t *world = world_with("{w1: {matched: true, ready: true}}");
	json_auto_t *status = NULL;

	json_put_int(json_at(policy_of(world), "spec"), "numVfs", 0);
	status = status_of(world);
	assert_condition(status, "Ready", "False", "NumVfsZero",
			 "policy lab/a: spec.numVfs: 0 makes no VFs, set it to 1 or more or delete "
			 "the policy");
}

TEST(the_explanation_is_bounded_and_sorted)
{
	json_auto_t *world = world_with("{}");
	json_auto_t *status = NULL;
	const json_t *lines;

	for (int i = 99; i >= 0; i--) {
		auto_free char *node = str_printf("n%02d", i);

		json_put(json_at(world, KIND_POLICY_REPORT), node,
			 yaml(i == 50 ? SYNCING : NO_NIC " why: 'p: vendor 1, wanted 2'}"));
	}
	status = status_of(world);
	lines = json_at(status, "explanation");
	assert_int_equal(json_array_size(lines), POLICY_EXPLANATION_MAX);
	assert_string_equal(json_string_value(json_array_get(lines, 0)),
			    "node n50 agent: syncStatus is InProgress");
	assert_string_equal(json_string_value(json_array_get(lines, 1)),
			    "node n00 p: vendor 1, wanted 2");
	assert_string_equal(json_string_value(json_array_get(lines, 31)), "and 69 lines more");
}

TEST(counts_stay_within_the_schema)
{
	json_auto_t *world = world_with(
		"{w1: {matched: true, ready: true, wantedVfs: 2147483647, presentVfs: -5},"
		" w2: {matched: true, ready: true, wantedVfs: 2147483647}}");
	json_auto_t *status = status_of(world);

	assert_counts(status, 2, 2, INT32_MAX, 0);
}

TEST(a_second_look_changes_nothing)
{
	json_auto_t *world = world_with("{w2: " SYNCING ", w1: " READY "}");
	auto_plan struct plan plan = {0};
	json_auto_t *status = status_of(world), *again = NULL;
	struct err err = {0};

	json_object_set(policy_of(world), "status", status);
	json_put_str(json_at(world, "env"), "now", "2026-01-31T11:00:00Z");
	again = status_of(world);
	assert_true(json_same(status, again));
	assert_int_equal(policy_status_reconcile(world, "lab/a", &plan, &err), 0);
	assert_int_equal(json_array_size(plan.ops), 1);
}

TEST(a_deleted_policy_needs_nothing)
{
	json_auto_t *world = world_with("{}");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(policy_status_reconcile(world, "lab/gone", &plan, &err), 0);
	assert_true(plan_is_empty(&plan));
}

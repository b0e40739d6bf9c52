// SPDX-License-Identifier: Apache-2.0
/*
 * The long answer about a policy: complete where the status is bounded, and the same where it is
 * not.
 */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_explain.h"
#include "reconcilers/sriov/policy_report.h"
#include "reconcilers/sriov/policy_status.h"
#include "tests/support/yaml.h"

static json_t *world_new(void)
{
	return yaml("env: {now: '2026-01-31T10:00:00Z', namespace: sys, policyNamespaces: [lab, "
		    "other]}\n"
		    "nodes: {}\n"
		    "sriovnetworknodepolicies: {}\n"
		    "sriovnetworkpoolconfigs: {}\n"
		    "sriovnetworknodestates: {}\n");
}

/* A node with the label gpu=yes and PFs p00, p01, … of vendor 8086, with 4 VFs each. */
static void add_node(json_t *world, const char *name, int pfs)
{
	auto_free char *key = str_printf("sys/%s", name);
	json_t *interfaces = json_array();

	json_put(json_at(world, KIND_NODE), name,
		 json_pack("{s:{s:s, s:{s:s}}}", "metadata", "name", name, "labels", "gpu", "yes"));
	for (int i = 0; i < pfs; i++)
		json_array_append_new(interfaces, json_pack("{s:o, s:o, s:s, s:i}", "pciAddress",
							    json_fmt("0000:%02x:00.0", i), "name",
							    json_fmt("p%02d", i), "vendor", "8086",
							    "numVfs", 4));
	json_put(json_at(world, KIND_NODE_STATE), key,
		 json_pack("{s:{s:s, s:s, s:i}, s:{s:s, s:o}}", "metadata", "name", name,
			   "namespace", "sys", "generation", 1, "status", "syncStatus", "Succeeded",
			   "interfaces", interfaces));
}

static void add_policy(json_t *world, const char *name, const char *spec)
{
	json_auto_t *fields = yaml(spec);
	json_t *policy =
		json_pack("{s:{s:s,s:s},s:{s:s,s:{s:s}}}", "metadata", "name", name, "namespace",
			  "lab", "spec", "resourceName", name, "nodeSelector", "gpu", "yes");
	auto_free char *key = json_key(policy);

	json_object_update(json_at(policy, "spec"), fields);
	json_put(json_at(world, KIND_POLICY), key, policy);
}

static json_t *explain(const json_t *world, const char *key)
{
	json_auto_t *before = json_deep_copy(world);
	struct err err = {0};
	json_t *answer = policy_explain(world, key, &err);

	if (!answer)
		fail_msg("%s", err.text);
	assert_true(json_same(before, world));
	return answer;
}

static void assert_json(const json_t *is, const char *wanted)
{
	json_auto_t *value = yaml(wanted);
	auto_free char *a = is ? json_text(is) : str_dup("nothing");
	auto_free char *b = json_text(value);

	assert_string_equal(a, b);
}

/* The status as the operator makes it: bounded reports of each node, summed up. */
static json_t *bounded_status(json_t *world, const char *key)
{
	json_auto_t *policy_world =
		json_pack("{s:O, s:O, s:{}}", "env", json_at(world, "env"), KIND_POLICY,
			  json_at(world, KIND_POLICY), KIND_POLICY_REPORT);
	auto_plan struct plan plan = {0};
	struct err err = {0};
	const char *name;
	json_t *node, *op;
	size_t i;

	json_each (json_at(world, KIND_NODE), name, node) {
		auto_plan struct plan one = {0};

		assert_int_equal(node_state_reconcile(world, name, &one, &err), 0);
		json_array_foreach (one.ops, i, op) {
			json_t *report = json_at(op, "policies", key);

			if (report)
				json_object_set(json_at(policy_world, KIND_POLICY_REPORT), name,
						report);
		}
	}
	assert_int_equal(policy_status_reconcile(policy_world, key, &plan, &err), 0);
	op = json_find(plan.ops, "op", "status");
	if (!op)
		fail_msg("no status of %s", key);
	return json_incref(json_at(op, "status"));
}

TEST(every_node_and_pf_names_its_first_failing_selector)
{
	json_auto_t *world = world_new(), *answer = NULL;

	add_node(world, "w1", 2);
	add_node(world, "w2", 1);
	add_node(world, "w3", 1);
	add_node(world, "w4", 1);
	add_node(world, "w5", 1);
	json_put_str(json_at(world, KIND_NODE, "w2", "metadata", "labels"), "gpu", "no");
	json_object_del(json_at(world, KIND_NODE, "w3", "metadata"), "labels");
	json_put_str(json_at(world, KIND_NODE, "w4", "metadata", "labels"), "kubernetes.io/os",
		     "windows");
	json_object_del(json_at(world, KIND_NODE_STATE), "sys/w5");
	add_policy(world, "a", "{numVfs: 4, nicSelector: {vendor: '8086', pfNames: [p01]}}");
	answer = explain(world, "lab/a");
	assert_json(json_at(answer, "nodes"),
		    "w1: {selected: true, why: 'agent: its NodeState is being written', pfs: ["
		    " {name: p00, pciAddress: '0000:00:00.0', picked: false,"
		    "  why: 'name p00, wanted p01'},"
		    " {name: p01, pciAddress: '0000:01:00.0', picked: true,"
		    "  vfGroups: [{vfRange: 0-3, policy: lab/a}],"
		    "  fields: {numVfs: {value: 4, policy: lab/a}}}]}\n"
		    "w2: {selected: false, why: 'label gpu no, wanted yes'}\n"
		    "w3: {selected: false, why: 'label gpu missing, wanted yes'}\n"
		    "w4: {selected: false, why: 'label kubernetes.io/os windows, wanted linux'}\n"
		    "w5: {selected: true, why: 'agent: no NICs are reported yet', pfs: []}\n");
}

TEST(every_field_says_whose_it_is_and_what_was_overruled)
{
	json_auto_t *world = world_new(), *answer = NULL;

	add_node(world, "w1", 1);
	add_policy(world, "gold",
		   "{priority: 10, nicSelector: {pfNames: ['p00#0-3']}, numVfs: 8, mtu: 9000,"
		   " linkType: eth, externallyManaged: false}");
	add_policy(world, "bulk",
		   "{priority: 50, nicSelector: {pfNames: ['p00#4-9']}, numVfs: 10, mtu: 1500,"
		   " linkType: ETH, eSwitchMode: switchdev}");
	add_policy(world, "wide",
		   "{nicSelector: {pfNames: [p00]}, numVfs: 16, eSwitchMode: legacy,"
		   " externallyManaged: true}");
	add_policy(world, "elsewhere", "{nicSelector: {pfNames: [p77]}, numVfs: 1, mtu: 1}");
	answer = explain(world, "lab/wide");
	assert_json(
		json_array_get(json_at(answer, "nodes", "w1", "pfs"), 0),
		"name: p00\n"
		"pciAddress: '0000:00:00.0'\n"
		"picked: true\n"
		"vfGroups: [{vfRange: 0-3, policy: lab/gold}, {vfRange: 4-9, policy: lab/bulk}]\n"
		"lost: [{vfRange: 0-15, policy: lab/wide, to: lab/bulk}]\n"
		"fields:\n"
		"  numVfs: {value: 10, policy: lab/bulk, overruled: ["
		"   {policy: lab/gold, value: 8}, {policy: lab/wide, value: 16}]}\n"
		"  mtu: {value: 9000, policy: lab/gold, overruled: ["
		"   {policy: lab/bulk, value: 1500}]}\n"
		"  linkType: {value: eth, policy: lab/gold}\n"
		"  eSwitchMode: {value: switchdev, policy: lab/bulk, overruled: ["
		"   {policy: lab/wide, value: legacy}]}\n"
		"  externallyManaged: {value: false, policy: lab/gold, overruled: ["
		"   {policy: lab/wide, value: true}]}\n");
}

TEST(within_the_bounds_it_says_what_the_status_says)
{
	json_auto_t *world = world_new(), *answer = NULL, *status = NULL;

	/* 7 nodes × 4 lines and 3 of one: 31, the most that fit with the last line kept free. */
	for (int i = 0; i < 7; i++) {
		auto_free char *name = str_printf("w%d", i);

		add_node(world, name, POLICY_WHY_LINES);
	}
	add_node(world, "w7", 3);
	add_policy(world, "a", "{numVfs: 4, nicSelector: {vendor: 15b3}}");
	answer = explain(world, "lab/a");
	status = bounded_status(world, "lab/a");
	assert_int_equal(json_array_size(json_at(status, "explanation")),
			 POLICY_EXPLANATION_MAX - 1);
	assert_true(json_same(json_at(answer, "status"), status));
}

TEST(beyond_the_bounds_it_has_every_line_and_the_same_verdict)
{
	json_auto_t *world = world_new(), *answer = NULL, *status = NULL;
	const json_t *all, *some;
	json_t *full;

	for (int i = 0; i < 8; i++) {
		auto_free char *name = str_printf("w%d", i);

		add_node(world, name, POLICY_WHY_LINES + 1);
	}
	add_policy(world, "a", "{numVfs: 4, nicSelector: {vendor: 15b3}}");
	answer = explain(world, "lab/a");
	status = bounded_status(world, "lab/a");
	full = json_at(answer, "status");
	all = json_at(full, "explanation");
	some = json_at(status, "explanation");
	assert_int_equal(json_array_size(all), 8 * (POLICY_WHY_LINES + 1));
	assert_int_equal(json_array_size(some), POLICY_EXPLANATION_MAX);
	assert_string_equal(json_string_value(json_array_get(all, 4)),
			    "node w0 p04: vendor 8086, wanted 15b3");
	assert_string_equal(json_string_value(json_array_get(some, 4)),
			    "node w1 p00: vendor 8086, wanted 15b3");
	assert_string_equal(json_string_value(json_array_get(some, 31)), "and 1 lines more");

	json_object_set(full, "explanation", (json_t *)some);
	assert_true(json_same(full, status));
}

TEST(a_policy_that_is_refused_says_why_it_is_nowhere)
{
	json_auto_t *world = world_new(), *answer = NULL;

	add_node(world, "w1", 1);
	add_policy(world, "a", "{numVfs: 4, nicSelector: {pfNames: ['p00#3']}}");
	answer = explain(world, "lab/a");
	assert_json(json_at(answer, "nodes"),
		    "{w1: {selected: false, why: the policy cannot be applied}}");
	assert_string_equal(
		json_string_value(json_array_get(json_at(answer, "status", "explanation"), 0)),
		"spec.nicSelector.pfNames[0]: \"p00#3\" has a range without '-'; "
		"write NAME or NAME#FIRST-LAST, for example ens1f0#0-3");
}

TEST(an_unknown_policy_is_an_error)
{
	json_auto_t *world = world_new();
	struct err err = {0};

	assert_null(policy_explain(world, "lab/a", &err));
	assert_string_equal(err.text, "policy lab/a: there is none of that name");
	assert_string_equal(err.reason, "NoSuchPolicy");
}

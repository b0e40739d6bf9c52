// SPDX-License-Identifier: Apache-2.0
/*
 * What a plan costs, read off plans of the real planner: who holds a VF is told the planner, as the
 * kubelet and the host would.
 */
#include "tests/support/test.h"

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/impact.h"
#include "nodeagent/host_plan/planner.h"
#include "tests/support/yaml.h"

#define PF   "0000:3b:00.0"
#define VF_0 "0000:3b:00.2"
#define VF_1 "0000:3b:00.3"

/* JSON with ' for ". */
#define VF(id, address, in_use)                                                                    \
	"{'vfID': " id ", 'pciAddress': '" address                                                 \
	"', 'driver': 'mlx5_core', 'mac': '02:00:00:00:00:0" id "', 'host': {'inUse': " in_use     \
	"}}"

/* A PF with two VFs, and a spec that wants `vfs` of them. */
static json_t *plan(int vfs, const char *held_text, const char *second_in_use)
{
	json_auto_t *held = yaml(held_text);
	json_auto_t *observed = NULL, *spec = NULL;
	auto_free char *text = str_printf(
		"{'interfaces': [{'pciAddress': '" PF "', 'name': 'ens1', 'driver': 'mlx5_core', "
		"'vendor': '15b3', 'deviceID': '101d', 'numVfs': 2, 'totalvfs': 8, 'mtu': 1500, "
		"'linkType': 'ETH', 'eSwitchMode': 'legacy', 'linkAdminState': 'up', "
		"'Vfs': [" VF("0", VF_0, "false") ", " VF(
			"1", VF_1, "%s") "], 'host': {'driversAutoprobe': false}}], 'node': {}}",
		second_in_use);
	struct err err = {0};
	json_t *ret;

	observed = yaml(text);
	spec = json_pack("{s:[{s:s, s:i}]}", "interfaces", "pciAddress", PF, "numVfs", vfs);
	ret = planner_plan(
		&(struct planner_input){.spec = spec, .observed = observed, .held = held}, &err);
	if (!ret)
		fail_msg("%s", err.text);
	json_object_set(ret, "test-observed", observed);
	return ret;
}

static void assert_json(json_t *got, const char *want_text)
{
	json_auto_t *want = yaml(want_text), *owned = got;
	auto_free char *text = NULL;

	if (!json_same(owned, want)) {
		text = json_text(owned);
		fail_msg("%s\nwanted %s", text, want_text);
	}
}

TEST(names_the_pods_that_hold_what_has_to_go)
{
	json_auto_t *changed =
		plan(4, "{'" VF_0 "': 'ml/train-0', '" VF_1 "': 'ml/b/main'}", "true");

	assert_json(plan_impact(changed, true),
		    "{'class': 'evict', 'withdrawn': true, 'pods': ["
		    "{'pod': 'ml/train-0', 'device': '" VF_0 "', 'pciAddress': '" PF "'}, "
		    "{'pod': 'ml/b', 'device': '" VF_1 "', 'pciAddress': '" PF "'}]}");
}

TEST(who_is_no_pod_is_told_apart)
{
	json_auto_t *changed = plan(4, "{}", "true");

	assert_json(plan_impact(changed, false),
		    "{'class': 'none', 'others': [{'holder': 'someone', 'device': '" VF_1
		    "', 'pciAddress': '" PF "'}]}");
}

TEST(costs_nothing_when_nobody_is_in_the_way)
{
	json_auto_t *changed = plan(4, "{}", "false"),
		    *same = plan(2, "{'" VF_0 "': 'a/b'}", "true");

	assert_true(json_array_size(json_at(changed, "steps")) > 0);
	assert_json(plan_impact(changed, false), "{'class': 'none'}");
	assert_json(plan_impact(same, false), "{'class': 'none'}");
}

TEST(a_boot_is_worse_than_pods)
{
	json_auto_t *booting = yaml(
		"{'reboot': {'reason': 'RdmaModeNextBoot', 'message': 'drain and reboot'}, "
		"'blocked': [{'pf': '" PF "', 'vf': '" VF_0 "', 'holder': 'a/b', 'pod': 'a/b'}]}");

	assert_json(
		plan_impact(booting, false),
		"{'class': 'reboot', 'reason': 'RdmaModeNextBoot', 'message': 'drain and reboot', "
		"'pods': [{'pod': 'a/b', 'device': '" VF_0 "', 'pciAddress': '" PF "'}]}");
}

TEST(names_so_many_and_counts_the_rest)
{
	json_auto_t *full = json_pack("{s:[]}", "blocked");
	json_auto_t *impact = NULL;

	for (int i = 0; i < IMPACT_NAMED_MAX + 5; i++)
		json_array_append_new(json_at(full, "blocked"),
				      json_pack("{s:s, s:o, s:s}", "pf", PF, "vf",
						json_fmt("0000:3c:00.%d", i), "pod", "a/b"));
	impact = plan_impact(full, false);
	assert_int_equal(json_array_size(json_at(impact, "pods")), IMPACT_NAMED_MAX);
	assert_int_equal(json_integer_value(json_at(impact, "morePods")), 5);
}

TEST(all_vfs_of_a_pf_are_vacated_when_all_go)
{
	json_auto_t *changed = plan(4, "{'" VF_0 "': 'ml/train-0'}", "false");
	json_auto_t *one = yaml("{'blocked': [{'pf': '" PF "', 'vf': '" VF_1 "', 'pod': 'a/b'}]}");

	assert_json(plan_vacated(changed, json_at(changed, "test-observed")),
		    "{'" VF_0 "': true, '" VF_1 "': true}");
	assert_json(plan_vacated(one, json_at(changed, "test-observed")), "{'" VF_1 "': true}");
	assert_null(plan_vacated(NULL, NULL));
}

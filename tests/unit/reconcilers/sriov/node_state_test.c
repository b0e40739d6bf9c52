// SPDX-License-Identifier: Apache-2.0
/*
 * Node and policies → SriovNetworkNodeState: merging of policies on a PF, what does not stop what,
 * the object's life.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/node_state.h"
#include "tests/support/yaml.h"

/* Node w1 (label gpu=yes) with two PFs of one kind, p0 and p1. */
static json_t *world_new(void)
{
	return yaml(
		"env: {now: '2026-01-31T10:00:00Z', namespace: sys, policyNamespaces: [lab, "
		"other]}\n"
		"nodes: {w1: {metadata: {name: w1, labels: {gpu: 'yes'}}}}\n"
		"sriovnetworknodepolicies: {}\n"
		"sriovnetworkpoolconfigs: {}\n"
		"sriovnetworknodestates:\n"
		"  sys/w1:\n"
		"    metadata: {name: w1, namespace: sys, uid: u1, generation: 3}\n"
		"    status:\n"
		"      syncStatus: Succeeded\n"
		"      interfaces:\n"
		"      - {pciAddress: '0000:19:00.0', name: p0, altNames: [rail0], vendor: 15b3,"
		" deviceID: '1021', numVfs: 0, totalvfs: 16, linkType: ETH}\n"
		"      - {pciAddress: '0000:19:00.1', name: p1, vendor: 15b3, deviceID: '1021',"
		" numVfs: 0, totalvfs: 16, linkType: ETH}\n");
}

static json_t *state_of(const json_t *world)
{
	return json_at(world, KIND_NODE_STATE, "sys/w1");
}

/* Adds policy lab/<name>; the resource is called as the policy unless the spec says otherwise. */
static void add_policy(json_t *world, const char *name, const char *spec)
{
	json_auto_t *fields = yaml(spec);
	json_t *policy =
		json_pack("{s:{s:s,s:s},s:{s:s,s:{}}}", "metadata", "name", name, "namespace",
			  "lab", "spec", "resourceName", name, "nodeSelector");
	auto_free char *key = json_key(policy);

	json_object_update(json_at(policy, "spec"), fields);
	json_put(json_at(world, KIND_POLICY), key, policy);
}

static const json_t *find_op(const struct plan *plan, const char *op)
{
	return json_find(plan->ops, "op", op);
}

static void reconcile(const json_t *world, struct plan *plan)
{
	struct err err = {0};

	if (node_state_reconcile(world, "w1", plan, &err) < 0)
		fail_msg("%s", err.text);
}

static json_t *spec_of(const json_t *world)
{
	auto_plan struct plan plan = {0};

	reconcile(world, &plan);
	return json_incref(json_at(find_op(&plan, "apply"), "object", "spec"));
}

static json_t *report_of(const json_t *world, const char *policy)
{
	auto_plan struct plan plan = {0};

	reconcile(world, &plan);
	return json_incref(json_at(find_op(&plan, "report"), "policies", policy));
}

static void assert_json(const json_t *is, const char *wanted)
{
	json_auto_t *value = yaml(wanted);
	auto_free char *a = is ? json_text(is) : str_dup("nothing");
	auto_free char *b = json_text(value);

	assert_string_equal(a, b);
}

static void assert_why(const json_t *world, const char *policy, const char *reason, const char *why)
{
	json_auto_t *report = report_of(world, policy);

	assert_string_equal(json_str_or(json_at(report, "reason"), ""), reason);
	assert_string_equal(json_str_or(json_at(report, "why"), ""), why);
}

/* ---- merging; the table of reference section 2.10 -------------------------------------------- */

#define GOLD                                                                                       \
	"{priority: 10, nicSelector: {pfNames: ['p0#0-3']}, numVfs: 8, mtu: 9000, isRdma: true}"
#define BULK                                                                                       \
	"{priority: 50, nicSelector: {pfNames: ['p0#4-9']}, numVfs: 10, mtu: 1500,"                \
	" deviceType: vfio-pci}"
#define GOLD_GROUP                                                                                 \
	"{resourceName: gold, deviceType: netdevice, vfRange: 0-3, policyName: gold, "             \
	"policyNamespace: lab, mtu: 9000,"                                                         \
	" isRdma: true}"
#define BULK_GROUP                                                                                 \
	"{resourceName: bulk, deviceType: vfio-pci, vfRange: 4-9, policyName: bulk, "              \
	"policyNamespace: lab, mtu: 1500}"

/* key: "NAMESPACE/NAME" */
static void put_pool(json_t *world, const char *key, const char *text)
{
	auto_free char *namespace = str_ndup(key, strcspn(key, "/"));
	json_t *pool = yaml(text);

	json_put_str(json_need_object(pool, "metadata"), "namespace", namespace);
	json_put(json_at(world, KIND_POOL_CONFIG), key, pool);
}

TEST(two_policies_share_a_pf)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "gold", GOLD);
	add_policy(world, "bulk", BULK);
	put_pool(world, "sys/all", "{metadata: {name: all}, spec: {rdmaMode: exclusive}}");
	spec = spec_of(world);
	assert_json(spec, "{interfaces: [{pciAddress: '0000:19:00.0', numVfs: 10, mtu: 9000,"
			  " name: p0, vfGroups: [" GOLD_GROUP "," BULK_GROUP "]}],"
			  " bridges: {}, system: {rdmaMode: exclusive}}");
}

TEST(a_weak_policy_that_overlaps_leaves_nothing_behind)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "gold", GOLD);
	add_policy(world, "bulk", BULK);
	add_policy(world, "wide", "{nicSelector: {pfNames: [p0]}, numVfs: 16, mtu: 4000}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 10, mtu: 9000, name: p0,"
		    " vfGroups: [" GOLD_GROUP "," BULK_GROUP "]}]");
	assert_why(world, "lab/wide", "Overruled",
		   "p0: VFs 0-15 lost to VFs 4-9 of policy lab/bulk, priority 50");
}

TEST(a_strong_policy_that_overlaps_takes_the_pf)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "gold", GOLD);
	add_policy(world, "bulk", BULK);
	add_policy(world, "wide",
		   "{priority: 5, nicSelector: {pfNames: [p0]}, numVfs: 16, mtu: 4000}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 16, mtu: 4000, name: p0, vfGroups: ["
		    "{resourceName: wide, deviceType: netdevice, vfRange: 0-15,"
		    " policyName: wide, policyNamespace: lab, mtu: 4000}]}]");
}

TEST(of_equals_the_last_name_wins_and_the_larger_numbers_stay)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "b", "{nicSelector: {pfNames: [p0]}, numVfs: 4, mtu: 1500}");
	add_policy(world, "a",
		   "{priority: 99, nicSelector: {pfNames: [p0]}, numVfs: 12, mtu: 9000}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 12, mtu: 9000, name: p0, vfGroups: ["
		    "{resourceName: b, deviceType: netdevice, vfRange: 0-3, policyName: b, "
		    "policyNamespace: lab,"
		    " mtu: 1500}]}]");
}

TEST(an_absent_priority_is_the_weakest)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "a", "{priority: 98, nicSelector: {pfNames: [p0]}, numVfs: 12}");
	add_policy(world, "b", "{nicSelector: {pfNames: [p0]}, numVfs: 4}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 12, name: p0, vfGroups: ["
		    "{resourceName: a, deviceType: netdevice, vfRange: 0-11, policyName: a, "
		    "policyNamespace: lab}]}]");
}

TEST(disjoint_ranges_may_share_a_resource)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(
		world, "s1",
		"{priority: 10, resourceName: r, nicSelector: {pfNames: ['p0#0-3']}, numVfs: 8}");
	add_policy(
		world, "s2",
		"{priority: 10, resourceName: r, nicSelector: {pfNames: ['p0#4-7']}, numVfs: 8}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 8, name: p0, vfGroups: ["
		    "{resourceName: r, deviceType: netdevice, vfRange: 4-7, policyName: s2, "
		    "policyNamespace: lab},"
		    "{resourceName: r, deviceType: netdevice, vfRange: 0-3, policyName: s1, "
		    "policyNamespace: lab}]}]");
}

TEST(a_policy_may_list_a_pf_twice_and_by_its_alternative_name)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "a", "{nicSelector: {pfNames: ['rail0#0-1', 'p0#4-5']}, numVfs: 6}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 6, name: p0, vfGroups: ["
		    "{resourceName: a, deviceType: netdevice, vfRange: 0-1, policyName: a, "
		    "policyNamespace: lab},"
		    "{resourceName: a, deviceType: netdevice, vfRange: 4-5, policyName: a, "
		    "policyNamespace: lab}]}]");
}

TEST(equality_is_judged_per_pf)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "x",
		   "{priority: 20, nicSelector: {pfNames: [p0]}, numVfs: 12, mtu: 9000}");
	add_policy(world, "w", "{priority: 10, nicSelector: {pfNames: [p1]}, numVfs: 2}");
	add_policy(world, "z", "{priority: 10, nicSelector: {pfNames: [p0]}, numVfs: 4}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.0', numVfs: 4, name: p0, vfGroups: ["
		    "{resourceName: z, deviceType: netdevice, vfRange: 0-3, policyName: z, "
		    "policyNamespace: lab}]},"
		    "{pciAddress: '0000:19:00.1', numVfs: 2, name: p1, vfGroups: ["
		    "{resourceName: w, deviceType: netdevice, vfRange: 0-1, policyName: w, "
		    "policyNamespace: lab}]}]");
}

TEST(a_partition_inherits_what_it_does_not_say)
{
	json_auto_t *world = world_new(), *spec = NULL;
	const json_t *pf;

	add_policy(world, "weak",
		   "{priority: 50, nicSelector: {pfNames: ['p0#0-3']}, numVfs: 8, linkType: eth,"
		   " eSwitchMode: switchdev, externallyManaged: true}");
	add_policy(world, "strong",
		   "{priority: 10, nicSelector: {pfNames: ['p0#4-7']}, numVfs: 8, linkType: ETH}");
	spec = spec_of(world);
	pf = json_array_get(json_at(spec, "interfaces"), 0);
	assert_string_equal(json_str_at(pf, "linkType"), "ETH");
	assert_string_equal(json_str_at(pf, "eSwitchMode"), "switchdev");
	assert_true(json_is_true(json_at(pf, "externallyManaged")));
	assert_why(world, "lab/strong", "ExternalVfsMissing",
		   "p0: is externally managed and has 0 VFs, numVfs is 8\n"
		   "agent: its NodeState is being written");

	json_put_int(json_array_get(json_at(state_of(world), "status", "interfaces"), 0), "numVfs",
		     8);
	assert_why(world, "lab/weak", "SpecPending", "agent: its NodeState is being written");
}

TEST(a_contradiction_on_a_pf_is_told_to_the_weaker)
{
	json_auto_t *world = world_new(), *spec = NULL;
	const json_t *pf;

	add_policy(world, "weak",
		   "{priority: 50, nicSelector: {pfNames: ['p0#0-3']}, numVfs: 8,"
		   " eSwitchMode: switchdev, externallyManaged: true}");
	add_policy(world, "strong",
		   "{priority: 10, nicSelector: {pfNames: ['p0#4-7']}, numVfs: 8,"
		   " eSwitchMode: legacy, externallyManaged: false}");
	spec = spec_of(world);
	pf = json_array_get(json_at(spec, "interfaces"), 0);
	assert_string_equal(json_str_at(pf, "eSwitchMode"), "legacy");
	assert_null(json_at(pf, "externallyManaged"));

	json_object_set(state_of(world), "spec", spec);
	json_put_int(json_array_get(json_at(state_of(world), "status", "interfaces"), 0), "numVfs",
		     8);
	assert_why(world, "lab/strong", "", "");
	assert_why(world, "lab/weak", "FieldOverruled",
		   "p0: eSwitchMode switchdev is overruled by legacy of policy lab/strong\n"
		   "p0: externallyManaged true is overruled by policy lab/strong");
}

TEST(a_replaced_policy_bequeaths_no_fields)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(
		world, "weak",
		"{priority: 50, nicSelector: {pfNames: [p0]}, numVfs: 8, eSwitchMode: switchdev}");
	add_policy(world, "strong", "{priority: 10, nicSelector: {pfNames: [p0]}, numVfs: 8}");
	spec = spec_of(world);
	assert_null(json_at(json_array_get(json_at(spec, "interfaces"), 0), "eSwitchMode"));
}

TEST(the_plugin_needs_no_other_source)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "a",
		   "{nicSelector: {pfNames: [p1]}, numVfs: 2, needVhostNet: true,"
		   " excludeTopology: true, vdpaType: vhost, eSwitchMode: switchdev}");
	spec = spec_of(world);
	assert_json(json_at(json_array_get(json_at(spec, "interfaces"), 0), "vfGroups"),
		    "[{resourceName: a, deviceType: netdevice, vfRange: 0-1, policyName: a, "
		    "policyNamespace: lab,"
		    " vdpaType: vhost, needVhostNet: true, excludeTopology: true}]");
}

TEST(a_resource_of_two_sorts_is_told_to_the_weaker)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "a", "{resourceName: r, nicSelector: {pfNames: [p0]}, numVfs: 2}");
	add_policy(world, "b",
		   "{resourceName: r, nicSelector: {pfNames: [p1]}, numVfs: 2, isRdma: true}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	for (size_t i = 0; i < 2; i++)
		json_put_int(json_array_get(json_at(state_of(world), "status", "interfaces"), i),
			     "numVfs", 2);
	assert_why(world, "lab/a", "MixedResource",
		   "agent: resource r also has VFs of policy lab/b with another isRdma");
	assert_why(world, "lab/b", "", "");
}

/* ---- GUIDs ----------------------------------------------------------------------------------- */

static json_t *group_at(const json_t *spec, size_t pf, size_t group)
{
	return json_array_get(json_at(json_array_get(json_at(spec, "interfaces"), pf), "vfGroups"),
			      group);
}

static void set_guid_pool(json_t *world, const char *name, const char *octet)
{
	auto_free char *pool =
		str_printf("{spec: {guidPool: {rangeStart: '%s:00:00:00:00:00:00:00',"
			   " rangeEnd: '%s:ff:ff:ff:ff:ff:ff:ff'}}}",
			   octet, octet);

	put_pool(world, name, pool);
}

static void set_pf(json_t *world, size_t pf, const char *fields)
{
	json_auto_t *value = yaml(fields);

	json_object_update(json_array_get(json_at(state_of(world), "status", "interfaces"), pf),
			   value);
}

#define IPOIB "00:00:10:87:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:66:a1:b2"

TEST(infiniband_vfs_get_guids_from_the_pool_of_the_node)
{
	json_auto_t *world = world_new(), *spec = NULL;

	set_pf(world, 0, "{linkType: IB, mac: '" IPOIB "'}");
	set_pf(world, 1, "{mac: '0c:42:a1:66:a1:b3'}");
	add_policy(world, "a", "{nicSelector: {pfNames: ['p0#2-3', 'p0#10-15', p1]}, numVfs: 16}");
	set_guid_pool(world, "sys/ib", "06");
	spec = spec_of(world);
	assert_string_equal(json_str_at(group_at(spec, 0, 0), "guidStart"),
			    "06:0c:42:a1:66:a1:b2:02");
	assert_string_equal(json_str_at(group_at(spec, 0, 1), "guidStart"),
			    "06:0c:42:a1:66:a1:b2:0a");
	/* Ethernet: the GUID follows from the VF's MAC address. */
	assert_null(json_at(group_at(spec, 1, 0), "guidStart"));
}

TEST(the_link_that_a_policy_asks_for_decides_over_guids)
{
	json_auto_t *world = world_new(), *spec = NULL;

	set_pf(world, 0, "{mac: '0c:42:a1:66:a1:b2'}");
	set_pf(world, 1, "{linkType: IB, mac: '0c:42:a1:66:a1:b3'}");
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 2, linkType: ib}");
	add_policy(world, "b", "{nicSelector: {pfNames: [p1]}, numVfs: 2, linkType: eth}");
	set_guid_pool(world, "sys/ib", "02");
	spec = spec_of(world);
	assert_string_equal(json_str_at(group_at(spec, 0, 0), "guidStart"),
			    "02:0c:42:a1:66:a1:b2:00");
	assert_null(json_at(group_at(spec, 1, 0), "guidStart"));
}

TEST(without_a_pool_guids_are_left_to_the_agent)
{
	json_auto_t *world = world_new(), *spec = NULL;

	set_pf(world, 0, "{linkType: IB, mac: '" IPOIB "'}");
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 2}");
	put_pool(world, "sys/ib", "{spec: {rdmaMode: shared}}");
	spec = spec_of(world);
	assert_null(json_at(group_at(spec, 0, 0), "guidStart"));
}

TEST(a_node_in_two_pools_keeps_its_guids)
{
	json_auto_t *world = world_new(), *before = NULL, *after = NULL;

	set_pf(world, 0, "{linkType: IB, mac: '" IPOIB "'}");
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 2}");
	set_guid_pool(world, "sys/a", "02");
	before = spec_of(world);
	json_object_set(state_of(world), "spec", before);
	set_guid_pool(world, "sys/b", "06");
	after = spec_of(world);
	assert_true(json_same(before, after));
}

TEST(who_cannot_have_guids_of_the_pool_is_told)
{
	json_auto_t *world = world_new(), *spec = NULL;

	set_pf(world, 0, "{linkType: IB, mac: none, numVfs: 2}");
	set_pf(world, 1, "{linkType: IB, mac: '0c:42:a1:66:a1:b3', totalvfs: 300, numVfs: 300}");
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 2}");
	add_policy(world, "b", "{nicSelector: {pfNames: ['p1#0-255', 'p1#256-299']}, numVfs: 300}");
	set_guid_pool(world, "sys/ib", "02");
	spec = spec_of(world);
	assert_null(json_at(group_at(spec, 0, 0), "guidStart"));
	assert_string_equal(json_str_at(group_at(spec, 1, 0), "guidStart"),
			    "02:0c:42:a1:66:a1:b3:00");
	assert_null(json_at(group_at(spec, 1, 1), "guidStart"));

	json_object_set(state_of(world), "spec", spec);
	assert_why(world, "lab/a", "NoPoolGuids",
		   "p0: no GUIDs from the pool, they are made of a MAC address and its mac is "
		   "\"none\"");
	assert_why(world, "lab/b", "NoPoolGuids",
		   "p1: no GUIDs from the pool for VFs 256-299, it has 256 for each PF");
}

/* ---- what does not stop what ----------------------------------------------------------------- */

TEST(a_refused_policy_stops_no_other)
{
	json_auto_t *world = world_new(), *spec = NULL;

	add_policy(world, "bad", "{nicSelector: {pfNames: ['p0#5']}, numVfs: 8}");
	add_policy(world, "worse", "{nicSelector: 7, numVfs: 8}");
	add_policy(world, "good", "{nicSelector: {pfNames: [p1]}, numVfs: 2}");
	add_policy(world, "default", "{nicSelector: {pfNames: [p0]}, numVfs: 2}");
	spec = spec_of(world);
	assert_json(json_at(spec, "interfaces"),
		    "[{pciAddress: '0000:19:00.1', numVfs: 2, name: p1, vfGroups: ["
		    "{resourceName: good, deviceType: netdevice, vfRange: 0-1, policyName: good, "
		    "policyNamespace: lab}]}]");
}

TEST(a_policy_broken_by_an_edit_keeps_its_vfs)
{
	json_auto_t *world = world_new(), *before = NULL, *after = NULL;

	add_policy(world, "live", "{nicSelector: {pfNames: [p0]}, numVfs: 8}");
	add_policy(world, "other", "{nicSelector: {pfNames: [p1]}, numVfs: 4}");
	before = spec_of(world);
	json_object_set(state_of(world), "spec", before);

	add_policy(world, "live", "{nicSelector: {pfNames: ['p0#0-']}, numVfs: 8}");
	add_policy(world, "also", "{nicSelector: {pfNames: [p0]}, numVfs: 2}");
	json_object_del(json_at(world, KIND_POLICY), "lab/other");
	after = spec_of(world);
	assert_int_equal(json_array_size(json_at(after, "interfaces")), 1);
	assert_true(json_same(json_array_get(json_at(after, "interfaces"), 0),
			      json_array_get(json_at(before, "interfaces"), 0)));
	assert_why(world, "lab/also", "PfHeld",
		   "p0: stays as it is, because a policy that it was set up for is refused now");
}

/* The label is as it was, or has changed with a NIC. */
TEST(a_policy_that_selects_by_rails_keeps_its_vfs)
{
	static const char *const labels[] = {"{gpu: 'yes', rdma.orbweaver.io/rail.count: '8'}",
					     "{gpu: 'yes', rdma.orbweaver.io/rail.count: '7'}"};

	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		json_auto_t *world = world_new(), *before = NULL, *after = NULL;

		add_policy(world, "live", "{nicSelector: {pfNames: [p0]}, numVfs: 8}");
		before = spec_of(world);
		json_object_set(state_of(world), "spec", before);
		json_put(json_at(world, KIND_NODE, "w1", "metadata"), "labels", yaml(labels[i]));
		add_policy(world, "live",
			   "{nodeSelector: {gpu: 'yes', rdma.orbweaver.io/rail.count: '8'}, "
			   "nicSelector: {pfNames: [p0]}, numVfs: 4}");
		after = spec_of(world);
		assert_true(json_same(json_at(after, "interfaces"), json_at(before, "interfaces")));
		/* Other labels count as ever. */
		json_put(json_at(world, KIND_NODE, "w1", "metadata"), "labels", json_object());
		json_decref(after);
		after = spec_of(world);
		assert_int_equal(json_array_size(json_at(after, "interfaces")), 0);
	}
}

TEST(a_good_policy_is_not_held_for_its_namesake)
{
	json_auto_t *world = world_new(), *before = NULL, *after = NULL;
	json_t *bad;

	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 8}");
	bad = json_deep_copy(json_at(world, KIND_POLICY, "lab/a"));
	json_put_str(json_at(bad, "metadata"), "namespace", "other");
	json_put_str(json_at(bad, "spec"), "numVfs", "many");
	json_put(json_at(world, KIND_POLICY), "other/a", bad);
	before = spec_of(world);
	json_object_set(state_of(world), "spec", before);

	json_put_int(json_at(world, KIND_POLICY, "lab/a", "spec"), "numVfs", 4);
	after = spec_of(world);
	assert_int_equal(json_integer_value(json_at(json_array_get(json_at(after, "interfaces"), 0),
						    "numVfs")),
			 4);
}

TEST(a_pf_that_is_listed_twice_counts_once)
{
	json_auto_t *world = world_new(), *spec = NULL;
	json_t *interfaces = json_at(state_of(world), "status", "interfaces");

	json_array_append(interfaces, json_array_get(interfaces, 0));
	add_policy(world, "a", "{nicSelector: {vendor: 15b3}, numVfs: 8}");
	spec = spec_of(world);
	assert_int_equal(json_array_size(json_at(spec, "interfaces")), 2);
}

TEST(a_node_in_two_pools_keeps_its_mode)
{
	json_auto_t *world = world_new(), *spec = NULL;

	json_put(state_of(world), "spec", yaml("{system: {rdmaMode: exclusive}}"));
	put_pool(world, "sys/a", "{spec: {rdmaMode: shared}}");
	put_pool(world, "sys/b", "{spec: {nodeSelector: {matchLabels: {gpu: 'yes'}}}}");
	spec = spec_of(world);
	assert_string_equal(json_str_at(spec, "system", "rdmaMode"), "exclusive");
}

TEST(an_unreadable_pool_changes_no_mode)
{
	json_auto_t *world = world_new(), *spec = NULL;

	json_put(state_of(world), "spec", yaml("{system: {rdmaMode: shared}}"));
	put_pool(world, "sys/a",
		 "{spec: {rdmaMode: exclusive, nodeSelector: {matchExpressions: [{key: "
		 "gpu}]}}}");
	spec = spec_of(world);
	assert_string_equal(json_str_at(spec, "system", "rdmaMode"), "shared");
}

/* ---- the object's life ----------------------------------------------------------------------- */

TEST(a_selected_node_gets_a_node_state_before_any_nic_is_known)
{
	json_auto_t *world = world_new(), *spec = NULL;

	json_object_del(json_at(world, KIND_NODE_STATE), "sys/w1");
	add_policy(world, "a",
		   "{nodeSelector: {gpu: 'yes'}, nicSelector: {vendor: 15b3}, numVfs: 8}");
	spec = spec_of(world);
	assert_json(spec, "{bridges: {}}");
	assert_why(world, "lab/a", "NicsNotReported", "agent: no NICs are reported yet");
}

TEST(a_node_that_nobody_selects_gets_none)
{
	json_auto_t *world = world_new();
	auto_plan struct plan plan = {0};

	json_object_del(json_at(world, KIND_NODE_STATE), "sys/w1");
	add_policy(world, "a",
		   "{nodeSelector: {gpu: 'no'}, nicSelector: {vendor: 15b3}, numVfs: 8}");
	reconcile(world, &plan);
	assert_null(find_op(&plan, "apply"));
	assert_json(json_at(find_op(&plan, "report"), "policies"), "{}");
}

TEST(without_nics_the_decision_stays)
{
	json_auto_t *world = world_new(), *spec = NULL;

	json_put(state_of(world), "spec",
		 yaml("{interfaces: [{pciAddress: x, numVfs: 3}], bridges: {}, system: {}}"));
	json_object_del(json_at(state_of(world), "status"), "interfaces");
	add_policy(world, "a", "{nicSelector: {vendor: 15b3}, numVfs: 8}");
	spec = spec_of(world);
	assert_json(spec, "{interfaces: [{pciAddress: x, numVfs: 3}], bridges: {}, system: {}}");
}

TEST(without_policies_the_node_state_is_empty)
{
	json_auto_t *world = world_new(), *spec = NULL;

	json_put(state_of(world), "spec",
		 yaml("{interfaces: [{pciAddress: x, numVfs: 3}], bridges: {}, system: {}}"));
	spec = spec_of(world);
	assert_json(spec, "{bridges: {}}");
}

TEST(what_upstream_wrote_stays_to_the_letter)
{
	json_auto_t *world = world_new(), *spec = NULL;
	static const char written[] =
		"{interfaces: [{pciAddress: '0000:19:00.0', numVfs: 8, name: p0, mtu: 0,"
		" externallyManaged: false, vfGroups: [{resourceName: a, deviceType: netdevice,"
		" vfRange: 0-7, policyName: a, policyNamespace: lab, isRdma: true}]}], bridges: "
		"{ovs: []}, system: {}}";

	json_put(state_of(world), "spec", yaml(written));
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 8, isRdma: true}");
	spec = spec_of(world);
	assert_json(spec, written);
}

/* VFs stay as upstream's operator has them: only the rails are new. */
TEST(rails_join_what_upstream_wrote)
{
	json_auto_t *world = world_new(), *spec = NULL;
	static const char group[] =
		"{interfaces: [{pciAddress: '0000:19:00.0', numVfs: 8, name: p0, mtu: 0,"
		" externallyManaged: false, vfGroups: [{resourceName: a, deviceType: netdevice,"
		" vfRange: 0-7, policyName: a, policyNamespace: lab, isRdma: true}]}], bridges: "
		"{ovs: []}, system: {}}";
	json_auto_t *wanted = yaml(group);
	auto_plan struct plan plan = {0};

	json_put(state_of(world), "spec", yaml(group));
	json_array_append_new(json_at(state_of(world), "status", "interfaces"),
			      yaml("{pciAddress: '0000:1a:00.0', name: p9}"));
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 8, isRdma: true}");
	add_policy(world, "b", "{nicSelector: {pfNames: [p9]}, numVfs: 0, isRdma: true}");
	spec = spec_of(world);
	json_put(wanted, "rails",
		 yaml("{from: SriovNetworkNodePolicy lab/a and 1 more, order: [p0, p9]}"));
	assert_true(json_same(spec, wanted));
	reconcile(world, &plan);
	assert_null(find_op(&plan, "event"));
	/* The pool decides over policies. */
	put_pool(world, "sys/all", "{metadata: {name: all, namespace: sys}, spec: {rails: [p9]}}");
	json_decref(spec);
	spec = spec_of(world);
	assert_json(json_at(spec, "rails"),
		    "{exact: true, from: SriovNetworkPoolConfig sys/all, order: [p9]}");
}

/* The first NIC of p0, p1 and p9, which one policy each names, vanishes. */
TEST(a_vanished_nic_keeps_its_place_among_policies)
{
#define ONE_NIC(name) "{nicSelector: {pfNames: [" name "]}, numVfs: 8, isRdma: true}"
	json_auto_t *world = world_new(), *before = NULL, *away = NULL, *renamed = NULL;
	json_t *interfaces = json_at(state_of(world), "status", "interfaces");

	json_array_append_new(interfaces, yaml("{pciAddress: '0000:1a:00.0', name: p9, vendor: "
					       "15b3, deviceID: '1021', totalvfs: 16}"));
	add_policy(world, "rail0", ONE_NIC("p0"));
	add_policy(world, "rail1", ONE_NIC("p1"));
	add_policy(world, "rail2", ONE_NIC("p9"));
	/* Names what is there, but picks nothing. */
	add_policy(world, "no", "{nicSelector: {pfNames: [p9], vendor: '8086'}, isRdma: true}");
	before = spec_of(world);
	assert_json(json_at(before, "rails"),
		    "{from: SriovNetworkNodePolicy lab/rail0 and 2 more, order: [p0, p1, p9]}");
	json_put(state_of(world), "spec", json_incref(before));
	json_array_remove(interfaces, 0);
	away = spec_of(world);
	assert_json(json_at(away, "rails"),
		    "{from: SriovNetworkNodePolicy lab/rail0 and 2 more, order: [p0, p1, p9]}");
	/* Its policy is renamed: between the two the agent alone knows of it. */
	(void)json_object_del(json_at(state_of(world), "spec"), "rails");
	json_put(json_at(state_of(world), "status"), "rails",
		 yaml("{list: [{rail: 0, name: p1}, {rail: 1, name: p9}, {rail: 2, name: p0, "
		      "missing: true}]}"));
	(void)json_object_del(json_at(world, KIND_POLICY), "lab/rail0");
	add_policy(world, "a0", ONE_NIC("p0"));
	renamed = spec_of(world);
	assert_json(json_at(renamed, "rails"),
		    "{from: SriovNetworkNodePolicy lab/a0 and 2 more, order: [p0, p1, p9]}");
}

TEST(bridges_that_someone_entered_stay)
{
	json_auto_t *world = world_new(), *spec = NULL;

	json_put(state_of(world), "spec", yaml("{bridges: {ovs: [{name: br-0}]}}"));
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 8}");
	spec = spec_of(world);
	assert_json(json_at(spec, "bridges"), "{ovs: [{name: br-0}]}");
}

TEST(a_node_state_outlives_its_node_for_half_an_hour)
{
	json_auto_t *world = world_new();
	auto_plan struct plan first = {0}, waiting = {0}, late = {0};

	json_object_del(json_at(world, KIND_NODE), "w1");
	reconcile(world, &first);
	assert_json(json_at(find_op(&first, "meta"), "metadata", "annotations"),
		    "{sriovnetwork.openshift.io/keep-state-until: '2026-01-31T10:30:00Z'}");
	assert_non_null(find_op(&first, "requeue"));
	assert_null(find_op(&first, "apply"));

	json_object_set(json_at(state_of(world), "metadata"), "annotations",
			json_at(find_op(&first, "meta"), "metadata", "annotations"));
	json_put_str(json_at(world, "env"), "now", "2026-01-31T10:29:59Z");
	reconcile(world, &waiting);
	assert_null(find_op(&waiting, "meta"));
	assert_int_equal(json_integer_value(json_at(find_op(&waiting, "requeue"), "after_ms")),
			 2000);

	json_put_str(json_at(world, "env"), "now", "2026-01-31T10:30:00Z");
	reconcile(world, &late);
	assert_string_equal(json_str_at(find_op(&late, "delete"), "uid"), "u1");
	assert_null(find_op(&late, "requeue"));
}

static const json_t *said_of(const struct plan *plan, const char *type)
{
	return json_find(json_at(find_op(plan, "status-part"), "status", "conditions"), "type",
			 type);
}

/* It neither looks as it did while the node was there, nor as if somebody had to act. */
TEST(a_node_state_without_a_node_says_so_and_until_when)
{
	json_auto_t *world = world_new();
	auto_plan struct plan first = {0}, again = {0};
	json_t *status = json_at(state_of(world), "status");

	json_object_del(json_at(world, KIND_NODE), "w1");
	json_put(status, "conditions",
		 yaml("[{type: Ready, status: 'True', reason: AsWanted},"
		      " {type: Degraded, status: 'True', reason: VfsMissing},"
		      " {type: Blocked, status: 'True', reason: VfHeld},"
		      " {type: Draining, status: 'False', reason: NothingToDrain}]"));
	reconcile(world, &first);
	assert_string_equal(json_str_at(said_of(&first, "Ready"), "status"), "Unknown");
	assert_string_equal(json_str_at(said_of(&first, "Ready"), "reason"), "NodeGone");
	assert_string_equal(json_str_at(said_of(&first, "Ready"), "message"),
			    "Node w1 is gone: this is kept until 2026-01-31T10:30:00Z, in case "
			    "the Node comes back, and deleted then");
	assert_string_equal(json_str_at(said_of(&first, "Degraded"), "status"), "Unknown");
	assert_string_equal(json_str_at(said_of(&first, "Blocked"), "status"), "Unknown");
	assert_null(said_of(&first, "Progressing"));
	assert_string_equal(json_str_at(said_of(&first, "Draining"), "status"), "False");

	/* Later it says the same. */
	json_object_set(json_at(state_of(world), "metadata"), "annotations",
			json_at(find_op(&first, "meta"), "metadata", "annotations"));
	json_object_set(status, "conditions",
			json_at(find_op(&first, "status-part"), "status", "conditions"));
	json_put_str(json_at(world, "env"), "now", "2026-01-31T10:20:00Z");
	reconcile(world, &again);
	assert_true(json_equal(json_at(find_op(&again, "status-part"), "status", "conditions"),
			       json_at(status, "conditions")));
}

TEST(a_node_that_comes_back_takes_its_node_state_over)
{
	json_auto_t *world = world_new();
	auto_plan struct plan plan = {0}, later = {0};

	json_put(json_at(state_of(world), "metadata"), "annotations",
		 json_pack("{s:s}", NODE_STATE_KEEP_UNTIL, "2026-01-31T10:30:00Z"));
	json_put(json_at(state_of(world), "status"), "conditions",
		 yaml("[{type: Ready, status: Unknown, reason: NodeGone},"
		      " {type: Draining, status: 'False', reason: NothingToDrain}]"));
	reconcile(world, &plan);
	assert_json(json_at(find_op(&plan, "meta"), "metadata"),
		    "{annotations: {sriovnetwork.openshift.io/keep-state-until: null}}");
	assert_null(find_op(&plan, "delete"));
	assert_json(json_at(find_op(&plan, "status-part"), "status"),
		    "{conditions: [{type: Draining, status: 'False', reason: NothingToDrain}]}");

	json_put(json_at(state_of(world), "status"), "conditions",
		 yaml("[{type: Ready, status: 'True', reason: AsWanted}]"));
	reconcile(world, &later);
	assert_null(find_op(&later, "status-part"));
}

TEST(a_node_of_another_system_gets_none)
{
	json_auto_t *world = world_new();
	auto_plan struct plan plan = {0};

	json_object_del(json_at(world, KIND_NODE_STATE), "sys/w1");
	json_put_str(json_at(world, KIND_NODE, "w1", "metadata", "labels"), "kubernetes.io/os",
		     "windows");
	add_policy(world, "a", "{nicSelector: {vendor: 15b3}, numVfs: 8}");
	add_policy(world, "bad", "{nicSelector: {vendor: 7}, numVfs: 8}");
	reconcile(world, &plan);
	assert_null(find_op(&plan, "apply"));
	assert_json(json_at(find_op(&plan, "report"), "policies"), "{}");
}

/* ---- reports --------------------------------------------------------------------------------- */

TEST(a_report_follows_the_agent)
{
	json_auto_t *world = world_new(), *spec = NULL, *ready = NULL;
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "a", "{nicSelector: {vendor: 15b3}, numVfs: 4}");
	assert_why(world, "lab/a", "SpecPending", "agent: its NodeState is being written");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	assert_why(world, "lab/a", "Syncing", "agent: 0 of 8 VFs are there");

	json_put_int(status, "observedGeneration", 2);
	assert_why(world, "lab/a", "Syncing", "agent: has not seen the new NodeState yet");
	json_put_int(status, "observedGeneration", 3);
	assert_why(world, "lab/a", "VfsMissing", "agent: 0 of 8 VFs are there");
	json_put_str(status, "syncStatus", "InProgress");
	json_put_str(status, "lastSyncError", "write sriov_numvfs:\nbusy");
	assert_why(world, "lab/a", "Syncing",
		   "agent: syncStatus is InProgress, last error: write sriov_numvfs: busy");
	json_put_str(status, "syncStatus", "Failed");
	assert_why(world, "lab/a", "SyncFailed",
		   "agent: syncStatus Failed: write sriov_numvfs: busy; see the status of its "
		   "SriovNetworkNodeState");

	json_put_str(status, "syncStatus", "Succeeded");
	for (size_t i = 0; i < 2; i++)
		json_put_int(json_array_get(json_at(status, "interfaces"), i), "numVfs", 4);
	ready = report_of(world, "lab/a");
	assert_json(ready,
		    "{reported: true, matched: true, ready: true, wantedVfs: 8, presentVfs: 8}");
}

/*
 * p0 waits for a pod, p1 has failed, and the node for a reboot: each policy hears of its PF and of
 * the node.
 */
TEST(a_policy_answers_for_its_own_nics)
{
	json_auto_t *world = world_new(), *spec = NULL;
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 4}");
	add_policy(world, "b", "{nicSelector: {pfNames: [p1]}, numVfs: 4}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	json_put_int(status, "observedGeneration", 3);
	json_put_str(status, "syncStatus", "Failed");
	json_put(status, "problems",
		 yaml("[{type: Blocked, pciAddress: '0000:19:00.0', reason: VfHeld, message: "
		      "held}]"));
	for (size_t i = 0; i < 2; i++)
		json_put_int(json_array_get(json_at(status, "interfaces"), i), "numVfs", 4);
	assert_why(world, "lab/a", "Blocked", "p0: held");
	json_auto_t *ready = report_of(world, "lab/b");
	assert_json(ready,
		    "{reported: true, matched: true, ready: true, wantedVfs: 4, presentVfs: 4}");
	json_put(status, "problems",
		 yaml("[{type: Degraded, pciAddress: '0000:19:00.1', reason: NoSriov, message: "
		      "busy}, "
		      "{type: RebootRequired, reason: RdmaMode, message: next boot}]"));
	assert_why(world, "lab/a", "RebootRequired", "agent: next boot");
	assert_why(world, "lab/b", "SyncFailed", "p1: busy\nagent: next boot");
}

#define P0_IS_HELD                                                                                 \
	"[{type: Blocked, pciAddress: '0000:19:00.0', reason: VfInUse, message: 'VF 0000:19:00.2 " \
	"is held by lab/vf1'}]"

/* p0 waits for a pod, and there is nothing left to do at p1. */
TEST(a_pod_on_another_nic_holds_no_policy_up)
{
	json_auto_t *world = world_new(), *spec = NULL;
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 4}");
	add_policy(world, "b", "{nicSelector: {pfNames: [p1]}, numVfs: 4}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	json_put_int(status, "observedGeneration", 3);
	json_put_str(status, "syncStatus", "InProgress");
	json_put(status, "problems", yaml(P0_IS_HELD));
	json_put(status, "conditions", yaml("[{type: Progressing, status: 'False'}]"));
	assert_why(world, "lab/a", "Blocked", "p0: VF 0000:19:00.2 is held by lab/vf1");
	assert_why(world, "lab/b", "VfsMissing", "agent: 0 of 4 VFs are there");

	json_put_int(json_array_get(json_at(status, "interfaces"), 1), "numVfs", 4);
	json_auto_t *ready = report_of(world, "lab/b");
	assert_json(ready,
		    "{reported: true, matched: true, ready: true, wantedVfs: 4, presentVfs: 4}");
}

/* Steps are left, and may be p1's: who waits beside them is named. */
TEST(a_policy_that_waits_for_the_node_hears_for_whom)
{
	json_auto_t *world = world_new(), *spec = NULL;
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "b", "{nicSelector: {pfNames: [p1]}, numVfs: 4}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	json_put_int(status, "observedGeneration", 3);
	json_put_str(status, "syncStatus", "InProgress");
	json_put(status, "conditions", yaml("[{type: Progressing, status: 'True'}]"));
	json_put(status, "problems", yaml(P0_IS_HELD));
	assert_why(world, "lab/b", "Syncing",
		   "agent: is at work, and p0 waits: VF 0000:19:00.2 is held by lab/vf1");
	json_put_str(json_array_get(json_at(status, "problems"), 0), "type", "Degraded");
	json_put_str(status, "syncStatus", "Failed");
	assert_why(world, "lab/b", "Syncing", "agent: is at work on the node");
}

/* An agent that looked and found no NIC has spoken. */
TEST(a_node_without_nics_is_no_silent_node)
{
	json_auto_t *world = world_new();
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "a", "{nicSelector: {vendor: 15b3}, numVfs: 4}");
	json_put(status, "interfaces", json_array());
	json_put_str(status, "syncStatus", "");
	assert_why(world, "lab/a", "NicsNotReported", "agent: no NICs are reported yet");
	json_put_str(status, "syncStatus", "Succeeded");
	assert_why(world, "lab/a", "NoNicMatches", "agent: reports no NIC");
}

TEST(a_node_without_a_match_says_why_for_each_pf)
{
	json_auto_t *world = world_new();

	add_policy(world, "a", "{nicSelector: {vendor: 15b3, pfNames: [p9]}, numVfs: 4}");
	add_policy(world, "b", "{nicSelector: {vendor: '8086'}, numVfs: 4}");
	assert_why(world, "lab/a", "NoNicMatches",
		   "p0: name p0, wanted p9\np1: name p1, wanted p9");
	assert_why(world, "lab/b", "NoNicMatches",
		   "p0: vendor 15b3, wanted 8086\np1: vendor 15b3, wanted 8086");
}

/* The NIC for management is the first of the node, and fails the wrong name as all others do. */
TEST(of_pfs_as_close_one_that_can_have_vfs_is_named_first)
{
	json_auto_t *world = world_new();

	json_array_insert_new(
		json_at(state_of(world), "status", "interfaces"), 0,
		yaml("{pciAddress: '0000:00:03.0', name: mgmt0, vendor: 1af4, deviceID: '1041', "
		     "driver: virtio-pci, linkType: ETH}"));
	add_policy(world, "a", "{nicSelector: {pfNames: [p9]}, numVfs: 4}");
	add_policy(world, "b", "{nicSelector: {vendor: 1af4, pfNames: [mgmt]}, numVfs: 4}");
	assert_why(world, "lab/a", "NoNicMatches",
		   "p0: name p0, wanted p9\nmgmt0: name mgmt0, wanted p9\np1: name p1, wanted p9");
	assert_why(world, "lab/b", "NoNicMatches",
		   "mgmt0: name mgmt0, wanted mgmt\n"
		   "p0: vendor 15b3, wanted 1af4; name p0, wanted mgmt\n"
		   "p1: vendor 15b3, wanted 1af4; name p1, wanted mgmt");
}

TEST(a_device_cannot_have_more_vfs_than_it_says)
{
	json_auto_t *world = world_new();

	add_policy(world, "a", "{nicSelector: {pfNames: ['p0#0-1', 'p0#2-3']}, numVfs: 17}");
	assert_why(world, "lab/a", "TooManyVfs",
		   "p0: numVfs 17, the device has at most 16\n"
		   "agent: its NodeState is being written");
}

/* The agent leaves such a PF as it is, so a policy that is well by itself gets nothing either. */
TEST(who_shares_a_device_with_too_many_vfs_is_told_whose_they_are)
{
	json_auto_t *world = world_new();

	add_policy(world, "a", "{nicSelector: {pfNames: ['p0#0-1']}, numVfs: 17, priority: 9}");
	add_policy(world, "b", "{nicSelector: {pfNames: ['p0#2-3']}, numVfs: 4, priority: 5}");
	add_policy(world, "c", "{nicSelector: {pfNames: [p1]}, numVfs: 4}");
	assert_why(world, "lab/b", "TooManyVfs",
		   "p0: numVfs 17 of policy lab/a, the device has at most 16\n"
		   "agent: its NodeState is being written");
	assert_why(world, "lab/c", "SpecPending", "agent: its NodeState is being written");
}

/* What the agent says ten seconds later, in its words and with its word, is under it. */
TEST(the_most_precise_reason_stays)
{
	json_auto_t *world = world_new(), *spec = NULL, *report = NULL;
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 17}");
	add_policy(world, "b", "{nicSelector: {pfNames: [p1]}, numVfs: 4}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	json_put_int(status, "observedGeneration", 3);
	json_put_str(status, "syncStatus", "Failed");
	json_put(status, "problems",
		 yaml("[{type: Degraded, pciAddress: '0000:19:00.0', reason: VfCountOutOfRange, "
		      "message: 'it can have 16'}, {type: Blocked, pciAddress: '0000:19:00.1', "
		      "reason: VfInUse, message: held}, {type: Degraded, pciAddress: "
		      "'0000:19:00.1', reason: VfCountRefused, message: no memory}]"));
	assert_why(world, "lab/a", "TooManyVfs",
		   "p0: numVfs 17, the device has at most 16\np0: it can have 16");
	assert_why(world, "lab/b", "SyncFailed", "p1: no memory\np1: held");
	report = report_of(world, "lab/b");
	assert_string_equal(json_str_at(report, "cause"), "VfCountRefused");
}

/* The agent has the command that switches it on. */
TEST(a_device_without_sriov_is_left_to_the_agent)
{
	json_auto_t *world = world_new(), *spec = NULL, *report = NULL;
	json_t *status = json_at(state_of(world), "status");

	set_pf(world, 0, "{totalvfs: 0}");
	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 4}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	json_put_int(status, "observedGeneration", 3);
	assert_why(world, "lab/a", "TooManyVfs", "p0: numVfs 4, the device has at most 0");
	json_put(status, "problems",
		 yaml("[{type: Degraded, pciAddress: '0000:19:00.0', reason: NoSriov, message: "
		      "switched off}]"));
	assert_why(world, "lab/a", "SyncFailed", "p0: switched off");
	report = report_of(world, "lab/a");
	assert_string_equal(json_str_at(report, "cause"), "NoSriov");
}

/* Of more lines than are kept the one that the reason is about is the first. */
TEST(the_line_that_the_reason_is_about_comes_first)
{
	json_auto_t *world = world_new(), *report = NULL, *spec = NULL, *problems = json_array();
	json_t *status = json_at(state_of(world), "status");

	add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 4}");
	spec = spec_of(world);
	json_object_set(state_of(world), "spec", spec);
	json_put_int(status, "observedGeneration", 3);
	for (int i = 0; i < 6; i++)
		json_array_append_new(problems,
				      json_pack("{s:s, s:s, s:s, s:s}", "type",
						i < 5 ? "Blocked" : "Degraded", "pciAddress",
						"0000:19:00.0", "reason", "NoDriver", "message",
						i < 5 ? "held" : "no driver"));
	json_object_set(status, "problems", problems);
	report = report_of(world, "lab/a");
	assert_string_equal(json_str_at(report, "why"),
			    "p0: no driver\np0: held\np0: held\np0: held");
}

TEST(numbers_of_an_agent_may_be_any)
{
	static const char *const numbers[] = {"-9223372036854775808", "-1", "9223372036854775807",
					      "many"};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		json_auto_t *world = world_new(), *report = NULL;
		auto_free char *pf =
			str_printf("{numVfs: %s, totalvfs: %s}", numbers[i], numbers[i]);
		int64_t present;

		set_pf(world, 0, pf);
		add_policy(world, "a", "{nicSelector: {pfNames: [p0]}, numVfs: 8}");
		report = report_of(world, "lab/a");
		present = json_integer_value(json_at(report, "presentVfs"));
		assert_int_equal(present, i == 2 ? 8 : 0);
	}
}

TEST(without_a_clock_nothing_is_kept_or_deleted)
{
	json_auto_t *world = json_pack("{s:{s:s, s:s}, s:{s:{s:{s:s, s:s}}}}", "env", "now", "noon",
				       "namespace", "orbweaver-system", KIND_NODE_STATE,
				       "orbweaver-system/w1", "metadata", "name", "w1", "uid", "u");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(node_state_reconcile(world, "w1", &plan, &err), -1);
	assert_int_equal(err.class, ERR_BUG);
	assert_string_equal(err.reason, "NoClock");
	assert_true(plan_is_empty(&plan));
}

/* The applier takes off what we set and do not name any more. */
TEST(how_far_a_drain_is_stays_on_the_nodestate)
{
	json_auto_t *world = json_pack(
		"{s:{s:s, s:s}, s:{s:{s:{s:s}}}, s:{s:{s:{s:s, s:{s:s, s:s, s:s}, s:{s:[s, s]}}}}}",
		"env", "now", "2026-01-31T10:00:00Z", "namespace", "orbweaver-system", KIND_NODE,
		"w1", "metadata", "name", "w1", KIND_NODE_STATE, "orbweaver-system/w1", "metadata",
		"name", "w1", "annotations", DRAIN_CURRENT_STATE, "Draining", DRAIN_DESIRED_STATE,
		"Drain_Required", "else", "others'", "orbweaver", "annotations",
		DRAIN_CURRENT_STATE, DRAIN_DESIRED_STATE);
	json_auto_t *want = json_pack("{s:s, s:s}", DRAIN_CURRENT_STATE, "Draining",
				      DRAIN_DESIRED_STATE, "Drain_Required");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(node_state_reconcile(world, "w1", &plan, &err), 0);
	assert_true(json_same(
		json_at(json_array_get(plan.ops, 0), "object", "metadata", "annotations"), want));
}

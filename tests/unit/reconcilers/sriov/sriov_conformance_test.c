// SPDX-License-Identifier: Apache-2.0
/*
 * Replays what the replaced SR-IOV operator was recorded doing (conformance/policies.json,
 * networks.json) against the reconcilers, offline.
 */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/sriov_network.h"
#include "tests/fakes/cluster.h"
#include "tests/support/recording.h"
#include "tests/unit/reconcilers/recordings.h"

#define NAMESPACE "orbweaver-system"

static bool is_expected(const json_t *list, const char *id)
{
	const char *reason = json_str_at(list, id);

	if (reason)
		print_message("%s differs on purpose: %s\n", id, reason);
	return reason;
}

static json_t *policies_world(const json_t *recorded)
{
	json_t *world = json_pack(
		"{s:{s:s,s:s,s:s}, s:{s:{s:{s:s,s:{s:s,s:s}}}}, s:{s:{s:{s:s,s:s,s:i}, s:{s:O}}}}",
		"env", "now", "2026-01-31T10:00:00Z", "namespace", NAMESPACE, "resourcePrefix",
		"openshift.io", KIND_NODE, "w1", "metadata", "name", "w1", "labels",
		"kubernetes.io/os", "linux", "node-role.kubernetes.io/worker", "", KIND_NODE_STATE,
		NAMESPACE "/w1", "metadata", "name", "w1", "namespace", NAMESPACE, "generation", 1,
		"status", "interfaces", json_at(recorded, "interfaces"));
	json_t *policies = json_need_object(world, KIND_POLICY), *policy;
	size_t i;

	json_array_foreach (json_at(recorded, "policies"), i, policy) {
		auto_free char *key = json_key(policy);

		json_object_set(policies, key, policy);
	}
	return world;
}

static const json_t *planned(const struct plan *plan, const char *op, const char *kind)
{
	json_t *one;
	size_t i;

	json_array_foreach (plan->ops, i, one) {
		if (str_eq(json_str_at(one, "op"), op) && str_eq(json_str_at(one, "kind"), kind))
			return one;
	}
	return NULL;
}

static json_t *plan_spec(const json_t *world)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(node_state_reconcile(world, "w1", &plan, &err), 0);
	return json_deep_copy(json_at(planned(&plan, "apply", KIND_NODE_STATE), "object", "spec"));
}

static bool spec_agrees(const json_t *recorded)
{
	const char *id = json_str_at(recorded, "id");
	json_auto_t *world = policies_world(recorded);
	json_auto_t *spec = plan_spec(world), *again = NULL;
	auto_free char *difference = NULL;

	json_object_set(json_at(world, KIND_NODE_STATE, NAMESPACE "/w1"), "spec", spec);
	again = plan_spec(world);
	if (!json_same(spec, again))
		fail_msg("%s: the second plan differs from the first", id);

	difference = recording_spec_difference(recorded, spec);
	if (difference)
		print_message("%s differs\n%s", id, difference);
	return !difference;
}

TEST(recorded_policies_give_the_recorded_node_states)
{
	json_auto_t *cases = recordings_need("policies.json"),
		    *expected = recordings_differences("sriov-differences.txt");
	size_t i, wrong = 0;
	json_t *recorded;

	json_array_foreach (cases, i, recorded) {
		if (!is_expected(expected, json_str_at(recorded, "id")))
			wrong += !spec_agrees(recorded);
	}
	print_message("%zu recorded policies replayed\n", json_array_size(cases));
	assert_int_equal(wrong, 0);
}

/* ---- networks -------------------------------------------------------------------------------- */

static const struct network_kind {
	const char *kind;
	const char *id;
	reconcile_fn *reconcile;
} network_kinds[] = {
	{"SriovNetwork", KIND_SRIOV_NETWORK, sriov_network_reconcile},
	{"SriovIBNetwork", KIND_SRIOV_IB_NETWORK, sriov_ib_network_reconcile},
	{"OVSNetwork", KIND_OVS_NETWORK, ovs_network_reconcile},
};

static const struct network_kind *network_kind_of(const json_t *object)
{
	for (size_t i = 0; i < ARRAY_LEN(network_kinds); i++)
		if (str_eq(json_str_at(object, "kind"), network_kinds[i].kind))
			return &network_kinds[i];
	fail_msg("unknown kind %s", json_str_at(object, "kind"));
	return NULL;
}

/* The NADs that a recorded network brings forth: { key: NAD }. */
static json_t *nads_of(const json_t *recorded)
{
	const json_t *object = json_at(recorded, "object");
	const struct network_kind *kind = network_kind_of(object);
	auto_free char *key = json_key(object);
	json_auto_t *world =
		json_pack("{s:{s:s,s:s,s:s}, s:{s:O}, s:{s:{}}}", "env", "now",
			  "2026-01-31T10:00:00Z", "namespace", "kube-system", "resourcePrefix",
			  "openshift.io", kind->id, key, object, KIND_NAMESPACE, "tgt");

	/* Settling writes the status into the object. */
	json_object_set_new(json_object_get(world, kind->id), key, json_deep_copy(object));
	if (!cluster_settle(world, key, kind->reconcile))
		fail_msg("%s does not come to rest", json_str_at(recorded, "id"));
	return json_incref(json_object_get(world, KIND_NAD));
}

static bool nads_agree(const json_t *recorded)
{
	const char *id = json_str_at(recorded, "id"), *key;
	json_auto_t *nads = nads_of(recorded);
	auto_free char *difference = NULL;
	json_t *nad = NULL;

	if (json_object_size(nads) > 1)
		fail_msg("%s: %zu NetworkAttachmentDefinitions", id, json_object_size(nads));
	json_each (nads, key, nad)
		break;
	difference = recording_nad_difference(recorded, nad);
	if (difference)
		print_message("%s differs\n%s", id, difference);
	return !difference;
}

TEST(recorded_networks_give_the_recorded_nads)
{
	json_auto_t *cases = recordings_need("networks.json"),
		    *expected = recordings_differences("sriov-differences.txt");
	size_t i, wrong = 0;
	json_t *recorded;

	json_array_foreach (cases, i, recorded) {
		const char *id = json_str_at(recorded, "id");

		if (!is_expected(expected, id))
			wrong += !nads_agree(recorded);
	}
	print_message("%zu recorded networks replayed\n", json_array_size(cases));
	assert_int_equal(wrong, 0);
}

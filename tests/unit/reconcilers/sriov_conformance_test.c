/*
 * Replays what the replaced SR-IOV operator was recorded doing (conformance/policies.json, networks.json) against the
 * reconcilers, offline. The recordings are looked for in $CONFORMANCE, else in ../shared/conformance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>

#include "lib/base/fs.h"
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "reconcilers/kinds.h"
#include "reconcilers/node_state.h"
#include "reconcilers/sriov_network.h"
#include "tests/fakes/cluster.h"

#define RECORDING_MAX (64u << 20)
#define NAMESPACE     "orbweaver-system"

/* A recorded result that we do not want. */
struct difference {
	const char *id;
	const char *reason;
};

static const struct difference policy_differences[] = {
	/* None of the recordings at hand meets a decision of reconcilers/sriov.md. */
	{NULL, NULL},
};

static bool is_expected(const struct difference *list, const char *id)
{
	for (; list->id; list++) {
		if (str_eq(list->id, id)) {
			print_message("%s differs on purpose: %s\n", id, list->reason);
			return true;
		}
	}
	return false;
}

/* NULL when there are no recordings. */
static json_t *load(const char *name)
{
	const char *dir = getenv("CONFORMANCE");
	auto_free char *path = str_printf("%s/%s", dir ? dir : "../shared/conformance", name);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_t *cases;

	if (fs_read(AT_FDCWD, path, RECORDING_MAX, &text, &err) < 0) {
		print_message("no recordings at %s: nothing replayed\n", path);
		return NULL;
	}
	cases = json_parse(text.data, text.len, &err);
	if (!cases)
		fail_msg("%s: %s", path, err.text);
	return cases;
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

/* The recorded plugin configuration of a resource must be what our VF group says; then drop what upstream does not have. */
static void check_group(const char *id, json_t *group, const json_t *config)
{
	const json_t *resource;
	size_t i;

	json_array_foreach (json_at(config, "resourceList"), i, resource) {
		const json_t *selectors = json_at(resource, "selectors");

		if (!str_eq(json_str_at(resource, "resourceName"),
			    json_str_at(group, "resourceName")))
			continue;
		if (json_is_true(json_at(selectors, "IsRdma")) !=
			    json_is_true(json_at(group, "isRdma")) ||
		    json_is_true(json_at(selectors, "NeedVhostNet")) !=
			    json_is_true(json_at(group, "needVhostNet")) ||
		    json_is_true(json_at(resource, "excludeTopology")) !=
			    json_is_true(json_at(group, "excludeTopology")) ||
		    !str_eq(json_str_or(json_at(selectors, "vdpaType"), ""),
			    json_str_or(json_at(group, "vdpaType"), "")))
			fail_msg("%s: resource %s differs from the recorded plugin configuration",
				 id, json_str_at(group, "resourceName"));
	}
	json_object_del(group, "needVhostNet");
	json_object_del(group, "excludeTopology");
}

static bool spec_agrees(const json_t *recorded)
{
	const char *id = json_str_at(recorded, "id");
	json_auto_t *world = policies_world(recorded);
	json_auto_t *spec = plan_spec(world), *again = NULL;
	json_t *interface, *group;
	size_t i, k;

	json_object_set(json_at(world, KIND_NODE_STATE, NAMESPACE "/w1"), "spec", spec);
	again = plan_spec(world);
	if (!json_same(spec, again))
		fail_msg("%s: the second plan differs from the first", id);

	/* `world` shares the spec, and is done with. */
	json_array_foreach (json_at(spec, "interfaces"), i, interface) {
		json_array_foreach (json_at(interface, "vfGroups"), k, group) {
			check_group(id, group, json_at(recorded, "device_plugin_config"));
		}
	}
	if (json_same(spec, json_at(recorded, "nodestate_spec")))
		return true;
	auto_free char *ours = json_text(spec);
	auto_free char *theirs = json_text(json_at(recorded, "nodestate_spec"));
	print_message("%s\n  ours:     %s\n  recorded: %s\n", id, ours, theirs);
	return false;
}

static void recorded_policies_give_the_recorded_node_states(void **state)
{
	json_auto_t *cases = load("policies.json");
	size_t i, wrong = 0;
	json_t *recorded;

	if (!cases)
		skip();
	json_array_foreach (cases, i, recorded) {
		if (!is_expected(policy_differences, json_str_at(recorded, "id")))
			wrong += !spec_agrees(recorded);
	}
	print_message("%zu recorded policies replayed\n", json_array_size(cases));
	assert_int_equal(wrong, 0);
}

/* ---- networks ---- */

static const struct network_kind {
	const char *kind;
	const char *id;
	reconcile_fn *reconcile;
} network_kinds[] = {
	{"SriovNetwork", KIND_SRIOV_NETWORK, sriov_network_reconcile},
	{"SriovIBNetwork", KIND_SRIOV_IB_NETWORK, sriov_ib_network_reconcile},
	{"OVSNetwork", KIND_OVS_NETWORK, ovs_network_reconcile},
};

static const struct difference network_differences[] = {
	{NULL, NULL},
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

/* A NAD in the words of the recordings. */
static json_t *recorded_form(const json_t *nad)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_t *annotations = json_deep_copy(json_at(nad, "metadata", "annotations"));

	/* Upstream sets it since it was recorded (reference 3.3). */
	json_object_del(annotations, SRIOV_NETWORK_OWNER);
	return json_pack("{s:s, s:o, s:n, s:o}", "namespace", json_namespace(nad), "annotations",
			 annotations, "labels", "config", json_parse(text, strlen(text), NULL));
}

static bool nads_agree(const json_t *recorded)
{
	json_auto_t *nads = nads_of(recorded), *ours = NULL;
	const json_t *theirs = json_at(recorded, "nad");
	const char *key;
	json_t *nad;

	if (!theirs)
		return json_object_size(nads) == 0;
	if (json_object_size(nads) != 1)
		return false;
	json_each (nads, key, nad)
		ours = recorded_form(nad);
	if (json_same(ours, theirs))
		return true;
	auto_free char *a = json_text(ours);
	auto_free char *b = json_text(theirs);
	print_message("  ours:     %s\n  recorded: %s\n", a, b);
	return false;
}

static void recorded_networks_give_the_recorded_nads(void **state)
{
	json_auto_t *cases = load("networks.json");
	size_t i, wrong = 0;
	json_t *recorded;

	if (!cases)
		skip();
	json_array_foreach (cases, i, recorded) {
		const char *id = json_str_at(recorded, "id");

		if (is_expected(network_differences, id) || nads_agree(recorded))
			continue;
		print_message("%s differs\n", id);
		wrong++;
	}
	print_message("%zu recorded networks replayed\n", json_array_size(cases));
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_networks_give_the_recorded_nads),
		cmocka_unit_test(recorded_policies_give_the_recorded_node_states),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

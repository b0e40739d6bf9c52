// SPDX-License-Identifier: Apache-2.0
/*
 * pending: what the operator still has to do, worked out from nothing but the objects of a cluster.
 *
 * Runs the reconcilers offline over a List (`kubectl get …,… -A -o json`) and prints one line per
 * operation of their plans that would change something. Where the operator has come to rest and has
 * forgotten nothing, nothing is printed: whatever it went through before, the cluster is as it
 * should be. Exit status: 0 nothing pending, 1 something, 2 bad input. With "afresh" as third
 * argument, NodeStates are also compared with what follows from policies and inventories alone, for
 * what is there already has a say in a decision. The operator's own path from event to write
 * (caches, queues, applier) has no part in the answer.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/reserved_ip.h"
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_status.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_network.h"
#include "tests/fakes/cluster.h"

#include <fcntl.h>

#define FILE_SIZE_MAX (256 << 20)

struct judge {
	json_t *world;
	json_t *reports; /* { policy: { node: report } } */
	size_t pending;
};

/* ---- the world ------------------------------------------------------------------------------- */

static const struct kind_info *kind_of(const json_t *object)
{
	const char *name = json_str_or(json_at(object, "kind"), "");

	for (const struct kind_info *kind = kind_all(); kind->id; kind++)
		if (str_eq(kind->kind, name))
			return kind;
	return NULL;
}

static int add_objects(json_t *world, const json_t *list, struct err *err)
{
	json_t *object = NULL;
	size_t i = 0;

	json_array_foreach (json_at(list, "items"), i, object) {
		const struct kind_info *kind = kind_of(object);
		auto_free char *key = json_key(object);

		if (!kind)
			return err_set(
				err, ERR_INVALID, "BadKind",
				"items[%zu].kind: must be a kind of reconcilers/core/kinds.h", i);
		json_object_set(json_need_object(world, kind->id), key, object);
	}
	return 0;
}

static void add_resources(json_t *world)
{
	json_t *resources = json_need_object(world, KIND_NODE_RESOURCE), *node = NULL;
	const char *key = NULL;

	json_each (world_kind(world, KIND_NODE), key, node) {
		json_auto_t *offered = node_resources_of(json_at(node, "status", "allocatable"));

		json_object_update(resources, offered);
	}
}

static void ignore(void *arg, const char *name)
{
}

/* Where all NodeStates that have an interface or a resource agree. */
static void add_link_types(json_t *world)
{
	json_t *types = json_need_object(world, KIND_LINK_TYPE), *state = NULL, *mark = NULL;
	auto_node_names struct node_names *names = node_names_new();
	const char *key = NULL, *typed = NULL;

	json_each (world_kind(world, KIND_NODE_STATE), key, state) {
		json_auto_t *has = node_link_types_of(state);

		node_names_update(names, NULL, has, ignore, NULL);
	}
	json_each (world_kind(world, KIND_NODE_STATE), key, state) {
		json_auto_t *has = node_link_types_of(state);

		json_each (has, typed, mark) {
			auto_free char *what =
				str_ndup(typed, (size_t)(strrchr(typed, '/') - typed));
			const char *type = node_names_link_type(names, what);

			if (type)
				json_put_str(types, what, type);
		}
	}
}

static json_t *read_world(const char *path, const char *ns, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *list = NULL;
	json_auto_t *world = NULL;
	char now[RFC3339_SIZE];

	rfc3339_write(clock_wall_us(), now);
	/* As operators of tests are started (operator.sh). */
	world = json_pack("{s:{s:s, s:s, s:s, s:[s]}}", "env", "now", now, "namespace", ns,
			  "resourcePrefix", "spidernet.io", "policyNamespaces", "default");
	if (fs_read(AT_FDCWD, path, FILE_SIZE_MAX, &text, err) < 0)
		return NULL;
	list = json_parse(strbuf_str(&text), text.len, err);
	if (!list || add_objects(world, list, err) < 0) {
		err_in(err, "%s", path);
		return NULL;
	}
	add_resources(world);
	add_link_types(world);
	json_need_object(world, KIND_IP_POOL);
	return json_incref(world);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* No labels at all and an empty map of them are the same. Returns new. */
static json_t *without_empty_maps(const json_t *op)
{
	json_t *copy = json_deep_copy(op);
	json_t *metadata = json_at(copy, "object", "metadata"), *value = NULL;
	const char *name = NULL;
	void *next = NULL;

	json_object_foreach_safe(metadata, next, name, value)
	{
		if (json_is_object(value) && json_object_size(value) == 0)
			json_object_del(metadata, name);
	}
	return copy;
}

/* Would this operation change anything? Tried on a world that has just its object. */
static bool changes_something(const struct judge *judge, const json_t *op)
{
	const char *kind = json_str_at(op, "kind"), *key = json_str_at(op, "key");
	json_auto_t *small =
		json_pack("{s:O, s:{}}", "env", json_at(judge->world, "env"), kind ? kind : "none");
	auto_plan struct plan plan = {.ops = json_pack("[o]", without_empty_maps(op))};
	const json_t *object = world_get(judge->world, kind ? kind : "none", key ? key : "");

	if (object)
		json_object_set_new(json_at(small, kind), key, json_deep_copy(object));
	return cluster_carry_out(small, &plan);
}

static void take_report(struct judge *judge, const json_t *op)
{
	const char *policy = NULL;
	json_t *report = NULL;

	json_each (json_at(op, "policies"), policy, report)
		json_object_set(json_need_object(judge->reports, policy), json_str_at(op, "node"),
				report);
}

static void judge_op(struct judge *judge, const char *key, const json_t *op)
{
	const char *what = json_str_at(op, "op");
	auto_free char *text = NULL;

	if (str_eq(what, "report")) {
		take_report(judge, op);
		return;
	}
	if (str_eq(what, "requeue") || !changes_something(judge, op))
		return;
	judge->pending++;
	text = json_text(op);
	printf("%s: %s\n", key, text);
}

static void judge_key(struct judge *judge, const json_t *world, reconcile_fn *reconcile,
		      const char *key)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};
	json_t *op = NULL;
	size_t i = 0;

	if (reconcile(world, key, &plan, &err) < 0) {
		judge->pending++;
		printf("%s: %s\n", key, err.text);
		return;
	}
	json_array_foreach (plan.ops, i, op)
		judge_op(judge, key, op);
}

static void judge_kind(struct judge *judge, const char *kind, reconcile_fn *reconcile)
{
	const char *key = NULL;
	json_t *object = NULL;

	json_each (world_kind(judge->world, kind), key, object)
		judge_key(judge, judge->world, reconcile, key);
}

/* All but policies and pool configs, whose verdict follows from what comes of the nodes. */
static const struct {
	const char *kind;
	reconcile_fn *reconcile;
} deciders[] = {
	{KIND_NODE, node_state_reconcile},
	{KIND_MULTUS_CONFIG, multus_config_reconcile},
	{KIND_IP_POOL, ip_pool_reconcile},
	{KIND_RESERVED_IP, reserved_ip_reconcile},
	{KIND_SRIOV_NETWORK, sriov_network_reconcile},
	{KIND_SRIOV_IB_NETWORK, sriov_ib_network_reconcile},
	{KIND_OVS_NETWORK, ovs_network_reconcile},
};

/* What was made for objects that are gone. */
static void judge_left_over(struct judge *judge)
{
	const char *key = NULL;
	json_t *object = NULL;

	json_each (world_kind(judge->world, KIND_NAD), key, object) {
		const json_t *owner = owner_controller(object);
		auto_free char *config = str_printf("%s/%s", json_namespace(object),
						    json_str_or(json_at(owner, "name"), ""));

		if (str_eq(json_str_at(owner, "kind"), "SpiderMultusConfig") &&
		    !world_get(judge->world, KIND_MULTUS_CONFIG, config))
			judge_key(judge, judge->world, multus_config_reconcile, config);
	}
	json_each (world_kind(judge->world, KIND_NODE_STATE), key, object)
		if (!world_get(judge->world, KIND_NODE, json_name(object)))
			judge_key(judge, judge->world, node_state_reconcile, json_name(object));
}

/*
 * The NodeState of a node as it comes of policies, pools and the node's inventory alone, whatever
 * was decided before, against the one that is there.
 */
static void judge_afresh(struct judge *judge, const char *node)
{
	auto_free char *key = str_printf("%s/%s", world_env(judge->world, "namespace"), node);
	json_t *state = (json_t *)world_get(judge->world, KIND_NODE_STATE, key);
	json_auto_t *bare = json_copy(state), *world = json_copy(judge->world);
	auto_plan struct plan plan = {0};
	struct err err = {0};
	json_t *op = NULL, *spec = NULL;
	size_t i = 0;

	if (!state)
		return;
	json_object_del(bare, "spec");
	json_put(world, KIND_NODE_STATE, json_pack("{s:O}", key, bare));
	if (node_state_reconcile(world, node, &plan, &err) < 0)
		printf("%s: %s\n", node, err.text);
	json_array_foreach (plan.ops, i, op) {
		if (str_eq(json_str_at(op, "op"), "apply"))
			spec = json_at(op, "object", "spec");
	}
	if (!json_same(spec, json_at(state, "spec"))) {
		auto_free char *there = json_text(json_at(state, "spec"));
		auto_free char *wanted = spec ? json_text(spec) : str_dup("nothing");

		judge->pending++;
		printf("%s: the NodeState has %s, afresh it would have %s\n", node, there, wanted);
	}
}

static void judge_nodes_afresh(struct judge *judge)
{
	const char *node = NULL;
	json_t *object = NULL;

	json_each (world_kind(judge->world, KIND_NODE), node, object)
		judge_afresh(judge, node);
}

/* A policy sees what all nodes said about it. */
static void judge_policies(struct judge *judge)
{
	const char *key = NULL;
	json_t *policy = NULL;

	json_each (world_kind(judge->world, KIND_POLICY), key, policy) {
		json_auto_t *world = json_pack(
			"{s:O, s:{s:O}, s:O}", "env", json_at(judge->world, "env"), KIND_POLICY,
			key, policy, KIND_POLICY_REPORT, json_need_object(judge->reports, key));

		judge_key(judge, world, policy_status_reconcile, key);
	}
}

/* So does a pool config, and it sees the others. */
static void judge_pool_configs(struct judge *judge)
{
	const char *key = NULL;
	json_t *pool = NULL;

	json_each (world_kind(judge->world, KIND_POOL_CONFIG), key, pool) {
		auto_free char *name = str_printf(POOL_REPORT_PREFIX "%s", key);
		json_auto_t *world = json_copy(judge->world);

		json_object_set(world, KIND_POOL_REPORT, json_need_object(judge->reports, name));
		judge_key(judge, world, pool_config_reconcile, key);
	}
}

int main(int argc, char **argv)
{
	struct judge judge = {0};
	struct err err = {0};
	bool afresh = false;

	json_init();
	if (argc == 4 && str_eq(argv[3], "afresh"))
		afresh = true;
	else if (argc != 3) {
		fprintf(stderr, "usage: pending FILE NAMESPACE [afresh]\n");
		return 2;
	}
	judge.world = read_world(argv[1], argv[2], &err);
	if (!judge.world) {
		fprintf(stderr, "pending: %s\n", err.text);
		return 2;
	}
	judge.reports = json_object();
	for (size_t i = 0; i < ARRAY_LEN(deciders); i++)
		judge_kind(&judge, deciders[i].kind, deciders[i].reconcile);
	judge_left_over(&judge);
	judge_policies(&judge);
	judge_pool_configs(&judge);
	if (afresh)
		judge_nodes_afresh(&judge);
	json_decref(judge.reports);
	json_decref(judge.world);
	return judge.pending ? 1 : 0;
}

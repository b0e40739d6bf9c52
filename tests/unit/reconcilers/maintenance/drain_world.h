// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of drains share: a world of nodes, their agents and pods, and what is decided in
 * it. For them only.
 */
#pragma once

#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json/condition.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/sriov/node_state.h"
#include "tests/fakes/cluster.h"
#include "tests/support/reasons.h"

#define NOW "2026-01-31T10:00:00Z"
#define NS  "orbweaver-system"

/* ---- a world --------------------------------------------------------------------------------- */

static inline json_t *new_world(const char *max_unavailable)
{
	json_t *world = json_pack(
		"{s:{s:s, s:s, s:i}, s:{}, s:{}, s:{s:{s:{s:s, s:s}, s:{s:{s:{s:s}}}}}}", "env",
		"now", NOW, "namespace", NS, "nowMs", 100000, KIND_NODE, KIND_NODE_STATE,
		KIND_POOL_CONFIG, "kube-system/gpu", "metadata", "name", "gpu", "namespace",
		"kube-system", "spec", "nodeSelector", "matchLabels", "pool", "gpu");

	if (max_unavailable)
		json_put(json_at(world, KIND_POOL_CONFIG, "kube-system/gpu", "spec"),
			 "maxUnavailable",
			 strchr(max_unavailable, '%')
				 ? json_string(max_unavailable)
				 : json_integer(strtol(max_unavailable, NULL, 10)));
	return world;
}

static inline json_t *pool_of(json_t *world)
{
	return json_at(world, KIND_POOL_CONFIG, "kube-system/gpu");
}

static inline json_t *node_of(json_t *world, const char *name)
{
	return json_at(world, KIND_NODE, name);
}

static inline json_t *state_of(const json_t *world, const char *name)
{
	auto_free char *key = str_printf(NS "/%s", name);

	return json_at(world, KIND_NODE_STATE, key);
}

static inline void set_ready(json_t *world, const char *name, bool ready)
{
	json_put_str(json_array_get(json_at(node_of(world, name), "status", "conditions"), 0),
		     "status", ready ? "True" : "False");
}

static inline void add_node(json_t *world, const char *name)
{
	auto_free char *key = str_printf(NS "/%s", name);

	json_put(json_need_object(world, KIND_NODE), name,
		 json_pack("{s:{s:s, s:{s:s}}, s:{}, s:{s:[{s:s, s:s}]}}", "metadata", "name", name,
			   "labels", "pool", "gpu", "spec", "status", "conditions", "type", "Ready",
			   "status", "True"));
	json_put(json_need_object(world, KIND_NODE_STATE), key,
		 json_pack("{s:{s:s, s:s, s:i}, s:{s:i, s:s, s:[], s:{s:s}}}", "metadata", "name",
			   name, "namespace", NS, "generation", 1, "status", "observedGeneration",
			   1, "syncStatus", "Succeeded", "conditions", "impact", "class", "none"));
}

/* The agent says that this pod has to end. */
static inline void must_end(json_t *world, const char *node, const char *pod)
{
	json_t *status = json_at(state_of(world, node), "status");
	json_t *impact = json_need_object(status, "impact");

	json_put_str(impact, "class", "evict");
	if (!json_at(impact, "pods"))
		json_put(impact, "pods", json_array());
	json_array_append_new(json_at(impact, "pods"),
			      json_pack("{s:s, s:s, s:s}", "pod", pod, "device", "0000:3b:00.2",
					"pciAddress", "0000:3b:00.0"));
	json_put_str(status, "syncStatus", "InProgress");
}

static inline void agent_withdraws(json_t *world, const char *node)
{
	json_put_bool(json_at(state_of(world, node), "status", "impact"), "withdrawn", true);
}

static inline json_t *new_pod(const char *name, const char *node, bool is_managed)
{
	json_t *pod = json_pack("{s:{s:s, s:s, s:o}, s:{s:s}, s:{s:s}}", "metadata", "name", name,
				"namespace", "ml", "uid", json_fmt("uid-%s", name), "spec",
				"nodeName", node, "status", "phase", "Running");

	if (is_managed)
		json_put(json_at(pod, "metadata"), "ownerReferences",
			 json_pack("[{s:s, s:s, s:b}]", "kind", "ReplicaSet", "name", "train",
				   "controller", 1));
	return pod;
}

static inline json_t *look_box(json_t *world)
{
	json_t *look = json_need_object(json_need_object(world, BOX_DRAIN_LOOK), DRAIN_KEY);

	json_put_int(look, "atMs", json_integer_value(json_at(world, "env", "nowMs")));
	return look;
}

/* The shell has read it. Takes pod; NULL: there is none. */
static inline void looked_at_pod(json_t *world, const char *key, json_t *pod)
{
	json_put(json_need_object(look_box(world), KIND_POD), key, pod ? pod : json_null());
}

static inline void looked_at_node(json_t *world, const char *name)
{
	json_put(json_need_object(look_box(world), KIND_NODE), name, json_object());
}

/* One pod on each of so many nodes has to end, and the shell has looked. */
static inline json_t *world_of_nodes(const char *max_unavailable, int n)
{
	json_t *world = new_world(max_unavailable);

	for (int i = 0; i < n; i++) {
		auto_free char *node = str_printf("w%d", i), *pod = str_printf("p%d", i);
		auto_free char *key = str_printf("ml/%s", pod);

		add_node(world, node);
		must_end(world, node, key);
		looked_at_pod(world, key, new_pod(pod, node, true));
		looked_at_node(world, node);
	}
	return world;
}

static inline json_t *decide(json_t *world)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert_int_equal(drain_reconcile(world, DRAIN_KEY, &plan, &err), 0);
	return plan.ops ? json_deep_copy(plan.ops) : json_array();
}

/* Decide and carry out, evictions aside. New: the operations. */
static inline json_t *turn(json_t *world)
{
	json_t *ops = decide(world), *op;
	size_t i;

	json_array_foreach (ops, i, op) {
		json_auto_t *copy = json_deep_copy(op);

		cluster_carry_out_op(world, copy);
	}
	return ops;
}

static inline void turns(json_t *world, int n)
{
	while (n-- > 0)
		json_decref(turn(world));
}

static inline size_t count_ops(const json_t *ops, const char *what)
{
	size_t n = 0, i;
	const json_t *op;

	json_array_foreach ((json_t *)ops, i, op)
		n += str_eq(json_str_at(op, "op"), what);
	return n;
}

static inline const char *current(const json_t *world, const char *node)
{
	return json_str_or(
		json_at(state_of(world, node), "metadata", "annotations", DRAIN_CURRENT_STATE),
		"Idle");
}

static inline const json_t *draining(const json_t *world, const char *node)
{
	return condition_find(json_at(state_of(world, node), "status", "conditions"), "Draining");
}

static inline void assert_reason(const json_t *world, const char *node, const char *reason)
{
	const char *is = json_str_or(json_at(draining(world, node), "reason"), "none");

	if (!str_eq(is, reason))
		fail_msg("%s says %s (%s), wanted %s", node, is,
			 json_str_or(json_at(draining(world, node), "message"), ""), reason);
	if (draining(world, node))
		reason_may_stand(is, "Draining", json_str_at(draining(world, node), "status"));
}

static inline size_t begun(const json_t *world)
{
	size_t n = 0;
	const char *key;
	json_t *state;

	json_each (json_at(world, KIND_NODE_STATE), key, state)
		n += !str_eq(current(world, json_name(state)), "Idle");
	return n;
}

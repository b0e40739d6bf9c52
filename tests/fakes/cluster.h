// SPDX-License-Identifier: Apache-2.0
/*
 * A cluster that is one JSON document: carries out a plan on a world as the applier would on an API
 * server. For tests of reconcilers: golden, conformance and fuzz. A header of inline functions, so
 * that any test can include it.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/core/reconcile.h"

/*
 * Turns that a world may need to come to rest: write, read back and report, see that nothing is
 * left.
 */
#define CLUSTER_TURNS_MAX 4

/*
 * Server-side apply, as far as one owner of the fields can tell: what is named is set, maps are
 * merged.
 */
static inline void cluster_apply(json_t *object, const json_t *wanted)
{
	json_t *metadata = json_need_object(object, "metadata");
	const char *name;
	json_t *value;

	json_each (json_at(wanted, "metadata"), name, value) {
		if (json_is_object(value))
			json_object_update(json_need_object(metadata, name), value);
		else
			json_object_set(metadata, name, value);
	}
	json_each (wanted, name, value)
		if (!str_eq(name, "metadata"))
			json_object_set(object, name, value);
}

static inline void cluster_create(json_t *object, const char *key, const char *now)
{
	json_t *metadata = json_need_object(object, "metadata");

	if (!*json_uid(object))
		json_put(metadata, "uid", json_fmt("uid-of-%s", key));
	json_put_str(metadata, "creationTimestamp", now);
}

/* The same for one operation; an object that is not there is not written to, except by apply. */
static inline void cluster_carry_out_op(json_t *world, const json_t *op)
{
	const char *what = json_str_at(op, "op"), *key = json_str_at(op, "key");
	json_t *objects, *object;
	bool is_apply = str_eq(what, "apply");

	if (!json_at(op, "kind") || str_eq(what, "event") || str_eq(what, "finding") ||
	    str_eq(what, "evict"))
		return;
	objects = json_need_object(world, json_str_at(op, "kind"));
	object = json_object_get(objects, key);
	if (!object && is_apply) {
		object = json_object();
		cluster_create(object, key, world_env(world, "now"));
		json_put(objects, key, object);
	}
	if (!object)
		return;
	if (is_apply)
		cluster_apply(object, json_at(op, "object"));
	else if (str_eq(what, "status"))
		json_object_set(object, "status", json_at(op, "status"));
	else if (str_eq(what, "status-part"))
		json_merge_patch(json_need_object(object, "status"), json_at(op, "status"));
	else if (str_eq(what, "meta")) {
		json_merge_patch(json_need_object(object, "metadata"), json_at(op, "metadata"));
		plan_put_condition(object, op);
	} else if (str_eq(what, "cordon")) {
		json_merge_patch(json_need_object(object, "spec"), json_at(op, "spec"));
		json_merge_patch(json_need_object(object, "metadata"), json_at(op, "metadata"));
	} else if (str_eq(what, "delete") && str_eq(json_uid(object), json_str_at(op, "uid")))
		json_object_del(objects, key);
}

/* True when the plan has something to tell or to change in the world; the world is changed. */
static inline bool cluster_carry_out(json_t *world, const struct plan *plan)
{
	json_auto_t *before = json_deep_copy(world);
	bool has_events = false;
	json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		/* Plans share values with their world. */
		json_auto_t *copy = json_deep_copy(op);

		cluster_carry_out_op(world, copy);
		has_events |= str_eq(json_str_at(op, "op"), "event");
	}
	return has_events || !json_same(before, world);
}

/*
 * Reconcile and carry out until nothing is left to do. False when that takes more than
 * CLUSTER_TURNS_MAX turns or a reconciler fails.
 */
static inline bool cluster_settle(json_t *world, const char *key, reconcile_fn *reconcile)
{
	for (int turn = 0; turn < CLUSTER_TURNS_MAX; turn++) {
		auto_plan struct plan plan = {0};
		struct err err = {0};

		if (reconcile(world, key, &plan, &err))
			return false;
		if (!cluster_carry_out(world, &plan))
			return true;
	}
	return false;
}

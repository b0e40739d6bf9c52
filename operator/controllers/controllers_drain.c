// SPDX-License-Identifier: Apache-2.0
/* Nodes that are drained: what the decision on them looks at, and what wakes it. */
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/kinds.h"
#include "operator/controllers/controllers_internal.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/maintenance/health_taint.h"
#include "reconcilers/sriov/node_health.h"
#include "reconcilers/sriov/pool_config.h"

/* While nothing has to end, nodes and pools do not matter, but for nodes that are left cordoned. */
void drain_gather(const struct controller_sources *from, const struct controller *self,
		  const char *key, json_t *world)
{
	json_t *evictions = json_object_get(from->notes, BOX_EVICTIONS);

	json_put_int(json_need_object(world, "env"), "nowMs", from->now_ms());
	if (json_object_size(evictions))
		json_put(world, BOX_EVICTIONS, json_copy(evictions));
	controllers_add_kept(from, world, BOX_DRAIN_LOOK, DRAIN_KEY);
	mirror_add_indexed(from->mirror, world, KIND_NODE_STATE, NODE_STATE_DRAINS, MIRROR_DRAINS);
	if (json_object_size(json_at(world, KIND_NODE_STATE)) == 0) {
		mirror_add_indexed(from->mirror, world, KIND_NODE, NODE_MARKED, MIRROR_DRAINS);
		return;
	}
	mirror_add_all(from->mirror, world, KIND_NODE);
	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
	mirror_add_all(from->mirror, world, LEFTOVER_SRIOV_CONFIG);
}

static void note_one(void *arg, const char *key)
{
	*(bool *)arg = true;
}

/* A node, a pool, the switch of all drains: of interest only while something has to end. */
void drain_source_changed(const struct change *c)
{
	bool any = false;

	cache_find(mirror_cache(c->from->mirror, KIND_NODE_STATE), NODE_STATE_DRAINS, MIRROR_DRAINS,
		   note_one, &any);
	cache_find(mirror_cache(c->from->mirror, KIND_NODE), NODE_MARKED, MIRROR_DRAINS, note_one,
		   &any);
	if (any)
		wake(c, CONTROLLER_DRAIN, DRAIN_KEY);
}

void drain_state_changed(const struct change *c)
{
	if ((c->old && drain_concerns(c->old)) || (c->now && drain_concerns(c->now)))
		wake(c, CONTROLLER_DRAIN, DRAIN_KEY);
}

/* ---- taints ---------------------------------------------------------------------------------- */

void health_taint_gather(const struct controller_sources *from, const struct controller *self,
			 const char *key, json_t *world)
{
	mirror_add_all(from->mirror, world, KIND_NODE);
	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
}

static bool concerns_taints(const json_t *object)
{
	return health_taint_is_on(object) ||
	       json_find(json_at(object, "status", "conditions"), "type", NODE_HEALTH_CONDITION) ||
	       json_at(object, "metadata", "annotations", POOL_TAINT_DEGRADED) ||
	       json_at(object, "metadata", "annotations", POOL_CORDON_DEGRADED);
}

/* A node or a pool: one that asks for no taints may select the nodes of one that does. */
void health_source_changed(const struct change *c)
{
	bool is_pool = str_eq(c->kind, KIND_POOL_CONFIG);

	if ((is_pool && !controllers_same_spec(c->old, c->now)) ||
	    (c->old && concerns_taints(c->old)) || (c->now && concerns_taints(c->now)))
		wake(c, CONTROLLER_HEALTH_TAINT, HEALTH_TAINT_KEY);
}

/* ---- answers of the API server --------------------------------------------------------------- */

void drain_evicted(const struct controller_sources *from, const char *key, json_t *answer)
{
	const json_t *before = json_at(from->notes, BOX_EVICTIONS, key);
	bool same = str_eq(json_str_at(before, "uid"), json_str_at(answer, "uid"));

	json_put_int(answer, "atMs", from->now_ms());
	json_put_int(answer, "tries",
		     (same ? json_integer_value(json_at(before, "tries")) : 0) + 1);
	controllers_keep(from, BOX_EVICTIONS, key, answer);
	controller_wake(from, CONTROLLER_DRAIN, DRAIN_KEY, QUEUE_MAIN);
}

/* What is being drained: keep little of it. */
void drain_read(const struct controller_sources *from, const char *key, json_t *found,
		const struct err *err)
{
	json_t *objects, *object, *pod;
	const char *kind, *name, *of;

	if (err) {
		log_warn("cannot read what is being drained, will retry", F_ERR(err));
		return;
	}
	json_each (found, kind, objects) {
		bool are_lists = str_eq(kind, BOX_PODS_OF_NODE);

		json_each (objects, name, object) {
			json_each (are_lists ? object : NULL, of, pod)
				drain_project(pod);
			if (!are_lists && json_is_object(object))
				drain_project(object);
		}
	}
	json_put_int(found, "atMs", from->now_ms());
	controllers_keep(from, BOX_DRAIN_LOOK, key, found);
	controller_wake(from, CONTROLLER_DRAIN, key, QUEUE_MAIN);
}

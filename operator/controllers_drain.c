// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes that are drained: what the decision on them looks at, and what wakes it.
 */
#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "operator/controllers_internal.h"
#include "operator/kinds.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/maintenance/drain.h"

/* While nothing has to end, nodes and pools do not matter, but for nodes that are left cordoned. */
void drain_gather(const struct controller_sources *from, const struct controller *self,
		  const char *key, json_t *world)
{
	const json_t *evictions = boxes_all(from->boxes, BOX_EVICTIONS);

	json_put_int(json_need_object(world, "env"), "nowMs", clock_ms());
	if (evictions)
		json_put(world, BOX_EVICTIONS, json_copy((json_t *)evictions));
	boxes_add(from->boxes, world, BOX_DRAIN_LOOK, DRAIN_KEY);
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

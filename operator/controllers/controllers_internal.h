// SPDX-License-Identifier: Apache-2.0
/* What the controllers*.c files share. For them only; controllers.h is the contract. */
#pragma once

#include "operator/controllers/controllers.h"

/* What all wake rules get. */
struct change {
	const struct controller_sources *from;
	const char *kind, *key;
	const json_t *old, *now;
};

static inline void wake(const struct change *c, enum controller_id id, const char *key)
{
	controller_wake(c->from, id, key, QUEUE_MAIN);
}

/* ---- controllers_shared.c -------------------------------------------------------------------- */

/* Wake the SpiderMultusConfigs that have this value in an index of theirs (CONFIG_BY_*). */
void controllers_wake_configs(const struct change *c, size_t index, const char *value);
/* Wake the controller for each object of a kind. */
void controllers_wake_all(const struct change *c, const char *kind, enum controller_id id);
/* Both are there, with equal specs. */
bool controllers_same_spec(const json_t *old, const json_t *now);

/* Keep what a controller posts to itself, in from->notes; value NULL: nothing any more. */
void controllers_keep(const struct controller_sources *from, const char *box, const char *key,
		      json_t *value);
/* Put it into the world, as a kind of the box's name. */
void controllers_add_kept(const struct controller_sources *from, json_t *world, const char *box,
			  const char *key);

/* The rest of a stack that we replace came or went (reconcilers/core/leftovers.h). */
controller_gather_fn leftover_gather;
void leftover_changed(const struct change *c);

/* ---- by family: worlds (controller.gather), and wake rules (kinds.h) ------------------------- */

controller_gather_fn network_gather;
void network_changed(const struct change *c);
void network_nad_changed(const struct change *c);
void network_namespace_changed(const struct change *c);
/* Some node offers the resource now, or none any more. */
void network_resource_changed(const struct change *c, const char *resource);

controller_gather_fn reserved_ip_gather, coordinator_gather, config_gather, pool_gather;
void reserved_changed(const struct change *c);
void coordinator_changed(const struct change *c);
void cluster_network_changed(const struct change *c);
void config_changed(const struct change *c);
void config_nad_changed(const struct change *c);
void pool_changed(const struct change *c);

controller_gather_fn node_gather, policy_gather, pool_config_gather;
void node_changed(const struct change *c);
void node_state_changed(const struct change *c);
void agent_pod_changed(const struct change *c);
void policy_changed(const struct change *c);
void pool_config_changed(const struct change *c);
controller_reported_fn node_reported;

controller_gather_fn shared_offers_gather;
void shared_config_changed(const struct change *c);

controller_gather_fn drain_gather;
controller_gather_fn health_taint_gather;
void drain_source_changed(const struct change *c);
void health_source_changed(const struct change *c);
void drain_state_changed(const struct change *c);
controller_evicted_fn drain_evicted;
controller_read_fn drain_read;

controller_gather_fn addresses_gather, endpoint_gather, strays_gather;
void bound_pod_changed(const struct change *c);
void endpoint_changed(const struct change *c);
void addresses_node_changed(const struct change *c);
/* For how many ended pods a namespace keeps addresses. */
void quota_changed(const struct change *c);
void addresses_pool_changed(const struct change *c);
/* What decisions on addresses look at beside pods and pools. */
void addresses_source_changed(const struct change *c);
void addresses_settings_changed(const struct change *c);
/* The pod cannot have addresses, for another reason than before. */
void bound_pod_found(const struct change *c, const char *reason);
controller_gathered_fn addresses_gathered;
controller_group_ended_fn addresses_ledger_written;
void addresses_overtaken(const struct controller_sources *from);
controller_gathered_fn endpoint_gathered;
controller_read_fn endpoint_read;
bool strays_are_urgent(const struct controller_sources *from, const char *pool);

controller_gather_fn inject_gather_pod, inject_gather_config;
controller_posted_fn inject_group_posted;
bool inject_group_is_urgent(const struct controller_sources *from, const char *key);
void inject_pod_changed(const struct change *c);
void inject_config_changed(const struct change *c);
void inject_namespace_changed(const struct change *c);
void inject_settings_changed(const struct change *c);
/* Something else than before is found wrong with the pod; reason NULL: nothing any more. */
void inject_pod_found(const struct change *c, const char *reason);

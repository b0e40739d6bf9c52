// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes, their work items, policies and pools of nodes: what decisions on them look at, and what
 * wakes them.
 */
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/kinds.h"
#include "operator/controllers/controllers_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/shared_offers.h"
#include "reconcilers/sriov/sriov_policy.h"

void node_gather(const struct controller_sources *from, const struct controller *self,
		 const char *key, json_t *world)
{
	auto_free char *state = str_printf("%s/%s", from->ns, key);

	mirror_add(from->mirror, world, KIND_NODE, key);
	mirror_add(from->mirror, world, KIND_NODE_STATE, state);
	mirror_add_all(from->mirror, world, KIND_POLICY);
	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
	/* "None of them" is not "not looked for". */
	json_need_object(world, KIND_AGENT_POD);
	mirror_add_indexed(from->mirror, world, KIND_AGENT_POD, AGENT_POD_BY_NODE, key);
	controllers_add_kept(from, world, BOX_NO_AGENT_POD, key);
}

/* key: of a policy, or of a pool config behind POOL_REPORT_PREFIX */
static void wake_reported(void *arg, const char *key)
{
	if (str_starts(key, POOL_REPORT_PREFIX))
		controller_wake(arg, CONTROLLER_POOL_CONFIG, key + strlen(POOL_REPORT_PREFIX),
				QUEUE_MAIN);
	else
		controller_wake(arg, CONTROLLER_POLICY_STATUS, key, QUEUE_MAIN);
}

void node_reported(const struct controller_sources *from, const char *node, const json_t *policies)
{
	policy_reports_set(from->reports, node, policies, wake_reported, (void *)from);
}

static void wake_resource(void *arg, const char *resource)
{
	controllers_wake_configs(arg, CONFIG_BY_RESOURCE, resource);
	network_resource_changed(arg, resource);
}

static void wake_if_rivals(const struct change *c, const json_t *pools)
{
	const char *key;
	json_t *value;

	if (json_object_size(pools) < 2)
		return;
	json_each (pools, key, value)
		wake(c, CONTROLLER_POOL_CONFIG, key);
}

/*
 * What a node does to pools: it is a conflict between those that it is in. Their verdict looks at
 * all nodes, so only the coming and going of a conflict is worth one.
 */
static void wake_rivals(const struct change *c)
{
	const struct cache *cache = mirror_cache(c->from->mirror, KIND_POOL_CONFIG);
	const json_t *before = json_at(c->old, "metadata", "labels");
	const json_t *after = json_at(c->now, "metadata", "labels");
	json_auto_t *rivals_before = json_object(), *rivals_after = json_object();
	const char *key = NULL;
	size_t iter = 0;

	while ((key = cache_next(cache, &iter))) {
		json_auto_t *pool = cache_get(cache, key);

		if (c->old && pool_config_selects(pool, before))
			json_put_bool(rivals_before, key, true);
		if (c->now && pool_config_selects(pool, after))
			json_put_bool(rivals_after, key, true);
	}
	if (json_same(rivals_before, rivals_after))
		return;
	wake_if_rivals(c, rivals_before);
	wake_if_rivals(c, rivals_after);
}

void node_changed(const struct change *c)
{
	bool same_labels = c->old && c->now &&
			   json_same(json_at(c->old, "metadata", "labels"),
				     json_at(c->now, "metadata", "labels"));

	wake(c, CONTROLLER_NODE_STATE, c->key);
	node_names_update(c->from->resources, json_at(c->old, "status", "allocatable"),
			  json_at(c->now, "status", "allocatable"), wake_resource, (void *)c);
	if (!same_labels)
		wake_rivals(c);
}

/* Whether links are known at all concerns each config that names one. */
static void wake_link(void *arg, const char *link)
{
	controllers_wake_configs(arg, CONFIG_BY_MASTER, *link == '/' ? NODE_LINKS_REPORTED : link);
}

/* "ens1f0/ETH", or "RESOURCE//IB": configs over the interface, networks of the resource. */
static void wake_typed(void *arg, const char *key)
{
	const struct change *c = arg;
	const char *slash = strchr(key, '/'), *prefix = c->from->resource_prefix;
	auto_free char *what = str_ndup(key, (size_t)(slash - key));
	auto_free char *resource = str_printf("%s%s%s", prefix, *prefix ? "/" : "", what);

	if (slash[1] == '/')
		wake_resource(arg, resource);
	else
		controllers_wake_configs(arg, CONFIG_BY_MASTER, what);
}

static void wake_shared_config(const struct change *c)
{
	auto_free char *key = str_printf("%s/" SHARED_CONFIG_NAME, c->from->ns);

	wake(c, CONTROLLER_SHARED_OFFERS, key);
}

void node_state_changed(const struct change *c)
{
	json_auto_t *before = node_links_of(c->old), *after = node_links_of(c->now);
	json_auto_t *was = node_link_types_of(c->old), *is = node_link_types_of(c->now);
	json_auto_t *had = shared_offers_of(c->old), *has = shared_offers_of(c->now);
	const char *slash = strchr(c->key, '/');

	wake(c, CONTROLLER_NODE_STATE, slash ? slash + 1 : c->key);
	node_names_update(c->from->links, before, after, wake_link, (void *)c);
	node_names_update(c->from->links, was, is, wake_typed, (void *)c);
	/* Who is new and has not reported changes nothing yet. */
	if (!json_same(had, has) && (had || !json_is_null(has)))
		wake_shared_config(c);
}

/* Those of other namespaces are not of an agent. */
void shared_config_changed(const struct change *c)
{
	size_t len = strlen(c->from->ns);

	if (strncmp(c->key, c->from->ns, len) == 0 && c->key[len] == '/')
		wake_shared_config(c);
}

static void keep_first(void *arg, const char *key)
{
	const char **first = arg;

	if (!*first || strcmp(key, *first) < 0)
		*first = key;
}

/* Add the first NodeState that says so; returns its key, NULL when none does. */
static const char *add_first(const struct controller_sources *from, const char *says, json_t *world)
{
	const char *first = NULL;

	cache_find(mirror_cache(from->mirror, KIND_NODE_STATE), NODE_STATE_OFFERS, says, keep_first,
		   &first);
	if (first)
		mirror_add(from->mirror, world, KIND_NODE_STATE, first);
	return first;
}

void shared_offers_gather(const struct controller_sources *from, const struct controller *self,
			  const char *key, json_t *world)
{
	const char *lacks = NULL, *resource;
	json_auto_t *offers = NULL;
	json_t *selects;

	mirror_add(from->mirror, world, LEFTOVER_SHARED_CONFIG, key);
	(void)add_first(from, SHARED_OFFERS_SILENT, world);
	lacks = add_first(from, SHARED_OFFERS_LACKS, world);
	offers = lacks ? shared_offers_of(world_get(world, KIND_NODE_STATE, lacks)) : NULL;
	json_each (offers, resource, selects) {
		auto_free char *has = str_printf(SHARED_OFFERS_HAS "%s", resource);

		if (json_is_false(selects))
			(void)add_first(from, has, world);
	}
}

/* A pod is bound once; before, it is not the agent of a node. */
void agent_pod_changed(const struct change *c)
{
	const char *node = json_str_at(c->now ? c->now : c->old, "spec", "nodeName");

	if (node)
		wake(c, CONTROLLER_NODE_STATE, node);
}

/* The nodes that its old or new nodeSelector selects. */
void policy_changed(const struct change *c)
{
	const struct cache *nodes = mirror_cache(c->from->mirror, KIND_NODE);
	const char *key = NULL;
	size_t iter = 0;

	wake(c, CONTROLLER_POLICY_STATUS, c->key);
	if (controllers_same_spec(c->old, c->now))
		return;
	while ((key = cache_next(nodes, &iter))) {
		json_auto_t *node = cache_get(nodes, key);
		const json_t *labels = json_at(node, "metadata", "labels");

		if (sriov_policy_selects(c->old, labels) || sriov_policy_selects(c->now, labels))
			wake(c, CONTROLLER_NODE_STATE, key);
	}
}

void policy_gather(const struct controller_sources *from, const struct controller *self,
		   const char *key, json_t *world)
{
	mirror_add(from->mirror, world, KIND_POLICY, key);
	json_put(world, KIND_POLICY_REPORT, policy_reports_of(from->reports, key));
}

void pool_config_gather(const struct controller_sources *from, const struct controller *self,
			const char *key, json_t *world)
{
	auto_free char *reports = str_printf(POOL_REPORT_PREFIX "%s", key);

	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
	mirror_add_all(from->mirror, world, KIND_NODE);
	json_put(world, KIND_POOL_REPORT, policy_reports_of(from->reports, reports));
}

/* A pool can change the verdict on others, and RDMA mode and annotations of any node's state. */
void pool_config_changed(const struct change *c)
{
	bool is_same = controllers_same_spec(c->old, c->now);

	wake(c, CONTROLLER_POOL_CONFIG, c->key);
	if (!is_same)
		controllers_wake_all(c, KIND_POOL_CONFIG, CONTROLLER_POOL_CONFIG);
	if (!is_same || !json_same(json_at(c->old, "metadata", "annotations"),
				   json_at(c->now, "metadata", "annotations")))
		controllers_wake_all(c, KIND_NODE, CONTROLLER_NODE_STATE);
}

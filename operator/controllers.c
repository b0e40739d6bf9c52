/*
 * Tables and small functions; each controller's row, world and wake rules stand together.
 */
#include "operator/controllers.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/ip_pool.h"
#include "reconcilers/multus_config.h"
#include "reconcilers/node_state.h"
#include "reconcilers/owner.h"
#include "reconcilers/policy_status.h"
#include "reconcilers/pool_config.h"
#include "reconcilers/sriov_policy.h"

/* What all wake rules get. */
struct change {
	const struct controller_sources *from;
	const char *kind, *key;
	const json_t *old, *now;
	void (*wake)(void *arg, enum controller_id id, const char *key);
	void *arg;
};

static void wake(const struct change *c, enum controller_id id, const char *key)
{
	c->wake(c->arg, id, key);
}

/* ---- SpiderMultusConfig ------------------------------------------------------------------------------------------- */

static void look_multus_config(const struct controller_sources *from, const char *key, json_t *world)
{
	auto_free char *owner = str_printf("SpiderMultusConfig/%s", key);
	const json_t *config = NULL;
	auto_free char *nad = NULL;

	mirror_add_indexed(from->mirror, world, KIND_NAD, NAD_BY_OWNER, owner);
	mirror_add(from->mirror, world, KIND_MULTUS_CONFIG, key);
	config = world_get(world, KIND_MULTUS_CONFIG, key);
	if (!config)
		return;
	nad = str_printf("%s/%s", json_namespace(config), multus_config_nad_name(config));
	mirror_add(from->mirror, world, KIND_NAD, nad);
	mirror_add_indexed(from->mirror, world, KIND_MULTUS_CONFIG, CONFIG_BY_NAD, nad);
}

static void wake_config(void *arg, const char *key)
{
	wake(arg, CONTROLLER_MULTUS_CONFIG, key);
}

static void wake_claimants(const struct change *c, const char *nad_key)
{
	cache_find(mirror_cache(c->from->mirror, KIND_MULTUS_CONFIG), CONFIG_BY_NAD, nad_key,
		   wake_config, (void *)c);
}

/* The config, and its rivals for the name it has or had. */
static void config_changed(const struct change *c)
{
	const json_t *versions[] = {c->old, c->now};

	wake(c, CONTROLLER_MULTUS_CONFIG, c->key);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		auto_free char *nad = NULL;

		if (!versions[i])
			continue;
		nad = str_printf("%s/%s", json_namespace(versions[i]),
				 multus_config_nad_name(versions[i]));
		wake_claimants(c, nad);
	}
}

/* Its owner, whether that exists or not, and whoever claims its name. */
static void nad_changed(const struct change *c)
{
	const json_t *versions[] = {c->old, c->now};

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const json_t *owner = owner_controller(versions[i]);
		auto_free char *key = NULL;

		if (!str_eq(json_str_at(owner, "kind"), "SpiderMultusConfig"))
			continue;
		key = str_printf("%s/%s", json_namespace(versions[i]),
				 json_str_or(json_at(owner, "name"), ""));
		wake(c, CONTROLLER_MULTUS_CONFIG, key);
	}
	wake_claimants(c, c->key);
}

/* ---- SpiderIPPool ------------------------------------------------------------------------------------------------- */

struct narrowing {
	const struct controller_sources *from;
	json_t *world;
};

static void add_pool(void *arg, const char *name)
{
	const struct narrowing *n = arg;

	mirror_add(n->from->mirror, n->world, KIND_IP_POOL, name);
}

static void look_ip_pool(const struct controller_sources *from, const char *key, json_t *world)
{
	struct narrowing n = {from, world};
	json_auto_t *pool = cache_get(mirror_cache(from->mirror, KIND_IP_POOL), key);

	mirror_add(from->mirror, world, KIND_IP_POOL, key);
	mirror_add_all(from->mirror, world, KIND_RESERVED_IP);
	if (pool)
		ip_pool_index_find(from->pools, pool, add_pool, &n);
}

static void wake_pool(void *arg, const char *name)
{
	wake(arg, CONTROLLER_IP_POOL, name);
}

static bool same_spec(const json_t *old, const json_t *now)
{
	return old && now && json_same(json_at(old, "spec"), json_at(now, "spec"));
}

/* The pool, and the neighbours whose verdict depends on what it was and is. */
static void pool_changed(const struct change *c)
{
	wake(c, CONTROLLER_IP_POOL, c->key);
	if (same_spec(c->old, c->now))
		return;
	if (c->old)
		ip_pool_index_find(c->from->pools, c->old, wake_pool, (void *)c);
	if (c->now)
		ip_pool_index_put(c->from->pools, c->now);
	else
		ip_pool_index_remove(c->from->pools, c->key);
	if (c->now)
		ip_pool_index_find(c->from->pools, c->now, wake_pool, (void *)c);
}

static void wake_all(const struct change *c, const char *kind, enum controller_id id)
{
	const struct cache *cache = mirror_cache(c->from->mirror, kind);
	const char *key = NULL;
	size_t iter = 0;

	while ((key = cache_next(cache, &iter)))
		wake(c, id, key);
}

static void reserved_changed(const struct change *c)
{
	if (!same_spec(c->old, c->now))
		wake_all(c, KIND_IP_POOL, CONTROLLER_IP_POOL);
}

/* ---- nodes and their work items ----------------------------------------------------------------------------------- */

static void look_node(const struct controller_sources *from, const char *key, json_t *world)
{
	auto_free char *state = str_printf("%s/%s", from->ns, key);

	mirror_add(from->mirror, world, KIND_NODE, key);
	mirror_add(from->mirror, world, KIND_NODE_STATE, state);
	mirror_add_all(from->mirror, world, KIND_POLICY);
	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
}

static void node_changed(const struct change *c)
{
	bool same_labels = c->old && c->now &&
			   json_same(json_at(c->old, "metadata", "labels"),
				     json_at(c->now, "metadata", "labels"));

	wake(c, CONTROLLER_NODE_STATE, c->key);
	if (!same_labels)
		wake_all(c, KIND_POOL_CONFIG, CONTROLLER_POOL_CONFIG);
}

static void node_state_changed(const struct change *c)
{
	wake(c, CONTROLLER_NODE_STATE, json_name(c->now ? c->now : c->old));
}

/* The nodes that its old or new nodeSelector selects. */
static void policy_changed(const struct change *c)
{
	const struct cache *nodes = mirror_cache(c->from->mirror, KIND_NODE);
	const char *key = NULL;
	size_t iter = 0;

	wake(c, CONTROLLER_POLICY_STATUS, c->key);
	if (same_spec(c->old, c->now))
		return;
	while ((key = cache_next(nodes, &iter))) {
		json_auto_t *node = cache_get(nodes, key);
		const json_t *labels = json_at(node, "metadata", "labels");

		if (sriov_policy_selects(c->old, labels) || sriov_policy_selects(c->now, labels))
			wake(c, CONTROLLER_NODE_STATE, key);
	}
}

static void look_policy(const struct controller_sources *from, const char *key, json_t *world)
{
	mirror_add(from->mirror, world, KIND_POLICY, key);
	json_put(world, KIND_POLICY_REPORT, reports_of(from->reports, key));
}

static void look_pool_config(const struct controller_sources *from, const char *key, json_t *world)
{
	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
	mirror_add_all(from->mirror, world, KIND_NODE);
}

/* A pool can change the verdict on others and the RDMA mode of any node. */
static void pool_config_changed(const struct change *c)
{
	wake(c, CONTROLLER_POOL_CONFIG, c->key);
	if (same_spec(c->old, c->now))
		return;
	wake_all(c, KIND_POOL_CONFIG, CONTROLLER_POOL_CONFIG);
	wake_all(c, KIND_NODE, CONTROLLER_NODE_STATE);
}

/* ---- the tables --------------------------------------------------------------------------------------------------- */

const struct controller controllers[CONTROLLER_COUNT] = {
	[CONTROLLER_MULTUS_CONFIG] = {
		.name = "multus-config",
		.kind = KIND_MULTUS_CONFIG,
		.reconcile = multus_config_reconcile,
		.needs = {KIND_MULTUS_CONFIG, KIND_NAD},
		.look = look_multus_config,
	},
	[CONTROLLER_IP_POOL] = {
		.name = "ip-pool",
		.kind = KIND_IP_POOL,
		.reconcile = ip_pool_reconcile,
		.needs = {KIND_IP_POOL, KIND_RESERVED_IP},
		.look = look_ip_pool,
	},
	[CONTROLLER_NODE_STATE] = {
		.name = "node-state",
		.kind = KIND_NODE,
		.reconcile = node_state_reconcile,
		.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG},
		.look = look_node,
	},
	[CONTROLLER_POLICY_STATUS] = {
		.name = "policy-status",
		.kind = KIND_POLICY,
		.reconcile = policy_status_reconcile,
		.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG},
		.look = look_policy,
		.every_ms = 1000,
		.after = CONTROLLER_NODE_STATE,
	},
	[CONTROLLER_POOL_CONFIG] = {
		.name = "pool-config",
		.kind = KIND_POOL_CONFIG,
		.reconcile = pool_config_reconcile,
		.needs = {KIND_POOL_CONFIG, KIND_NODE},
		.look = look_pool_config,
		.every_ms = 1000,
		.after = CONTROLLER_POOL_CONFIG,
	},
};

static const struct {
	const char *kind;
	void (*changed)(const struct change *c);
} rules[] = {
	{KIND_MULTUS_CONFIG, config_changed},
	{KIND_NAD, nad_changed},
	{KIND_IP_POOL, pool_changed},
	{KIND_RESERVED_IP, reserved_changed},
	{KIND_NODE, node_changed},
	{KIND_NODE_STATE, node_state_changed},
	{KIND_POLICY, policy_changed},
	{KIND_POOL_CONFIG, pool_config_changed},
};

void controllers_map(const struct controller_sources *from, const char *kind, const char *key,
		     const json_t *old, const json_t *now,
		     void (*wake_fn)(void *arg, enum controller_id id, const char *key), void *arg)
{
	const struct change c = {from, kind, key, old, now, wake_fn, arg};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (str_eq(rules[i].kind, kind))
			rules[i].changed(&c);
}

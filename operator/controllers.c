/*
 * Tables and small functions; each controller's world and wake rules stand together. controllers_inject.c has those of
 * injection.
 */
#include "operator/controllers.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/controllers_parts.h"
#include "operator/webhook_setup.h"
#include "operator/worlds.h"
#include "reconcilers/coordinator.h"
#include "reconcilers/inject_check.h"
#include "reconcilers/ip_pool.h"
#include "reconcilers/multus_config.h"
#include "reconcilers/node_state.h"
#include "reconcilers/owner.h"
#include "reconcilers/policy_status.h"
#include "reconcilers/pool_config.h"
#include "reconcilers/reserved_ip.h"
#include "reconcilers/sriov_network.h"
#include "reconcilers/sriov_policy.h"

/* ---- SriovNetwork, SriovIBNetwork, OVSNetwork ---------------------------------------------------------------------- */

static const enum controller_id network_controllers[] = {
	CONTROLLER_SRIOV_NETWORK,
	CONTROLLER_SRIOV_IB_NETWORK,
	CONTROLLER_OVS_NETWORK,
};

static void look_network(const struct controller_sources *from, const struct controller *self,
			 const char *key, json_t *world)
{
	auto_free char *owner =
		str_printf("%s.sriovnetwork.openshift.io/%s", kind_find(self->kind)->kind, key);
	const json_t *network = NULL;

	mirror_add_indexed(from->mirror, world, KIND_NAD, NAD_BY_NETWORK, owner);
	mirror_add(from->mirror, world, self->kind, key);
	network = world_get(world, self->kind, key);
	if (network)
		worlds_add_target(from, world, network);
}

/* "SriovNetwork.sriovnetwork.openshift.io/NAMESPACE/NAME" wakes that network. */
static void wake_network_owner(const struct change *c, const json_t *nad)
{
	const char *owner = json_str_at(nad, "metadata", "annotations", SRIOV_NETWORK_OWNER);

	for (size_t i = 0; owner && i < ARRAY_LEN(network_controllers); i++) {
		const struct controller *controller = &controllers[network_controllers[i]];
		auto_free char *prefix = str_printf("%s.sriovnetwork.openshift.io/",
						    kind_find(controller->kind)->kind);

		if (str_starts(owner, prefix))
			wake(c, network_controllers[i], owner + strlen(prefix));
	}
}

struct network_wake {
	const struct change *change;
	enum controller_id id;
};

static void wake_network(void *arg, const char *key)
{
	const struct network_wake *w = arg;

	wake(w->change, w->id, key);
}

static void wake_networks(const struct change *c, size_t index, const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(network_controllers); i++) {
		struct network_wake w = {c, network_controllers[i]};

		cache_find(mirror_cache(c->from->mirror, controllers[w.id].kind), index, value,
			   wake_network, &w);
	}
}

/* Its owner before and after, and the networks that want its place. */
static void network_nad_changed(const struct change *c)
{
	wake_network_owner(c, c->old);
	wake_network_owner(c, c->now);
	wake_networks(c, NETWORK_BY_NAD, c->key);
}

static void network_changed(const struct change *c)
{
	for (size_t i = 0; i < ARRAY_LEN(network_controllers); i++)
		if (str_eq(controllers[network_controllers[i]].kind, c->kind))
			wake(c, network_controllers[i], c->key);
}

/* It appeared or went: networks that write into it can go on, or have to wait. */
static void network_namespace_changed(const struct change *c)
{
	wake_networks(c, NETWORK_BY_NAMESPACE, c->key);
}

/* ---- SpiderReservedIP, SpiderCoordinator --------------------------------------------------------------------------- */

static const char *const cluster_network[] = {
	MIRROR_KUBEADM_CONFIG,     MIRROR_CILIUM_CONFIG, MIRROR_FLANNEL_CONFIG,
	MIRROR_CONTROLLER_MANAGER, MIRROR_SERVICE_CIDR,  MIRROR_CALICO_POOL,
	MIRROR_CILIUM_POOL,
};

static void look_itself(const struct controller_sources *from, const struct controller *self,
			const char *key, json_t *world)
{
	mirror_add(from->mirror, world, self->kind, key);
}

static void look_coordinator(const struct controller_sources *from, const struct controller *self,
			     const char *key, json_t *world)
{
	mirror_add(from->mirror, world, self->kind, key);
	for (size_t i = 0; i < ARRAY_LEN(cluster_network); i++)
		mirror_add_all(from->mirror, world, cluster_network[i]);
}

static void coordinator_changed(const struct change *c)
{
	wake(c, CONTROLLER_COORDINATOR, c->key);
}

static void cluster_network_changed(const struct change *c)
{
	wake(c, CONTROLLER_COORDINATOR, COORDINATOR_DEFAULT);
}

/* ---- SpiderMultusConfig ------------------------------------------------------------------------------------------- */

static void look_multus_config(const struct controller_sources *from, const struct controller *self,
			       const char *key, json_t *world)
{
	auto_free char *owner = str_printf("SpiderMultusConfig/%s", key);
	const json_t *config = NULL;

	mirror_add_indexed(from->mirror, world, KIND_NAD, NAD_BY_OWNER, owner);
	mirror_add(from->mirror, world, KIND_MULTUS_CONFIG, key);
	config = world_get(world, KIND_MULTUS_CONFIG, key);
	if (!config)
		return;
	worlds_add_claim(from, world, config);
	worlds_add_pools(from, world, config);
	worlds_add_resource(from, world, config);
}

static void wake_config(void *arg, const char *key)
{
	wake(arg, CONTROLLER_MULTUS_CONFIG, key);
}

static void wake_configs(const struct change *c, size_t index, const char *value)
{
	cache_find(mirror_cache(c->from->mirror, KIND_MULTUS_CONFIG), index, value, wake_config,
		   (void *)c);
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
		wake_configs(c, CONFIG_BY_NAD, nad);
	}
}

/* Its owner, whether that exists or not, and whoever claims its name. */
static void nad_changed(const struct change *c)
{
	const json_t *versions[] = {c->old, c->now};

	network_nad_changed(c);

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const json_t *owner = owner_controller(versions[i]);
		auto_free char *key = NULL;

		if (!str_eq(json_str_at(owner, "kind"), "SpiderMultusConfig"))
			continue;
		key = str_printf("%s/%s", json_namespace(versions[i]),
				 json_str_or(json_at(owner, "name"), ""));
		wake(c, CONTROLLER_MULTUS_CONFIG, key);
	}
	wake_configs(c, CONFIG_BY_NAD, c->key);
}

/* ---- SpiderIPPool ------------------------------------------------------------------------------------------------- */

static void look_ip_pool(const struct controller_sources *from, const struct controller *self,
			 const char *key, json_t *world)
{
	json_auto_t *pool = cache_get(mirror_cache(from->mirror, KIND_IP_POOL), key);

	mirror_add(from->mirror, world, KIND_IP_POOL, key);
	mirror_add_all(from->mirror, world, KIND_RESERVED_IP);
	if (pool)
		worlds_add_neighbours(from, world, pool);
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
	if (!c->old || !c->now)
		wake_configs(c, CONFIG_BY_POOL, c->key);
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

/* What pods are told to do next follows from the settings. */
static void inject_settings_changed(const struct change *c)
{
	wake_all(c, KIND_POD, CONTROLLER_INJECT_POD);
}

static void reserved_changed(const struct change *c)
{
	wake(c, CONTROLLER_RESERVED_IP, c->key);
	if (!same_spec(c->old, c->now))
		wake_all(c, KIND_IP_POOL, CONTROLLER_IP_POOL);
}

/* ---- nodes and their work items ----------------------------------------------------------------------------------- */

static void look_node(const struct controller_sources *from, const struct controller *self,
		      const char *key, json_t *world)
{
	auto_free char *state = str_printf("%s/%s", from->ns, key);

	mirror_add(from->mirror, world, KIND_NODE, key);
	mirror_add(from->mirror, world, KIND_NODE_STATE, state);
	mirror_add_all(from->mirror, world, KIND_POLICY);
	mirror_add_all(from->mirror, world, KIND_POOL_CONFIG);
}

static void wake_resource(void *arg, const char *resource)
{
	wake_configs(arg, CONFIG_BY_RESOURCE, resource);
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
 * What a node does to pools: it is a conflict between those that it is in. Their verdict looks at all nodes, so only the
 * coming and going of a conflict is worth one.
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

static void node_changed(const struct change *c)
{
	bool same_labels = c->old && c->now &&
			   json_same(json_at(c->old, "metadata", "labels"),
				     json_at(c->now, "metadata", "labels"));

	wake(c, CONTROLLER_NODE_STATE, c->key);
	node_resources_update(c->from->resources, c->old, c->now, wake_resource, (void *)c);
	if (!same_labels)
		wake_rivals(c);
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

static void look_policy(const struct controller_sources *from, const struct controller *self,
			const char *key, json_t *world)
{
	mirror_add(from->mirror, world, KIND_POLICY, key);
	json_put(world, KIND_POLICY_REPORT, reports_of(from->reports, key));
}

static void look_pool_config(const struct controller_sources *from, const struct controller *self,
			     const char *key, json_t *world)
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

/* ---- webhooks ----------------------------------------------------------------------------------------------------- */

/* There are always namespaces, so their list is also what starts this. */
static void webhook_changed(const struct change *c)
{
	wake(c, CONTROLLER_WEBHOOK_SETUP, WEBHOOK_SETUP_KEY);
}

/* ---- the tables --------------------------------------------------------------------------------------------------- */

const struct controller controllers[CONTROLLER_COUNT] = {
	[CONTROLLER_MULTUS_CONFIG] =
		{
			.name = "multus-config",
			.kind = KIND_MULTUS_CONFIG,
			.reconcile = multus_config_reconcile,
			.needs = {KIND_MULTUS_CONFIG, KIND_NAD, KIND_IP_POOL, KIND_NODE},
			.look = look_multus_config,
		},
	[CONTROLLER_INJECT_POD] =
		{
			.name = "inject-pod",
			.kind = KIND_POD,
			.reconcile = inject_check_pod,
			.needs = {KIND_POD, KIND_NAMESPACE, KIND_MULTUS_CONFIG,
				  MIRROR_SPIDERPOOL_CONF},
			.look = inject_look_pod,
		},
	[CONTROLLER_INJECT_CONFIG] =
		{
			.name = "inject-config",
			.kind = KIND_MULTUS_CONFIG,
			.reconcile = inject_check_config,
			.needs = {KIND_POD, KIND_NAMESPACE, KIND_MULTUS_CONFIG,
				  MIRROR_SPIDERPOOL_CONF},
			.look = inject_look_config,
			.every_ms = 1000,
			.after = CONTROLLER_INJECT_POD,
		},
	[CONTROLLER_IP_POOL] =
		{
			.name = "ip-pool",
			.kind = KIND_IP_POOL,
			.reconcile = ip_pool_reconcile,
			.needs = {KIND_IP_POOL, KIND_RESERVED_IP},
			.look = look_ip_pool,
		},
	[CONTROLLER_NODE_STATE] =
		{
			.name = "node-state",
			.kind = KIND_NODE,
			.reconcile = node_state_reconcile,
			.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG},
			.look = look_node,
		},
	[CONTROLLER_POLICY_STATUS] =
		{
			.name = "policy-status",
			.kind = KIND_POLICY,
			.reconcile = policy_status_reconcile,
			.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG},
			.look = look_policy,
			.every_ms = 1000,
			.after = CONTROLLER_NODE_STATE,
		},
	[CONTROLLER_POOL_CONFIG] =
		{
			.name = "pool-config",
			.kind = KIND_POOL_CONFIG,
			.reconcile = pool_config_reconcile,
			.needs = {KIND_POOL_CONFIG, KIND_NODE},
			.look = look_pool_config,
			.every_ms = 1000,
			.after = CONTROLLER_POOL_CONFIG,
		},
	[CONTROLLER_SRIOV_NETWORK] =
		{
			.name = "sriov-network",
			.kind = KIND_SRIOV_NETWORK,
			.reconcile = sriov_network_reconcile,
			.needs = {KIND_SRIOV_NETWORK, KIND_NAD, KIND_NAMESPACE},
			.look = look_network,
		},
	[CONTROLLER_SRIOV_IB_NETWORK] =
		{
			.name = "sriov-ib-network",
			.kind = KIND_SRIOV_IB_NETWORK,
			.reconcile = sriov_ib_network_reconcile,
			.needs = {KIND_SRIOV_IB_NETWORK, KIND_NAD, KIND_NAMESPACE},
			.look = look_network,
		},
	[CONTROLLER_OVS_NETWORK] =
		{
			.name = "ovs-network",
			.kind = KIND_OVS_NETWORK,
			.reconcile = ovs_network_reconcile,
			.needs = {KIND_OVS_NETWORK, KIND_NAD, KIND_NAMESPACE},
			.look = look_network,
		},
	[CONTROLLER_RESERVED_IP] =
		{
			.name = "reserved-ip",
			.kind = KIND_RESERVED_IP,
			.reconcile = reserved_ip_reconcile,
			.needs = {KIND_RESERVED_IP},
			.look = look_itself,
		},
	[CONTROLLER_COORDINATOR] =
		{
			.name = "coordinator",
			.kind = KIND_COORDINATOR,
			.reconcile = coordinator_reconcile,
			.needs = {KIND_COORDINATOR, MIRROR_KUBEADM_CONFIG, MIRROR_CILIUM_CONFIG,
				  MIRROR_FLANNEL_CONFIG, MIRROR_CONTROLLER_MANAGER,
				  MIRROR_SERVICE_CIDR, MIRROR_CALICO_POOL, MIRROR_CILIUM_POOL},
			.look = look_coordinator,
		},
	[CONTROLLER_WEBHOOK_SETUP] =
		{
			.name = "webhook-setup",
			.kind = MIRROR_VALIDATING,
			.reconcile = webhook_setup_reconcile,
			.needs = {KIND_NAMESPACE, MIRROR_VALIDATING, MIRROR_MUTATING,
				  MIRROR_CERTIFICATE, MIRROR_SPIDERPOOL_CONF},
			.look = webhook_setup_look,
		},
};

static const struct {
	const char *kind;
	void (*changed)(const struct change *c);
} rules[] = {
	{KIND_MULTUS_CONFIG, config_changed},
	{KIND_MULTUS_CONFIG, inject_config_changed},
	{KIND_POD, inject_pod_changed},
	{KIND_NAD, nad_changed},
	{KIND_IP_POOL, pool_changed},
	{KIND_RESERVED_IP, reserved_changed},
	{KIND_NODE, node_changed},
	{KIND_NODE_STATE, node_state_changed},
	{KIND_POLICY, policy_changed},
	{KIND_POOL_CONFIG, pool_config_changed},
	{KIND_SRIOV_NETWORK, network_changed},
	{KIND_SRIOV_IB_NETWORK, network_changed},
	{KIND_OVS_NETWORK, network_changed},
	{KIND_NAMESPACE, network_namespace_changed},
	{KIND_NAMESPACE, inject_namespace_changed},
	{KIND_NAMESPACE, webhook_changed},
	{KIND_COORDINATOR, coordinator_changed},
	{MIRROR_KUBEADM_CONFIG, cluster_network_changed},
	{MIRROR_CILIUM_CONFIG, cluster_network_changed},
	{MIRROR_FLANNEL_CONFIG, cluster_network_changed},
	{MIRROR_CONTROLLER_MANAGER, cluster_network_changed},
	{MIRROR_SERVICE_CIDR, cluster_network_changed},
	{MIRROR_CALICO_POOL, cluster_network_changed},
	{MIRROR_CILIUM_POOL, cluster_network_changed},
	{MIRROR_CERTIFICATE, webhook_changed},
	{MIRROR_VALIDATING, webhook_changed},
	{MIRROR_MUTATING, webhook_changed},
	{MIRROR_SPIDERPOOL_CONF, webhook_changed},
	{MIRROR_SPIDERPOOL_CONF, inject_settings_changed},
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

void controllers_map_finding(const struct controller_sources *from, const char *kind,
			     const char *key,
			     void (*wake_fn)(void *arg, enum controller_id id, const char *key),
			     void *arg)
{
	const struct change c = {
		.from = from, .kind = kind, .key = key, .wake = wake_fn, .arg = arg};

	if (str_eq(kind, KIND_POD))
		inject_pod_found(&c);
}

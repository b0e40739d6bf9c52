// SPDX-License-Identifier: Apache-2.0
/* The kinds of Spiderpool: what decisions on them look at, and what wakes them. */
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/ipam_book.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/coordinator.h"

static const char *const cluster_network[] = {
	MIRROR_KUBEADM_CONFIG, MIRROR_CILIUM_CONFIG, MIRROR_FLANNEL_CONFIG, MIRROR_CONTROL_PLANE,
	MIRROR_API_SERVICE,    MIRROR_SERVICE_CIDR,  MIRROR_CALICO_POOL,    MIRROR_CILIUM_POOL,
};

void reserved_ip_gather(const struct controller_sources *from, const struct controller *self,
			const char *key, json_t *world)
{
	mirror_add(from->mirror, world, self->kind, key);
}

void coordinator_gather(const struct controller_sources *from, const struct controller *self,
			const char *key, json_t *world)
{
	mirror_add(from->mirror, world, self->kind, key);
	json_put_str(json_need_object(world, "env"), "ciliumConfigMap", from->cilium_config);
	json_put_int(json_need_object(world, "env"), "nowMs", from->now_ms());
	controllers_add_kept(from, world, COORDINATOR_BOX_ABSENT, key);
	for (size_t i = 0; i < ARRAY_LEN(cluster_network); i++)
		mirror_add_all(from->mirror, world, cluster_network[i]);
}

void coordinator_changed(const struct change *c)
{
	wake(c, CONTROLLER_COORDINATOR, c->key);
}

void cluster_network_changed(const struct change *c)
{
	wake(c, CONTROLLER_COORDINATOR, COORDINATOR_DEFAULT);
}

/* ---- SpiderMultusConfig ---------------------------------------------------------------------- */

void config_gather(const struct controller_sources *from, const struct controller *self,
		   const char *key, json_t *world)
{
	auto_free char *owner = str_printf("SpiderMultusConfig/%s", key);
	const json_t *config = NULL;

	mirror_add_indexed(from->mirror, world, KIND_NAD, NAD_BY_OWNER, owner);
	mirror_add(from->mirror, world, KIND_MULTUS_CONFIG, key);
	config = world_get(world, KIND_MULTUS_CONFIG, key);
	if (!config)
		return;
	gather_claim(from, world, config);
	gather_pools(from, world, config);
	gather_resource(from, world, config);
	gather_masters(from, world, config);
}

static void wake_rival(void *arg, const char *key)
{
	wake(arg, CONTROLLER_MULTUS_CONFIG, key);
}

/* Configs that claim this NetworkAttachmentDefinition. */
static void wake_rivals(const struct change *c, const char *nad)
{
	cache_find_some(mirror_cache(c->from->mirror, KIND_MULTUS_CONFIG), CONFIG_BY_NAD, nad,
			LIMIT_CONFIGS, wake_rival, (void *)c);
}

/* An answer to a write of our own of the status: the decision looked at all the rest. */
static bool is_own_status(const struct change *c)
{
	static const char *const others[] = {"uid", "generation", "deletionTimestamp", "labels",
					     "annotations"};

	if (!c->old || !c->now || !c->from->own_write || !*c->from->own_write)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (!json_same(json_at(c->old, "metadata", others[i]),
			       json_at(c->now, "metadata", others[i])))
			return false;
	return true;
}

/* The config, and its rivals for the name it has or had, where that is another one now. */
void config_changed(const struct change *c)
{
	const json_t *versions[] = {c->old, c->now};

	if (is_own_status(c))
		return;
	wake(c, CONTROLLER_MULTUS_CONFIG, c->key);
	/* One of which nothing was known may have had the name that is its own. */
	if (!c->old && !c->now)
		wake_rivals(c, c->key);
	if (c->old && c->now && str_eq(json_uid(c->old), json_uid(c->now)) &&
	    str_eq(cni_nad_name(c->old), cni_nad_name(c->now)) &&
	    object_is_terminating(c->old) == object_is_terminating(c->now))
		return;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		auto_free char *nad = NULL;

		if (!versions[i])
			continue;
		nad = str_printf("%s/%s", json_namespace(versions[i]), cni_nad_name(versions[i]));
		wake_rivals(c, nad);
	}
}

/* Its owner, whether that exists or not, and the object that claims its name. */
void config_nad_changed(const struct change *c)
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
	wake_rivals(c, c->key);
}

/* ---- SpiderIPPool ---------------------------------------------------------------------------- */

void pool_gather(const struct controller_sources *from, const struct controller *self,
		 const char *key, json_t *world)
{
	json_auto_t *pool = cache_get(mirror_cache(from->mirror, KIND_IP_POOL), key);

	mirror_add(from->mirror, world, KIND_IP_POOL, key);
	ipam_book_add(from->addresses, world, IPAM_SHORT, key);
	ipam_book_add(from->addresses, world, IPAM_UNWRITTEN, key);
	if (!str_eq(json_string_value(ipam_book_get(from->addresses, IPAM_LEARNED, key)),
		    json_uid(pool)))
		json_put_bool(json_need_object(world, "env"), "ledgerUnsure", true);
	gather_passed(from, world);
	mirror_add_all(from->mirror, world, KIND_RESERVED_IP);
	if (pool)
		gather_neighbours(from, world, pool);
}

static void wake_pool(void *arg, const char *name)
{
	wake(arg, CONTROLLER_IP_POOL, name);
}

/* The pool, and the neighbours whose verdict depends on what it was and is. */
void pool_changed(const struct change *c)
{
	bool is_own_write = c->from->own_write && *c->from->own_write;

	wake(c, CONTROLLER_IP_POOL, c->key);
	if (!c->old || !c->now)
		controllers_wake_configs(c, CONFIG_BY_POOL, c->key);
	if (controllers_same_spec(c->old, c->now)) {
		/* A person who restores a status may put back records that the spec has no more. */
		if (!is_own_write && !str_eq(json_str_at(c->old, "status", "allocatedIPs"),
					     json_str_at(c->now, "status", "allocatedIPs")))
			ip_pool_index_put(c->from->pools, c->now);
		return;
	}
	if (c->old)
		ip_pool_index_find(c->from->pools, c->old, wake_pool, (void *)c);
	if (c->now)
		ip_pool_index_put(c->from->pools, c->now);
	else
		ip_pool_index_remove(c->from->pools, c->key);
	if (c->now)
		ip_pool_index_find(c->from->pools, c->now, wake_pool, (void *)c);
}

void reserved_changed(const struct change *c)
{
	wake(c, CONTROLLER_RESERVED_IP, c->key);
	if (!controllers_same_spec(c->old, c->now))
		controllers_wake_all(c, KIND_IP_POOL, CONTROLLER_IP_POOL);
}

// SPDX-License-Identifier: Apache-2.0
/* Lookups in the caches, by key and by index. */
#include "operator/controllers/gather.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/kinds.h"
#include "operator/controllers/ipam_book.h"
#include "operator/controllers/webhook_setup.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/ipam/allocate/strays.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/multus_config_names.h"

void gather_env(const struct controller_sources *from, json_t *world)
{
	json_t *env = json_need_object(world, "env");
	char now[RFC3339_SIZE];

	assert(json_is_object(world));
	rfc3339_write(clock_wall_us(), now);
	json_put_str(env, "now", now);
	json_put_str(env, "namespace", from->ns);
	json_put_str(env, "resourcePrefix", from->resource_prefix);
	json_put(env, "policyNamespaces", json_incref(from->policy_namespaces));
}

void gather_passed(const struct controller_sources *from, json_t *world)
{
	if (!ipam_book_get(from->addresses, IPAM_PASSED, ADDRESSES_KEY))
		json_put_bool(json_need_object(world, "env"), "waitingUnknown", true);
}

void gather_claim(const struct controller_sources *from, json_t *world, const json_t *config)
{
	auto_free char *nad = str_printf("%s/%s", json_namespace(config), cni_nad_name(config));

	mirror_add(from->mirror, world, KIND_NAD, nad);
	mirror_add_some(from->mirror, world, KIND_MULTUS_CONFIG, CONFIG_BY_NAD, nad, LIMIT_CONFIGS);
}

void gather_add_pool(void *arg, const char *name)
{
	const struct gathering *n = arg;

	mirror_add(n->from->mirror, n->world, KIND_IP_POOL, name);
}

void gather_pools(const struct controller_sources *from, json_t *world, const json_t *config)
{
	struct gathering n = {from, world};

	/* "None of them" is not "not looked for". */
	json_need_object(world, KIND_IP_POOL);
	multus_config_pools(config, gather_add_pool, &n);
}

void gather_claim_and_pools(const struct controller_sources *from, json_t *world,
			    const json_t *config)
{
	gather_claim(from, world, config);
	gather_pools(from, world, config);
}

static void add_node(void *arg, const char *name)
{
	const struct gathering *n = arg;

	mirror_add(n->from->mirror, n->world, KIND_NODE, name);
}

static void add_nodes_of_block(void *arg, const char *block)
{
	const struct gathering *n = arg;

	cache_find(mirror_cache(n->from->mirror, KIND_NODE), NODE_BY_BLOCK, block, add_node, arg);
}

void gather_neighbours(const struct controller_sources *from, json_t *world, const json_t *pool)
{
	struct gathering n = {from, world};

	ip_pool_index_find(from->pools, pool, gather_add_pool, &n);
	if (!strays_visit_blocks(pool, add_nodes_of_block, &n))
		mirror_add_all(from->mirror, world, KIND_NODE);
}

const char *gather_target_namespace(const json_t *network)
{
	const char *ns = json_str_at(network, "spec", "networkNamespace");

	return str_empty(ns) ? json_namespace(network) : ns;
}

void gather_target(const struct controller_sources *from, json_t *world, const json_t *network)
{
	const char *ns = gather_target_namespace(network);
	auto_free char *nad = str_printf("%s/%s", ns, json_name(network));

	mirror_add(from->mirror, world, KIND_NAD, nad);
	mirror_add(from->mirror, world, KIND_NAMESPACE, ns);
}

static void add_type(const struct controller_sources *from, json_t *world, const char *what)
{
	const char *type = node_names_link_type(from->links, what);

	if (type)
		json_put_str(json_need_object(world, KIND_LINK_TYPE), what, type);
}

/* "RESOURCE/" of it, without the prefix of ours. */
static void add_type_of_resource(const struct controller_sources *from, json_t *world,
				 const char *resource)
{
	const char *slash = strrchr(resource, '/');
	auto_free char *what = str_printf("%s/", slash ? slash + 1 : resource);

	if (*resource)
		add_type(from, world, what);
}

void gather_resource(const struct controller_sources *from, json_t *world, const json_t *config)
{
	json_t *resources = json_need_object(world, KIND_NODE_RESOURCE);
	auto_free char *resource = multus_config_resource(config);

	if (*resource && node_names_have(from->resources, resource))
		json_put_bool(resources, resource, true);
	add_type_of_resource(from, world, resource);
}

void gather_network_resource(const struct controller_sources *from, json_t *world,
			     const json_t *network)
{
	json_t *resources = json_need_object(world, KIND_NODE_RESOURCE);
	const char *name = json_str_or(json_at(network, "spec", "resourceName"), "");
	auto_free char *resource = str_printf("%s%s%s", from->resource_prefix,
					      *from->resource_prefix ? "/" : "", name);

	if (node_names_have(from->resources, resource))
		json_put_bool(resources, resource, true);
	add_type_of_resource(from, world, name);
}

struct masters {
	const struct controller_sources *from;
	json_t *world;
	bool are_known; /* by all nodes */
};

static void add_master(void *arg, const char *field, const char *link)
{
	const struct masters *masters = arg;

	add_type(masters->from, masters->world, link);
	if (masters->are_known && node_names_have(masters->from->links, link))
		json_put_bool(json_need_object(masters->world, KIND_NODE_LINK), link, true);
}

void gather_masters(const struct controller_sources *from, json_t *world, const json_t *config)
{
	struct masters masters = {
		.from = from,
		.world = world,
		.are_known = !node_names_have(from->links, NODE_LINKS_UNKNOWN) &&
			     node_names_have(from->links, NODE_LINKS_REPORTED),
	};

	if (masters.are_known)
		(void)json_need_object(world, KIND_NODE_LINK);
	multus_config_masters(config, add_master, &masters);
}

/* Of one group, or of pods that ask for one. */
struct visiting {
	const struct controller_sources *from;
	const char *group, *ns; /* ns: NULL: of any */
	void (*visit)(void *arg, const char *key);
	void *arg;
};

char *gather_group_value(const char *group, const char *ns)
{
	assert(group && ns);
	return str_printf("%s %s", ns, group);
}

static void visit_group_of(void *arg, const char *ns)
{
	const struct visiting *v = arg;
	auto_free char *value = gather_group_value(v->group, ns);

	cache_find_some(mirror_cache(v->from->mirror, KIND_MULTUS_CONFIG), CONFIG_BY_GROUP, value,
			LIMIT_CONFIGS + 1, v->visit, v->arg);
}

static void visit_group_of_trusted(void *arg, const char *ns)
{
	const struct visiting *v = arg;

	if (!str_eq(ns, v->ns))
		visit_group_of(arg, ns);
}

void gather_visit_group(const struct controller_sources *from, const char *group, const char *ns,
			void (*visit)(void *arg, const char *key), void *arg)
{
	struct visiting v = {from, group, ns, visit, arg};
	json_auto_t *world = json_object();

	assert(ns && visit);
	gather_env(from, world);
	visit_group_of(&v, ns);
	trusted_visit(world, visit_group_of_trusted, &v);
}

static void add_config(void *arg, const char *key)
{
	const struct gathering *n = arg;

	mirror_add(n->from->mirror, n->world, KIND_MULTUS_CONFIG, key);
}

void gather_group(const struct controller_sources *from, json_t *world, const char *group,
		  const char *ns)
{
	struct gathering n = {from, world};

	gather_visit_group(from, group, ns, add_config, &n);
}

void gather_asked(const struct controller_sources *from, json_t *world, const json_t *pod,
		  const char *ns)
{
	auto_free char *group = NULL;

	mirror_add(from->mirror, world, KIND_NAMESPACE, ns);
	group = pod_inject_group(pod, world_get(world, KIND_NAMESPACE, ns));
	if (group)
		gather_group(from, world, group, ns);
}

void gather_injection(const struct controller_sources *from, json_t *world)
{
	auto_free char *conf = str_printf("%s/%s", from->config_ns, INJECT_CONFIG_MAP);

	if (!from->webhook->listen)
		return;
	json_put_str(json_need_object(json_need_object(world, "env"), "webhook"), "configNamespace",
		     from->config_ns);
	mirror_add(from->mirror, world, MIRROR_SPIDERPOOL_CONF, conf);
}

static void add_uninjected(void *arg, const char *key)
{
	const struct gathering *n = arg;

	if (!findings_has(n->from->findings, KIND_POD, key))
		return;
	mirror_add(n->from->mirror, n->world, KIND_POD, key);
	mirror_add(n->from->mirror, n->world, KIND_NAMESPACE,
		   json_namespace(world_get(n->world, KIND_POD, key)));
}

static void add_uninjected_group(void *arg, const char *group)
{
	const struct visiting *v = arg;

	gather_visit_asking(v->from, group, v->ns, add_uninjected, v->arg);
}

void gather_uninjected(const struct controller_sources *from, json_t *world, const json_t *config)
{
	struct gathering n = {from, world};
	struct visiting v = {.from = from, .ns = json_namespace(config), .arg = &n};

	pod_inject_groups(config, add_uninjected_group, &v);
}

static void visit_namespace(void *arg, const char *ns)
{
	const struct visiting *v = arg;

	if (!v->ns || str_eq(ns, v->ns))
		cache_find(mirror_cache(v->from->mirror, KIND_POD), POD_BY_NAMESPACE, ns, v->visit,
			   v->arg);
}

void gather_visit_asking(const struct controller_sources *from, const char *group, const char *ns,
			 void (*visit)(void *arg, const char *key), void *arg)
{
	json_auto_t *world = json_object();
	struct visiting v = {from, group, ns, visit, arg};
	auto_free char *value = gather_group_value(group, ns);

	assert(visit);
	gather_env(from, world);
	/* A config of a trusted namespace reaches all others. */
	if (namespace_is_trusted(world, ns))
		v.ns = NULL;
	cache_find(mirror_cache(from->mirror, KIND_POD), POD_BY_GROUP, v.ns ? value : group, visit,
		   arg);
	cache_find(mirror_cache(from->mirror, KIND_NAMESPACE), NAMESPACE_BY_GROUP, group,
		   visit_namespace, &v);
}

/*
 * Lookups in the caches, by key and by index.
 */
#include "operator/worlds.h"

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "reconcilers/multus_config.h"

void worlds_add_env(const struct controller_sources *from, json_t *world)
{
	json_t *env = json_need_object(world, "env");
	char now[CLOCK_RFC3339_SIZE];

	clock_rfc3339(clock_wall_us(), now);
	json_put_str(env, "now", now);
	json_put_str(env, "namespace", from->ns);
	json_put_str(env, "resourcePrefix", from->resource_prefix);
}

void worlds_add_claim(const struct controller_sources *from, json_t *world, const json_t *config)
{
	auto_free char *nad =
		str_printf("%s/%s", json_namespace(config), multus_config_nad_name(config));

	mirror_add(from->mirror, world, KIND_NAD, nad);
	mirror_add_indexed(from->mirror, world, KIND_MULTUS_CONFIG, CONFIG_BY_NAD, nad);
}

/* What the visitors of names get. */
struct narrowing {
	const struct controller_sources *from;
	json_t *world;
};

static void add_pool(void *arg, const char *name)
{
	const struct narrowing *n = arg;

	mirror_add(n->from->mirror, n->world, KIND_IP_POOL, name);
}

void worlds_add_pools(const struct controller_sources *from, json_t *world, const json_t *config)
{
	struct narrowing n = {from, world};

	/* "None of them" is not "not looked for". */
	json_need_object(world, KIND_IP_POOL);
	multus_config_pools(config, add_pool, &n);
}

void worlds_add_neighbours(const struct controller_sources *from, json_t *world, const json_t *pool)
{
	struct narrowing n = {from, world};

	ip_pool_index_find(from->pools, pool, add_pool, &n);
}

void worlds_add_target(const struct controller_sources *from, json_t *world, const json_t *network)
{
	const char *ns = mirror_network_namespace(network);
	auto_free char *nad = str_printf("%s/%s", ns, json_name(network));

	mirror_add(from->mirror, world, KIND_NAD, nad);
	mirror_add(from->mirror, world, KIND_NAMESPACE, ns);
}

void worlds_add_group(const struct controller_sources *from, json_t *world, const char *group)
{
	mirror_add_indexed(from->mirror, world, KIND_MULTUS_CONFIG, CONFIG_BY_GROUP, group);
}

/*
 * The table of mirrored kinds, and the informer and cache of each.
 */
#include "operator/mirror.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/informer.h"
#include "operator/projection.h"
#include "reconcilers/multus_config.h"
#include "reconcilers/owner.h"

/* ---- indexes ------------------------------------------------------------------------------------------------------ */

/* "SpiderMultusConfig/kube-system/macvlan": the owner that a NAD names, whether that object exists or not. */
static void index_nad_owner(const json_t *nad, struct cache_values *values)
{
	const json_t *owner = owner_controller(nad);
	auto_free char *value = NULL;

	if (!owner)
		return;
	value = str_printf("%s/%s/%s", json_str_or(json_at(owner, "kind"), ""), json_namespace(nad),
			   json_str_or(json_at(owner, "name"), ""));
	cache_index_value(values, value);
}

static void index_config_nad(const json_t *config, struct cache_values *values)
{
	auto_free char *key =
		str_printf("%s/%s", json_namespace(config), multus_config_nad_name(config));

	cache_index_value(values, key);
}

/* ---- the table ---------------------------------------------------------------------------------------------------- */

static const splitter_path drop_common[] = {{"metadata", "managedFields"}};
static const splitter_path drop_node[] = {
	{"metadata", "managedFields"},
	{"metadata", "annotations"},
	{"status", "images"},
	{"status", "volumesInUse"},
	{"status", "volumesAttached"},
};
static const splitter_path drop_node_state[] = {{"status", "interfaces", "Vfs"}};

#define DROP(paths) .drops = (paths), .n_drops = ARRAY_LEN(paths)

struct mirrored {
	const char *kind;
	bool in_own_namespace; /* only objects in the operator's namespace */
	const splitter_path *drops;
	size_t n_drops;
	struct cache_kind cache;
};

static const struct mirrored table[] = {
	{KIND_NODE, DROP(drop_node), .cache = {.project = project_node}},
	{KIND_POLICY, DROP(drop_common), .cache = {.live = true, .project = project_object}},
	{KIND_POOL_CONFIG, DROP(drop_common), .cache = {.live = true, .project = project_object}},
	{KIND_NODE_STATE, true, DROP(drop_node_state), .cache = {.project = project_written}},
	{KIND_NAD, .cache = {.project = project_written, .indexes = {index_nad_owner}}},
	{KIND_MULTUS_CONFIG, DROP(drop_common),
	 .cache = {.project = project_object, .indexes = {index_config_nad}}},
	{KIND_IP_POOL, DROP(drop_common), .cache = {.project = project_object}},
	{KIND_RESERVED_IP, DROP(drop_common), .cache = {.live = true, .project = project_object}},
};

struct mirror_kind {
	struct mirror *mirror;
	const struct mirrored *mirrored;
	struct kube_resource resource;
	struct cache *cache;
	struct informer *informer;
};

struct mirror {
	struct mirror_config config;
	struct mirror_kind kinds[ARRAY_LEN(table)];
};

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	const struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;

	config->changed(config->arg, kind->mirrored->kind, key, old, now);
}

static void on_synced(void *arg)
{
	const struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;

	config->synced(config->arg, kind->mirrored->kind);
}

static void on_trouble(void *arg, const struct err *err)
{
	const struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;

	config->trouble(config->arg, kind->mirrored->kind, err);
}

static void start_kind(struct mirror_kind *kind, struct loop *loop, struct kube_client *client)
{
	const struct mirrored *mirrored = kind->mirrored;
	const struct mirror_config *config = &kind->mirror->config;
	const struct kind_info *info = kind_find(mirrored->kind);

	kind->resource = (struct kube_resource){info->group, info->version, info->id, info->kind,
						info->namespaced};
	kind->cache = cache_new(&mirrored->cache, on_changed, kind);
	kind->informer = informer_new(loop, client,
				      &(struct informer_config){
					      .resource = &kind->resource,
					      .ns = mirrored->in_own_namespace ? config->ns : NULL,
					      .drops = mirrored->drops,
					      .n_drops = mirrored->n_drops,
					      .cache = kind->cache,
					      .stream_lists = config->stream_lists,
					      .synced = on_synced,
					      .trouble = on_trouble,
					      .arg = kind,
					      .metrics = config->metrics,
				      });
}

struct mirror *mirror_new(struct loop *loop, struct kube_client *client,
			  const struct mirror_config *config)
{
	struct mirror *mirror = mem_new(struct mirror);

	mirror->config = *config;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		mirror->kinds[i].mirror = mirror;
		mirror->kinds[i].mirrored = &table[i];
		start_kind(&mirror->kinds[i], loop, client);
	}
	return mirror;
}

void mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		informer_free(mirror->kinds[i].informer);
		cache_free(mirror->kinds[i].cache);
	}
	mem_free(mirror);
}

static const struct mirror_kind *find(const struct mirror *mirror, const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].kind, kind))
			return &mirror->kinds[i];
	return NULL;
}

bool mirror_is_synced(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);

	return k && informer_is_synced(k->informer);
}

struct cache *mirror_cache(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);

	return k ? k->cache : NULL;
}

const struct kube_resource *mirror_resource(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);

	return k ? &k->resource : NULL;
}

const char *mirror_kind(size_t i)
{
	return i < ARRAY_LEN(table) ? table[i].kind : NULL;
}

void mirror_learn(struct mirror *mirror, const char *kind, const json_t *object)
{
	const struct mirror_kind *k = find(mirror, kind);

	if (k)
		informer_learn(k->informer, object);
}

/* ---- worlds ------------------------------------------------------------------------------------------------------- */

void mirror_add(const struct mirror *mirror, json_t *world, const char *kind, const char *key)
{
	json_t *object = cache_get(mirror_cache(mirror, kind), key);

	if (object)
		json_object_set_new(json_need_object(world, kind), key, object);
}

void mirror_add_all(const struct mirror *mirror, json_t *world, const char *kind)
{
	json_put(world, kind, cache_all(mirror_cache(mirror, kind)));
}

struct adding {
	const struct mirror *mirror;
	json_t *world;
	const char *kind;
};

static void add_found(void *arg, const char *key)
{
	const struct adding *adding = arg;

	mirror_add(adding->mirror, adding->world, adding->kind, key);
}

void mirror_add_indexed(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
			const char *value)
{
	struct adding adding = {mirror, world, kind};

	cache_find(mirror_cache(mirror, kind), index, value, add_found, &adding);
}

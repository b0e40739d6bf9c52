// SPDX-License-Identifier: Apache-2.0
/* The informer and cache of each kind in the table (kinds.h). */
#include "operator/cache/mirror.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"

/* How soon a Calico or Cilium that is installed later is noticed. */
enum { ABSENT_RETRY_MS = 300000 };

struct mirror_kind {
	struct mirror *mirror;
	const struct operator_kind *mirrored;
	struct kube_resource resource;
	char *selector; /* NULL: none */
	char *ns;       /* NULL: all of them */
	char *name;     /* NULL: any */
	struct cache *cache;
	struct informer *informer;
	struct kube_call *asking; /* which versions its group has */
	struct timer *ask_again;  /* NULL: it does not move */
	char *version;            /* another one than in the table; NULL: none */
	bool absent;              /* optional, and not served */
	bool wanted;
	bool moved; /* the informer is to begin anew, with another version */
};

struct mirror {
	struct mirror_config config;
	struct loop *loop;
	struct kube_client *client;
	struct deferred *switching;
	struct mirror_kind *kinds;
	size_t n;
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

/*
 * The version after the one that is not served, around: with which the group's list begins is the
 * server's choice, and that the group has a version does not mean that the kind is in it.
 */
static const char *next_version(const json_t *versions, const char *present)
{
	size_t n = json_array_size(versions);
	size_t at = 0;

	while (at < n && !str_eq(json_str_at(json_array_get(versions, at), "version"), present))
		at++;
	return json_str_at(json_array_get(versions, at < n ? (at + 1) % n : 0), "version");
}

static void on_versions(void *arg, json_t *group, const struct err *err)
{
	struct mirror_kind *kind = arg;
	const char *next = NULL;
	size_t len;

	kind->asking = NULL;
	timer_start(kind->ask_again, ABSENT_RETRY_MS);
	next = next_version(json_at(group, "versions"), kind->resource.version);
	len = str_empty(next) ? 0 : strlen(next);
	/* It becomes part of a path. */
	if (err || len == 0 || len >= 64 || str_eq(next, kind->resource.version) ||
	    strspn(next, "abcdefghijklmnopqrstuvwxyz0123456789") != len)
		return;
	log_info("asking for a kind in another version", F_STR("resource", kind->resource.plural),
		 F_STR("group", kind->resource.group), F_STR("version", next));
	mem_free(kind->version);
	kind->version = str_dup(next);
	kind->resource.version = kind->version;
	kind->moved = true;
	deferred_run(kind->mirror->switching);
}

/* At most once in ABSENT_RETRY_MS: no version may have it. */
static void ask_for_versions(void *arg)
{
	struct mirror_kind *kind = arg;
	auto_free char *path = str_printf("/apis/%s", kind->resource.group);

	if (kind->absent && !kind->asking && !timer_is_active(kind->ask_again))
		kind->asking = kube_get_path(kind->mirror->client, path, on_versions, kind);
}

static void on_trouble(void *arg, const struct err *err)
{
	struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;
	bool was_absent = kind->absent;

	kind->absent = kind->mirrored->optional && kube_err_is(err, "NotServed");
	if (kind->absent && !was_absent)
		config->synced(config->arg, kind->mirrored->kind);
	if (!kind->absent)
		config->trouble(config->arg, kind->mirrored->kind, err);
	else if (kind->mirrored->moves)
		ask_for_versions(kind);
}

static void start_informer(struct mirror_kind *kind)
{
	const struct operator_kind *mirrored = kind->mirrored;
	const struct mirror *mirror = kind->mirror;

	kind->informer =
		informer_new(mirror->loop, mirror->client,
			     &(struct informer_config){
				     .resource = &kind->resource,
				     .ns = kind->ns,
				     .selector = kind->selector,
				     .drops = mirrored->drops,
				     .n_drops = mirrored->n_drops,
				     .cache = kind->cache,
				     .absent_retry_ms = mirrored->optional ? ABSENT_RETRY_MS : 0,
				     .synced = on_synced,
				     .trouble = on_trouble,
				     .arg = kind,
				     .metrics = mirror->config.metrics,
			     });
}

/* Not from a callback of another informer, whose call may be the one that is being served. */
static void switch_informers(void *arg)
{
	struct mirror *mirror = arg;

	for (size_t i = 0; i < mirror->n; i++) {
		struct mirror_kind *kind = &mirror->kinds[i];

		if (kind->moved)
			informer_free(take_ptr(kind->informer));
		kind->moved = false;
		if (kind->wanted && !kind->informer)
			start_informer(kind);
		if (kind->wanted || !kind->informer)
			continue;
		informer_free(take_ptr(kind->informer));
		cache_list_begin(kind->cache);
		cache_list_end(kind->cache, UINT64_MAX);
		/* What ails a kind that is not wanted is not a trouble. */
		mirror->config.trouble(mirror->config.arg, kind->mirrored->kind, NULL);
	}
}

/* Which objects: those of a namespace, of a name, or all. */
static void place_kind(struct mirror_kind *kind)
{
	const struct mirror_config *config = &kind->mirror->config;
	const struct operator_kind *mirrored = kind->mirrored;
	const char *told = mirrored->is_cilium_config ? config->cilium_config : NULL;
	const char *slash = told ? strchr(told, '/') : NULL;

	if (slash) {
		kind->ns = str_ndup(told, (size_t)(slash - told));
		kind->name = str_dup(slash + 1);
		return;
	}
	kind->ns = str_dup(mirrored->in_own_namespace      ? config->ns
			   : mirrored->in_config_namespace ? config->config_ns
							   : mirrored->ns);
	kind->name = str_dup(mirrored->name);
}

static void open_kind(struct mirror_kind *kind)
{
	const struct operator_kind *mirrored = kind->mirrored;
	const struct kind_info *info = kind_find(mirrored->kind);

	place_kind(kind);
	if (kind->name)
		kind->selector = str_printf("fieldSelector=metadata.name%%3D%s", kind->name);
	else
		kind->selector = str_dup(mirrored->selector);
	kind->resource = mirrored->resource;
	if (info)
		kind->resource = (struct kube_resource){info->group, info->version, info->id,
							info->kind, info->namespaced};
	kind->cache = cache_new(&mirrored->cache, on_changed, kind);
	kind->wanted = !mirrored->on_demand;
	if (mirrored->moves && kind->mirror->client)
		kind->ask_again = timer_new(kind->mirror->loop, ask_for_versions, kind);
}

struct mirror *mirror_new(struct loop *loop, struct kube_client *client,
			  const struct mirror_config *config)
{
	struct mirror *mirror = mem_new(struct mirror);

	assert(!client == !loop);
	mirror->config = *config;
	mirror->loop = loop;
	mirror->client = client;
	mirror->switching = client ? deferred_new(loop, switch_informers, mirror) : NULL;
	while (operator_kinds[mirror->n].kind)
		mirror->n++;
	mirror->kinds = mem_calloc(mirror->n, sizeof(*mirror->kinds));
	for (size_t i = 0; i < mirror->n; i++) {
		mirror->kinds[i].mirror = mirror;
		mirror->kinds[i].mirrored = &operator_kinds[i];
		open_kind(&mirror->kinds[i]);
	}
	if (client)
		switch_informers(mirror);
	return mirror;
}

void mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return;
	for (size_t i = 0; i < mirror->n; i++) {
		kube_call_cancel(mirror->kinds[i].asking);
		timer_free(mirror->kinds[i].ask_again);
		informer_free(mirror->kinds[i].informer);
		cache_free(mirror->kinds[i].cache);
		mem_free(mirror->kinds[i].version);
		mem_free(mirror->kinds[i].selector);
		mem_free(mirror->kinds[i].ns);
		mem_free(mirror->kinds[i].name);
	}
	mem_free(mirror->kinds);
	deferred_free(mirror->switching);
	mem_free(mirror);
}

static struct mirror_kind *find_kind(const struct mirror *mirror, const char *kind)
{
	for (size_t i = 0; i < mirror->n; i++)
		if (str_eq(mirror->kinds[i].mirrored->kind, kind))
			return &mirror->kinds[i];
	return NULL;
}

bool mirror_is_synced(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find_kind(mirror, kind);

	if (!k || !k->wanted || !mirror->client)
		return k != NULL;
	return k->absent || (k->informer && informer_is_synced(k->informer));
}

void mirror_want(struct mirror *mirror, const char *kind, bool wanted)
{
	struct mirror_kind *k = find_kind(mirror, kind);

	assert(k && k->mirrored->on_demand);
	if (k->wanted == wanted)
		return;
	k->wanted = wanted;
	if (mirror->switching)
		deferred_run(mirror->switching);
}

bool mirror_is_whole(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find_kind(mirror, kind);

	return !k || !k->mirrored->cache.live || cache_unknown_len(k->cache) == 0;
}

struct informer_health mirror_health(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find_kind(mirror, kind);

	return k && k->informer ? informer_health(k->informer)
				: (struct informer_health){.reason = ""};
}

struct cache *mirror_cache(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find_kind(mirror, kind);

	return k ? k->cache : NULL;
}

const struct kube_resource *mirror_resource(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find_kind(mirror, kind);

	return k ? &k->resource : NULL;
}

void mirror_learn(struct mirror *mirror, const char *kind, json_t *object)
{
	const struct mirror_kind *k = find_kind(mirror, kind);

	if (k && k->informer)
		informer_learn(k->informer, object);
}

/* ---- objects from elsewhere ------------------------------------------------------------------ */

/* Keys from here on; arrays on the way are looked through. */
static void drop_path(json_t *value, const char *const *path)
{
	json_t *item;
	size_t i;

	if (json_is_array(value)) {
		json_array_foreach (value, i, item)
			drop_path(item, path);
		return;
	}
	if (path[1])
		drop_path(json_object_get(value, path[0]), path + 1);
	else
		json_object_del(value, path[0]);
}

static bool shows_object(const struct mirror_kind *kind, const struct kube_resource *resource,
			 const json_t *object)
{
	const struct operator_kind *mirrored = kind->mirrored;

	if (!kind->wanted || !str_eq(kind->resource.plural, resource->plural) ||
	    !str_eq(kind->resource.group, resource->group))
		return false;
	return (!kind->ns || str_eq(kind->ns, json_namespace(object))) &&
	       (!kind->name || str_eq(kind->name, json_name(object))) &&
	       (!mirrored->selects || mirrored->selects(object));
}

void mirror_show(struct mirror *mirror, const struct kube_resource *resource, const json_t *object)
{
	assert(!mirror->client);
	for (size_t i = 0; i < mirror->n; i++) {
		const struct mirror_kind *kind = &mirror->kinds[i];
		json_t *copy;

		if (!shows_object(kind, resource, object))
			continue;
		copy = json_deep_copy(object);
		for (size_t d = 0; d < kind->mirrored->n_drops; d++)
			drop_path(copy, kind->mirrored->drops[d]);
		cache_put(kind->cache, copy);
	}
}

/* ---- worlds ---------------------------------------------------------------------------------- */

void mirror_add(const struct mirror *mirror, json_t *world, const char *kind, const char *key)
{
	json_t *object = NULL;

	assert(kind);
	/* Not replaced: somebody may hold it. */
	if (json_at(world, kind, key))
		return;
	object = cache_get(mirror_cache(mirror, kind), key);
	if (object)
		json_object_set_new(json_need_object(world, kind), key, object);
}

void mirror_add_all(const struct mirror *mirror, json_t *world, const char *kind)
{
	const struct mirror_kind *k = find_kind(mirror, kind);
	json_t *objects;

	assert(k);
	objects = cache_all(k->cache);
	/* Several mirrors can show objects of one kind. */
	if (json_object_get(world, k->resource.plural)) {
		json_object_update(json_object_get(world, k->resource.plural), objects);
		json_decref(objects);
	} else {
		json_object_set_new(world, k->resource.plural, objects);
	}
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

void mirror_add_some(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
		     const char *value, size_t max)
{
	struct adding adding = {mirror, world, kind};

	cache_find_some(mirror_cache(mirror, kind), index, value, max, add_found, &adding);
}

void mirror_add_indexed(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
			const char *value)
{
	mirror_add_some(mirror, world, kind, index, value, SIZE_MAX);
}

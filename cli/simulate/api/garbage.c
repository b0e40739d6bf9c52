// SPDX-License-Identifier: Apache-2.0
/*
 * A queue of owners that have gone and of namespaces that end, worked off after each write.
 * Between the writes of clients and the store: every change of an object goes through here.
 */
#include "cli/simulate/api/garbage.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define FOREGROUND "foregroundDeletion"

/* Where an object of some uid is. */
struct whereabouts {
	struct collection *collection;
	char *key;
};

enum due_kind {
	DUE_DEPENDENTS, /* delete what the object owned */
	DUE_ORPHANS,    /* its dependents no longer name it */
	DUE_FOREGROUND, /* it waits for its dependents */
	DUE_NAMESPACE,  /* its objects have to go, then it goes itself */
};

struct due {
	enum due_kind kind;
	char *id; /* uid, or name of the namespace */
};

struct garbage {
	struct api *api;
	struct map uids;   /* uid: struct whereabouts, owned */
	struct map owners; /* uids that were named as owners */
	struct due *due;
	size_t len, cap;
	bool is_settling;
};

static void whereabouts_free(void *arg)
{
	struct whereabouts *w = arg;

	mem_free(w->key);
	mem_free(w);
}

struct garbage *garbage_new(struct api *api)
{
	struct garbage *garbage = mem_new(struct garbage);

	garbage->api = api;
	garbage->uids.free_value = whereabouts_free;
	return garbage;
}

void garbage_free(struct garbage *garbage)
{
	if (!garbage)
		return;
	while (garbage->len > 0)
		mem_free(garbage->due[--garbage->len].id);
	mem_free(garbage->due);
	map_done(&garbage->uids);
	map_done(&garbage->owners);
	mem_free(garbage);
}

static void queue(struct garbage *garbage, enum due_kind kind, const char *id)
{
	if (garbage->len == garbage->cap) {
		garbage->cap = garbage->cap ? 2 * garbage->cap : 16;
		garbage->due = mem_realloc(garbage->due, garbage->cap * sizeof(*garbage->due));
	}
	garbage->due[garbage->len++] = (struct due){kind, str_dup(id)};
}

static json_t *finalizers_of(const json_t *object)
{
	return json_at(object, "metadata", "finalizers");
}

static bool is_going(const json_t *object)
{
	return json_at(object, "metadata", "deletionTimestamp") != NULL;
}

static bool is_pod(const struct garbage *garbage, const struct collection *collection)
{
	return collection == resources_find(&garbage->api->resources, "", "v1", "pods")->collection;
}

static bool is_namespace(const struct garbage *garbage, const struct collection *collection)
{
	return collection ==
	       resources_find(&garbage->api->resources, "", "v1", "namespaces")->collection;
}

/* Its owners may have waited for it, and its namespace. */
static void tell_others(struct garbage *garbage, const json_t *object)
{
	const struct resource *namespaces =
		resources_find(&garbage->api->resources, "", "v1", "namespaces");
	json_auto_t *ns = collection_object(namespaces->collection, json_namespace(object));
	json_t *owner;
	size_t i;

	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner)
		queue(garbage, DUE_FOREGROUND, json_str_or(json_at(owner, "uid"), ""));
	if (ns && is_going(ns))
		queue(garbage, DUE_NAMESPACE, json_name(ns));
}

static void remove_object(struct garbage *garbage, struct collection *collection, json_t *object,
			  bool orphans);

/* A definition goes, and with it all objects of its kind, whatever their finalizers. */
static void end_definition(struct garbage *garbage, const json_t *definition)
{
	struct collection *collection = NULL;

	for (size_t i = 0; i < garbage->api->resources.len; i++) {
		const struct resource *resource = garbage->api->resources.list[i];

		if (resource->definition &&
		    str_eq(json_name(resource->definition), json_name(definition)))
			collection = resource->collection;
	}
	while (collection && collection->len > 0) {
		json_auto_t *object = collection_object(
			collection, collection->entries[collection->len - 1]->key);

		remove_object(garbage, collection, object, false);
	}
	resources_undefine(&garbage->api->resources, definition);
}

static void remove_object(struct garbage *garbage, struct collection *collection, json_t *object,
			  bool orphans)
{
	if (collection == resources_find(&garbage->api->resources, "apiextensions.k8s.io", "v1",
					 "customresourcedefinitions")
				  ->collection)
		end_definition(garbage, object);
	if (json_uid(object)[0])
		queue(garbage, orphans ? DUE_ORPHANS : DUE_DEPENDENTS, json_uid(object));
	(void)map_del(&garbage->uids, json_uid(object));
	tell_others(garbage, object);
	collection_remove(collection, object);
}

/* Nothing keeps an object that is being deleted. */
static bool may_go(const struct garbage *garbage, const struct collection *collection,
		   const json_t *object)
{
	if (json_array_size(finalizers_of(object)) > 0)
		return false;
	/* A namespace goes when it is empty, a pod when its node says so. */
	if (is_namespace(garbage, collection))
		return false;
	return !is_pod(garbage, collection) ||
	       json_integer_value(json_at(object, "metadata", "deletionGracePeriodSeconds")) == 0;
}

void garbage_put(struct garbage *garbage, struct collection *collection, json_t *object)
{
	const char *uid = json_uid(object);
	struct whereabouts *w;
	json_t *owner;
	size_t i;

	assert(collection && json_is_object(object));
	if (is_going(object) && may_go(garbage, collection, object)) {
		remove_object(garbage, collection, object, false);
		return;
	}
	(void)collection_put(collection, object);
	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner)
		map_set(&garbage->owners, json_str_or(json_at(owner, "uid"), ""), garbage);
	if (!map_get(&garbage->uids, uid)) {
		w = mem_new(struct whereabouts);
		w->collection = collection;
		w->key = json_key(object);
		map_set(&garbage->uids, uid, w);
	}
	if (is_going(object) && is_namespace(garbage, collection))
		queue(garbage, DUE_NAMESPACE, json_name(object));
}

/* ---- deleting -------------------------------------------------------------------------------- */

static int64_t grace_of_pod(const json_t *pod, int64_t wanted_s)
{
	const char *phase = json_str_or(json_at(pod, "status", "phase"), "");
	json_t *own = json_at(pod, "spec", "terminationGracePeriodSeconds");

	/* Without a node, or after its end, no kubelet has to confirm the deletion. */
	if (!json_str_at(pod, "spec", "nodeName") || str_eq(phase, "Succeeded") ||
	    str_eq(phase, "Failed"))
		return 0;
	if (wanted_s >= 0)
		return wanted_s;
	return json_is_integer(own) ? json_integer_value(own) : 30;
}

/* Set what says that it is being deleted; true when something changed. */
static bool mark(json_t *object, int64_t grace_s, bool has_grace)
{
	json_t *metadata = json_need_object(object, "metadata");
	json_t *grace = json_object_get(metadata, "deletionGracePeriodSeconds");
	char now[RFC3339_SIZE];

	if (is_going(object) && json_integer_value(grace) <= grace_s)
		return false;
	rfc3339_write(clock_wall_us() + grace_s * 1000000, now);
	json_put_str(metadata, "deletionTimestamp", now);
	json_put_int(metadata, "deletionGracePeriodSeconds", has_grace ? grace_s : 0);
	if (json_at(metadata, "generation"))
		json_put_int(metadata, "generation", json_generation(object) + 1);
	return true;
}

json_t *garbage_delete(struct garbage *garbage, const struct resource *resource, const char *key,
		       enum propagation propagation, int64_t grace_s, bool *ret_gone)
{
	struct collection *collection = resource->collection;
	json_t *object = collection_object(collection, key);
	bool has_grace = is_pod(garbage, collection), is_changed;

	assert(resource && key && ret_gone);
	is_changed = mark(object, has_grace ? grace_of_pod(object, grace_s) : 0, has_grace);
	if (is_namespace(garbage, collection) &&
	    !str_eq(json_str_at(object, "status", "phase"), "Terminating")) {
		json_put_str(json_need_object(object, "status"), "phase", "Terminating");
		is_changed = true;
	}
	if (propagation == PROPAGATE_FOREGROUND &&
	    !json_list_has(finalizers_of(object), FOREGROUND)) {
		json_t *metadata = json_need_object(object, "metadata");
		json_t *list = json_object_get(metadata, "finalizers");

		if (!json_list_has(list, FOREGROUND)) {
			list = json_is_array(list) ? json_copy(list) : json_array();
			json_array_append_new(list, json_string(FOREGROUND));
			json_put(metadata, "finalizers", list);
		}
		is_changed = true;
	}
	*ret_gone = may_go(garbage, collection, object);
	if (*ret_gone)
		remove_object(garbage, collection, object, propagation == PROPAGATE_ORPHAN);
	else if (is_changed)
		garbage_put(garbage, collection, object);
	if (propagation == PROPAGATE_FOREGROUND) {
		map_set(&garbage->owners, json_uid(object), garbage);
		queue(garbage, DUE_DEPENDENTS, json_uid(object));
		queue(garbage, DUE_FOREGROUND, json_uid(object));
	}
	return object;
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* Its owners are known to be there, but for `gone`. */
static bool has_other_owner(const struct garbage *garbage, const json_t *outline, const char *gone)
{
	json_t *owner;
	size_t i;

	json_array_foreach (json_at(outline, "metadata", "ownerReferences"), i, owner) {
		const char *uid = json_str_or(json_at(owner, "uid"), "");

		if (!str_eq(uid, gone) && map_get(&garbage->uids, uid))
			return true;
	}
	return false;
}

static bool is_owned_by(const json_t *outline, const char *uid)
{
	return json_find(json_at(outline, "metadata", "ownerReferences"), "uid", uid) != NULL;
}

static void drop_owner(struct garbage *garbage, struct collection *collection, const char *key,
		       const char *uid)
{
	json_auto_t *object = collection_object(collection, key);
	json_t *left = json_array(), *owner;
	size_t i;

	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner)
		if (!str_eq(json_str_at(owner, "uid"), uid))
			json_array_append(left, owner);
	json_put(json_object_get(object, "metadata"), "ownerReferences", left);
	garbage_put(garbage, collection, object);
}

/* The first entry from *at on that uid owns; NULL: none. */
static const struct store_entry *next_dependent(const struct collection *collection,
						const char *uid, size_t *at)
{
	for (; *at < collection->len; (*at)++)
		if (is_owned_by(collection->entries[*at]->outline, uid))
			return collection->entries[*at];
	return NULL;
}

static bool is_first_of_collection(const struct resources *resources, size_t place)
{
	for (size_t i = 0; i < place; i++)
		if (resources->list[i]->collection == resources->list[place]->collection)
			return false;
	return resources->list[place]->collection != NULL;
}

static void end_dependents(struct garbage *garbage, const char *uid, bool orphans)
{
	const struct resources *resources = &garbage->api->resources;

	if (!map_get(&garbage->owners, uid))
		return;
	for (size_t i = 0; i < resources->len; i++) {
		const struct resource *resource = resources->list[i];
		const struct store_entry *entry;
		size_t at = 0;

		if (!is_first_of_collection(resources, i))
			continue;
		while ((entry = next_dependent(resource->collection, uid, &at))) {
			auto_free char *key = str_dup(entry->key);
			size_t before = resource->collection->len;
			bool is_gone = false;

			if (orphans || has_other_owner(garbage, entry->outline, uid))
				drop_owner(garbage, resource->collection, key, uid);
			else
				json_decref(garbage_delete(garbage, resource, key,
							   PROPAGATE_BACKGROUND, -1, &is_gone));
			at += resource->collection->len == before;
		}
	}
}

static bool has_dependents(const struct garbage *garbage, const char *uid)
{
	const struct resources *resources = &garbage->api->resources;

	for (size_t i = 0; i < resources->len; i++) {
		size_t at = 0;

		if (resources->list[i]->collection &&
		    next_dependent(resources->list[i]->collection, uid, &at))
			return true;
	}
	return false;
}

static void end_foreground(struct garbage *garbage, const char *uid)
{
	const struct whereabouts *w = map_get(&garbage->uids, uid);
	json_auto_t *object = w ? collection_object(w->collection, w->key) : NULL;
	json_t *metadata, *left, *item;
	size_t i;

	if (!object || !is_going(object) || !json_list_has(finalizers_of(object), FOREGROUND) ||
	    has_dependents(garbage, uid))
		return;
	metadata = json_need_object(object, "metadata");
	left = json_array();
	json_array_foreach (json_object_get(metadata, "finalizers"), i, item)
		if (!str_eq(json_string_value(item), FOREGROUND))
			json_array_append(left, item);
	if (json_array_size(left) > 0)
		json_put(metadata, "finalizers", left);
	else
		json_object_del(metadata, "finalizers");
	if (json_array_size(left) == 0)
		json_decref(left);
	garbage_put(garbage, w->collection, object);
}

/* Begin to delete all that is in it; true when nothing is left. */
static bool empty_namespace(struct garbage *garbage, const char *name)
{
	const struct resources *resources = &garbage->api->resources;
	auto_free char *prefix = str_printf("%s/", name);
	bool is_empty = true;

	for (size_t i = 0; i < resources->len; i++) {
		const struct resource *resource = resources->list[i];
		struct collection *collection = resource->collection;
		size_t at;

		if (!(resource->flags & RESOURCE_NAMESPACED) ||
		    !is_first_of_collection(resources, i))
			continue;
		at = collection_after(collection, prefix);
		while (at < collection->len && str_starts(collection->entries[at]->key, prefix)) {
			auto_free char *key = str_dup(collection->entries[at]->key);
			bool is_gone = false;

			json_decref(garbage_delete(garbage, resource, key, PROPAGATE_BACKGROUND, -1,
						   &is_gone));
			at += !is_gone;
			is_empty = is_empty && is_gone;
		}
	}
	return is_empty;
}

static void end_namespace(struct garbage *garbage, const char *name)
{
	struct collection *namespaces =
		resources_find(&garbage->api->resources, "", "v1", "namespaces")->collection;
	json_auto_t *ns = NULL;

	if (!empty_namespace(garbage, name))
		return;
	ns = collection_object(namespaces, name);
	if (ns && is_going(ns) && json_array_size(finalizers_of(ns)) == 0)
		remove_object(garbage, namespaces, ns, false);
}

void garbage_settle(struct garbage *garbage)
{
	if (garbage->is_settling)
		return;
	garbage->is_settling = true;
	while (garbage->len > 0) {
		struct due due = garbage->due[--garbage->len];

		switch (due.kind) {
		case DUE_DEPENDENTS:
		case DUE_ORPHANS:
			end_dependents(garbage, due.id, due.kind == DUE_ORPHANS);
			break;
		case DUE_FOREGROUND:
			end_foreground(garbage, due.id);
			break;
		case DUE_NAMESPACE:
			end_namespace(garbage, due.id);
			break;
		}
		mem_free(due.id);
	}
	garbage->is_settling = false;
}

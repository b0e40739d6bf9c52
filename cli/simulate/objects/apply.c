// SPDX-License-Identifier: Apache-2.0
/*
 * Server-side apply and the bookkeeping of all other writes. An apply merges, then takes away what
 * this manager owned, no longer applies, and that has no other owner; then conflicts are looked
 * for in what really changes, so that two managers may apply the same value.
 */
#include "cli/simulate/objects/apply.h"

#include <assert.h>
#include <string.h>

#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/fields.h"
#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/managers.h"
#include "lib/json/json.h"

enum {
	MANAGER_NAME_MAX = 128,
};

char *apply_manager_name(const char *field_manager, const char *user_agent)
{
	const char *name = str_empty(field_manager) ? user_agent : field_manager;
	size_t len = 0;

	if (str_empty(name))
		name = "unknown";
	len = str_empty(field_manager) ? strcspn(name, "/") : strlen(name);
	if (len == 0)
		return str_dup("unknown");
	return str_ndup(name, str_clip(name, len, MANAGER_NAME_MAX));
}

/* ---- what nobody owns ------------------------------------------------------------------------ */

static void disown(json_t *set, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *below = json_object_get(set, keys[i]);

		json_object_del(below, ".");
		if (below && fields_empty(below))
			json_object_del(set, keys[i]);
	}
}

/* Fields that the server sets, or that identify the object. In place. */
static void strip(json_t *set)
{
	static const char *const in_metadata[] = {
		"f:name",       "f:namespace",         "f:uid",           "f:resourceVersion",
		"f:generation", "f:creationTimestamp", "f:managedFields", "f:selfLink",
	};
	static const char *const at_top[] = {"f:apiVersion", "f:kind", "f:metadata"};

	disown(json_object_get(set, "f:metadata"), in_metadata, ARRAY_LEN(in_metadata));
	disown(set, at_top, ARRAY_LEN(at_top));
	json_object_del(set, ".");
}

/* A shallow copy without managedFields. Returns new. */
static json_t *without_managers(const json_t *object)
{
	json_t *copy = json_copy((json_t *)object);
	const json_t *metadata = json_at(object, "metadata");
	json_t *own = NULL;

	if (!metadata || !json_object_get(metadata, "managedFields"))
		return copy;
	own = json_copy((json_t *)metadata);
	json_object_del(own, "managedFields");
	json_put(copy, "metadata", own);
	return copy;
}

/* Sets of what differs, without what has no owner. Both are new. */
static void differences(const struct apply_write *write, const json_t *from, const json_t *to,
			json_t **ret_changed, json_t **ret_removed)
{
	json_auto_t *nothing = json_object();
	json_auto_t *old = without_managers(from ? from : nothing);
	json_auto_t *new = without_managers(to);

	*ret_changed = json_object();
	*ret_removed = json_object();
	fields_compare(write->schema, old, new, *ret_changed, *ret_removed);
	strip(*ret_changed);
	strip(*ret_removed);
}

/* ---- apply ----------------------------------------------------------------------------------- */

static const char *const server_set[] = {
	"uid",
	"resourceVersion",
	"generation",
	"creationTimestamp",
	"deletionTimestamp",
	"deletionGracePeriodSeconds",
	"selfLink",
	"managedFields",
};

/* The configuration without what an applier cannot set. Returns new. */
static json_t *configuration(const struct apply_write *write, const json_t *applied)
{
	json_t *copy = NULL;
	json_t *metadata = NULL;

	if (str_eq(write->subresource, "status")) {
		copy = json_object();
		json_put(copy, "status", json_deep_copy(json_object_get(applied, "status")));
		return copy;
	}
	copy = json_deep_copy(applied);
	metadata = json_object_get(copy, "metadata");
	for (size_t i = 0; i < ARRAY_LEN(server_set); i++)
		json_object_del(metadata, server_set[i]);
	return copy;
}

/* What all managers own, fields above it included. Returns new. */
static json_t *owned_by_all(const struct apply_write *write, const json_t *entries)
{
	json_auto_t *all = json_object();
	const json_t *entry = NULL;
	size_t i = 0;

	json_array_foreach (entries, i, entry)
		fields_add(all, managers_set(entry));
	return fields_with_parents(write->schema, all);
}

static json_t *paths_of(const struct apply_write *write, const json_t *object)
{
	json_auto_t *set = fields_of(write->schema, object);

	return fields_with_parents(write->schema, set);
}

/* Return new: a copy of the object without the paths of a set. */
static json_t *reduced(const struct apply_write *write, const json_t *object, const json_t *set)
{
	json_t *copy = json_deep_copy(object);

	fields_remove(write->schema, copy, set);
	return copy;
}

/*
 * Take away what was in `last` and has no owner now. A parent that goes takes its children along,
 * unless one of them has an owner. Returns new.
 */
static json_t *pruned(const struct apply_write *write, const json_t *merged, const json_t *last,
		      const json_t *entries)
{
	json_auto_t *before = fields_with_parents(write->schema, last);
	json_auto_t *all = paths_of(write, merged);
	json_auto_t *kept = owned_by_all(write, entries);
	json_auto_t *without = reduced(write, merged, before);
	json_auto_t *left = paths_of(write, without);
	json_auto_t *gone = NULL, *with_owned = NULL, *still = NULL, *candidates = NULL;
	json_auto_t *final = NULL;

	fields_add(kept, left);
	gone = fields_minus(all, kept);
	with_owned = reduced(write, merged, gone);
	still = paths_of(write, with_owned);
	candidates = fields_minus(all, still);
	final = fields_common(candidates, before);
	return reduced(write, merged, final);
}

/* Take from all others what changes here; without force, only collect the conflicts. */
static void take_fields(const json_t *entries, const json_t *own, const json_t *changed,
			const json_t *removed, bool force, json_t *causes)
{
	json_t *entry = NULL;
	size_t i = 0;

	json_array_foreach (entries, i, entry) {
		json_auto_t *conflict = fields_common(managers_set(entry), changed);
		auto_free char *message = managers_conflict(entry);

		if (entry == own)
			continue;
		if (!force)
			fields_add_causes(conflict, message, causes);
		managers_put_set(entry, fields_minus(managers_set(entry), changed));
		managers_put_set(entry, fields_minus(managers_set(entry), removed));
	}
}

static void keep_server_fields(const json_t *live, json_t *object)
{
	json_t *metadata = json_object_get(object, "metadata");

	for (size_t i = 0; i < ARRAY_LEN(server_set); i++) {
		json_t *value = json_object_get(json_at(live, "metadata"), server_set[i]);

		json_object_del(metadata, server_set[i]);
		if (value)
			json_object_set_new(json_need_object(object, "metadata"), server_set[i],
					    json_deep_copy(value));
	}
}

/* Ownership of an object that was written before anything kept track of it. */
static void adopt(const struct apply_write *write, const json_t *live, json_t *entries)
{
	json_t *changed = NULL, *removed = NULL;
	json_t *entry = NULL;

	if (!live || json_array_size(entries) > 0)
		return;
	differences(write, NULL, live, &changed, &removed);
	entry = managers_need(entries, "before-first-apply", MANAGERS_UPDATE, write->api_version,
			      NULL);
	managers_put_set(entry, changed);
	managers_put_time(entry, write->now_us);
	json_decref(removed);
}

static int check_applied(const struct apply_write *write, const json_t *live, const json_t *applied,
			 struct err *err)
{
	if (!json_is_object(applied) || (live && !json_is_object(live)))
		return err_set(err, ERR_INVALID, "BadRequest",
			       "the configuration must be an object");
	if (json_array_size(json_at(applied, "metadata", "managedFields")) > 0)
		return err_set(err, ERR_INVALID, "BadRequest",
			       "metadata.managedFields must be nil");
	if (object_check_size(applied, err) || (live && object_check_size(live, err)))
		return -1;
	return fields_check_form(write->schema, applied, err);
}

int apply_object(const struct apply_write *write, const json_t *live, const json_t *applied,
		 json_t **ret, json_t **ret_causes, struct err *err)
{
	json_auto_t *config = NULL, *entries = NULL, *before = NULL, *base = NULL;
	json_auto_t *object = NULL, *last = NULL, *changed = NULL, *removed = NULL;
	json_auto_t *causes = json_array();
	json_t *own = NULL;

	assert(write && ret && ret_causes);
	*ret_causes = NULL;
	if (check_applied(write, live, applied, err))
		return -1;
	config = configuration(write, applied);
	entries = managers_read(live);
	before = json_deep_copy(entries);
	adopt(write, live, entries);
	base = live ? without_managers(live) : NULL;
	object = fields_merge(write->schema, base, config);

	own = managers_need(entries, write->manager, MANAGERS_APPLY, write->api_version,
			    write->subresource);
	last = json_incref(managers_set(own));
	managers_put_set(own, fields_of(write->schema, config));
	json_put_str(own, "apiVersion", write->api_version);
	strip(managers_set(own));
	if (!fields_empty(last)) {
		json_t *merged = object;

		object = pruned(write, merged, last, entries);
		json_decref(merged);
	}
	differences(write, base, object, &changed, &removed);
	take_fields(entries, own, changed, removed, write->force, causes);
	if (json_array_size(causes) > 0) {
		*ret_causes = take_ptr(causes);
		return err_set(err, ERR_CONFLICT, "Conflict", "fields belong to other managers");
	}
	keep_server_fields(live, object);
	if (live && json_same(entries, before)) {
		json_auto_t *now = without_managers(object);

		if (json_same(now, base)) {
			*ret = json_deep_copy(live);
			return 0;
		}
	}
	managers_put_time(own, write->now_us);
	managers_write(object, take_ptr(entries));
	if (object_check_size(object, err))
		return -1;
	*ret = take_ptr(object);
	return 0;
}

/* ---- other writes ---------------------------------------------------------------------------- */

/* [{}]: the client wants all ownership dropped. */
static bool resets(const json_t *object)
{
	const json_t *list = json_at(object, "metadata", "managedFields");

	return json_array_size(list) == 1 && json_object_size(json_array_get(list, 0)) == 0;
}

int apply_track_update(const struct apply_write *write, const json_t *live, json_t *object,
		       struct err *err)
{
	json_auto_t *entries = NULL, *changed = NULL, *removed = NULL, *set = NULL;
	json_t *own = NULL;

	if (object_check_size(object, err) || (live && object_check_size(live, err)))
		return -1;
	entries = managers_read(live);
	if (resets(object) || (live && json_array_size(entries) == 0)) {
		json_object_del(json_object_get(object, "metadata"), "managedFields");
		return 0;
	}
	differences(write, live, object, &changed, &removed);
	if (!fields_empty(changed))
		own = managers_need(entries, write->manager, MANAGERS_UPDATE, write->api_version,
				    write->subresource);
	take_fields(entries, own, changed, removed, true, NULL);
	if (own) {
		set = fields_minus(managers_set(own), removed);
		fields_add(set, changed);
		managers_put_set(own, take_ptr(set));
		managers_put_time(own, write->now_us);
	}
	managers_write(object, take_ptr(entries));
	return 0;
}

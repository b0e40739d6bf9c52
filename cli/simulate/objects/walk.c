// SPDX-License-Identifier: Apache-2.0
/*
 * Walks of values for field ownership. Each value is a map (merged by member), a keyed list (merged
 * by the keys of its items, or by the items themselves), or a leaf (replaced as a whole).
 */
#include "cli/simulate/objects/fields.h"

#include "cli/simulate/objects/fields_internal.h"
#include "cli/simulate/objects/schema_internal.h"
#include "cli/simulate/objects/shape.h"
#include "lib/json/json.h"

enum form {
	FORM_LEAF,
	FORM_MAP,
	FORM_KEYED,
};

static enum form form_of(const json_t *node, const json_t *value)
{
	if (json_is_object(value) && !shape_is_atomic_map(node))
		return FORM_MAP;
	if (json_is_array(value) && (shape_keys(node) || shape_is_set(node)))
		return FORM_KEYED;
	return FORM_LEAF;
}

/* The node that a path element leads to, or NULL. */
static const json_t *node_below(const json_t *node, const char *element)
{
	return str_starts(element, "f:") ? shape_member(node, element + 2) : shape_items(node);
}

/* Is the member a field of a struct, and not an entry of a map? */
static bool is_named(const struct schema *schema, const json_t *node, const char *key)
{
	if (shape_names(node, key))
		return true;
	return schema && schema->is_builtin && !json_object_get(node, "additionalProperties");
}

static const json_t *root_of(const struct schema *schema)
{
	return schema ? schema->root : NULL;
}

/* The path element of an item. Returns new. */
static char *item_element(const json_t *node, const json_t *item, size_t index)
{
	json_auto_t *keys =
		shape_is_set(node) ? json_incref((json_t *)item) : shape_item_keys(node, item);
	auto_free char *text = keys ? json_text(keys) : NULL;

	if (!text)
		return str_printf("i:%zu", index);
	return str_printf("%s:%s", shape_is_set(node) ? "v" : "k", text);
}

/*
 * The parts of a map or of a keyed list, as an object from path elements to values, in their order;
 * of items with the same keys the first. Empty for leaves. Returns new; the values are shared.
 */
static json_t *parts_of(const json_t *node, const json_t *value)
{
	json_t *parts = json_object();
	const char *key = NULL;
	json_t *part = NULL;
	size_t i = 0;

	switch (form_of(node, value)) {
	case FORM_LEAF:
		break;
	case FORM_MAP:
		json_each (value, key, part) {
			auto_free char *element = str_printf("f:%s", key);

			json_object_set(parts, element, part);
		}
		break;
	case FORM_KEYED:
		json_array_foreach (value, i, part) {
			auto_free char *element = item_element(node, part, i);

			if (!json_object_get(parts, element))
				json_object_set(parts, element, part);
		}
		break;
	}
	return parts;
}

/* ---- what an applier owns -------------------------------------------------------------------- */

static json_t *set_of(const struct schema *schema, const json_t *node, const json_t *value)
{
	json_t *set = json_object();
	json_auto_t *parts = parts_of(node, value);
	const char *element = NULL;
	json_t *part = NULL;

	if (form_of(node, value) != FORM_MAP && json_object_size(parts) == 0)
		fields_mark(set);
	json_each (parts, element, part) {
		json_t *below = set_of(schema, node_below(node, element), part);

		if (fields_empty(below) || !str_starts(element, "f:") ||
		    !is_named(schema, node, element + 2))
			fields_mark(below);
		fields_put(set, element, below);
	}
	return set;
}

json_t *fields_of(const struct schema *schema, const json_t *value)
{
	return set_of(schema, root_of(schema), value);
}

/* ---- parents --------------------------------------------------------------------------------- */

static json_t *with_parents(const struct schema *schema, const json_t *node, const json_t *set)
{
	json_t *out = json_object();
	const char *element = NULL;
	json_t *below = NULL;

	json_each (set, element, below) {
		json_t *sub = NULL;

		if (str_eq(element, ".")) {
			fields_mark(out);
			continue;
		}
		sub = with_parents(schema, node_below(node, element), below);
		if (str_starts(element, "f:") && is_named(schema, node, element + 2))
			fields_mark(sub);
		json_object_set_new(out, element, sub);
	}
	return out;
}

json_t *fields_with_parents(const struct schema *schema, const json_t *set)
{
	return with_parents(schema, schema ? schema->root : NULL, set);
}

/* ---- differences ----------------------------------------------------------------------------- */

/* A struct that is not a pointer in Go is always there for kube-apiserver. */
static bool is_always_there(const struct schema *schema, const json_t *node)
{
	return schema && schema->is_builtin && json_object_get(node, "properties") &&
	       !shape_is_atomic_map(node);
}

static void compare(const struct schema *schema, const json_t *node, const json_t *from,
		    const json_t *to, json_t *changed, json_t *removed)
{
	json_auto_t *old = parts_of(node, from);
	json_auto_t *new = parts_of(node, to);
	bool whole = form_of(node, from) != form_of(node, to) ||
		     (json_object_size(old) == 0 && json_object_size(new) == 0);
	const char *element = NULL;
	json_t *part = NULL;

	for (int side = 0; side < 2; side++) {
		json_each (side ? old : new, element, part) {
			json_t *other = json_object_get(side ? new : old, element);
			json_t *more = NULL, *less = NULL;

			if (side && other)
				continue;
			more = json_object();
			less = json_object();
			compare(schema, node_below(node, element), side ? part : other,
				side ? NULL : part, more, less);
			fields_put(changed, element, more);
			fields_put(removed, element, less);
		}
	}
	if (!to)
		fields_mark(removed);
	else if (!from && is_always_there(schema, node) && json_object_size(new) > 0)
		return;
	else if (!from || (whole && !json_same(from, to)))
		fields_mark(changed);
}

void fields_compare(const struct schema *schema, const json_t *from, const json_t *to,
		    json_t *changed, json_t *removed)
{
	compare(schema, root_of(schema), from, to, changed, removed);
}

/* ---- merge ----------------------------------------------------------------------------------- */

static json_t *merge(const json_t *node, const json_t *live, const json_t *applied);

/* Append items that only live has, up to the shared item `until` (NULL: all). */
static void add_left(json_t *list, json_t *old, void **left, const json_t *new, const char *until)
{
	for (; *left && !(until && str_eq(json_object_iter_key(*left), until));
	     *left = json_object_iter_next(old, *left))
		if (!json_object_get(new, json_object_iter_key(*left)))
			json_array_append_new(list, json_deep_copy(json_object_iter_value(*left)));
}

/*
 * Items of `applied` keep their order; those that only live has keep their place before the shared
 * item that they stood before, and stand before new items.
 */
static json_t *merge_items(const json_t *node, const json_t *live, const json_t *applied)
{
	json_t *list = json_array();
	json_auto_t *old = parts_of(node, live);
	json_auto_t *new = parts_of(node, applied);
	void *left = json_object_iter(old), *shared = json_object_iter(new);
	const char *element = NULL;
	json_t *part = NULL;

	json_each (new, element, part) {
		const json_t *present = json_object_get(old, element);

		while (shared && !json_object_get(old, json_object_iter_key(shared)))
			shared = json_object_iter_next(new, shared);
		add_left(list, old, &left, new, shared ? json_object_iter_key(shared) : NULL);
		if (present)
			shared = json_object_iter_next(new, shared);
		json_array_append_new(list, merge(shape_items(node), present, part));
	}
	add_left(list, old, &left, new, NULL);
	return list;
}

static json_t *merge(const json_t *node, const json_t *live, const json_t *applied)
{
	enum form form = form_of(node, applied);
	const char *key = NULL;
	json_t *merged = NULL;
	json_t *value = NULL;

	if (!live || form == FORM_LEAF || form != form_of(node, live))
		return json_deep_copy(applied);
	if (form == FORM_KEYED)
		return merge_items(node, live, applied);
	merged = json_copy((json_t *)live);
	json_each (applied, key, value)
		json_object_set_new(
			merged, key,
			merge(shape_member(node, key), json_object_get(live, key), value));
	json_each (live, key, value)
		if (!json_object_get(applied, key))
			json_object_set_new(merged, key, json_deep_copy(value));
	return merged;
}

json_t *fields_merge(const struct schema *schema, const json_t *live, const json_t *applied)
{
	return merge(root_of(schema), live, applied);
}

/* ---- removal --------------------------------------------------------------------------------- */

static void remove_below(const json_t *node, json_t *value, const json_t *set);

static void remove_items(const json_t *node, json_t *list, const json_t *set)
{
	for (size_t i = json_array_size(list); i > 0; i--) {
		json_t *item = json_array_get(list, i - 1);
		auto_free char *element = item_element(node, item, i - 1);
		const json_t *below = json_object_get(set, element);

		if (fields_has(below))
			json_array_remove(list, i - 1);
		else if (below)
			remove_below(shape_items(node), item, below);
	}
}

static void remove_below(const json_t *node, json_t *value, const json_t *set)
{
	const char *element = NULL;
	json_t *below = NULL;

	if (form_of(node, value) == FORM_KEYED)
		remove_items(node, value, set);
	if (form_of(node, value) != FORM_MAP)
		return;
	json_each (set, element, below) {
		if (!str_starts(element, "f:"))
			continue;
		if (fields_has(below))
			json_object_del(value, element + 2);
		else
			remove_below(shape_member(node, element + 2),
				     json_object_get(value, element + 2), below);
	}
}

void fields_remove(const struct schema *schema, json_t *value, const json_t *set)
{
	remove_below(root_of(schema), value, set);
}

/* ---- form ------------------------------------------------------------------------------------ */

static int check_form(const json_t *node, const json_t *value, const char *path, struct err *err);

static int check_items(const json_t *node, const json_t *list, const char *path, struct err *err)
{
	json_auto_t *seen = json_object();
	const json_t *item = NULL;
	size_t i = 0;

	json_array_foreach (list, i, item) {
		auto_free char *at = str_printf("%s[%zu]", path, i);
		auto_free char *element = item_element(node, item, i);

		if (str_starts(element, "i:"))
			return err_set(err, ERR_INVALID, "BadRequest",
				       "%s: an item of a list with keys must have them", at);
		if (json_object_get(seen, element))
			return err_set(err, ERR_INVALID, "BadRequest",
				       "%s: duplicate entries for key %s", path, element + 2);
		json_object_set_new(seen, element, json_true());
		if (check_form(shape_items(node), item, at, err))
			return -1;
	}
	return 0;
}

static int check_form(const json_t *node, const json_t *value, const char *path, struct err *err)
{
	const char *type = json_str_at(node, "type"), *key = NULL;
	json_t *part = NULL;

	if (!node || json_is_null(value))
		return 0;
	if ((str_eq(type, "object") && !json_is_object(value)) ||
	    (str_eq(type, "array") && !json_is_array(value)))
		return err_set(err, ERR_INVALID, "BadRequest", "%s: expected %s, got %s", path,
			       str_eq(type, "object") ? "map" : "list", json_type_words(value));
	if (form_of(node, value) == FORM_KEYED)
		return check_items(node, value, path, err);
	if (form_of(node, value) != FORM_MAP)
		return 0;
	json_each (value, key, part) {
		auto_free char *at = str_printf("%s.%s", path, key);

		if (check_form(shape_member(node, key), part, at, err))
			return -1;
	}
	return 0;
}

int fields_check_form(const struct schema *schema, const json_t *value, struct err *err)
{
	return check_form(root_of(schema), value, "", err);
}

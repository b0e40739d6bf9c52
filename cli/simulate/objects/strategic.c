// SPDX-License-Identifier: Apache-2.0
/*
 * A strategic merge patch is a merge patch whose lists merge by key where the schema says so, with
 * directives among its members. Order: what is deleted goes first, then members merge, then
 * $setElementOrder sorts.
 */
#include "cli/simulate/objects/strategic.h"

#include <string.h>

#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/shape.h"
#include "lib/json/json.h"

#define ORDER_PREFIX  "$setElementOrder/"
#define DELETE_PREFIX "$deleteFromPrimitiveList/"

static int bad(struct err *err, const char *key, const char *what)
{
	return err_set(err, ERR_INVALID, "BadRequest", "%s: %s", key, what);
}

static bool merges(const json_t *node)
{
	return str_eq(json_str_at(node, SHAPE_STRATEGY), "merge");
}

/* The directive of a map or of an item of a list, "merge" when there is none. */
static int directive(const json_t *patch, const char **ret, struct err *err)
{
	static const char *const known[] = {"merge", "replace", "delete"};
	const json_t *value = json_object_get(patch, "$patch");

	*ret = value ? json_string_value(value) : "merge";
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(*ret, known[i]))
			return 0;
	return bad(err, "$patch", "must be one of merge, replace, delete");
}

static int merge_map(const json_t *node, json_t *target, const json_t *patch, struct err *err);

/* ---- lists ----------------------------------------------------------------------------------- */

static bool same_item(const json_t *a, const json_t *b, const char *merge_key)
{
	if (!merge_key)
		return json_same(a, b);
	return json_at(a, merge_key) && json_same(json_at(a, merge_key), json_at(b, merge_key));
}

/* Index of an item like `item`; the list's size when there is none. */
static size_t find_item(const json_t *list, const json_t *item, const char *merge_key)
{
	const json_t *other = NULL;
	size_t i = 0;

	json_array_foreach (list, i, other)
		if (same_item(other, item, merge_key))
			return i;
	return json_array_size(list);
}

static void remove_items(json_t *list, const json_t *item, const char *merge_key)
{
	for (size_t i = json_array_size(list); i > 0; i--)
		if (same_item(json_array_get(list, i - 1), item, merge_key))
			json_array_remove(list, i - 1);
}

static int merge_item(const json_t *node, json_t *list, const json_t *item, const char *merge_key,
		      struct err *err)
{
	json_t *target = NULL;
	const char *what = NULL;

	if (!json_is_object(item))
		return bad(err, merge_key, "an item of the list is not an object");
	if (directive(item, &what, err))
		return -1;
	if (str_eq(what, "replace"))
		return 0;
	if (!json_at(item, merge_key))
		return bad(err, merge_key, "an item of the list does not have this merge key");
	if (str_eq(what, "delete")) {
		remove_items(list, item, merge_key);
		return 0;
	}
	target = json_array_get(list, find_item(list, item, merge_key));
	if (!json_is_object(target)) {
		target = json_object();
		json_array_append_new(list, target);
	}
	return merge_map(shape_items(node), target, item, err);
}

static bool replaces_list(const json_t *patch)
{
	const json_t *item = NULL;
	size_t i = 0;

	json_array_foreach (patch, i, item)
		if (str_eq(json_str_at(item, "$patch"), "replace"))
			return true;
	return false;
}

/*
 * Items named by `order` take its order. The others keep theirs, and stand before the first named
 * item that stood behind them.
 */
static void sort_list(json_t *list, const json_t *order, const char *merge_key)
{
	json_auto_t *sorted = json_array();
	json_auto_t *others = json_array();
	const json_t *named = NULL;
	json_t *item = NULL;
	size_t i = 0, next = 0;

	json_array_foreach (list, i, item)
		if (find_item(order, item, merge_key) == json_array_size(order))
			json_array_append(others, item);
	json_array_foreach (order, i, named) {
		size_t at = find_item(list, named, merge_key);

		if (at == json_array_size(list) ||
		    find_item(sorted, named, merge_key) < json_array_size(sorted))
			continue;
		while (next < json_array_size(others)) {
			item = json_array_get(others, next);
			if (find_item(list, item, merge_key) > at)
				break;
			json_array_append(sorted, item);
			next++;
		}
		json_array_append(sorted, json_array_get(list, at));
	}
	for (; next < json_array_size(others); next++)
		json_array_append(sorted, json_array_get(others, next));
	json_array_clear(list);
	json_array_extend(list, sorted);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int retain_keys(json_t *target, const json_t *keys, struct err *err)
{
	const char *key = NULL;
	json_t *value = NULL;
	void *next = NULL;

	if (!keys)
		return 0;
	if (!json_is_array(keys))
		return bad(err, "$retainKeys", "must be an array of keys");
	json_object_foreach_safe(target, next, key, value) if (!json_list_has(keys, key))(void)
		json_object_del(target, key);
	return 0;
}

static bool is_directive(const char *key)
{
	return str_eq(key, "$patch") || str_eq(key, "$retainKeys") ||
	       str_starts(key, ORDER_PREFIX) || str_starts(key, DELETE_PREFIX);
}

static int delete_from_list(json_t *target, const char *key, const json_t *values, struct err *err)
{
	json_t *list = json_object_get(target, key + strlen(DELETE_PREFIX));
	const json_t *value = NULL;
	size_t i = 0;

	if (!json_is_array(values))
		return bad(err, key, "must be an array of values");
	json_array_foreach (values, i, value)
		remove_items(list, value, NULL);
	return 0;
}

static int merge_member(const json_t *node, json_t *target, const char *key, const json_t *value,
			struct err *err)
{
	const json_t *below = shape_member(node, key);
	json_t *present = json_object_get(target, key);
	const char *merge_key;
	json_t *item = NULL;
	size_t i = 0;

	if (json_is_null(value)) {
		json_object_del(target, key);
		return 0;
	}
	if (json_is_object(value))
		return merge_map(below, json_need_object(target, key), value, err);
	if (!json_is_array(value) || !merges(below)) {
		json_put(target, key, json_deep_copy(value));
		return 0;
	}
	if (!json_is_array(present)) {
		present = json_array();
		json_put(target, key, present);
	}
	merge_key = json_str_at(below, SHAPE_MERGE);
	if (replaces_list(value))
		json_array_clear(present);
	json_array_foreach (value, i, item) {
		if (merge_key) {
			if (merge_item(below, present, item, merge_key, err))
				return -1;
		} else if (find_item(present, item, NULL) == json_array_size(present)) {
			json_array_append_new(present, json_deep_copy(item));
		}
	}
	return 0;
}

static int sort_member(const json_t *node, json_t *target, const char *key, const json_t *order,
		       struct err *err)
{
	const char *name = key + strlen(ORDER_PREFIX);
	const json_t *below = shape_member(node, name);
	json_t *list = json_object_get(target, name);

	if (!json_is_array(order))
		return bad(err, key, "must be an array");
	if (json_is_array(list) && merges(below))
		sort_list(list, order, json_str_at(below, SHAPE_MERGE));
	return 0;
}

static int merge_map(const json_t *node, json_t *target, const json_t *patch, struct err *err)
{
	const char *what = NULL, *key = NULL;
	json_t *value = NULL;

	if (directive(patch, &what, err))
		return -1;
	if (!str_eq(what, "merge"))
		json_object_clear(target);
	if (str_eq(what, "delete"))
		return 0;
	if (retain_keys(target, json_object_get(patch, "$retainKeys"), err))
		return -1;
	json_each (patch, key, value)
		if (str_starts(key, DELETE_PREFIX) && delete_from_list(target, key, value, err))
			return -1;
	json_each (patch, key, value)
		if (!is_directive(key) && merge_member(node, target, key, value, err))
			return -1;
	json_each (patch, key, value)
		if (str_starts(key, ORDER_PREFIX) && sort_member(node, target, key, value, err))
			return -1;
	return 0;
}

int patch_strategic(const json_t *node, const json_t *object, const json_t *patch, json_t **ret,
		    struct err *err)
{
	json_auto_t *result = NULL;

	if (!json_is_object(patch))
		return err_set(err, ERR_INVALID, "BadRequest",
			       "a strategic merge patch must be an object");
	if (object_check_size(patch, err) || object_check_size(object, err))
		return -1;
	result = json_deep_copy(object);
	if (merge_map(node, result, patch, err))
		return -1;
	*ret = take_ptr(result);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Lookups in nodes of a schema, for pruning, patches and server-side apply alike. */
#include "cli/simulate/objects/shape.h"

#include "lib/json/json.h"

const json_t *shape_member(const json_t *node, const char *key)
{
	const json_t *member = json_object_get(json_object_get(node, "properties"), key);

	if (!member)
		member = json_object_get(node, "additionalProperties");
	return json_is_object(member) ? member : NULL;
}

bool shape_names(const json_t *node, const char *key)
{
	return json_object_get(json_object_get(node, "properties"), key) != NULL;
}

const json_t *shape_items(const json_t *node)
{
	const json_t *items = json_object_get(node, "items");

	return json_is_object(items) ? items : NULL;
}

bool shape_flag(const json_t *node, const char *key)
{
	return json_is_true(json_object_get(node, key));
}

bool shape_is_set(const json_t *node)
{
	return str_eq(json_str_at(node, SHAPE_LIST), "set");
}

const json_t *shape_keys(const json_t *node)
{
	return str_eq(json_str_at(node, SHAPE_LIST), "map") ? json_at(node, SHAPE_KEYS) : NULL;
}

bool shape_is_atomic_map(const json_t *node)
{
	return str_eq(json_str_at(node, SHAPE_MAP), "atomic");
}

json_t *shape_item_keys(const json_t *node, const json_t *item)
{
	json_auto_t *keys = json_object();
	const json_t *name = NULL;
	size_t i = 0;

	if (!json_is_object(item))
		return NULL;
	json_array_foreach (shape_keys(node), i, name) {
		const char *key = json_str_or(name, "");
		json_t *value = json_at(item, key);

		if (!value)
			value = json_at(shape_member(shape_items(node), key), "default");
		if (!value)
			return NULL;
		json_object_set(keys, key, value);
	}
	return take_ptr(keys);
}

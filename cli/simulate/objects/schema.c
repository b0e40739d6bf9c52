// SPDX-License-Identifier: Apache-2.0
/*
 * A schema is copied, completed with ObjectMeta, checked and its patterns compiled, once; then
 * defaults and pruning are walks of an object and the schema side by side. Validation: validate.c.
 */
#include "cli/simulate/objects/schema.h"

#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/schema_internal.h"
#include "cli/simulate/objects/shape.h"
#include "lib/base/mem.h"
#include "lib/base/pattern.h"
#include "lib/json/json.h"

/* ---- compile --------------------------------------------------------------------------------- */

static const char *const types[] = {
	"object", "array", "string", "integer", "number", "boolean", NULL,
};

static int check_type_name(const json_t *node, const char *path, struct err *err)
{
	const char *type = json_str_at(node, "type");

	if (!json_at(node, "type"))
		return 0;
	for (size_t i = 0; types[i]; i++)
		if (str_eq(type, types[i]))
			return 0;
	return err_set(err, ERR_INVALID, "Invalid",
		       "%s.type: must be one of object, array, string, integer, number, boolean",
		       path);
}

static int check_keywords(const json_t *node, const char *path, struct err *err)
{
	static const struct {
		const char *key;
		json_type type;
		const char *words;
	} keywords[] = {
		{"properties", JSON_OBJECT, "an object"},
		{"items", JSON_OBJECT, "an object"},
		{"required", JSON_ARRAY, "an array"},
		{"enum", JSON_ARRAY, "an array"},
		{"allOf", JSON_ARRAY, "an array"},
		{"anyOf", JSON_ARRAY, "an array"},
		{"oneOf", JSON_ARRAY, "an array"},
		{"not", JSON_OBJECT, "an object"},
		{"minLength", JSON_INTEGER, "an integer"},
		{"maxLength", JSON_INTEGER, "an integer"},
		{"minItems", JSON_INTEGER, "an integer"},
		{"maxItems", JSON_INTEGER, "an integer"},
		{"minProperties", JSON_INTEGER, "an integer"},
		{"maxProperties", JSON_INTEGER, "an integer"},
		{"pattern", JSON_STRING, "a string"},
		{"format", JSON_STRING, "a string"},
		{SHAPE_LIST, JSON_STRING, "a string"},
		{SHAPE_MAP, JSON_STRING, "a string"},
		{SHAPE_KEYS, JSON_ARRAY, "an array"},
	};

	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		const json_t *value = json_at(node, keywords[i].key);

		if (value && json_typeof(value) != keywords[i].type)
			return err_set(err, ERR_INVALID, "Invalid", "%s.%s: must be %s", path,
				       keywords[i].key, keywords[i].words);
	}
	if (json_object_get(node, "$ref"))
		return err_set(err, ERR_INVALID, "Invalid", "%s.$ref: references are forbidden",
			       path);
	if (str_eq(json_str_at(node, SHAPE_LIST), "map") &&
	    json_array_size(json_at(node, SHAPE_KEYS)) == 0)
		return err_set(err, ERR_INVALID, "Invalid",
			       "%s." SHAPE_KEYS ": must name the keys of a list of type map", path);
	return check_type_name(node, path, err);
}

static int compile_pattern(struct schema *schema, const json_t *node, const char *path,
			   struct err *err)
{
	const char *text = json_str_at(node, "pattern");
	struct pattern *pattern = NULL;
	struct err why = {0};

	if (!text || map_get(&schema->patterns, text))
		return 0;
	pattern = pattern_new(text, &why);
	if (!pattern)
		return err_set(err, ERR_INVALID, "Invalid", "%s: pattern \"%.200s\": %s", path,
			       text, why.text);
	map_set(&schema->patterns, text, pattern);
	return 0;
}

static int compile(struct schema *schema, json_t *node, const char *path, struct err *err);

static int compile_below(struct schema *schema, json_t *node, const char *path, const char *key,
			 struct err *err)
{
	auto_free char *below = str_printf("%s.%s", path, key);

	return compile(schema, node, below, err);
}

static int compile_list(struct schema *schema, json_t *list, const char *path, const char *key,
			struct err *err)
{
	json_t *node = NULL;
	size_t i = 0;

	json_array_foreach (list, i, node)
		if (compile_below(schema, node, path, key, err))
			return -1;
	return 0;
}

/* Paths are at most as long as JSON_MAX_DEPTH keys. */
static int compile(struct schema *schema, json_t *node, const char *path, struct err *err)
{
	if (!json_is_object(node))
		return err_set(err, ERR_INVALID, "Invalid", "%s: must be an object", path);
	if (check_keywords(node, path, err) || compile_pattern(schema, node, path, err))
		return -1;
	if (shape_flag(node, SHAPE_EMBEDDED)) {
		json_t *properties = json_need_object(node, "properties");
		json_auto_t *own = json_incref(json_object_get(properties, "metadata"));
		json_t *metadata = shape_metadata();

		/* An embedded resource has the members that every object has. */
		if (json_is_object(own))
			json_merge_patch(metadata, own);
		json_put(properties, "metadata", metadata);
		json_put_str(json_need_object(properties, "apiVersion"), "type", "string");
		json_put_str(json_need_object(properties, "kind"), "type", "string");
	}
	static const char *const single[] = {"items", "not"};
	static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
	json_t *additional = json_at(node, "additionalProperties");
	const char *key = NULL;
	json_t *child = NULL;

	json_each (json_at(node, "properties"), key, child)
		if (compile_below(schema, child, path, key, err))
			return -1;
	if (additional && !json_is_boolean(additional) &&
	    compile_below(schema, additional, path, "additionalProperties", err))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(single); i++)
		if (json_at(node, single[i]) &&
		    compile_below(schema, json_at(node, single[i]), path, single[i], err))
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (compile_list(schema, json_at(node, lists[i]), path, lists[i], err))
			return -1;
	return 0;
}

struct schema *schema_new(const json_t *openapi, struct err *err)
{
	auto_schema struct schema *schema = NULL;

	if (!json_is_object(openapi)) {
		err_set(err, ERR_INVALID, "Invalid", "openAPIV3Schema: must be an object");
		return NULL;
	}
	if (object_check_size(openapi, err)) {
		if (err)
			(void)err_set(err, ERR_INVALID, "Invalid",
				      "openAPIV3Schema: deeper than %d or larger than %d values",
				      JSON_MAX_DEPTH, OBJECT_MAX_VALUES);
		return NULL;
	}
	schema = mem_new(struct schema);
	schema->patterns.free_value = pattern_free;
	schema->root = json_deep_copy(openapi);
	json_put_bool(schema->root, SHAPE_EMBEDDED, true);
	if (compile(schema, schema->root, "openAPIV3Schema", err))
		return NULL;
	json_object_del(schema->root, SHAPE_EMBEDDED);
	return take_ptr(schema);
}

struct schema *schema_builtin(const char *group, const char *kind)
{
	struct schema *schema = mem_new(struct schema);

	schema->is_builtin = true;
	schema->root = shape_builtin(group, kind);
	return schema;
}

void schema_free(struct schema *schema)
{
	if (!schema)
		return;
	json_decref(schema->root);
	map_done(&schema->patterns);
	mem_free(schema);
}

const json_t *schema_json(const struct schema *schema)
{
	return schema->root;
}

/* ---- defaults -------------------------------------------------------------------------------- */

static void default_members(const json_t *node, json_t *object);

static void default_value(const json_t *node, json_t *value)
{
	const json_t *items = shape_items(node);
	json_t *item = NULL;
	size_t i = 0;

	if (json_is_object(value))
		default_members(node, value);
	json_array_foreach (value, i, item) {
		if (json_is_null(item) && json_at(items, "default") &&
		    !shape_flag(items, "nullable")) {
			item = json_deep_copy(json_at(items, "default"));
			json_array_set_new(value, i, item);
		}
		default_value(items, item);
	}
}

/* A null that may not be one counts as absent. */
static bool is_refused_null(const json_t *node, const json_t *value)
{
	return json_is_null(value) && !shape_flag(node, "nullable");
}

static void default_members(const json_t *node, json_t *object)
{
	const char *key = NULL;
	json_t *member = NULL;
	void *next = NULL;

	json_each (json_at(node, "properties"), key, member) {
		const json_t *otherwise = json_object_get(member, "default");
		const json_t *present = json_object_get(object, key);

		if (otherwise && (!present || is_refused_null(member, present)))
			json_put(object, key, json_deep_copy(otherwise));
	}
	json_object_foreach_safe(object, next, key, member)
	{
		const json_t *below = shape_member(node, key);
		const json_t *otherwise = json_object_get(below, "default");

		if (below && is_refused_null(below, member)) {
			if (!otherwise) {
				if (json_object_get(below, "type"))
					(void)json_object_del(object, key);
				continue;
			}
			json_put(object, key, json_deep_copy(otherwise));
		}
		default_value(below, json_object_get(object, key));
	}
}

void schema_default(const struct schema *schema, json_t *object)
{
	if (json_is_object(object))
		default_members(schema->root, object);
}

/* ---- pruning --------------------------------------------------------------------------------- */

static void prune_value(const json_t *node, json_t *value, const char *path, json_t *unknown);

static void prune_members(const json_t *node, json_t *object, const char *path, json_t *unknown)
{
	bool keeps = shape_flag(node, SHAPE_PRESERVE) ||
		     json_is_true(json_object_get(node, "additionalProperties"));
	const char *key = NULL;
	json_t *member = NULL;
	void *next = NULL;

	json_object_foreach_safe(object, next, key, member)
	{
		const json_t *below = shape_member(node, key);
		auto_free char *at = NULL;

		if (!below && keeps)
			continue;
		if (!below) {
			if (unknown && json_array_size(unknown) < CAUSES_MAX)
				json_array_append_new(
					unknown, json_fmt("%s%s%s", path, *path ? "." : "", key));
			(void)json_object_del(object, key);
			continue;
		}
		at = str_printf("%s%s%s", path, *path ? "." : "", key);
		prune_value(below, member, at, unknown);
	}
}

/* A node without a type and without members (any value) only comes with the preserving flag. */
static void prune_value(const json_t *node, json_t *value, const char *path, json_t *unknown)
{
	json_t *item = NULL;
	size_t i = 0;

	if (json_is_object(value))
		prune_members(node, value, path, unknown);
	if (!shape_items(node))
		return;
	json_array_foreach (value, i, item) {
		auto_free char *at = str_printf("%s[%zu]", path, i);

		prune_value(shape_items(node), item, at, unknown);
	}
}

void schema_prune(const struct schema *schema, json_t *object, json_t *ret_unknown)
{
	prune_value(schema->root, object, "", ret_unknown);
}

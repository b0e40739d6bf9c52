// SPDX-License-Identifier: Apache-2.0
/*
 * `orbweaver plan` calls this for each object of its files, before anything decides on it. The
 * definition of a kind is compiled by cli/simulate's schema code when the first object of it comes.
 */
#include "cli/plan_schema.h"

#include <string.h>

#include "cli/simulate/definitions.h"
#include "cli/simulate/objects/schema.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct plan_schemas {
	json_t *definitions; /* CustomResourceDefinitions; NULL: not read yet */
	struct map compiled; /* "GROUP/VERSION KIND" → struct schema */
};

static void free_schema(void *schema)
{
	schema_free(schema);
}

struct plan_schemas *plan_schemas_new(void)
{
	struct plan_schemas *schemas = mem_new(struct plan_schemas);

	schemas->compiled.free_value = free_schema;
	return schemas;
}

void plan_schemas_free(struct plan_schemas *schemas)
{
	if (!schemas)
		return;
	map_done(&schemas->compiled);
	json_decref(schemas->definitions);
	mem_free(schemas);
}

/* The definition of an object's group and kind, or NULL. Borrowed. */
static const json_t *definition_of(struct plan_schemas *schemas, const json_t *object)
{
	const char *version = json_str_or(json_at(object, "apiVersion"), "");
	size_t len = strcspn(version, "/"), i;
	json_t *definition;

	if (!schemas->definitions)
		schemas->definitions = definitions_read(NULL);
	json_array_foreach (schemas->definitions, i, definition) {
		const char *group = json_str_or(json_at(definition, "spec", "group"), "");

		if (strlen(group) == len && strncmp(group, version, len) == 0 &&
		    str_eq(json_str_at(definition, "spec", "names", "kind"),
			   json_str_at(object, "kind")))
			return definition;
	}
	return NULL;
}

static const json_t *version_of(const json_t *definition, const json_t *object)
{
	const char *slash = strchr(json_str_or(json_at(object, "apiVersion"), ""), '/');

	return json_find(json_at(definition, "spec", "versions"), "name", slash ? slash + 1 : "");
}

/* Of a version of the object's definition; NULL: there is none, or it is not known. Borrowed. */
static const struct schema *schema_of(struct plan_schemas *schemas, const json_t *object)
{
	const json_t *definition = definition_of(schemas, object);
	const json_t *version = version_of(definition, object);
	auto_free char *key = str_printf("%s %s", json_str_or(json_at(object, "apiVersion"), ""),
					 json_str_or(json_at(object, "kind"), ""));
	struct schema *schema = map_get(&schemas->compiled, key);

	if (schema || !version)
		return schema;
	schema = schema_new(json_at(version, "schema", "openAPIV3Schema"), NULL);
	if (schema)
		map_set(&schemas->compiled, key, schema);
	return schema;
}

/* Takes the message. */
static void add_fault(json_t *faults, const char *path, json_t *message)
{
	json_t *fault = json_object();

	json_put_str(fault, "path", path);
	json_put(fault, "message", message);
	json_array_append_new(faults, fault);
}

static void check_version(const json_t *definition, const json_t *object, json_t *faults)
{
	auto_strbuf struct strbuf served = {0};
	json_t *version;
	size_t i;

	if (!definition || version_of(definition, object))
		return;
	json_array_foreach (json_at(definition, "spec", "versions"), i, version)
		strbuf_addf(&served, "%s%s/%s", i ? ", " : "",
			    json_str_at(definition, "spec", "group"), json_str_at(version, "name"));
	add_fault(faults, "apiVersion",
		  json_fmt("no matches for kind \"%s\" in version \"%.128s\": must be %s",
			   json_str_at(object, "kind"), json_str_at(object, "apiVersion"),
			   strbuf_str(&served)));
}

json_t *plan_schemas_prune(struct plan_schemas *schemas, const json_t *object, json_t *faults)
{
	const struct schema *schema = schema_of(schemas, object);
	json_auto_t *unknown = json_array();
	json_t *kept = json_deep_copy(object), *path;
	size_t i;

	check_version(definition_of(schemas, object), object, faults);
	if (schema)
		schema_prune(schema, kept, unknown);
	json_array_foreach (unknown, i, path)
		add_fault(faults, json_string_value(path),
			  json_fmt("unknown field \"%s\": kubectl refuses the file, and the server "
				   "drops the field for other clients",
				   json_string_value(path)));
	return kept;
}

bool plan_schemas_accept(struct plan_schemas *schemas, const json_t *object, json_t *faults)
{
	const struct schema *schema = schema_of(schemas, object);
	const json_t *definition = definition_of(schemas, object);
	json_auto_t *stored = json_deep_copy(object), *causes = json_array();
	json_t *cause;
	size_t i;

	if (!schema)
		return !definition || version_of(definition, object);
	/* It is written by way of its subresource. */
	json_object_del(stored, "status");
	schema_default(schema, stored);
	metadata_validate(stored, str_eq(json_str_at(definition, "spec", "scope"), "Namespaced"),
			  causes);
	schema_validate(schema, stored, causes);
	json_array_foreach (causes, i, cause)
		add_fault(faults, json_str_at(cause, "field"),
			  json_fmt("%s: %s", json_str_or(json_at(cause, "field"), ""),
				   json_str_or(json_at(cause, "message"), "")));
	return json_array_size(causes) == 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Built from the list of resources for each request. Clients ask seldom, and cache. */
#include "cli/simulate/api/discovery.h"

#include <string.h>

#include "cli/simulate/api/api.h"
#include "lib/json/json.h"

static bool is_group_seen(const struct resources *resources, size_t place)
{
	for (size_t i = 0; i < place; i++)
		if (str_eq(resources->list[i]->group, resources->list[place]->group))
			return true;
	return false;
}

static bool has_version(const json_t *versions, const char *version)
{
	return json_find(versions, "version", version) != NULL;
}

static json_t *group_of(const struct resources *resources, const char *group)
{
	json_t *versions = json_array(), *object;

	for (size_t i = 0; i < resources->len; i++) {
		const struct resource *resource = resources->list[i];

		if (str_eq(resource->group, group) && !has_version(versions, resource->version))
			json_array_append_new(versions,
					      json_pack("{s:o, s:s}", "groupVersion",
							json_fmt("%s/%s", group, resource->version),
							"version", resource->version));
	}
	if (json_array_size(versions) == 0) {
		json_decref(versions);
		return NULL;
	}
	object = json_pack("{s:s, s:s, s:s, s:o, s:O}", "kind", "APIGroup", "apiVersion", "v1",
			   "name", group, "versions", versions, "preferredVersion",
			   json_array_get(versions, 0));
	return object;
}

static json_t *all_groups(const struct resources *resources)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < resources->len; i++) {
		const char *group = resources->list[i]->group;

		if (!group[0] || is_group_seen(resources, i))
			continue;
		json_array_append_new(groups, group_of(resources, group));
	}
	return json_pack("{s:s, s:s, s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups",
			 groups);
}

/* ---- resources ------------------------------------------------------------------------------- */

static json_t *split(const char *text)
{
	auto_free char *copy = str_dup(text);
	json_t *list = json_array();
	char *rest = copy;

	while (rest && *rest)
		json_array_append_new(list, json_string(strsep(&rest, ",")));
	return list;
}

static json_t *row_of(const struct resource *resource)
{
	json_t *row = json_object();
	bool is_review = resource->flags & RESOURCE_REVIEW;

	json_put_str(row, "name", resource->plural);
	json_put_str(row, "singularName", resource->singular);
	json_put_bool(row, "namespaced", resource->flags & RESOURCE_NAMESPACED);
	json_put_str(row, "kind", resource->kind);
	json_put(row, "verbs",
		 is_review ? json_pack("[s]", "create")
			   : json_pack("[s, s, s, s, s, s, s, s]", "create", "delete",
				       "deletecollection", "get", "list", "patch", "update",
				       "watch"));
	if (resource->short_names[0])
		json_put(row, "shortNames", split(resource->short_names));
	if (resource->categories[0])
		json_put(row, "categories", split(resource->categories));
	return row;
}

static void add_sub(json_t *rows, const struct resource *resource, const char *name,
		    const char *group, const char *version, const char *kind, const char *verbs)
{
	json_t *row = json_object();

	json_put(row, "name", json_fmt("%s/%s", resource->plural, name));
	json_put_str(row, "singularName", "");
	json_put_bool(row, "namespaced", resource->flags & RESOURCE_NAMESPACED);
	json_put_str(row, "group", group);
	json_put_str(row, "version", version);
	json_put_str(row, "kind", kind);
	json_put(row, "verbs", split(verbs));
	json_array_append_new(rows, row);
}

static void add_rows(json_t *rows, const struct resource *resource)
{
	json_array_append_new(rows, row_of(resource));
	if (resource->flags & RESOURCE_STATUS)
		add_sub(rows, resource, "status", NULL, NULL, resource->kind, "get,patch,update");
	if (resource->flags & RESOURCE_SCALE)
		add_sub(rows, resource, "scale", "autoscaling", "v1", "Scale", "get,patch,update");
	if (resource->group[0])
		return;
	if (str_eq(resource->plural, "pods")) {
		add_sub(rows, resource, "binding", NULL, NULL, "Binding", "create");
		add_sub(rows, resource, "eviction", "policy", "v1", "Eviction", "create");
		add_sub(rows, resource, "log", NULL, NULL, "Pod", "get");
	} else if (str_eq(resource->plural, "serviceaccounts")) {
		add_sub(rows, resource, "token", "authentication.k8s.io", "v1", "TokenRequest",
			"create");
	}
}

json_t *discovery_of_path(const struct resources *resources, const struct api_path *path)
{
	json_t *rows;
	auto_free char *version = NULL;

	if (!path->group)
		return str_eq(path->text, "api")
			       ? json_pack("{s:s, s:[s], s:[]}", "kind", "APIVersions", "versions",
					   "v1", "serverAddressByClientCIDRs")
			       : all_groups(resources);
	if (!path->version)
		return group_of(resources, path->group);
	rows = json_array();
	version = path->group[0] ? str_printf("%s/%s", path->group, path->version)
				 : str_dup(path->version);
	for (size_t i = 0; i < resources->len; i++)
		if (str_eq(resources->list[i]->group, path->group) &&
		    str_eq(resources->list[i]->version, path->version))
			add_rows(rows, resources->list[i]);
	if (json_array_size(rows) > 0)
		return json_pack("{s:s, s:s, s:s, s:o}", "kind", "APIResourceList", "apiVersion",
				 "v1", "groupVersion", version, "resources", rows);
	json_decref(rows);
	return NULL;
}

json_t *discovery_version(void)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "major", API_MAJOR,
			 "minor", API_MINOR, "gitVersion",
			 "v" API_MAJOR "." API_MINOR ".0+orbweaver", "gitCommit", "",
			 "gitTreeState", "clean", "buildDate", "1970-01-01T00:00:00Z", "goVersion",
			 "", "compiler", "gcc", "platform", "linux/amd64");
}

/* ---- OpenAPI --------------------------------------------------------------------------------- */

void discovery_openapi_v2(bool is_proto, struct strbuf *out)
{
	/*
	 * Document { swagger = 1; info = 2 { title = 1; version = 2 }; paths = 8 {} }, each field
	 * with its tag and its length.
	 */
	static const char message[] = "\x0a\x03"
				      "2.0"
				      "\x12\x15\x0a\x0a"
				      "Kubernetes"
				      "\x12\x07"
				      "v1.33.0"
				      "\x42\x00";

	if (is_proto)
		strbuf_add(out, message, sizeof(message) - 1);
	else
		strbuf_adds(out, "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Kubernetes\","
				 "\"version\":\"v" API_MAJOR "." API_MINOR
				 ".0\"},\"paths\":{},\"definitions\":{}}\n");
}

json_t *discovery_openapi_v3(const struct resources *resources)
{
	json_t *paths = json_object();

	for (size_t i = 0; i < resources->len; i++) {
		const struct resource *resource = resources->list[i];
		auto_free char *path =
			resource->group[0]
				? str_printf("apis/%s/%s", resource->group, resource->version)
				: str_printf("api/%s", resource->version);

		if (!json_object_get(paths, path))
			json_put(paths, path,
				 json_pack("{s:o}", "serverRelativeURL",
					   json_fmt("/openapi/v3/%s", path)));
	}
	return json_pack("{s:o}", "paths", paths);
}

static json_t *parameter(const char *name)
{
	return json_pack("{s:s, s:s, s:{s:s}}", "name", name, "in", "query", "schema", "type",
			 "string");
}

/* The query parameters by which kubectl finds out that a kind is validated and dry-run here. */
static json_t *operation_of(const struct resource *resource)
{
	return json_pack("{s:[o, o, o], s:{s:s, s:s, s:s}}", "parameters", parameter("dryRun"),
			 parameter("fieldManager"), parameter("fieldValidation"),
			 "x-kubernetes-group-version-kind", "group", resource->group, "version",
			 resource->version, "kind", resource->kind);
}

static void add_paths(json_t *paths, const struct resource *resource)
{
	auto_free char *version = resource_api_version(resource);
	auto_free char *path =
		str_printf("/%s/%s/%s%s/{name}", resource->group[0] ? "apis" : "api", version,
			   resource->flags & RESOURCE_NAMESPACED ? "namespaces/{namespace}/" : "",
			   resource->plural);

	json_put(paths, path,
		 json_pack("{s:o, s:o}", "patch", operation_of(resource), "put",
			   operation_of(resource)));
}

static json_t *schema_of(const struct resource *resource)
{
	json_t *schema = json_deep_copy(schema_json(resource->schema));

	json_put(schema, "x-kubernetes-group-version-kind",
		 json_pack("[{s:s, s:s, s:s}]", "group", resource->group, "version",
			   resource->version, "kind", resource->kind));
	return schema;
}

json_t *discovery_openapi_v3_of(const struct resources *resources, const struct api_path *path)
{
	json_t *schemas = json_object(), *paths = json_object();

	for (size_t i = 0; path->group && path->version && i < resources->len; i++) {
		const struct resource *resource = resources->list[i];
		auto_free char *name = NULL;

		if (!str_eq(resource->group, path->group) ||
		    !str_eq(resource->version, path->version))
			continue;
		name = str_printf("%s.%s.%s", resource->group[0] ? resource->group : "core",
				  resource->version, resource->kind);
		json_put(schemas, name, schema_of(resource));
		if (!(resource->flags & RESOURCE_REVIEW))
			add_paths(paths, resource);
	}
	if (json_object_size(schemas) == 0) {
		json_decref(schemas);
		json_decref(paths);
		return NULL;
	}
	return json_pack("{s:s, s:{s:s, s:s}, s:o, s:{s:o}}", "openapi", "3.0.0", "info", "title",
			 "Kubernetes", "version", "v" API_MAJOR "." API_MINOR ".0", "paths", paths,
			 "components", "schemas", schemas);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The stored text goes out as it is wherever the client asks for what is stored; everything else is
 * parsed and serialized again. Between the store and the bytes of an answer.
 */
#include "cli/simulate/api/view.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"

/* Members of an Event: in v1, and in events.k8s.io/v1. */
static const struct {
	const char *core, *events;
} event_names[] = {
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"reportingComponent", "reportingController"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
};

static bool is_events(const struct resource *resource)
{
	return str_eq(resource->group, "events.k8s.io");
}

bool view_of_request(const struct resource *resource, const struct http_request *req,
		     struct view *ret)
{
	const char *include = http_query_get(req, "includeObject");
	const char *accept = req->accept;

	assert(resource && req && ret);
	*ret = (struct view){.resource = resource, .objects = TABLE_METADATA};
	if (str_eq(include, "None"))
		ret->objects = TABLE_NONE;
	else if (str_eq(include, "Object"))
		ret->objects = TABLE_WHOLE;
	if (strstr(accept, "as=Table"))
		ret->form = VIEW_TABLE;
	else if (strstr(accept, "as=PartialObjectMetadata"))
		ret->form = VIEW_METADATA;
	return !accept[0] || strstr(accept, "json") || strstr(accept, "*/*") ||
	       strstr(accept, "application/*");
}

static void rename_members(json_t *object, bool to_core)
{
	for (size_t i = 0; i < ARRAY_LEN(event_names); i++) {
		const char *from = to_core ? event_names[i].events : event_names[i].core;
		const char *to = to_core ? event_names[i].core : event_names[i].events;
		json_t *value = json_incref(json_object_get(object, from));

		json_object_del(object, from);
		json_put(object, to, value);
	}
}

static void set_version(json_t *object, const char *group, const char *version)
{
	json_put(object, "apiVersion",
		 group[0] ? json_fmt("%s/%s", group, version) : json_string(version));
}

void view_to_client(const struct resource *resource, json_t *object)
{
	if (is_events(resource))
		rename_members(object, false);
	set_version(object, resource->group, resource->version);
}

void view_from_client(const struct resource *resource, json_t *object)
{
	if (is_events(resource))
		rename_members(object, true);
	set_version(object, is_events(resource) ? "" : resource->group, resource->stored_version);
}

static json_t *read(const struct view *view, const struct blob *text)
{
	json_t *object = json_parse(text->text, text->len, NULL), *partial;

	assert(object); /* it was written from a value */
	view_to_client(view->resource, object);
	if (view->form != VIEW_METADATA)
		return object;
	partial = json_pack("{s:s, s:s, s:O}", "kind", "PartialObjectMetadata", "apiVersion",
			    "meta.k8s.io/v1", "metadata", json_object_get(object, "metadata"));
	json_decref(object);
	return partial;
}

static json_t *new_table(const struct view *view, const json_t *items, const json_t *metadata,
			 bool with_columns)
{
	const struct table_kind kind = {
		.group = view->resource->group,
		.kind = view->resource->kind,
		.columns = view->resource->columns,
		.is_custom = view->resource->flags & RESOURCE_CUSTOM,
	};

	return table_new(&kind, items, metadata, view->objects, with_columns, clock_wall_us());
}

void view_object(const struct view *view, const struct blob *text, bool with_columns,
		 struct strbuf *out)
{
	json_auto_t *object = NULL, *items = NULL, *table = NULL;

	if (view->form == VIEW_OBJECT && !is_events(view->resource) &&
	    str_eq(view->resource->version, view->resource->stored_version)) {
		strbuf_add(out, text->text, text->len);
		return;
	}
	object = read(view, text);
	if (view->form != VIEW_TABLE) {
		json_write(object, out);
		return;
	}
	items = json_pack("[O]", object);
	table = new_table(view, items, json_at(object, "metadata"), with_columns);
	json_write(table, out);
}

void view_list(const struct view *view, const struct store_entry *const *entries, size_t n,
	       json_t *metadata, struct strbuf *out)
{
	const struct resource *resource = view->resource;
	auto_free char *version = resource_api_version(resource);
	json_auto_t *items = NULL, *table = NULL;

	assert(entries || n == 0);
	if (view->form == VIEW_TABLE) {
		items = json_array();
		for (size_t i = 0; i < n; i++)
			json_array_append_new(items, read(view, entries[i]->text));
		table = new_table(view, items, metadata, true);
		json_write(table, out);
		return;
	}
	if (view->form == VIEW_METADATA)
		strbuf_adds(out, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
				 "\"meta.k8s.io/v1\",\"metadata\":");
	else
		strbuf_addf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":",
			    resource->kind, version);
	json_write(metadata, out);
	strbuf_adds(out, ",\"items\":[");
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			strbuf_addc(out, ',');
		view_object(view, entries[i]->text, false, out);
	}
	strbuf_adds(out, "]}\n");
}

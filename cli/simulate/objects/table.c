// SPDX-License-Identifier: Apache-2.0
/* Tables: definitions of columns once, then a row of cells for each object. */
#include "cli/simulate/objects/table.h"

#include "cli/simulate/objects/cells.h"
#include "cli/simulate/objects/jsonpath.h"
#include "lib/json/json.h"

int table_path_check(const char *path, struct err *err)
{
	return jsonpath_check(path, err);
}

/* ---- columns --------------------------------------------------------------------------------- */

static void add_column(json_t *columns, const char *name, const char *type, const char *format,
		       const char *description, json_int_t priority)
{
	json_t *column = json_object();

	json_put_str(column, "name", name);
	json_put_str(column, "type", type);
	json_put_str(column, "format", format);
	json_put_str(column, "description", description);
	json_put_int(column, "priority", priority);
	json_array_append_new(columns, column);
}

/* Returns new. */
static json_t *columns_of(const struct table_kind *kind)
{
	const struct cells_kind *cells = cells_find(kind->group, kind->kind);
	json_t *columns = json_array();

	if (kind->is_custom) {
		const json_t *definition = NULL;
		size_t i = 0;

		add_column(columns, "Name", "string", "name", "Name of the object", 0);
		json_array_foreach (kind->columns, i, definition) {
			auto_free char *otherwise = str_printf(
				"Custom resource definition column (in JSONPath format): %s",
				json_str_or(json_at(definition, "jsonPath"), ""));

			add_column(columns, json_str_or(json_at(definition, "name"), ""),
				   json_str_or(json_at(definition, "type"), "string"),
				   json_str_or(json_at(definition, "format"), ""),
				   json_str_or(json_at(definition, "description"), otherwise),
				   json_integer_value(json_at(definition, "priority")));
		}
		if (!kind->columns)
			add_column(columns, "Age", "date", "", "Time since the object was created",
				   0);
	} else if (!cells) {
		add_column(columns, "Name", "string", "name", "Name of the object", 0);
		add_column(columns, "Created At", "date", "", "When the object was created", 0);
	} else {
		for (const struct cells_column *c = cells->columns; c->name; c++)
			add_column(columns, c->name, c->type, c->format, c->name, c->priority);
	}
	return columns;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* A value as a cell of a type; null when it cannot be one. Returns new. */
static json_t *custom_cell(const json_t *value, const char *type, int64_t now_us)
{
	auto_free char *text = NULL;

	if (!value || json_is_null(value))
		return json_null();
	if (str_eq(type, "integer")) {
		if (json_is_real(value))
			return json_integer((json_int_t)json_real_value(value));
		return json_is_integer(value) ? json_copy((json_t *)value) : json_null();
	}
	if (str_eq(type, "number"))
		return json_is_number(value) ? json_copy((json_t *)value) : json_null();
	if (str_eq(type, "boolean"))
		return json_is_boolean(value) ? json_incref((json_t *)value) : json_null();
	if (str_eq(type, "date"))
		return json_is_string(value) ? cells_age(value, now_us) : json_null();
	if (json_is_string(value))
		return json_copy((json_t *)value);
	text = json_text(value);
	return json_string(text);
}

/* Returns new. */
static json_t *cells_of(const struct table_kind *kind, const json_t *object, int64_t now_us)
{
	const struct cells_kind *known = cells_find(kind->group, kind->kind);
	json_t *cells = json_array();

	/* Events begin with when they happened. */
	if (kind->is_custom || !known || str_eq(known->columns[0].name, "Name"))
		json_array_append_new(cells, json_fmt("%s", json_name(object)));
	if (kind->is_custom) {
		const json_t *definition = NULL;
		size_t i = 0;

		json_array_foreach (kind->columns, i, definition) {
			const char *path = json_str_or(json_at(definition, "jsonPath"), "");

			json_array_append_new(
				cells,
				custom_cell(*path ? jsonpath_first(object, path) : NULL,
					    json_str_or(json_at(definition, "type"), "string"),
					    now_us));
		}
		if (!kind->columns)
			json_array_append_new(
				cells, cells_age(json_at(object, "metadata", "creationTimestamp"),
						 now_us));
	} else if (known)
		known->add(object, now_us, cells);
	else
		json_array_append_new(
			cells,
			json_fmt("%s", json_str_or(json_at(object, "metadata", "creationTimestamp"),
						   "")));
	return cells;
}

/* Returns new; NULL for none. */
static json_t *object_of(const json_t *object, enum table_objects objects)
{
	json_t *partial = NULL;

	switch (objects) {
	case TABLE_NONE:
		return NULL;
	case TABLE_WHOLE:
		return json_incref((json_t *)object);
	case TABLE_METADATA:
		break;
	}
	partial = json_object();
	json_put_str(partial, "kind", "PartialObjectMetadata");
	json_put_str(partial, "apiVersion", "meta.k8s.io/v1");
	if (json_at(object, "metadata"))
		json_object_set(partial, "metadata", json_at(object, "metadata"));
	return partial;
}

json_t *table_new(const struct table_kind *kind, const json_t *items, const json_t *list_metadata,
		  enum table_objects objects, bool with_columns, int64_t now_us)
{
	json_t *table = json_object();
	json_t *rows = json_array();
	const json_t *object = NULL;
	size_t i = 0;

	json_put_str(table, "kind", "Table");
	json_put_str(table, "apiVersion", "meta.k8s.io/v1");
	json_put(table, "metadata", list_metadata ? json_deep_copy(list_metadata) : json_object());
	json_put(table, "columnDefinitions", with_columns ? columns_of(kind) : json_array());
	json_array_foreach (items, i, object) {
		json_t *row = json_object();

		json_put(row, "cells", cells_of(kind, object, now_us));
		json_put(row, "object", object_of(object, objects));
		json_array_append_new(rows, row);
	}
	json_put(table, "rows", rows);
	return table;
}

// SPDX-License-Identifier: Apache-2.0
/* The list of managers: read from an object before a write, and written back sorted after it. */
#include "cli/simulate/objects/managers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/simulate/objects/fields.h"
#include "cli/simulate/objects/limits.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"

#define ANCIENT "ancient-changes"

static const char *text_of(const json_t *entry, const char *key)
{
	return json_str_or(json_at(entry, key), "");
}

/* The entry of `entries` that has the same manager, operation and subresource. */
static json_t *find_same(const json_t *entries, const json_t *entry)
{
	return managers_find(entries, text_of(entry, "manager"), text_of(entry, "operation"),
			     text_of(entry, "apiVersion"), text_of(entry, "subresource"));
}

json_t *managers_read(const json_t *object)
{
	json_t *entries = json_array();
	const json_t *written = NULL;
	size_t i = 0;

	json_array_foreach (json_at(object, "metadata", "managedFields"), i, written) {
		json_auto_t *set = fields_read(json_at(written, "fieldsV1"));
		json_t *entry = find_same(entries, written);

		if (!json_is_object(written) || json_object_size(written) == 0)
			continue;
		if (entry) {
			fields_add(managers_set(entry), set);
			continue;
		}
		entry = json_copy((json_t *)written);
		json_object_del(entry, "fieldsV1");
		json_object_del(entry, "fieldsType");
		managers_put_set(entry, take_ptr(set));
		json_array_append_new(entries, entry);
	}
	return entries;
}

/* Appliers first, then by time, then by name. */
static int compare_entries(const void *a, const void *b)
{
	static const char *const keys[] = {"operation", "time", "manager", "apiVersion",
					   "subresource"};
	const json_t *const *one = a, *const *other = b;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		int order = strcmp(text_of(*one, keys[i]), text_of(*other, keys[i]));

		if (order)
			return order;
	}
	return 0;
}

/* Return new, sorted. */
static json_t *sorted_entries(const json_t *entries)
{
	json_t *sorted = json_array();
	size_t n = json_array_size(entries);
	auto_free json_t **list = mem_calloc(n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = json_array_get(entries, i);
	qsort(list, n, sizeof(*list), compare_entries);
	for (size_t i = 0; i < n; i++)
		if (!fields_empty(managers_set(list[i])))
			json_array_append(sorted, list[i]);
	return sorted;
}

/* Index of the oldest update when there are more than the bound; else the size of the list. */
static size_t oldest_surplus(const json_t *sorted)
{
	size_t updates = 0, first = json_array_size(sorted);

	for (size_t i = json_array_size(sorted); i > 0; i--) {
		if (!str_eq(text_of(json_array_get(sorted, i - 1), "operation"), MANAGERS_UPDATE))
			continue;
		first = i - 1;
		updates++;
	}
	return updates > UPDATE_MANAGERS_MAX ? first : json_array_size(sorted);
}

/* The oldest updates beyond the bound are merged into one entry. */
static json_t *capped(json_t *sorted)
{
	while (oldest_surplus(sorted) + 1 < json_array_size(sorted)) {
		size_t at = oldest_surplus(sorted);
		json_t *oldest = json_array_get(sorted, at);
		json_t *next = json_array_get(sorted, at + 1);

		fields_add(managers_set(next), managers_set(oldest));
		json_put_str(next, "manager", ANCIENT);
		json_object_del(next, "subresource");
		json_array_remove(sorted, at);
	}
	return sorted;
}

void managers_write(json_t *object, json_t *entries)
{
	json_auto_t *owned = entries;
	json_auto_t *sorted = capped(sorted_entries(owned));
	json_t *metadata = json_need_object(object, "metadata");
	json_t *written = json_array();
	json_t *entry = NULL;
	size_t i = 0;

	json_array_foreach (sorted, i, entry) {
		json_t *copy = json_copy(entry);

		json_object_del(copy, "set");
		json_put_str(copy, "fieldsType", "FieldsV1");
		json_put(copy, "fieldsV1", fields_write(managers_set(entry)));
		json_array_append_new(written, copy);
	}
	if (json_array_size(written) > 0) {
		json_put(metadata, "managedFields", written);
	} else {
		json_decref(written);
		json_object_del(metadata, "managedFields");
	}
}

json_t *managers_find(const json_t *entries, const char *manager, const char *operation,
		      const char *api_version, const char *subresource)
{
	json_t *entry = NULL;
	size_t i = 0;

	json_array_foreach (entries, i, entry) {
		if (str_eq(text_of(entry, "manager"), manager) &&
		    str_eq(text_of(entry, "operation"), operation) &&
		    str_eq(text_of(entry, "subresource"), subresource ? subresource : "") &&
		    (str_eq(operation, MANAGERS_APPLY) ||
		     str_eq(text_of(entry, "apiVersion"), api_version)))
			return entry;
	}
	return NULL;
}

json_t *managers_need(json_t *entries, const char *manager, const char *operation,
		      const char *api_version, const char *subresource)
{
	json_t *entry = managers_find(entries, manager, operation, api_version, subresource);

	assert(json_is_array(entries) && manager && operation);
	if (entry)
		return entry;
	entry = json_object();
	json_put_str(entry, "manager", manager);
	json_put_str(entry, "operation", operation);
	json_put_str(entry, "apiVersion", api_version);
	json_put_str(entry, "subresource", subresource);
	managers_put_set(entry, json_object());
	json_array_append_new(entries, entry);
	return entry;
}

json_t *managers_set(const json_t *entry)
{
	return json_object_get(entry, "set");
}

void managers_put_set(json_t *entry, json_t *set)
{
	json_put(entry, "set", set);
}

void managers_put_time(json_t *entry, int64_t now_us)
{
	char text[RFC3339_SIZE];

	rfc3339_write(now_us, text);
	json_put_str(entry, "time", text);
}

char *managers_conflict(const json_t *entry)
{
	const char *subresource = text_of(entry, "subresource");
	bool updates = str_eq(text_of(entry, "operation"), MANAGERS_UPDATE);
	auto_free char *with =
		*subresource ? str_printf(" with subresource \"%s\"", subresource) : str_dup("");

	return str_printf("conflict with \"%s\"%s%s%s", text_of(entry, "manager"), with,
			  updates ? " using " : "", updates ? text_of(entry, "apiVersion") : "");
}

// SPDX-License-Identifier: Apache-2.0
/* Names that nodes have, counted; see the header. */
#include "reconcilers/sriov/node_names.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct node_names {
	struct map nodes; /* name to the number of nodes that have it, as a pointer */
};

struct node_names *node_names_new(void)
{
	return mem_new(struct node_names);
}

void node_names_free(struct node_names *names)
{
	if (!names)
		return;
	map_done(&names->nodes);
	mem_free(names);
}

static bool is_extended(const char *name)
{
	const char *slash = strchr(name, '/');
	auto_free char *domain = slash ? str_ndup(name, (size_t)(slash - name)) : NULL;

	return domain && !str_eq(domain, "kubernetes.io") && !str_ends(domain, ".kubernetes.io");
}

json_t *node_resources_of(const json_t *allocatable)
{
	json_t *names = NULL, *quantity;
	const char *name;

	json_each (allocatable, name, quantity) {
		if (!is_extended(name) || str_eq(json_string_value(quantity), "0"))
			continue;
		if (!names)
			names = json_object();
		json_put_bool(names, name, true);
	}
	return names;
}

/*
 * Whole devices of a Quantity as the API server writes one, 1000 as "1k" (apimachinery,
 * pkg/api/resource/quantity.go, CanonicalizeBytes); -1 for what is none.
 */
static int64_t devices_of(const char *quantity)
{
	static const char suffixes[] = "kMGTPE";
	size_t len = quantity ? strlen(quantity) : 0;
	const char *suffix = len > 0 ? strchr(suffixes, quantity[len - 1]) : NULL;
	auto_free char *digits = suffix ? str_ndup(quantity, len - 1) : NULL;
	int64_t count, unit = 1;

	for (const char *c = suffixes; suffix && c <= suffix; c++)
		unit *= 1000;
	return str_to_int(suffix ? digits : quantity, 0, INT64_MAX / unit, &count) ? count * unit
										   : -1;
}

int64_t node_allocatable(const json_t *node, const char *resource)
{
	const json_t *allocatable = json_at(node, "status", "allocatable");
	const json_t *quantity = json_object_get(allocatable, resource);

	assert(resource);
	if (!allocatable)
		return -1;
	return quantity ? devices_of(json_string_value(quantity)) : 0;
}

json_t *node_links_of(const json_t *state)
{
	const json_t *links = json_at(state, "status", "links");
	json_t *names = state ? json_object() : NULL, *link;
	size_t i;

	if (!state)
		return NULL;
	json_put_bool(names, links ? NODE_LINKS_REPORTED : NODE_LINKS_UNKNOWN, true);
	json_array_foreach (links, i, link)
		if (json_is_string(link) && !strchr(json_string_value(link), '/'))
			json_put_bool(names, json_string_value(link), true);
	return names;
}

static const char *const link_types[] = {"ETH", "IB"};

/* As agents write it, in upper case. */
static const char *link_type_of(const json_t *interface)
{
	for (size_t i = 0; i < ARRAY_LEN(link_types); i++)
		if (str_eq(json_str_at(interface, "linkType"), link_types[i]))
			return link_types[i];
	return NULL;
}

static void put_type(json_t *types, const char *what, const char *between, const char *type)
{
	auto_free char *key = str_printf("%s%s/%s", what, between, type);

	json_put_bool(types, key, true);
}

json_t *node_link_types_of(const json_t *state)
{
	json_t *types = state ? json_object() : NULL, *interface, *name, *group;
	size_t i, k;

	json_array_foreach (json_at(state, "status", "interfaces"), i, interface) {
		const char *type = link_type_of(interface);
		const json_t *wanted = json_find(json_at(state, "spec", "interfaces"), "pciAddress",
						 json_str_or(json_at(interface, "pciAddress"), ""));

		if (!type)
			continue;
		if (!str_empty(json_str_at(interface, "name")))
			put_type(types, json_str_at(interface, "name"), "", type);
		json_array_foreach (json_at(interface, "altNames"), k, name)
			if (json_is_string(name))
				put_type(types, json_string_value(name), "", type);
		json_array_foreach (json_at(wanted, "vfGroups"), k, group)
			if (!str_empty(json_str_at(group, "resourceName")))
				put_type(types, json_str_at(group, "resourceName"), "/", type);
	}
	return types;
}

const char *node_names_link_type(const struct node_names *names, const char *what)
{
	const char *found = NULL;

	assert(what);
	for (size_t i = 0; i < ARRAY_LEN(link_types); i++) {
		auto_free char *key = str_printf("%s/%s", what, link_types[i]);

		if (!node_names_have(names, key))
			continue;
		if (found)
			return NULL;
		found = link_types[i];
	}
	return found;
}

static uintptr_t count_of(const struct node_names *names, const char *name)
{
	return (uintptr_t)map_get(&names->nodes, name);
}

static void set_count(struct node_names *names, const char *name, uintptr_t count)
{
	if (count)
		map_set(&names->nodes, name, (void *)count);
	else
		map_del(&names->nodes, name);
}

/* The names that only one of them has. */
static json_t *difference(const json_t *a, const json_t *b)
{
	json_t *names = json_array(), *value;
	const char *name;

	json_each (a, name, value)
		if (!json_object_get(b, name))
			json_array_append_new(names, json_string(name));
	return names;
}

void node_names_update(struct node_names *names, const json_t *old, const json_t *now,
		       void (*changed)(void *arg, const char *name), void *arg)
{
	json_auto_t *gone = difference(old, now), *come = difference(now, old);
	json_t *name;
	size_t i;

	assert(changed);
	json_array_foreach (come, i, name) {
		uintptr_t count = count_of(names, json_string_value(name)) + 1;

		set_count(names, json_string_value(name), count);
		if (count == 1)
			changed(arg, json_string_value(name));
	}
	json_array_foreach (gone, i, name) {
		uintptr_t count = count_of(names, json_string_value(name));

		if (count == 0)
			continue;
		set_count(names, json_string_value(name), count - 1);
		if (count == 1)
			changed(arg, json_string_value(name));
	}
}

bool node_names_have(const struct node_names *names, const char *name)
{
	return count_of(names, name) > 0;
}

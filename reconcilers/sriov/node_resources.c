/*
 * Extended resources of the cluster, counted; see node_resources.h.
 */
#include "reconcilers/sriov/node_resources.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct node_resources {
	struct map nodes; /* name of a resource to the number of nodes, as a pointer */
};

struct node_resources *node_resources_new(void)
{
	return mem_new(struct node_resources);
}

void node_resources_free(struct node_resources *resources)
{
	if (!resources)
		return;
	map_done(&resources->nodes);
	mem_free(resources);
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

static uintptr_t count_of(const struct node_resources *resources, const char *name)
{
	return (uintptr_t)map_get(&resources->nodes, name);
}

static void set_count(struct node_resources *resources, const char *name, uintptr_t count)
{
	if (count)
		map_set(&resources->nodes, name, (void *)count);
	else
		map_del(&resources->nodes, name);
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

void node_resources_update(struct node_resources *resources, const json_t *old, const json_t *now,
			   void (*changed)(void *arg, const char *name), void *arg)
{
	const json_t *before = json_at(old, "status", "allocatable");
	const json_t *after = json_at(now, "status", "allocatable");
	json_auto_t *gone = difference(before, after), *come = difference(after, before);
	json_t *name;
	size_t i;

	json_array_foreach (come, i, name) {
		uintptr_t count = count_of(resources, json_string_value(name)) + 1;

		set_count(resources, json_string_value(name), count);
		if (count == 1)
			changed(arg, json_string_value(name));
	}
	json_array_foreach (gone, i, name) {
		uintptr_t count = count_of(resources, json_string_value(name));

		if (count == 0)
			continue;
		set_count(resources, json_string_value(name), count - 1);
		if (count == 1)
			changed(arg, json_string_value(name));
	}
}

bool node_resources_have(const struct node_resources *resources, const char *name)
{
	return count_of(resources, name) > 0;
}

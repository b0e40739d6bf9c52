// SPDX-License-Identifier: Apache-2.0
/*
 * The order is that of the pod's spec, not of the kubelet's answer: containers, then init
 * containers, addresses sorted within each. delegates.c takes devices from the front of the list as
 * networks need them.
 */
#include "nodeagent/cni/plan/devices.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

static int by_address(const void *a, const void *b)
{
	return pci_address_compare(*(const char *const *)a, *(const char *const *)b);
}

/* A container's devices of one resource, by address. */
static void add_container(json_t *found, const json_t *devices, const char *container,
			  const char *resource)
{
	auto_free const char **ids = NULL;
	json_t *entry, *id;
	size_t i, k, n = 0;

	json_array_foreach (devices, i, entry) {
		const json_t *some = json_at(entry, "ids");

		if (!str_eq(json_str_at(entry, "container"), container) ||
		    !str_eq(json_str_at(entry, "resource"), resource))
			continue;
		ids = mem_realloc(ids, (n + json_array_size(some) + 1) * sizeof(*ids));
		json_array_foreach (some, k, id)
			ids[n++] = json_str_or(id, "");
	}
	if (n > 1)
		qsort(ids, n, sizeof(*ids), by_address);
	for (i = 0; i < n; i++)
		if (*ids[i] && !json_list_has(found, ids[i]))
			json_array_append_new(found, json_string(ids[i]));
}

static const char *const kinds[] = {"containers", "initContainers"};

json_t *devices_of(const json_t *pod, const json_t *devices, const char *resource)
{
	json_t *found = json_array(), *container;
	size_t i, k;

	assert(resource);
	for (k = 0; k < ARRAY_LEN(kinds); k++)
		json_array_foreach (json_at(pod, "spec", kinds[k]), i, container)
			add_container(found, devices, json_str_or(json_at(container, "name"), ""),
				      resource);
	return found;
}

/* -1: it may be any number. */
static int64_t asked_for(const json_t *container, const char *resource)
{
	const json_t *limits = json_at(container, "resources", "limits");
	const json_t *limit = json_object_get(limits, resource);
	int64_t n;

	if (!json_at(container, "resources"))
		return -1;
	if (!limit)
		return 0;
	if (json_is_integer(limit))
		return json_integer_value(limit);
	return str_to_int(json_str_or(limit, ""), 0, INT32_MAX, &n) ? n : -1;
}

bool devices_beyond(const json_t *pod, const json_t *devices, const char *resource,
		    struct devices_beyond *ret)
{
	json_t *container;
	size_t i, k;

	assert(resource && ret);
	for (k = 0; k < ARRAY_LEN(kinds); k++)
		json_array_foreach (json_at(pod, "spec", kinds[k]), i, container) {
			json_auto_t *named = json_array();
			int64_t asked = asked_for(container, resource);

			add_container(named, devices, json_str_or(json_at(container, "name"), ""),
				      resource);
			if (asked < 0 || (int64_t)json_array_size(named) <= asked)
				continue;
			*ret = (struct devices_beyond){json_str_at(container, "name"),
						       json_array_size(named), asked};
			return true;
		}
	return false;
}

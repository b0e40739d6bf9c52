// SPDX-License-Identifier: Apache-2.0
/*
 * Devices of a pod. See the header.
 */
#include "nodeagent/meta/devices.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/model/pci_address.h"

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

json_t *devices_of(const json_t *pod, const json_t *devices, const char *resource)
{
	static const char *const kinds[] = {"containers", "initContainers"};
	json_t *found = json_array(), *container;
	size_t i, k;

	for (k = 0; k < ARRAY_LEN(kinds); k++)
		json_array_foreach (json_at(pod, "spec", kinds[k]), i, container)
			add_container(found, devices, json_str_or(json_at(container, "name"), ""),
				      resource);
	return found;
}

// SPDX-License-Identifier: Apache-2.0
/* The observed host, indexed: by address, by RDMA device, by file below /dev, by who has what. */
#include <assert.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

static void add_function(struct pools *pools, const json_t *seen, const json_t *pf)
{
	const char *address = json_str_at(seen, "pciAddress");
	const json_t *number = json_at(seen, "vfID");

	if (!address)
		return;
	pools->functions[pools->n_functions++] = (struct pools_function){
		.address = address,
		.seen = seen,
		.pf = pf,
		.number = pf && json_is_integer(number) ? json_integer_value(number) : -1,
	};
}

static size_t count_functions(const json_t *list)
{
	size_t count = 0, i;
	json_t *pf;

	json_array_foreach ((json_t *)list, i, pf)
		count += 1 + json_array_size(json_at(pf, "Vfs"));
	return count;
}

static void index_functions(struct pools *pools)
{
	const json_t *lists[] = {json_at(pools->input->observed, "interfaces"),
				 json_at(pools->input->observed, "unusable")};
	json_t *pf, *vf;
	size_t i, j;

	pools->functions = mem_calloc(count_functions(lists[0]) + count_functions(lists[1]) + 1,
				      sizeof(*pools->functions));
	for (size_t l = 0; l < ARRAY_LEN(lists); l++)
		json_array_foreach ((json_t *)lists[l], i, pf) {
			add_function(pools, pf, NULL);
			json_array_foreach (json_at(pf, "Vfs"), j, vf)
				add_function(pools, vf, pf);
		}
	for (i = 0; i < pools->n_functions; i++)
		map_set(&pools->by_address, pools->functions[i].address, &pools->functions[i]);
}

void pools_index(struct pools *pools)
{
	const char *resource, *id;
	json_t *devices, *who, *name;
	size_t i;
	json_t *device;

	assert(!pools->functions && !pools->rdma);
	index_functions(pools);
	pools->rdma = json_object();
	json_array_foreach (json_at(pools->input->observed, "rdma", "devices"), i, device) {
		const char *address = json_str_or(json_at(device, "pciAddress"),
						  json_str_at(device, "netdevPciAddress"));
		json_t *list;

		if (!address)
			continue;
		list = json_object_get(pools->rdma, address);
		if (!list) {
			list = json_array();
			json_put(pools->rdma, address, list);
		}
		json_array_append(list, device);
	}
	json_each (pools->input->allocated, resource, devices)
		json_each (devices, id, who)
			if (map_get(&pools->by_address, id))
				map_set(&pools->held, id, (void *)resource);
	json_array_foreach ((json_t *)pools->input->dev_names, i, name)
		if (json_is_string(name))
			map_set(&pools->dev_names, json_string_value(name), name);
}

const json_t *pools_rdma_of(const struct pools *pools, const char *address)
{
	assert(pools->rdma);
	return json_object_get(pools->rdma, address);
}

bool pools_has_file(const struct pools *pools, const char *name)
{
	return !pools->input->dev_names || map_get(&pools->dev_names, name);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs in the observed document: what sysfs says about their PCI functions, whatever driver has
 * them. No library of a vendor is asked.
 */
#include "nodeagent/host/view.h"

json_t *view_gpus(const struct view *view)
{
	json_t *ret = json_array(), *address;
	size_t i;

	json_array_foreach (view->gpus, i, address) {
		auto_free char *path = pci_bridges(view->host, json_string_value(address));
		json_t *gpu = json_object();
		int64_t node;

		json_object_set(gpu, "pciAddress", address);
		view_put_ids(view, json_string_value(address), gpu);
		if (sysfs_read_int(view->host,
				   pci_path(json_string_value(address), "numa_node").text, &node) &&
		    node >= 0)
			json_put_int(gpu, "numaNode", node);
		json_put_str(gpu, "path", path);
		json_array_append_new(ret, gpu);
	}
	return ret;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs in the observed document: what sysfs says about their PCI functions, whatever driver has
 * them. No library of a vendor is asked.
 */
#include "nodeagent/host/view.h"

bool view_is_gpu(const struct view *view, const char *address, int64_t class)
{
	/* Classes of linux/pci_ids.h, without the interface. Boards' own VGA is of other vendors. */
	static const struct {
		int64_t vendor;
		int64_t classes[3]; /* 0: none */
	} vendors[] = {
		{0x10de, {0x0300, 0x0302}},         /* NVIDIA: VGA, 3D controller */
		{0x1002, {0x0380, 0x1200}},         /* AMD: display, processing accelerator */
		{0x8086, {0x0300, 0x0302, 0x0380}}, /* Intel */
	};
	int64_t vendor;

	/* Display controllers and accelerators; of a GPU with SR-IOV the PF stands for all. */
	if ((class >> 16 != 0x03 && class >> 16 != 0x12) ||
	    !sysfs_read_int(view->host, pci_path(address, "vendor").text, &vendor) ||
	    pci_is_vf(view->host, address))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(vendors); i++)
		for (size_t k = 0; k < ARRAY_LEN(vendors[i].classes); k++)
			if (vendors[i].vendor == vendor && vendors[i].classes[k] == class >> 8)
				return true;
	return false;
}

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

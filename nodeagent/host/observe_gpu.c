// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs in the observed document: what sysfs says about their PCI functions, whatever driver has
 * them, and the names that device plugins of vendors give them. No library of a vendor is asked.
 */
#include <string.h>

#include "nodeagent/host/view.h"

/* /proc/driver/nvidia/gpus/<address>/information has some lines. */
enum { INFORMATION_MAX = 4096 };

/* "GPU UUID: \t GPU-…", by which NVIDIA's device plugin names the GPU. */
static void put_uuid(const struct view *view, const char *address, json_t *gpu)
{
	auto_free char *path = str_printf("proc/driver/nvidia/gpus/%s/information", address);
	static const char key[] = "GPU UUID:";
	auto_strbuf struct strbuf text = {0};
	const char *value;

	if (!sysfs_read_file(view->host, path, INFORMATION_MAX, &text))
		return;
	value = strstr(strbuf_str(&text), key);
	if (!value)
		return;
	value += strlen(key);
	value += strspn(value, " \t");
	json_put(gpu, "uuid", json_stringn(value, strcspn(value, STR_BLANKS)));
}

/* "card0", the number of the kernel's DRM: Intel's device plugin names the GPU by it. */
static void put_card(const struct view *view, const char *address, json_t *gpu)
{
	json_auto_t *names = sysfs_list(view->host, pci_path(address, "drm").text);
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		if (str_starts(json_string_value(name), "card"))
			json_object_set(gpu, "card", (json_t *)name);
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
		put_uuid(view, json_string_value(address), gpu);
		put_card(view, json_string_value(address), gpu);
		json_array_append_new(ret, gpu);
	}
	return ret;
}

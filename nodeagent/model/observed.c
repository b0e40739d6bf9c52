// SPDX-License-Identifier: Apache-2.0
/*
 * The observed document, read: for the status, which leaves out what only the agent needs, and for
 * questions about drivers that the planner and the device pools ask with the same answer. The host
 * code writes the document; this file never looks at a host.
 */
#include "nodeagent/model/observed.h"

#include <string.h>

#include "lib/base/pci_address.h"
#include "lib/json/json.h"

json_t *observed_status_interfaces(const json_t *observed)
{
	json_t *ret = json_deep_copy(json_at(observed, "interfaces")), *pf, *vf;
	size_t i, j;

	json_array_foreach (json_at(observed, "missing"), i, pf) {
		const char *address = json_str_or(json_at(pf, "pciAddress"), "");

		for (j = 0; j < json_array_size(ret); j++)
			if (pci_address_compare(
				    json_str_or(json_at(json_array_get(ret, j), "pciAddress"), ""),
				    address) >= 0)
				break;
		(void)json_array_insert_new(ret, j, json_deep_copy(pf));
	}
	json_array_foreach (ret, i, pf) {
		(void)json_object_del(pf, "host");
		(void)json_object_del(pf, "settingsUnsupported");
		(void)json_object_del(pf, "settingsUnreadable");
		json_array_foreach (json_object_get(pf, "Vfs"), j, vf) {
			(void)json_object_del(vf, "host");
		}
	}
	return ret;
}

bool observed_is_userspace_driver(const char *driver)
{
	return driver && (strstr(driver, "vfio") || str_eq(driver, "uio") ||
			  str_eq(driver, "uio_pci_generic") || str_eq(driver, "igb_uio"));
}

bool observed_vfs_drop_link(const char *driver)
{
	return str_eq(driver, "igb") || str_eq(driver, "ixgbe");
}

bool observed_vfs_get_rdma(const char *driver)
{
	return !str_eq(driver, "ice") && !str_eq(driver, "i40e");
}

json_t *observed_pod_of(const char *holder)
{
	const char *slash = strchr(holder, '/');

	slash = slash ? strchr(slash + 1, '/') : NULL;
	return slash ? json_stringn(holder, (size_t)(slash - holder)) : json_string(holder);
}

json_t *observed_functions(const json_t *allocated)
{
	json_t *functions = json_object();
	const char *resource, *id;
	json_t *devices, *holder;

	json_each (allocated, resource, devices)
		json_each (devices, id, holder)
			if (pci_address_is_valid(id))
				json_put(functions, id, observed_pod_of(json_str_or(holder, "")));
	return functions;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Reading the observed document. See the header.
 */
#include "nodeagent/model/observed.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/model/pci_address.h"

static void insert_sorted(json_t *list, json_t *entry)
{
	const char *address = json_str_or(json_at(entry, "pciAddress"), "");
	size_t i = 0;

	while (i < json_array_size(list) &&
	       pci_address_compare(json_str_or(json_at(json_array_get(list, i), "pciAddress"), ""),
				   address) < 0)
		i++;
	(void)json_array_insert_new(list, i, entry);
}

json_t *observed_status_interfaces(const json_t *observed)
{
	json_t *ret = json_deep_copy(json_at(observed, "interfaces")), *pf, *vf;
	size_t i, j;

	json_array_foreach (json_at(observed, "missing"), i, pf)
		insert_sorted(ret, json_deep_copy(pf));
	json_array_foreach (ret, i, pf) {
		(void)json_object_del(pf, "host");
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

/*
 * Reading the observed document. See the header.
 */
#include "nodeagent/host/observed.h"

#include "lib/json/json.h"
#include "nodeagent/host/pci.h"

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
	static const char *const names[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(driver, names[i]))
			return true;
	return false;
}

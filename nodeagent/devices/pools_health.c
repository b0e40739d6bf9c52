// SPDX-License-Identifier: Apache-2.0
/*
 * What is there and bound, and does no work all the same: firmware in error, a broken PCI Express
 * link, a port without link.
 */
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

/* A NIC that is offered as a whole may be down: the pod that gets it sets it up. */
static char *port_fault(const struct pools *pools, const json_t *port, bool has_to_be_up)
{
	const char *name =
		json_str_or(json_at(port, "name"), json_str_or(json_at(port, "pciAddress"), "?"));
	const json_t *devices = pools_rdma_of(pools, json_str_or(json_at(port, "pciAddress"), ""));
	const json_t *ports = json_at(json_array_get(devices, 0), "ports");
	const char *state = json_str_at(json_array_get(ports, 0), "state");
	bool is_ib = str_eq(json_str_at(port, "linkType"), "IB");

	/*
	 * InfiniBand: a cable is not enough, the subnet manager has to set the port up; the
	 * interface, which is of IPoIB, need not be.
	 */
	if (is_ib && str_eq(state, "ACTIVE"))
		return NULL;
	if (!json_is_true(json_at(port, "host", "noLink")))
		return is_ib && state
			       ? str_printf("its port %s is %s; is a subnet manager running?", name,
					    state)
			       : NULL;
	if (str_eq(json_str_at(port, "linkAdminState"), "down"))
		return has_to_be_up
			       ? str_printf("its port %s is down; ip link set %s up", name, name)
			       : NULL;
	return str_printf("its port %s has no link; check cable and switch", name);
}

char *pools_unwell(const struct pools *pools, const struct pools_function *function, bool is_held,
		   bool has_to_be_up)
{
	const json_t *port = function->pf ? function->pf : function->seen;
	const json_t *entries[] = {function->seen, port};

	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		const json_t *errors = json_at(entries[i], "host", "healthErrors");
		const char *address = json_str_or(json_at(entries[i], "pciAddress"), "?");

		if (json_array_size(errors) > 0)
			return str_printf("%s reports an error of its %s; see devlink health show "
					  "pci/%s",
					  address, json_str_or(json_array_get(errors, 0), "?"),
					  address);
	}
	if (json_at(port, "host", "brokenMs"))
		return str_printf("%s had a fatal PCI Express error in the last ten minutes; see "
				  "dmesg, and its slot",
				  json_str_or(json_at(port, "pciAddress"), "?"));
	return is_held ? NULL : port_fault(pools, port, has_to_be_up);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Counters of RDMA ports, from files of sysfs: counters_read() calls this for devices that the host
 * sees.
 */
#include "nodeagent/host/port_counters.h"

#include <assert.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/sysfs.h"

/*
 * Counters of a port, which sysfs alone has (Documentation/ABI/stable/sysfs-class-infiniband),
 * under the names of node_exporter. The kernel says "N/A (no PMA)" for what a driver does not
 * count.
 */
static const struct {
	const char *file, *name;
	int64_t unit; /* what one of it is */
} port_counters[] = {
	{"VL15_dropped", "vl15_dropped", 1},
	{"excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", 1},
	{"link_downed", "link_downed", 1},
	{"link_error_recovery", "link_error_recovery", 1},
	{"local_link_integrity_errors", "local_link_integrity_errors", 1},
	{"multicast_rcv_packets", "multicast_packets_received", 1},
	{"multicast_xmit_packets", "multicast_packets_transmitted", 1},
	{"port_rcv_constraint_errors", "port_constraint_errors_received", 1},
	{"port_rcv_data", "port_data_received_bytes", 4},
	{"port_rcv_errors", "port_errors_received", 1},
	{"port_rcv_packets", "port_packets_received", 1},
	{"port_rcv_remote_physical_errors", "port_receive_remote_physical_errors", 1},
	{"port_rcv_switch_relay_errors", "port_receive_switch_relay_errors", 1},
	{"port_xmit_constraint_errors", "port_constraint_errors_transmitted", 1},
	{"port_xmit_data", "port_data_transmitted_bytes", 4},
	{"port_xmit_discards", "port_discards_transmitted", 1},
	{"port_xmit_packets", "port_packets_transmitted", 1},
	{"port_xmit_wait", "port_transmit_wait", 1},
	{"symbol_error", "symbol_error", 1},
	{"unicast_rcv_packets", "unicast_packets_received", 1},
	{"unicast_xmit_packets", "unicast_packets_transmitted", 1},
};

void port_counters_put(struct host *host, const char *rdma, const json_t *ports, json_t *ret)
{
	json_t *counters = NULL, *port;
	size_t i;

	assert(json_is_object(ret));
	if (!rdma || strchr(rdma, '/'))
		return;
	json_array_foreach (ports, i, port) {
		auto_free char *folder = str_printf(
			"sys/class/infiniband/%s/ports/%" JSON_INTEGER_FORMAT "/counters", rdma,
			json_integer_value(port));

		if (!sysfs_exists(host, folder))
			continue;
		if (!counters)
			counters = json_need_object(ret, "port");
		for (size_t k = 0; k < ARRAY_LEN(port_counters); k++) {
			auto_free char *path = str_printf("%s/%s", folder, port_counters[k].file);
			int64_t value;

			if (sysfs_read_int(host, path, &value) && value >= 0 &&
			    value <= INT64_MAX / port_counters[k].unit)
				counted_add(counters, port_counters[k].name,
					    (uint64_t)(value * port_counters[k].unit));
		}
	}
}

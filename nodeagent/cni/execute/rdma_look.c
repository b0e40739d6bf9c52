// SPDX-License-Identifier: Apache-2.0
/*
 * The pod's namespace says which device is on which interface (NETLINK_RDMA), the node's sysfs
 * where the GIDs of its addresses are. Below nodeagent/cni/worker/job_files.c.
 */
#include "nodeagent/cni/execute/rdma_look.h"

#include <linux/netlink.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/rdma_move.h"
#include "nodeagent/cni/plan/rdma_rows.h"
#include "nodeagent/host/gids.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/rdma.h"

enum { PAUSE_US = 20000 };

static void add_port(json_t *ports, const char *device, const char *interface)
{
	json_t *port = json_object();

	json_put_str(port, "device", device);
	json_put_str(port, "interface", interface);
	json_array_append_new(ports, port);
}

/* [{"device", "interface"}], new; a device without a port that is on an interface has none. */
static json_t *list_ports(struct netlink *netlink, struct err *err)
{
	auto_rdma_devices struct rdma_devices devices = {0};
	json_t *ports;

	if (rdma_list_names(netlink, &devices, err) < 0)
		return NULL;
	ports = json_array();
	for (size_t i = 0; i < devices.n; i++) {
		struct rdma_device *device = &devices.items[i];
		size_t before = json_array_size(ports);

		/* One that has gone meanwhile has no ports. */
		if (rdma_list_ports(netlink, device, NULL) < 0)
			continue;
		for (size_t k = 0; k < device->n_ports; k++)
			if (device->ports[k].ndev_name[0])
				add_port(ports, device->name, device->ports[k].ndev_name);
		if (json_array_size(ports) == before)
			add_port(ports, device->name, NULL);
	}
	return ports;
}

static bool function_of(const struct host *host, const char *device, struct sysfs_text *ret)
{
	auto_free char *path = str_printf("sys/class/infiniband/%s/device", device);

	return sysfs_link(host, path, ret) && pci_address_is_valid(ret->text);
}

/* Linux before 5.14 does not say it of the interface. */
static void want_functions(const struct host *host, const json_t *ports, json_t *wanted)
{
	const json_t *port;
	struct sysfs_text text;
	size_t i;

	json_array_foreach ((json_t *)ports, i, port)
		if (json_at(port, "interface") &&
		    function_of(host, json_str_at(port, "device"), &text))
			json_array_append_new(json_at(wanted, "functions"), json_string(text.text));
}

/* Of the interface, or of the device that it shares; and the PF above. */
static void put_functions(const struct host *host, json_t *rows)
{
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *function = json_str_at(row, "function");
		struct sysfs_text text;

		if (!function && function_of(host, json_str_at(row, "rdmaDevice"), &text))
			json_put_str(row, "function", text.text);
		function = json_str_at(row, "function");
		if (function)
			json_put_str(row, "pf",
				     pci_physfn(host, function, &text) ? text.text : function);
	}
}

int rdma_look(int netns, struct host *host, json_t **ret_rows, struct err *err)
{
	auto_netns struct netns *ns = netns_open(netns, err);
	int64_t deadline = clock_ms() + RDMA_LOOK_MS;
	json_auto_t *ports = NULL, *look = NULL, *wanted = NULL, *gids = NULL;
	bool is_exclusive = false;

	if (!ns || rdma_is_exclusive(ns, &is_exclusive, err) < 0)
		return -1;
	ports = list_ports(netns_netlink(ns), err);
	if (!ports || netns_observe(ns, NETNS_LINKS | NETNS_ADDRESSES, &look, err) < 0)
		return -1;
	wanted = rdma_rows_wanted(look);
	want_functions(host, ports, wanted);
	gids = is_exclusive ? json_object() : gids_find(host, wanted, err);
	while (gids && !is_exclusive && !rdma_rows_are_complete(wanted, gids) &&
	       clock_ms() < deadline) {
		(void)usleep(PAUSE_US);
		json_replace(&gids, gids_find(host, wanted, err));
	}
	if (!gids)
		return -1;
	*ret_rows = rdma_rows(look, ports, gids, is_exclusive);
	put_functions(host, *ret_rows);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A list is made from sysfs and netlink of the host, then of other namespaces while a function of
 * the list is not found; a reading enters at most the one namespace that the list names. A worker
 * calls both for the agent's gatherings, one device after the other, and reports their failures.
 */
#include "nodeagent/host/counters.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/namespaces.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/port_counters.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/rtnl_link.h"
#include "nodeagent/netlink/rtnl_vf.h"

/* ---- where they are -------------------------------------------------------------------------- */

struct search {
	struct host *host;
	enum rdma_mode mode;
	struct rdma_devices rdma;          /* that the host sees */
	struct rtnl_interfaces interfaces; /* the host's */
	json_t *functions;                 /* { PCI address: entry } of those in question */
	json_t *names;                     /* { RDMA device: PCI address } of those on a function */
	json_t *owners;                    /* { interface: PCI address }, the host's */
	size_t away;                       /* functions that are elsewhere and not found yet */
};

static void add_rdma_names(struct search *search, const char *address)
{
	json_auto_t *verbs = sysfs_list(search->host, pci_path(address, "infiniband_verbs").text);
	json_auto_t *seen = sysfs_list(search->host, pci_path(address, "infiniband").text);
	json_t *name;
	size_t i;

	json_array_foreach (seen, i, name) {
		json_put_str(search->names, json_string_value(name), address);
	}
	/* Those of all namespaces are here (pci_is_away()). */
	json_array_foreach (verbs, i, name) {
		char file[128];
		struct sysfs_text device;
		json_auto_t *key = NULL;

		(void)snprintf(file, sizeof(file), "infiniband_verbs/%.64s/ibdev",
			       json_string_value(name));
		if (!sysfs_read(search->host, pci_path(address, file).text, &device))
			continue;
		key = json_fmt("%s", device.text);
		json_put_str(search->names, json_string_value(key), address);
	}
}

static void put_vf(const struct search *search, const char *address, json_t *entry)
{
	struct sysfs_text pf, netdev;
	int number;

	if (!pci_physfn(search->host, address, &pf))
		return;
	json_put_bool(entry, "isVf", true);
	json_put_str(entry, "pf", pf.text);
	if (pci_netdev(search->host, pf.text, &netdev))
		json_put_str(entry, "pfNetdev", netdev.text);
	number = pci_vf_number(search->host, address);
	if (number >= 0)
		json_put_int(entry, "vf", number);
}

static void put_interface(const struct rtnl_interfaces *list, const char *name, json_t *entry)
{
	const struct rtnl_interface *interface = rtnl_by_name(list, name);

	if (!interface)
		return;
	json_put_str(entry, "netdev", interface->name);
	json_put_int(entry, "ifindex", interface->index);
}

static void add_function(struct search *search, const char *address)
{
	json_t *entry = json_object();
	json_auto_t *vfs = json_array();
	struct sysfs_text driver, netdev, vf;
	bool has_driver = pci_driver(search->host, address, &driver);
	int64_t number;

	json_put_str(entry, "pciAddress", address);
	put_vf(search, address, entry);
	json_put_str(entry, "driver", has_driver ? driver.text : NULL);
	if (sysfs_read_int(search->host, pci_path(address, "numa_node").text, &number) &&
	    number >= 0)
		json_put_int(entry, "numaNode", number);
	for (int i = 0; i < PCI_VFS_MAX && pci_virtfn(search->host, address, i, &vf); i++)
		json_array_append_new(vfs, json_string(vf.text));
	if (json_array_size(vfs) > 0)
		json_put(entry, "vfs", json_incref(vfs));
	if (pci_netdev(search->host, address, &netdev))
		put_interface(&search->interfaces, netdev.text, entry);
	add_rdma_names(search, address);
	if (pci_is_away(search->host, address, has_driver ? driver.text : NULL)) {
		json_put_bool(entry, "away", true);
		search->away++;
	}
	json_put(search->functions, address, entry);
}

static int read_functions(struct search *search, const json_t *vfs, struct err *err)
{
	json_auto_t *names = sysfs_list(search->host, "sys/bus/pci/devices");
	json_t *name, *netdev;
	size_t i, k;

	if (!names)
		return err_sys(err, "HostUnreadable", "list /sys/bus/pci/devices");
	json_array_foreach (names, i, name) {
		const char *address = json_string_value(name);
		json_auto_t *netdevs = NULL;

		if (!pci_address_is_valid(address) || !pci_is_network(search->host, address))
			continue;
		netdevs = pci_netdevs(search->host, address);
		json_array_foreach (netdevs, k, netdev)
			json_put_str(search->owners, json_string_value(netdev), address);
		if (!vfs || !pci_is_vf(search->host, address) || json_list_has(vfs, address))
			add_function(search, address);
	}
	return 0;
}

static void put_rdma(const struct rdma_device *device, json_t *entry)
{
	json_t *ports = json_array();
	char guid[TEXT_GUID_SIZE];

	json_put_str(entry, "rdma", device->name);
	json_put_int(entry, "rdmaIndex", device->index);
	json_put_str(entry, "protocol", device->protocol[0] ? device->protocol : NULL);
	json_put_str(entry, "firmware", device->firmware[0] ? device->firmware : NULL);
	if (device->has_node_guid) {
		text_from_guid(device->node_guid, guid);
		json_put_str(entry, "nodeGuid", guid);
	}
	for (size_t i = 0; i < device->n_ports; i++)
		json_array_append_new(ports, json_integer(device->ports[i].number));
	if (device->n_ports > 0)
		json_put_str(entry, "state", rdma_port_state_name(device->ports[0].state));
	json_put(entry, "ports", ports);
}

/* A second RDMA device of a function is an entry of its own, without what is counted already. */
static void give_rdma(json_t *entry, const struct rdma_device *device, bool is_away)
{
	json_t *others = json_at(entry, "others"), *place = entry;

	if (!entry)
		return;
	if (json_at(entry, "rdma")) {
		place = json_object();
		if (!others) {
			others = json_array();
			json_put(entry, "others", others);
		}
		json_array_append_new(others, place);
	}
	put_rdma(device, place);
	if (is_away)
		json_put_bool(place, "rdmaAway", true);
}

/* Where the function of an RDMA device is: below it, or below the interface that it lies on. */
static const char *function_of(const struct search *search, const struct rdma_device *device,
			       const json_t *owners)
{
	json_auto_t *key = json_fmt("%s", device->name);
	const char *address = json_str_at(search->names, json_string_value(key));

	for (size_t i = 0; i < device->n_ports && !address; i++)
		if (device->ports[i].ndev_index)
			address = json_str_at(owners, device->ports[i].ndev_name);
	return address;
}

/* Behind it is a function, if one that is not in question. */
static bool is_on_function(const struct search *search, const char *device)
{
	auto_free char *path = str_printf("sys/class/infiniband/%s/device", device);
	struct sysfs_text target;

	return sysfs_link(search->host, path, &target) && pci_address_is_valid(target.text);
}

static void give_host_rdma(struct search *search, json_t *others)
{
	for (size_t i = 0; i < search->rdma.n; i++) {
		const struct rdma_device *device = &search->rdma.items[i];
		const char *address = function_of(search, device, search->owners);
		json_t *entry;

		if (address || is_on_function(search, device->name)) {
			if (address)
				give_rdma(json_object_get(search->functions, address), device,
					  false);
			continue;
		}
		entry = json_object();
		put_rdma(device, entry);
		for (size_t p = 0; p < device->n_ports; p++)
			if (device->ports[p].ndev_index)
				put_interface(&search->interfaces, device->ports[p].ndev_name,
					      entry);
		json_array_append_new(others, entry);
	}
}

/* ---- in other namespaces --------------------------------------------------------------------- */

struct visit {
	struct search *search;
	const struct host_namespace *namespace;
};

/* Linux before 5.14 does not say by netlink what an interface is part of. */
static void find_parent(struct host *host, struct rtnl_interface *interface)
{
	char bus[ETHTOOL_BUS_SIZE];

	if (interface->parent[0] || interface->kind[0] ||
	    !ethtool_bus(host, interface->name, bus) || !pci_address_is_valid(bus))
		return;
	(void)snprintf(interface->parent, sizeof(interface->parent), "%.*s", PCI_ADDRESS_SIZE - 1,
		       bus);
}

/* The entry of a function that is looked for, a part of which is here. */
static json_t *find_here(const struct visit *visit, const char *address)
{
	json_t *entry = address ? json_object_get(visit->search->functions, address) : NULL;
	json_t *namespace;

	if (!entry || !json_is_true(json_at(entry, "away")))
		return NULL;
	if (json_at(entry, "namespace"))
		return json_integer_value(json_at(entry, "namespace", "inode")) ==
				       (json_int_t)visit->namespace->inode
			       ? entry
			       : NULL;
	assert(visit->search->away > 0);
	namespace = json_object();
	json_put_str(namespace, "path", visit->namespace->path);
	json_put_int(namespace, "inode", (int64_t)visit->namespace->inode);
	json_put(entry, "namespace", namespace);
	visit->search->away--;
	return entry;
}

/*
 * In exclusive mode those that are here. In shared mode all are, and the host has them, too, but
 * for what they lie on.
 */
static void give_rdma_here(struct host *host, const struct visit *visit, const json_t *owners)
{
	struct search *search = visit->search;
	auto_rdma_devices struct rdma_devices list = {0};
	struct err err = {0};

	if (rdma_list_names(host->netlink, &list, &err) < 0)
		return;
	for (size_t i = 0; i < list.n; i++) {
		struct rdma_device *device = &list.items[i];
		json_auto_t *key = json_fmt("%s", device->name);
		bool is_function = json_object_get(search->names, json_string_value(key)) ||
				   is_on_function(search, device->name);
		const char *address;

		if (search->mode != RDMA_MODE_EXCLUSIVE && is_function)
			continue;
		if (rdma_list_ports(host->netlink, device, &err) < 0)
			continue;
		address = function_of(search, device, owners);
		give_rdma(find_here(visit, address), device, true);
	}
}

static int look_inside(struct host *host, void *arg, struct err *err)
{
	const struct visit *visit = arg;
	auto_interfaces struct rtnl_interfaces list = {0};
	json_auto_t *owners = json_object();

	if (rtnl_list(host->netlink, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		struct rtnl_interface *interface = &list.items[i];
		json_auto_t *name = json_fmt("%s", interface->name);
		json_t *entry;

		find_parent(host, interface);
		entry = find_here(visit, interface->parent);
		if (!entry)
			continue;
		json_put_str(owners, json_string_value(name), interface->parent);
		if (json_at(entry, "netdev"))
			continue;
		json_put(entry, "netdev", json_incref(name));
		json_put_bool(entry, "netdevAway", true);
	}
	give_rdma_here(host, visit, owners);
	return 0;
}

static bool look_into(void *arg, const struct host_namespace *namespace)
{
	struct search *search = arg;
	struct visit visit = {search, namespace};
	struct err err = {0};

	if (search->away == 0)
		return false;
	/* A namespace that cannot be entered has nothing that we can report. */
	(void)host_within(search->host, namespace->fd, look_inside, &visit, &err);
	return search->away > 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int compare_devices(const void *a, const void *b)
{
	const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;
	const char *mine = json_str_or(json_at(one, "pciAddress"), "");
	const char *theirs = json_str_or(json_at(other, "pciAddress"), "");

	if (!str_eq(mine, theirs))
		return mine[0] && theirs[0] ? pci_address_compare(mine, theirs)
					    : strcmp(mine, theirs);
	return strcmp(json_str_or(json_at(one, "rdma"), ""),
		      json_str_or(json_at(other, "rdma"), ""));
}

static json_t *sorted_devices(json_t *list)
{
	size_t n = json_array_size(list);
	auto_free json_t **items = mem_calloc(n + 1, sizeof(*items));
	json_t *ret = json_array();

	for (size_t i = 0; i < n; i++)
		items[i] = json_array_get(list, i);
	qsort(items, n, sizeof(*items), compare_devices);
	for (size_t i = 0; i < n; i++)
		json_array_append(ret, items[i]);
	return ret;
}

static json_t *list_devices(struct search *search)
{
	json_auto_t *list = json_array();
	const char *address;
	json_t *entry, *ret = json_object();

	give_host_rdma(search, list);
	if (search->away > 0)
		(void)host_namespaces(search->host, look_into, search, NULL);
	json_each (search->functions, address, entry) {
		static const char *const shared[] = {"pciAddress", "isVf",     "pf",
						     "pfNetdev",   "vf",       "numaNode",
						     "driver",     "namespace"};
		json_auto_t *others = json_incref(json_object_get(entry, "others"));
		json_t *other;
		size_t i;

		(void)json_object_del(entry, "others");
		(void)json_object_del(entry, "away");
		json_array_append(list, entry);
		json_array_foreach (others, i, other) {
			for (size_t k = 0; k < ARRAY_LEN(shared); k++)
				json_put(other, shared[k],
					 json_incref(json_object_get(entry, shared[k])));
			json_array_append(list, other);
		}
	}
	json_put(ret, "devices", sorted_devices(list));
	return ret;
}

json_t *counters_list(struct host *host, const json_t *vfs, struct err *err)
{
	struct search search = {.host = host,
				.mode = RDMA_MODE_UNKNOWN,
				.functions = json_object(),
				.names = json_object(),
				.owners = json_object()};
	struct err none = {0};
	json_t *ret = NULL;

	if (rtnl_list(host->netlink, &search.interfaces, err) == 0 &&
	    read_functions(&search, vfs, err) == 0) {
		/* A kernel without RDMA has devices all the same. */
		if (rdma_list(host, &search.rdma, &none) == 0)
			(void)rdma_get_mode(host->netlink, &search.mode, &none);
		ret = list_devices(&search);
	}
	rtnl_interfaces_done(&search.interfaces);
	rdma_devices_done(&search.rdma);
	json_decref(search.functions);
	json_decref(search.names);
	json_decref(search.owners);
	return ret;
}

/* ---- what they have counted ------------------------------------------------------------------ */

struct reading {
	const json_t *device;
	json_t *ret;
};

static void put_problem(const struct reading *reading, const struct err *err)
{
	if (!json_at(reading->ret, "problem"))
		json_put_str(reading->ret, "problem", err->text);
}

/*
 * A PF of mlx5 has thousands, one for each channel mostly. Those of virtual ports, of the wire
 * (mlx5, ice, bnxt_en), and "rx_prio3_pause", "tx_prio0_discards".
 */
static bool is_wanted(const char *name)
{
	static const char *const wire[] = {
		"link_down_events_phy",  "rx_crc_errors_phy", "rx_symbol_err_phy",
		"rx_pcs_symbol_err_phy", "rx_discards_phy",   "rx_crc_errors.nic",
		"rx_crc_errors",         "rx_fcs_err_frames",
	};

	if (strstr(name, "vport"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(wire); i++)
		if (str_eq(name, wire[i]))
			return true;
	return (str_starts(name, "rx_prio") || str_starts(name, "tx_prio")) &&
	       isdigit((unsigned char)name[7]) &&
	       (str_eq(name + 8, "_pause") || str_eq(name + 8, "_discards"));
}

static void read_rdma(struct host *host, const struct reading *reading)
{
	const json_t *index = json_at(reading->device, "rdmaIndex"), *port;
	json_t *counters;
	struct err err = {0};
	size_t i;

	if (!json_is_integer(index))
		return;
	counters = json_need_object(reading->ret, "rdma");
	json_array_foreach (json_at(reading->device, "ports"), i, port) {
		if (rdma_counters(host, (uint32_t)json_integer_value(index),
				  (uint32_t)json_integer_value(port), counters, &err) < 0)
			put_problem(reading, &err);
	}
}

static void read_interface(struct host *host, const struct reading *reading)
{
	const char *netdev = json_str_at(reading->device, "netdev");
	struct err err = {0};
	int64_t speed;

	if (!netdev)
		return;
	if (ethtool_statistics(host, netdev, is_wanted, json_need_object(reading->ret, "ethernet"),
			       &err) < 0)
		put_problem(reading, &err);
	/* A VF has no wire. */
	if (!json_is_true(json_at(reading->device, "isVf")))
		ethtool_wire(host, netdev, json_need_object(reading->ret, "ethernet"));
	if (ethtool_speed(host, netdev, &speed))
		json_put_int(reading->ret, "speedMbps", speed);
}

static bool is_away(const struct reading *reading, const char *what)
{
	return json_is_true(json_at(reading->device, what));
}

static int read_inside(struct host *host, void *arg, struct err *err)
{
	const struct reading *reading = arg;

	if (is_away(reading, "rdmaAway"))
		read_rdma(host, reading);
	if (is_away(reading, "netdevAway"))
		read_interface(host, reading);
	return 0;
}

/* Drivers of Intel's own releases (i40e, ice) count in files. */
static json_t *read_vf_files(struct host *host, const char *netdev)
{
	auto_free char *folder = str_printf("sys/class/net/%s/device/sriov", netdev);
	json_auto_t *numbers = sysfs_list(host, folder);
	json_t *ret = NULL, *number, *name;
	size_t i, k;

	json_array_foreach (numbers, i, number) {
		auto_free char *stats =
			str_printf("%s/%s/stats", folder, json_string_value(number));
		json_auto_t *names = sysfs_list(host, stats);
		json_t *counters;
		int64_t value;

		if (!names || !str_to_int(json_string_value(number), 0, PCI_VFS_MAX, &value))
			continue;
		if (!ret)
			ret = json_object();
		counters = json_need_object(ret, json_string_value(number));
		json_array_foreach (names, k, name) {
			auto_free char *file = str_printf("%s/%s", stats, json_string_value(name));

			if (sysfs_read_int(host, file, &value) && value >= 0)
				counted_add(counters, json_string_value(name), (uint64_t)value);
		}
	}
	return ret;
}

/* NULL: it has counted nothing, or does not count. */
static json_t *counters_of_vf(const struct rtnl_vf *vf)
{
	static const struct {
		const char *name;
		int type;
	} counters[] = {
		{"rx_packets", IFLA_VF_STATS_RX_PACKETS},
		{"tx_packets", IFLA_VF_STATS_TX_PACKETS},
		{"rx_bytes", IFLA_VF_STATS_RX_BYTES},
		{"tx_bytes", IFLA_VF_STATS_TX_BYTES},
		{"rx_broadcast", IFLA_VF_STATS_BROADCAST},
		{"rx_multicast", IFLA_VF_STATS_MULTICAST},
		{"rx_dropped", IFLA_VF_STATS_RX_DROPPED},
		{"tx_dropped", IFLA_VF_STATS_TX_DROPPED},
	};
	json_auto_t *ret = json_object();
	bool has_any = false;

	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		uint64_t value = vf->counters[counters[i].type];

		if (value == RTNL_VF_NOT_COUNTED)
			continue;
		counted_add(ret, counters[i].name, value);
		has_any |= value != 0;
	}
	return has_any ? take_ptr(ret) : NULL;
}

/*
 * What a PF has counted for its VFs, wherever they are: { "0": { "rx_bytes": 1, … } }, new. NULL
 * with err.
 */
static json_t *ask_vf_counters(struct host *host, int pf_index, struct err *err)
{
	auto_vfs struct rtnl_vfs list = {0};
	json_t *ret;

	if (rtnl_list_vfs(host->netlink, pf_index, true, &list, err) < 0)
		return NULL;
	ret = json_object();
	for (size_t i = 0; i < list.n; i++) {
		char key[16];

		if (!list.items[i].has_counters)
			continue;
		(void)snprintf(key, sizeof(key), "%u", list.items[i].index);
		json_put(ret, key, counters_of_vf(&list.items[i]));
	}
	return ret;
}

static void read_vfs(struct host *host, const struct reading *reading)
{
	const char *netdev = json_str_at(reading->device, "netdev");
	int64_t index = json_integer_value(json_at(reading->device, "ifindex"));
	struct err err = {0};
	json_t *vfs;

	if (!netdev || strchr(netdev, '/') || index <= 0 || index > INT32_MAX)
		return;
	vfs = read_vf_files(host, netdev);
	if (!vfs)
		vfs = ask_vf_counters(host, (int)index, &err);
	if (vfs)
		json_put(reading->ret, "vfs", vfs);
	else
		put_problem(reading, &err);
}

/* "Global tclass=106", of the drivers of mlnx-ofed. */
static void read_traffic_class(struct host *host, const struct reading *reading)
{
	const char *rdma = json_str_at(reading->device, "rdma"), *number;
	auto_free char *path =
		str_printf("sys/class/infiniband/%s/tc/1/traffic_class", rdma ? rdma : "");
	struct sysfs_text text;
	int64_t value;

	if (!rdma || strchr(rdma, '/') || !sysfs_read(host, path, &text))
		return;
	number = strstr(text.text, "tclass=");
	if (number && str_to_int(number + strlen("tclass="), 0, 255, &value))
		json_put_int(reading->ret, "trafficClass", value);
}

json_t *counters_read(struct host *host, const json_t *device, struct err *err)
{
	const json_t *namespace = json_at(device, "namespace");
	json_auto_t *ret = json_object();
	struct reading reading = {device, ret};

	if (namespace && host_within_path(host, json_str_or(json_at(namespace, "path"), ""),
					  (uint64_t)json_integer_value(json_at(namespace, "inode")),
					  read_inside, &reading, err) < 0)
		return NULL;
	if (!is_away(&reading, "rdmaAway")) {
		read_rdma(host, &reading);
		port_counters_put(host, json_str_at(device, "rdma"), json_at(device, "ports"), ret);
	}
	if (!is_away(&reading, "netdevAway"))
		read_interface(host, &reading);
	if (json_is_true(json_at(device, "isVf")))
		return json_incref(ret);
	if (json_at(device, "vfs") && !is_away(&reading, "netdevAway"))
		read_vfs(host, &reading);
	read_traffic_class(host, &reading);
	return json_incref(ret);
}

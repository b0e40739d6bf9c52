// SPDX-License-Identifier: Apache-2.0
/* The part "node" of the observed document, and which functions no step may touch. */
#include <assert.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/keys.h"
#include "nodeagent/host/holders.h"
#include "nodeagent/host/module.h"
#include "nodeagent/host/nextboot.h"
#include "nodeagent/host/view.h"
#include "nodeagent/netlink/rtnl_route.h"

/* A chain of VLAN on bond on bridge is three deep. */
#define DEPTH_MAX 16

/* ---- protected functions --------------------------------------------------------------------- */

static void add_function(const struct view *view, json_t *list, const char *address,
			 const char *interface, const char *reason)
{
	struct sysfs_text pf;
	json_t *entry;

	if (json_find(list, "pciAddress", address))
		return;
	entry = json_object();
	json_put_str(entry, "interface", interface);
	json_put_str(entry, "pciAddress", address);
	json_put_str(entry, "reason", reason);
	json_array_append_new(list, entry);
	if (pci_physfn(view->host, address, &pf))
		add_function(view, list, pf.text, interface, reason);
}

/*
 * Down to the hardware: what an interface lies on (VLAN, macvlan), and what is part of it (bond,
 * bridge, team, Open vSwitch: the datapath of which shows as ovs-system).
 */
static void add_below(const struct view *view, json_t *list, const struct rtnl_interface *interface,
		      const char *reason, int depth)
{
	const struct rtnl_interface *other;
	const char *address;

	if (!interface || depth == DEPTH_MAX)
		return;
	address = json_str_at(view->functions, interface->name);
	if (address)
		add_function(view, list, address, interface->name, reason);
	if (interface->lower && interface->lower != interface->index)
		add_below(view, list, rtnl_by_index(&view->interfaces, interface->lower), reason,
			  depth + 1);
	for (size_t i = 0; i < view->interfaces.n; i++)
		if (view->interfaces.items[i].master == interface->index)
			add_below(view, list, &view->interfaces.items[i], reason, depth + 1);
	if (!str_eq(interface->kind, "openvswitch") || str_eq(interface->name, "ovs-system"))
		return;
	other = rtnl_by_name(&view->interfaces, "ovs-system");
	if (other)
		add_below(view, list, other, reason, depth + 1);
}

static void protect_all(struct view *view, const struct rtnl_indices *list, const char *what)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct rtnl_interface *interface =
			rtnl_by_index(&view->interfaces, list->items[i]);
		auto_free char *reason = NULL;

		if (!interface)
			continue;
		reason = str_printf("carries %s (%s)", what, interface->name);
		add_below(view, view->protected, interface, reason, 0);
	}
}

static int read_protected(struct view *view, struct err *err)
{
	auto_indices struct rtnl_indices routes = {0};
	auto_indices struct rtnl_indices addresses = {0};

	if (rtnl_default_routes(view->host->netlink, &routes, err) < 0 ||
	    rtnl_with_addresses(view->host->netlink, view->host->node_addresses, &addresses, err) <
		    0)
		return -1;
	protect_all(view, &routes, "the default route");
	protect_all(view, &addresses, "the node's address");
	return 0;
}

void view_read_protected(struct view *view)
{
	struct err err = {0};

	assert(json_is_array(view->protected));
	if (read_protected(view, &err) < 0)
		view_problem(view, NULL, &err);
}

int host_why_protected(struct host *host, const char *pf, char **ret_reason, struct err *err)
{
	auto_call(view_done) struct view view = {.host = host};

	if (view_read_interfaces(&view, err) < 0 || read_protected(&view, err) < 0)
		return -1;
	*ret_reason = str_dup(view_protected(&view, pf));
	return 0;
}

const char *view_protected(const struct view *view, const char *address)
{
	return json_str_at(json_find(view->protected, "pciAddress", address), "reason");
}

/* ---- functions below interfaces of pods ------------------------------------------------------ */

void view_read_carriers(struct view *view, const json_t *uppers)
{
	const char *index;
	json_t *what;
	int64_t number;

	assert(json_is_array(view->carriers));
	json_each (uppers, index, what)
		if (str_to_int(index, 1, INT32_MAX, &number))
			add_below(view, view->carriers,
				  rtnl_by_index(&view->interfaces, (int)number),
				  json_str_or(what, ""), 0);
}

const char *view_carried(const struct view *view, const char *address)
{
	return json_str_at(json_find(view->carriers, "pciAddress", address), "reason");
}

int host_what_carried(struct host *host, const char *pf, char **ret_interface, struct err *err)
{
	auto_call(view_done) struct view view = {.host = host};
	json_auto_t *uppers = NULL, *namespaces = NULL;

	if (view_read_interfaces(&view, err) < 0)
		return -1;
	namespaces = holders_namespaces(host, &uppers, err);
	if (!namespaces)
		return -1;
	view_read_carriers(&view, uppers);
	*ret_interface = str_dup(view_carried(&view, pf));
	return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* "none [integrity] confidentiality" */
static void put_lockdown(const struct view *view, json_t *ret)
{
	struct sysfs_text text;
	char *start, *end;

	if (!sysfs_read(view->host, "sys/kernel/security/lockdown", &text))
		return;
	start = strchr(text.text, '[');
	end = start ? strchr(start, ']') : NULL;
	if (!end)
		return;
	*end = '\0';
	json_put_str(ret, "lockdown", start + 1);
}

static json_t *loaded_modules(const struct view *view)
{
	static const char *const names[] = {"ib_core", "ib_umad",  "ib_uverbs",
					    "mlx5_ib", "rdma_ucm", "vfio_pci"};
	json_t *ret = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (module_is_there(view->host, names[i]))
			json_array_append_new(ret, json_string(names[i]));
	return ret;
}

/* Programs that change the same NICs. The kernel keeps 15 characters of a name. */
static json_t *rival_programs(const struct view *view)
{
	static const char program[] = "sriov-network-config-daemon";
	json_auto_t *pids = sysfs_list(view->host, "proc");
	json_t *ret = json_array(), *pid;
	struct sysfs_text comm;
	int64_t number;
	size_t i;

	json_array_foreach (pids, i, pid) {
		char path[64];

		if (!str_to_int(json_string_value(pid), 1, INT32_MAX, &number))
			continue;
		(void)snprintf(path, sizeof(path), "proc/%d/comm", (int)number);
		if (sysfs_read(view->host, path, &comm) && strlen(comm.text) == 15 &&
		    strncmp(comm.text, program, 15) == 0)
			json_array_append_new(
				ret, json_pack("{s:s, s:i}", "name", program, "pid", (int)number));
	}
	return ret;
}

/* ---- what networks can be over --------------------------------------------------------------- */

/* More than a machine with 16 NICs, their VLANs and bonds has. */
#define LINKS_MAX 128

/* Not the ends of pods' and machines' own cables, nor VFs, which come and go with pods. */
static bool is_for_networks(const struct view *view, const struct rtnl_interface *interface)
{
	const char *function = json_str_at(view->functions, interface->name);

	if (interface->type == ARPHRD_LOOPBACK || str_eq(interface->kind, "veth") ||
	    str_eq(interface->kind, "tun"))
		return false;
	return !function || !pci_is_vf(view->host, function);
}

/* Sorted; NULL when they are too many to report. */
static json_t *links_of(const struct view *view)
{
	json_auto_t *names = json_object();
	auto_free const char **sorted = NULL;
	json_t *ret, *name;
	size_t n, k;

	for (size_t i = 0; i < view->interfaces.n; i++) {
		const struct rtnl_interface *interface = &view->interfaces.items[i];

		if (!is_for_networks(view, interface))
			continue;
		json_put_bool(names, interface->name, true);
		json_array_foreach (interface->alt_names, k, name)
			json_put_bool(names, json_string_value(name), true);
	}
	if (json_object_size(names) > LINKS_MAX)
		return NULL;
	sorted = json_sorted_keys(names, &n);
	ret = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(ret, json_string(sorted[i]));
	return ret;
}

json_t *view_node_entry(const struct view *view)
{
	auto_close int sysfs = root_open(view->host->root, "sys", O_RDONLY | O_DIRECTORY, 0);
	json_auto_t *groups = sysfs_list(view->host, "sys/kernel/iommu_groups");
	json_t *ret = json_object(), *address;
	bool has_sriov = false;
	struct sysfs_text boot;
	struct utsname system;
	struct statvfs fs;
	size_t i;

	next_boot_id(view->host, &boot);
	json_put_str(ret, "bootId", boot.text[0] ? boot.text : NULL);
	if (uname(&system) == 0)
		json_put_str(ret, "kernel", system.release);
	put_lockdown(view, ret);
	json_put_bool(ret, "iommu", json_array_size(groups) > 0);
	json_array_foreach (view->addresses, i, address)
		has_sriov = has_sriov || pci_has_sriov(view->host, json_string_value(address));
	json_put_bool(ret, "sriovKernel", has_sriov);
	json_put_bool(ret, "sysfsWritable",
		      sysfs >= 0 && fstatvfs(sysfs, &fs) == 0 && !(fs.f_flag & ST_RDONLY));
	json_put(ret, "protected", json_incref(view->protected));
	json_put(ret, "modules", loaded_modules(view));
	json_put(ret, "links", links_of(view));
	json_put_bool(ret, "networkManager",
		      sysfs_exists(view->host, "usr/sbin/NetworkManager") ||
			      sysfs_exists(view->host, "usr/bin/NetworkManager"));
	if (view->flags & HOST_OBSERVE_HOLDERS)
		json_put(ret, "rivals", rival_programs(view));
	return ret;
}

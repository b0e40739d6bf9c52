// SPDX-License-Identifier: Apache-2.0
/*
 * The observed document: what the kernel says is gathered in a view first, so that all parts are of
 * one moment as far as can be, then written down PF by PF. A worker calls this for each look of the
 * agent; a part that cannot be read becomes a problem in the document.
 */
#include "nodeagent/host/observe.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>

#include "nodeagent/host/boots.h"
#include "nodeagent/host/devlink.h"
#include "nodeagent/host/holders.h"
#include "nodeagent/host/pf_settings.h"
#include "nodeagent/host/udev.h"
#include "nodeagent/host/view.h"

/* ---- gathering ------------------------------------------------------------------------------- */

static int read_view(struct view *view, struct err *err)
{
	json_auto_t *uppers = NULL;
	struct err problem = {0};

	if (view_read_interfaces(view, err) < 0)
		return -1;
	view_read_rdma(view);
	if (devlink_list(view->host, &view->devlink, &problem) < 0)
		view_problem(view, NULL, &problem);
	if (json_array_size(view->devlink) > 0 &&
	    devlink_list_errors(view->host, NULL, &view->health, &problem) < 0)
		view_problem(view, NULL, &problem);
	view_read_protected(view);
	if (view->flags & HOST_OBSERVE_HOLDERS) {
		view->namespaces = holders_namespaces(view->host, &uppers, &problem);
		if (!view->namespaces)
			view_problem(view, NULL, &problem);
		view_read_carriers(view, uppers);
	}
	view->evidence = evidence_new(view->host);
	return 0;
}

/* ---- one PF ---------------------------------------------------------------------------------- */

static const char *oper_state(int state)
{
	/* IF_OPER_…, Documentation/networking/operstates.rst */
	static const char *const names[] = {"unknown", "notpresent", "down", "lowerlayerdown",
					    "testing", "dormant",    "up"};

	return state >= 0 && (size_t)state < ARRAY_LEN(names) ? names[state] : NULL;
}

static void put_interface(const struct view *view, const struct rtnl_interface *interface,
			  json_t *ret, json_t *host)
{
	const struct rtnl_interface *master = rtnl_by_index(&view->interfaces, interface->master);
	auto_free char *speed_path = str_printf("sys/class/net/%s/speed", interface->name);
	char text[3 * RTNL_ADDRESS_MAX];
	int64_t speed;

	json_put_str(ret, "name", interface->name);
	json_put(ret, "altNames", json_incref(interface->alt_names));
	if (interface->address.len) {
		text_from_octets(interface->address.octets, interface->address.len, text);
		json_put_str(ret, "mac", text);
	}
	json_put_int(ret, "mtu", interface->mtu);
	if (interface->type == ARPHRD_ETHER || interface->type == ARPHRD_INFINIBAND)
		json_put_str(ret, "linkType", interface->type == ARPHRD_ETHER ? "ETH" : "IB");
	json_put_str(ret, "linkAdminState", interface->up ? "up" : "down");
	/* -1 and 2^32 - 1 are what drivers say when they do not know. */
	if (sysfs_read_int(view->host, speed_path, &speed) && speed > 0 && speed < UINT32_MAX)
		json_put(ret, "linkSpeed", json_fmt("%lld Mb/s", (long long)speed));

	json_put_int(host, "ifindex", interface->index);
	if (interface->permanent.len) {
		text_from_octets(interface->permanent.octets, interface->permanent.len, text);
		json_put_str(host, "permanentMac", text);
	}
	if (interface->min_mtu)
		json_put_int(host, "minMtu", interface->min_mtu);
	if (interface->max_mtu)
		json_put_int(host, "maxMtu", interface->max_mtu);
	json_put_str(host, "operState", oper_state(interface->oper_state));
	if (interface->has_carrier)
		json_put_bool(host, "carrier", interface->carrier);
	if (interface->carrier_changes >= 0)
		json_put_int(host, "carrierChanges", interface->carrier_changes);
	json_put_str(host, "master", master ? master->name : NULL);
}

static void put_eswitch(struct view *view, const char *address, json_t *ret, json_t *host)
{
	bool has_devlink = json_list_has(view->devlink, address);
	enum devlink_mode mode = DEVLINK_MODE_LEGACY;
	struct err err = {0};

	/* No devlink, or no switch that it knows: VFs are what they have always been. */
	if (has_devlink && devlink_get_mode(view->host, address, &mode, &err) < 0) {
		/*
		 * mlx5 reports so for a function that does not manage its switch
		 * (drivers/net/ethernet/mellanox/mlx5/core/eswitch_offloads.c,
		 * mlx5_devlink_eswitch_get()): the host's PF of a BlueField in DPU mode, whose Arm
		 * cores do.
		 */
		if (err.sys == EPERM && str_eq(json_str_at(ret, "driver"), "mlx5_core")) {
			json_put_bool(host, "switchElsewhere", true);
		} else if (err.sys != EOPNOTSUPP && err.sys != ENODEV) {
			view_problem(view, address, &err);
			return;
		}
	}
	json_put_str(ret, "eSwitchMode", devlink_mode_name(mode));
}

static void put_vfs(struct view *view, const char *address, const struct rtnl_interface *interface,
		    json_t *ret, json_t *host)
{
	auto_vfs struct rtnl_vfs reported = {0};
	json_t *vfs = json_array();
	struct err err = {0};
	struct sysfs_text vf;
	int64_t used = 0;
	int n = 0;

	if (interface && pci_virtfn(view->host, address, 0, &vf) &&
	    rtnl_list_vfs(view->host->netlink, interface->index, false, &reported, &err) < 0)
		view_problem(view, address, &err);
	for (; n < PCI_VFS_MAX && pci_virtfn(view->host, address, n, &vf); n++) {
		json_t *entry = view_vf_entry(view, address, n, vf.text, &reported);

		used += json_is_true(json_at(entry, "host", "inUse"));
		json_array_append_new(vfs, entry);
	}
	json_put_int(ret, "numVfs", n);
	json_put(ret, "Vfs", vfs);
	json_put_int(host, "usedVfs", used);
	json_put_int(host, "freeVfs", n - used);
}

static void put_sriov(struct view *view, const char *address,
		      const struct rtnl_interface *interface, json_t *ret, json_t *host)
{
	struct sysfs_text text;
	int64_t number;

	if (!pci_has_sriov(view->host, address))
		return;
	if (sysfs_read_int(view->host, pci_path(address, "sriov_totalvfs").text, &number))
		json_put_int(ret, "totalvfs", number);
	if (sysfs_read_int(view->host, pci_path(address, "sriov_drivers_autoprobe").text, &number))
		json_put_bool(host, "driversAutoprobe", number != 0);
	if (sysfs_read(view->host, pci_path(address, "sriov_vf_device").text, &text))
		json_put_str(host, "vfDeviceID", text.text);
	put_eswitch(view, address, ret, host);
	put_vfs(view, address, interface, ret, host);
}

/*
 * The bond that it is a port of, with all ports that are functions and the RDMA devices that they
 * have.
 */
static json_t *lag_entry(const struct view *view, const struct rtnl_interface *interface)
{
	const struct rtnl_interface *bond = rtnl_by_index(&view->interfaces, interface->master);
	json_t *ret, *ports, *devices, *address;
	size_t i;

	if (!bond || !str_eq(bond->kind, "bond"))
		return NULL;
	ret = json_object();
	ports = json_array();
	devices = json_array();
	json_array_foreach (view->addresses, i, address) {
		const struct rtnl_interface *port =
			view_interface(view, json_string_value(address));
		json_auto_t *names = NULL;

		if (!port || port->master != bond->index)
			continue;
		json_array_append(ports, address);
		names = view_rdma_names(view, json_string_value(address));
		json_array_extend(devices, names);
	}
	json_put_str(ret, "bond", bond->name);
	json_put(ret, "ports", ports);
	json_put(ret, "rdma", devices);
	return ret;
}

static void put_settings(struct view *view, const char *address, json_t *ret)
{
	const struct pf_settings all = {json_object(), json_object(), json_object()};

	pf_settings_read(view->host, address, NULL, &all);
	json_put(ret, "settings", all.values);
	json_put(ret, "settingsUnsupported", all.unsupported);
	json_put(ret, "settingsUnreadable", all.failed);
}

static json_t *pf_entry(struct view *view, const char *address)
{
	const struct rtnl_interface *interface = view_interface(view, address);
	auto_free char *path = pci_bridges(view->host, address);
	json_t *ret = json_object(), *host = json_object();
	struct sysfs_text driver;
	int64_t n;

	json_put_str(ret, "pciAddress", address);
	view_put_ids(view, address, ret);
	if (pci_driver(view->host, address, &driver))
		json_put_str(ret, "driver", driver.text);
	if (interface)
		put_interface(view, interface, ret, host);
	if (interface)
		json_put(host, "lag", lag_entry(view, interface));
	if (pci_errors(view->host, address, "aer_dev_fatal", &n))
		json_put_int(host, "fatalPciErrors", n);
	if (pci_errors(view->host, address, "aer_dev_nonfatal", &n))
		json_put_int(host, "nonFatalPciErrors", n);
	json_put(host, "healthErrors", json_incref(json_object_get(view->health, address)));
	view_put_location(view, address, host);
	json_put_str(host, "path", path);
	/* Also without SR-IOV: it may be what turns that on. */
	json_put_bool(host, "devlink", json_list_has(view->devlink, address));
	put_sriov(view, address, interface, ret, host);
	if (interface && (view->flags & HOST_OBSERVE_SETTINGS))
		put_settings(view, address, ret);
	json_put(host, "rdma", view_rdma_names(view, address));
	json_put_str(host, "protected", view_protected(view, address));
	json_put_str(host, "carries", view_carried(view, address));
	json_put(host, "udevRules", udev_rules_of(view->host, address));
	json_put(ret, "host", host);
	return ret;
}

static void add_pf(struct view *view, const char *address, json_t *interfaces, json_t *unusable)
{
	json_t *pf = pf_entry(view, address);
	bool has_driver = json_at(pf, "driver");

	if (has_driver && json_at(pf, "name")) {
		json_array_append_new(interfaces, pf);
		return;
	}
	json_put_str(pf, "reason", has_driver ? "NoInterface" : "NoDriver");
	json_put_str(pf, "message",
		     has_driver ? "its driver shows no network interface in the host's network "
				  "namespace: for InfiniBand load ib_ipoib"
				: "no driver is bound to it: load the driver of this NIC");
	json_array_append_new(unusable, pf);
}

json_t *host_observe(struct host *host, unsigned int flags, struct err *err)
{
	auto_call(view_done) struct view view = {.host = host, .flags = flags};
	json_t *ret, *interfaces, *unusable, *address;
	size_t i;

	if (read_view(&view, err) < 0)
		return NULL;
	ret = json_object();
	interfaces = json_array();
	unusable = json_array();
	json_array_foreach (view.addresses, i, address) {
		if (!pci_is_vf(host, json_string_value(address)))
			add_pf(&view, json_string_value(address), interfaces, unusable);
	}
	json_put(ret, "interfaces", interfaces);
	json_put(ret, "unusable", unusable);
	json_put(ret, "gpus", view_gpus(&view));
	json_put_str(ret, "gpusUnknown", view.gpus_unknown);
	json_put(ret, "rdma", view_rdma_entry(&view));
	json_put(ret, "node", view_node_entry(&view));
	json_put(ret, "boots", boots_observe(view.host));
	json_put(ret, "problems", json_incref(view.problems));
	return ret;
}

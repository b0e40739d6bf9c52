// SPDX-License-Identifier: Apache-2.0
/* One VF in the observed document. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "nodeagent/host/holders.h"
#include "nodeagent/host/view.h"

/* ---- what a function has --------------------------------------------------------------------- */

void view_put_ids(const struct view *view, const char *address, json_t *ret)
{
	int64_t id;

	if (sysfs_read_int(view->host, pci_path(address, "vendor").text, &id))
		json_put(ret, "vendor", json_fmt("%04x", (unsigned int)(id & 0xffff)));
	if (sysfs_read_int(view->host, pci_path(address, "device").text, &id))
		json_put(ret, "deviceID", json_fmt("%04x", (unsigned int)(id & 0xffff)));
}

void view_put_location(const struct view *view, const char *address, json_t *ret)
{
	auto_free char *root = pci_bridges(view->host, address);
	struct sysfs_text group;
	int64_t number;

	if (sysfs_read_int(view->host, pci_path(address, "numa_node").text, &number) && number >= 0)
		json_put_int(ret, "numaNode", number);
	if (sysfs_link(view->host, pci_path(address, "iommu_group").text, &group) &&
	    sysfs_parse_int(group.text, &number))
		json_put_int(ret, "iommuGroup", number);
	if (!root)
		return;
	/*
	 * "pci0000:3a": the host bridge, which is what a path below /sys/devices begins with. What
	 * stands close to each other for peer-to-peer transfers has the same one.
	 */
	root[strcspn(root, "/")] = '\0';
	json_put_str(ret, "pcieRoot", root);
}

json_t *view_rdma_names(const struct view *view, const char *address)
{
	json_t *names = sysfs_list(view->host, pci_path(address, "infiniband").text);
	json_t *ret = names ? names : json_array();

	/* Software devices lie on the interface, not on the function. */
	for (size_t i = 0; i < view->rdma.n; i++) {
		const struct rdma_device *device = &view->rdma.items[i];

		if (names || device->n_ports == 0 || !device->ports[0].ndev_index)
			continue;
		if (str_eq(json_str_at(view->functions, device->ports[0].ndev_name), address))
			json_array_append_new(ret, json_string(device->name));
	}
	return ret;
}

const struct rtnl_interface *view_interface(const struct view *view, const char *address)
{
	struct sysfs_text name;

	return pci_netdev(view->host, address, &name) ? rtnl_by_name(&view->interfaces, name.text)
						      : NULL;
}

/* ---- who holds it ---------------------------------------------------------------------------- */

/* The answer of evidence.h that was asked for last. */
static void put_user(const struct view *view, const char *who, json_t *holder)
{
	json_put_str(holder, "name", who);
	if (who && evidence_is_unknown(view->evidence))
		json_put_bool(holder, "unknown", true);
}

static bool vfio_holder(const struct view *view, const char *vf, const char *driver, json_t *holder)
{
	auto_free char *who = NULL;

	json_put_str(holder, "kind", "vfio");
	if (!(view->flags & HOST_OBSERVE_HOLDERS))
		return true;
	who = evidence_vfio_user(view->evidence, vf, driver);
	json_put_bool(holder, "open", who != NULL);
	put_user(view, who, holder);
	return who != NULL;
}

static bool verbs_holder(const struct view *view, const char *vf, json_t *holder)
{
	auto_free char *who = NULL;

	if (view->flags & HOST_OBSERVE_HOLDERS)
		who = evidence_verbs_user(view->evidence, vf);
	if (!who)
		return false;
	json_put_str(holder, "kind", "process");
	put_user(view, who, holder);
	return true;
}

/* Few questions, so each look asks them: what the node uses is not to be offered to pods. */
static bool node_holder(const struct view *view, const char *vf, json_t *holder)
{
	auto_free char *who = evidence_node_user(view->evidence, vf);

	put_user(view, who, holder);
	return who != NULL;
}

/* Any evidence counts; disagreement is "in use" (docs/host.md). */
static bool find_holder(const struct view *view, const char *vf, const char *driver, json_t *holder)
{
	struct sysfs_text claim;
	bool claimed = holders_claim(view->host, vf, &claim);

	if (observed_is_userspace_driver(driver)) {
		if (vfio_holder(view, vf, driver, holder) || !claimed)
			return !json_is_false(json_at(holder, "open"));
	} else if (pci_is_away(view->host, vf, driver)) {
		const char *name = json_str_at(view->namespaces, vf);

		json_put_str(holder, "kind", "netns");
		json_put_str(holder, "name", name ? name : claimed ? claim.text : NULL);
		return true;
	}
	if (claimed) {
		json_put_str(holder, "kind", "claimed");
		json_put_str(holder, "name", claim.text);
		return true;
	}
	if (view_carried(view, vf)) {
		json_put_str(holder, "kind", "netns");
		json_put_str(holder, "name", view_carried(view, vf));
		return true;
	}
	if (verbs_holder(view, vf, holder))
		return true;
	json_put_str(holder, "kind", driver ? "host" : "none");
	return driver && node_holder(view, vf, holder);
}

/* ---- the entry ------------------------------------------------------------------------------- */

static void put_interface(const struct rtnl_interface *interface, json_t *ret, json_t *host)
{
	char text[3 * RTNL_ADDRESS_MAX];

	json_put_str(ret, "name", interface->name);
	if (interface->address.len) {
		text_from_octets(interface->address.octets, interface->address.len, text);
		json_put_str(ret, "mac", text);
	}
	json_put_int(ret, "mtu", interface->mtu);
	json_put_int(host, "ifindex", interface->index);
	json_put_str(host, "linkAdminState", interface->up ? "up" : "down");
	json_put(host, "altNames", json_incref(interface->alt_names));
	if (interface->permanent.len) {
		text_from_octets(interface->permanent.octets, interface->permanent.len, text);
		json_put_str(host, "permanentMac", text);
	}
	if (interface->max_mtu)
		json_put_int(host, "maxMtu", interface->max_mtu);
}

static void put_reported(const struct rtnl_vf *reported, json_t *host)
{
	static const char *const states[] = {"auto", "enable", "disable"};
	char text[TEXT_MAC_SIZE];

	if (!text_mac_is_zero(reported->mac)) {
		text_from_octets(reported->mac, sizeof(reported->mac), text);
		json_put_str(host, "adminMac", text);
	}
	if (reported->has_link_state && reported->link_state < ARRAY_LEN(states))
		json_put_str(host, "linkState", states[reported->link_state]);
	if (reported->has_node_guid && reported->node_guid)
		view_put_guid(host, "adminNodeGuid", reported->node_guid);
	if (reported->has_port_guid && reported->port_guid)
		view_put_guid(host, "adminPortGuid", reported->port_guid);
}

static void put_representor(const struct view *view, const char *pf, int number, json_t *ret)
{
	json_auto_t *names = pci_netdevs(view->host, pf);
	json_t *name;
	size_t i;

	/* In legacy mode there is the PF's own interface only. */
	if (json_array_size(names) < 2)
		return;
	json_array_foreach (names, i, name) {
		auto_free char *path =
			str_printf("sys/class/net/%s/phys_port_name", json_string_value(name));
		struct sysfs_text text;
		const char *vf;
		int64_t found;

		if (!sysfs_read(view->host, path, &text))
			continue;
		vf = strstr(text.text, "vf");
		if (vf && strstr(text.text, "pf") && str_to_int(vf + 2, 0, PCI_VFS_MAX, &found) &&
		    found == number)
			json_put_str(ret, "representorName", json_string_value(name));
	}
}

json_t *view_vf_entry(const struct view *view, const char *pf, int number, const char *address,
		      const struct rtnl_vfs *reported)
{
	json_t *ret = json_object(), *host = json_object(), *holder = json_object();
	const struct rtnl_interface *interface = view_interface(view, address);
	const struct rtnl_vf *vf = rtnl_vf_by_number(reported, (uint32_t)number);
	json_t *names = view_rdma_names(view, address);
	struct sysfs_text driver, override;
	bool bound = pci_driver(view->host, address, &driver);
	const struct rdma_device *device;

	assert(number >= 0 && number < PCI_VFS_MAX);
	json_put_int(ret, "vfID", number);
	json_put_str(ret, "pciAddress", address);
	view_put_ids(view, address, ret);
	json_put_str(ret, "driver", bound ? driver.text : NULL);
	/* The single RDMA device's; with two it would be a guess. */
	if (json_array_size(names) == 1) {
		device = view_rdma_device(view, json_string_value(json_array_get(names, 0)));
		if (device && device->has_node_guid)
			view_put_guid(ret, "guid", device->node_guid);
	}
	/* What uses the vDPA device that the VF is. */
	if (evidence_vdpa_driver(view->host, address, &driver)) {
		if (str_eq(driver.text, "vhost_vdpa"))
			json_put_str(ret, "vdpaType", "vhost");
		else if (str_eq(driver.text, "virtio_vdpa"))
			json_put_str(ret, "vdpaType", "virtio");
	}
	put_representor(view, pf, number, ret);
	if (interface)
		put_interface(interface, ret, host);
	if (vf)
		put_reported(vf, host);
	json_put(host, "healthErrors", json_incref(json_object_get(view->health, address)));
	view_put_location(view, address, host);
	if (sysfs_read(view->host, pci_path(address, "driver_override").text, &override) &&
	    !str_eq(override.text, "(null)"))
		json_put_str(host, "driverOverride", override.text);
	json_put_bool(host, "inUse",
		      find_holder(view, address, bound ? driver.text : NULL, holder));
	json_put(host, "holder", holder);
	json_put(host, "rdma", names);
	json_put(ret, "host", host);
	return ret;
}

/*
 * Steps through rtnetlink: interfaces of PFs and VFs, and what a PF gives its VFs
 * (Documentation/networking/device_drivers/ethernet/mellanox/mlx5).
 */
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <stdio.h>

#include "nodeagent/host/execute_internal.h"

/* ---- interfaces ------------------------------------------------------------------------------ */

/* The interface of a function as it is now; `list` holds it. */
static int interface_of(const struct run *run, const char *address, struct rtnl_interfaces *list,
			struct err *err)
{
	struct sysfs_text name;
	char path[160];
	int64_t index;

	if (!pci_netdev(run->host, address, &name))
		return err_set(err, ERR_HOST, "NoInterface",
			       "%s has no network interface that we see: it needs its network "
			       "driver, or it is in a pod",
			       address);
	(void)snprintf(path, sizeof(path), "sys/class/net/%.64s/ifindex", name.text);
	if (!sysfs_read_int(run->host, path, &index))
		return err_set(err, ERR_TRANSIENT, "InterfaceGone", "%s: interface %s is gone",
			       address, name.text);
	return rtnl_get(run->host, (int)index, list, err);
}

/* The field "device" may be a PF or a VF. */
static int device_of(const struct run *run, const char **ret, struct err *err)
{
	const char *device = run_str(run, "device");

	if (!pci_is_vf(run->host, device))
		return run_pf(run, "device", ret, err);
	*ret = device;
	return evidence_check_attached(run->host, device, err);
}

static int check_mtu(const struct run *run, const char *device, uint32_t mtu,
		     const struct rtnl_interface *interface, struct err *err)
{
	if (interface->max_mtu && (mtu > interface->max_mtu || mtu < interface->min_mtu))
		return err_set(err, ERR_INVALID, "MtuOutOfRange",
			       "%s (%s): MTU %u asked for, its driver takes %u to %u", device,
			       interface->name, mtu, interface->min_mtu, interface->max_mtu);
	if (!pci_is_vf(run->host, device))
		return run_refuse_protected(run, device, err);
	/* One that is down is used by nobody, also when a pod of the last boot waits for it. */
	return interface->up ? evidence_glance_vf(run->host, device, err) : 0;
}

int run_set_mtu(struct run *run, struct err *err)
{
	static const struct hint hints[] = {
		{EINVAL, "the driver does not take it: raise the PF's MTU before its VFs'"},
		{EBUSY, "the driver does not take it now"},
		{0, NULL},
	};
	auto_interfaces struct rtnl_interfaces before = {0};
	auto_interfaces struct rtnl_interfaces after = {0};
	uint32_t mtu = (uint32_t)run_int(run, "mtu");
	const char *device;

	if (device_of(run, &device, err) < 0 || interface_of(run, device, &before, err) < 0)
		return -1;
	json_put_int(run->result, "was", before.items[0].mtu);
	json_put_int(run->result, "now", mtu);
	if (before.items[0].mtu == mtu)
		return 0;
	if (check_mtu(run, device, mtu, &before.items[0], err) < 0)
		return -1;
	if (rtnl_set_mtu(run->host, before.items[0].index, mtu, err) < 0)
		return run_refused(err, "MtuRefused", hints, "%s (%s): set MTU %u", device,
				   before.items[0].name, mtu);
	if (interface_of(run, device, &after, err) < 0)
		return -1;
	if (after.items[0].mtu != mtu)
		return run_not_as_asked(err, "%s (%s): MTU is %u, not %u", device,
					after.items[0].name, after.items[0].mtu, mtu);
	run->changed = true;
	return 0;
}

int run_link_up(struct run *run, struct err *err)
{
	auto_interfaces struct rtnl_interfaces before = {0};
	auto_interfaces struct rtnl_interfaces after = {0};
	const char *device;

	if (device_of(run, &device, err) < 0 || interface_of(run, device, &before, err) < 0)
		return -1;
	json_put_str(run->result, "was", before.items[0].up ? "up" : "down");
	json_put_str(run->result, "now", "up");
	if (before.items[0].up)
		return 0;
	if (rtnl_set_up(run->host, before.items[0].index, err) < 0)
		return run_refused(err, "LinkRefused", NULL, "%s (%s): set up", device,
				   before.items[0].name);
	if (interface_of(run, device, &after, err) < 0)
		return -1;
	if (!after.items[0].up)
		return run_not_as_asked(err, "%s (%s) stays down", device, after.items[0].name);
	run->changed = true;
	return 0;
}

/* ---- what a PF gives its VFs ----------------------------------------------------------------- */

/* The PF's interface, and what it says of the step's VF. */
struct vf_of_pf {
	struct rtnl_interfaces interface;
	struct rtnl_vfs all;
	const struct rtnl_vf *vf;
	const char *pf;
};

static void vf_of_pf_done(struct vf_of_pf *found)
{
	rtnl_interfaces_done(&found->interface);
	rtnl_vfs_done(&found->all);
}

static int look_up(const struct run *run, struct vf_of_pf *ret, struct err *err)
{
	int number = run_int(run, "index");
	struct sysfs_text vf;

	if (run_pf(run, "pf", &ret->pf, err) < 0)
		return -1;
	if (!pci_virtfn(run->host, ret->pf, number, &vf)) {
		errno = ENODEV;
		return err_sys(err, "DeviceGone", "%s has no VF %d", ret->pf, number);
	}
	if (evidence_glance_vf(run->host, vf.text, err) < 0 ||
	    interface_of(run, ret->pf, &ret->interface, err) < 0 ||
	    rtnl_list_vfs(run->host, ret->interface.items[0].index, &ret->all, err) < 0)
		return -1;
	ret->vf = rtnl_vf_by_number(&ret->all, (uint32_t)number);
	if (!ret->vf)
		return err_set(err, ERR_HOST, "VfUnknown",
			       "%s: its driver does not tell about VF %d", ret->pf, number);
	return 0;
}

/* Again, after the change. */
static int look_again(const struct run *run, struct vf_of_pf *found, struct err *err)
{
	rtnl_vfs_done(&found->all);
	found->vf = NULL;
	if (rtnl_list_vfs(run->host, found->interface.items[0].index, &found->all, err) < 0)
		return -1;
	found->vf = rtnl_vf_by_number(&found->all, (uint32_t)run_int(run, "index"));
	if (found->vf)
		return 0;
	(void)run_not_as_asked(err, "%s: VF %d is gone", found->pf, run_int(run, "index"));
	return -1;
}

int run_set_vf_mac(struct run *run, struct err *err)
{
	static const struct hint hints[] = {
		{EOPNOTSUPP, "the PF's driver cannot give MAC addresses to VFs"},
		{EINVAL, "the PF's driver does not take this address"},
		{EPERM, "this function does not manage the switch of the NIC"},
		{0, NULL},
	};
	auto_call(vf_of_pf_done) struct vf_of_pf found = {0};
	const char *text = run_str(run, "mac");
	char was[TEXT_MAC_SIZE];
	unsigned char mac[6];
	int number = run_int(run, "index");

	(void)text_to_mac(text, mac);
	if (look_up(run, &found, err) < 0)
		return -1;
	text_from_octets(found.vf->mac, sizeof(mac), was);
	json_put_str(run->result, "was", was);
	json_put_str(run->result, "now", text);
	if (memcmp(found.vf->mac, mac, sizeof(mac)) == 0)
		return 0;
	if (rtnl_set_vf_mac(run->host, found.interface.items[0].index, (uint32_t)number, mac, err) <
	    0)
		return run_refused(err, "VfMacRefused", hints, "%s: set the MAC address of VF %d",
				   found.pf, number);
	if (look_again(run, &found, err) < 0)
		return -1;
	if (memcmp(found.vf->mac, mac, sizeof(mac)) != 0)
		return run_not_as_asked(err, "%s: the MAC address of VF %d is not %s", found.pf,
					number, text);
	run->changed = true;
	return 0;
}

static bool told_guid(const struct rtnl_vf *vf, bool node, uint64_t *ret)
{
	*ret = node ? vf->node_guid : vf->port_guid;
	return node ? vf->has_node_guid : vf->has_port_guid;
}

int run_set_vf_guid(struct run *run, struct err *err)
{
	static const struct hint hints[] = {
		{EOPNOTSUPP, "only InfiniBand PFs give GUIDs to VFs; an Ethernet VF has its GUID "
			     "from its MAC address"},
		{0, NULL},
	};
	auto_call(vf_of_pf_done) struct vf_of_pf found = {0};
	bool node = str_eq(run_str(run, "which"), "node");
	int number = run_int(run, "index");
	uint64_t guid, now;

	(void)text_to_guid(run_str(run, "guid"), &guid);
	if (look_up(run, &found, err) < 0)
		return -1;
	json_put_str(run->result, "now", run_str(run, "guid"));
	if (told_guid(found.vf, node, &now) && now == guid)
		return 0;
	if (rtnl_set_vf_guid(run->host, found.interface.items[0].index, (uint32_t)number,
			     node ? IFLA_VF_IB_NODE_GUID : IFLA_VF_IB_PORT_GUID, guid, err) < 0)
		return run_refused(err, "VfGuidRefused", hints, "%s: set the %s GUID of VF %d",
				   found.pf, run_str(run, "which"), number);
	run->changed = true;
	if (look_again(run, &found, err) < 0)
		return -1;
	/* Drivers that do not tell: the VF shows it once its driver has started. */
	json_put_bool(run->result, "verified", told_guid(found.vf, node, &now));
	if (told_guid(found.vf, node, &now) && now != guid)
		return run_not_as_asked(err, "%s: the %s GUID of VF %d is not %s", found.pf,
					run_str(run, "which"), number, run_str(run, "guid"));
	return 0;
}

static uint32_t link_state_of(const char *name)
{
	if (str_eq(name, "enable"))
		return IFLA_VF_LINK_STATE_ENABLE;
	return str_eq(name, "disable") ? IFLA_VF_LINK_STATE_DISABLE : IFLA_VF_LINK_STATE_AUTO;
}

int run_set_vf_link_state(struct run *run, struct err *err)
{
	static const struct hint hints[] = {
		{EOPNOTSUPP, "the PF's driver has no link state for VFs"},
		{0, NULL},
	};
	auto_call(vf_of_pf_done) struct vf_of_pf found = {0};
	const char *name = run_str(run, "state");
	uint32_t state = link_state_of(name);
	int number = run_int(run, "index");

	if (look_up(run, &found, err) < 0)
		return -1;
	json_put_str(run->result, "now", name);
	if (found.vf->has_link_state && found.vf->link_state == state)
		return 0;
	if (rtnl_set_vf_link_state(run->host, found.interface.items[0].index, (uint32_t)number,
				   state, err) < 0)
		return run_refused(err, "VfLinkRefused", hints, "%s: set the link of VF %d to %s",
				   found.pf, number, name);
	if (look_again(run, &found, err) < 0)
		return -1;
	if (!found.vf->has_link_state || found.vf->link_state != state)
		return run_not_as_asked(err, "%s: the link state of VF %d is not %s", found.pf,
					number, name);
	run->changed = true;
	return 0;
}

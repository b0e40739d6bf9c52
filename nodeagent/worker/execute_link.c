// SPDX-License-Identifier: Apache-2.0
/*
 * Steps through rtnetlink: interfaces of PFs and VFs, and what a PF gives its VFs
 * (Documentation/networking/device_drivers/ethernet/mellanox/mlx5).
 */
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <stdio.h>

#include "nodeagent/netlink/rtnl_link.h"
#include "nodeagent/netlink/rtnl_vf.h"
#include "nodeagent/worker/execute_internal.h"

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
	return rtnl_get(run->host->netlink, (int)index, list, err);
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
	if (!pci_is_vf(run->host, device)) {
		if (run_refuse_protected(run, device, err) < 0)
			return -1;
		if (mtu >= interface->mtu)
			return 0;
		/* Packets of VFs are cut, too, and path MTUs of RDMA connections. */
		return evidence_check_vfs(run->host, device, err) < 0
			       ? -1
			       : evidence_check_pf(run->host, device, err);
	}
	/* One that is down is not in use, also when a pod of the last boot waits for it. */
	return interface->up ? evidence_check_vf(run->host, device, err) : 0;
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
	if (rtnl_set_mtu(run->host->netlink, before.items[0].index, mtu, err) < 0)
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
	if (rtnl_set_up(run->host->netlink, before.items[0].index, err) < 0)
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

/*
 * Some drivers ask the firmware about each VF when they list them, so a step lists them once before
 * and once after it, however many VFs it is about. A VF that cannot be given what it should have
 * keeps none of the others from it.
 */
struct giving {
	struct run *run;
	const char *pf;
	int index; /* of the PF's interface */
	struct rtnl_vfs list;
	struct evidence *evidence;
	size_t n_failed;
	struct err first; /* failure */
	bool is_reported; /* by the driver, of all that were changed */
};

/* How one kind of thing is given. */
struct gift {
	/* Whether the PF says that the VF has it; false in *ret_reported: it does not say. */
	bool (*is_so)(const struct run *run, const struct rtnl_vf *vf, const char *text,
		      bool *ret_reported);
	int (*give)(const struct giving *giving, uint32_t number, const char *text,
		    struct err *err);
	bool must_be_reported; /* a driver that does not report it has not taken it */
	const char *name;      /* in errors: "the MAC address" */
};

static void giving_done(struct giving *giving)
{
	rtnl_vfs_done(&giving->list);
	evidence_free(giving->evidence);
}

static void note_failed(struct giving *giving, const struct err *err)
{
	if (giving->n_failed++ == 0)
		giving->first = *err;
}

static int list_vfs(struct giving *giving, struct err *err)
{
	auto_interfaces struct rtnl_interfaces interface = {0};

	if (interface_of(giving->run, giving->pf, &interface, err) < 0)
		return -1;
	giving->index = interface.items[0].index;
	rtnl_vfs_done(&giving->list);
	return rtnl_list_vfs(giving->run->host->netlink, giving->index, false, &giving->list, err);
}

/* 1: it was changed, 0: it is so already, -1 with err. */
static int give_one(struct giving *giving, const struct gift *gift, uint32_t number,
		    const char *text, struct err *err)
{
	struct run *run = giving->run;
	const struct rtnl_vf *vf;
	struct sysfs_text address;
	bool reported = true;

	if (!pci_virtfn(run->host, giving->pf, (int)number, &address)) {
		errno = ENODEV;
		return err_sys(err, "DeviceGone", "%s has no VF %u", giving->pf, number);
	}
	if (evidence_glance_vf(run->host, address.text, err) < 0)
		return -1;
	vf = rtnl_vf_by_number(&giving->list, number);
	if (!vf)
		return err_set(err, ERR_HOST, "VfUnknown",
			       "%s: its driver does not tell about VF %u", giving->pf, number);
	if (gift->is_so(run, vf, text, &reported))
		return 0;
	if (evidence_check_bound_vf(giving->evidence, address.text, err) < 0)
		return -1;
	return gift->give(giving, number, text, err) < 0 ? -1 : 1;
}

static int read_back_one(struct giving *giving, const struct gift *gift, uint32_t number,
			 const char *text, struct err *err)
{
	const struct rtnl_vf *vf = rtnl_vf_by_number(&giving->list, number);
	bool reported = true;

	if (!vf)
		return run_not_as_asked(err, "%s: VF %u is gone", giving->pf, number);
	if (gift->is_so(giving->run, vf, text, &reported))
		return 0;
	if (!reported && !gift->must_be_reported) {
		giving->is_reported = false;
		return 0;
	}
	return run_not_as_asked(err, "%s: %s of VF %u is not %s", giving->pf, gift->name, number,
				text);
}

/* {"3": …} of the step's, without those that failed or are so already. New. */
static json_t *give_all(struct giving *giving, const struct gift *gift)
{
	json_t *given = json_object(), *value;
	const char *key;

	json_each (json_at(giving->run->step, "vfs"), key, value) {
		struct err err = {0};
		int64_t number = 0;
		int changed;

		(void)str_to_int(key, 0, PCI_VFS_MAX - 1, &number);
		changed = give_one(giving, gift, (uint32_t)number, json_string_value(value), &err);
		if (changed < 0)
			note_failed(giving, &err);
		else if (changed)
			json_object_set(given, key, value);
	}
	return given;
}

static int read_back(struct giving *giving, const struct gift *gift, const json_t *given,
		     struct err *err)
{
	const char *key;
	json_t *value;

	if (list_vfs(giving, err) < 0)
		return -1;
	json_each (given, key, value) {
		struct err one = {0};
		int64_t number = 0;

		(void)str_to_int(key, 0, PCI_VFS_MAX - 1, &number);
		if (read_back_one(giving, gift, (uint32_t)number, json_string_value(value), &one) <
		    0)
			note_failed(giving, &one);
	}
	return 0;
}

static int give_to_vfs(struct run *run, const struct gift *gift, struct err *err)
{
	auto_call(giving_done) struct giving giving = {.run = run, .is_reported = true};
	json_auto_t *given = NULL;
	size_t n = json_object_size(json_at(run->step, "vfs"));

	if (run_pf(run, "pf", &giving.pf, err) < 0 || list_vfs(&giving, err) < 0)
		return -1;
	giving.evidence = evidence_new(run->host);
	given = give_all(&giving, gift);
	if (json_object_size(given) > 0 && read_back(&giving, gift, given, err) < 0)
		return -1;
	if (giving.n_failed > 0) {
		*err = giving.first;
		return n == 1 ? -1 : err_in(err, "%zu of %zu VFs", giving.n_failed, n);
	}
	run->changed = json_object_size(given) > 0;
	json_put_bool(run->result, "verified", giving.is_reported);
	return 0;
}

/* ---- MAC addresses, GUIDs, links ------------------------------------------------------------- */

static bool is_mac(const struct run *run, const struct rtnl_vf *vf, const char *text,
		   bool *ret_reported)
{
	unsigned char mac[6] = {0};

	(void)text_to_mac(text, mac);
	return memcmp(vf->mac, mac, sizeof(mac)) == 0;
}

static int set_vf(const struct giving *giving, int attribute, const void *value, size_t size,
		  struct err *err)
{
	return rtnl_set_vf(giving->run->host->netlink, giving->index, attribute, value, size, err);
}

static int give_mac(const struct giving *giving, uint32_t number, const char *text, struct err *err)
{
	static const struct hint hints[] = {
		{EOPNOTSUPP, "the PF's driver cannot give MAC addresses to VFs"},
		{EINVAL, "the PF's driver does not take this address"},
		{EPERM, "this function does not manage the switch of the NIC"},
		{0, NULL},
	};
	struct ifla_vf_mac value = {.vf = number};

	(void)text_to_mac(text, value.mac);
	if (set_vf(giving, IFLA_VF_MAC, &value, sizeof(value), err) == 0)
		return 0;
	return run_refused(err, "VfMacRefused", hints, "%s: set the MAC address of VF %u",
			   giving->pf, number);
}

int run_set_vf_mac(struct run *run, struct err *err)
{
	static const struct gift gift = {is_mac, give_mac, true, "the MAC address"};

	return give_to_vfs(run, &gift, err);
}

static bool is_node_guid(const struct run *run)
{
	return str_eq(run_str(run, "which"), "node");
}

static bool is_guid(const struct run *run, const struct rtnl_vf *vf, const char *text,
		    bool *ret_reported)
{
	bool node = is_node_guid(run);
	uint64_t guid = 0;

	(void)text_to_guid(text, &guid);
	*ret_reported = node ? vf->has_node_guid : vf->has_port_guid;
	return *ret_reported && (node ? vf->node_guid : vf->port_guid) == guid;
}

static int give_guid(const struct giving *giving, uint32_t number, const char *text,
		     struct err *err)
{
	static const struct hint hints[] = {
		{EOPNOTSUPP, "only InfiniBand PFs give GUIDs to VFs; an Ethernet VF has its GUID "
			     "from its MAC address"},
		{0, NULL},
	};
	const int attribute =
		is_node_guid(giving->run) ? IFLA_VF_IB_NODE_GUID : IFLA_VF_IB_PORT_GUID;
	struct ifla_vf_guid value = {.vf = number};
	uint64_t guid = 0;

	(void)text_to_guid(text, &guid);
	value.guid = guid;
	if (set_vf(giving, attribute, &value, sizeof(value), err) == 0)
		return 0;
	return run_refused(err, "VfGuidRefused", hints, "%s: set the %s GUID of VF %u", giving->pf,
			   run_str(giving->run, "which"), number);
}

/* A driver that does not report it: the VF shows it once its own driver has started. */
int run_set_vf_guid(struct run *run, struct err *err)
{
	static const struct gift node = {is_guid, give_guid, false, "the node GUID"};
	static const struct gift port = {is_guid, give_guid, false, "the port GUID"};

	return give_to_vfs(run, is_node_guid(run) ? &node : &port, err);
}

static uint32_t link_state_of(const char *name)
{
	if (str_eq(name, "enable"))
		return IFLA_VF_LINK_STATE_ENABLE;
	return str_eq(name, "disable") ? IFLA_VF_LINK_STATE_DISABLE : IFLA_VF_LINK_STATE_AUTO;
}

static bool is_link_state(const struct run *run, const struct rtnl_vf *vf, const char *text,
			  bool *ret_reported)
{
	*ret_reported = vf->has_link_state;
	return vf->has_link_state && vf->link_state == link_state_of(text);
}

static int give_link_state(const struct giving *giving, uint32_t number, const char *text,
			   struct err *err)
{
	static const struct hint hints[] = {
		{EOPNOTSUPP, "the PF's driver has no link state for VFs"},
		{0, NULL},
	};
	const struct ifla_vf_link_state value = {number, link_state_of(text)};

	if (set_vf(giving, IFLA_VF_LINK_STATE, &value, sizeof(value), err) == 0)
		return 0;
	return run_refused(err, "VfLinkRefused", hints, "%s: set the link of VF %u to %s",
			   giving->pf, number, text);
}

int run_set_vf_link_state(struct run *run, struct err *err)
{
	static const struct gift gift = {is_link_state, give_link_state, true, "the link state"};

	return give_to_vfs(run, &gift, err);
}

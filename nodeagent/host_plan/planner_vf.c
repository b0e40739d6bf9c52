// SPDX-License-Identifier: Apache-2.0
/*
 * The VFs that are there: address, driver, MTU
 * (Documentation/networking/device_drivers/ethernet/mellanox/mlx5). Two passes over the VFs of a
 * PF: addresses while nothing can bind to new ones, then drivers, one VF after the other, since
 * RDMA devices are named in order of arrival.
 *
 * A VF that is held has no step, whatever it looks like.
 */
#include "nodeagent/host_plan/planner_internal.h"

#include <string.h>

#define WHY_GUID "its node GUID is none, or not the one asked for"

/* What one step gives to VFs, for one reason. Names in order of the steps. */
enum batch_name {
	BATCH_MAC_NEW,
	BATCH_MAC_KEEP,
	BATCH_MAC_FOR_GUID,
	BATCH_NODE_GUID,
	BATCH_PORT_GUID,
	BATCH_LINK,
	BATCHES,
};

static const struct batch_kind {
	const char *step, *which, *why;
	bool is_needed; /* without it nothing else of these VFs is done */
} batch_kinds[BATCHES] = {
	[BATCH_MAC_NEW] = {"set-vf-mac", NULL, "they have no MAC address yet", false},
	[BATCH_MAC_KEEP] = {"set-vf-mac", NULL,
			    "their MAC addresses are to stay when their drivers change", false},
	[BATCH_MAC_FOR_GUID] = {"set-vf-mac", NULL, WHY_GUID, true},
	[BATCH_NODE_GUID] = {"set-vf-guid", "node", "their GUIDs are not set", true},
	[BATCH_PORT_GUID] = {"set-vf-guid", "port", "their GUIDs are not set", true},
	[BATCH_LINK] = {"set-vf-link-state", NULL, "their links are disabled", false},
};

/* The VFs of a PF, while they are planned. */
struct vfs_run {
	struct planning *p;
	struct pf *pf;
	bool has_rdma; /* the PF, and its VFs will have RDMA devices, too */
	bool may_mtu;
	size_t n_without_rdma;
	const char *without_rdma; /* the first of them */
	json_t *batches[BATCHES]; /* {"3": value}; NULL: none */
};

/* ---- derived addresses ----------------------------------------------------------------------- */

/* What mlx5 writes as node GUID of a VF whose MAC address is set to zero. */
#define GUID_OF_ZERO_MAC 0x000000fffe000000

/*
 * Neither zero, nor all ones, nor what mlx5 makes of a zero MAC address (mlx5, eswitch.c,
 * node_guid_gen_from_mac()).
 */
static bool is_valid_guid(const char *guid)
{
	uint64_t value;

	return guid && text_to_guid(guid, &value) && value != 0 && value != UINT64_MAX &&
	       value != GUID_OF_ZERO_MAC;
}

/* A port of a bond goes by the bond's address; its own is the permanent one. */
static const char *address_of(const struct pf *pf)
{
	const char *permanent = json_str_at(pf->now.entry, "host", "permanentMac");

	if (permanent)
		return permanent;
	return pf->now.bond ? NULL : json_str_at(pf->now.entry, "mac");
}

/*
 * The MAC address of a VF: always the same for a VF of one card, never zero, locally administered.
 * From the permanent address of the PF; false when that is not known. 46 bits: 10 of a hash of the
 * vendor's part of the PF's address, its other 24 bits, 12 of the number of the VF. No two VFs of
 * cards of one vendor block share one.
 */
static bool derive_mac(const struct pf *pf, int number, char ret[TEXT_MAC_SIZE])
{
	unsigned char own[6], mac[6];
	uint64_t vendor;

	if (!text_to_unicast_mac(address_of(pf), own) || number < 0 || number > 0xfff)
		return false;
	vendor = str_hash(own, 3);
	mac[0] = (unsigned char)(0x02 | (vendor & 0x3f) << 2);
	mac[1] = (unsigned char)((vendor >> 6 & 0xf) << 4 | (unsigned int)number >> 8);
	mac[2] = (unsigned char)(number & 0xff);
	memcpy(mac + 3, own + 3, 3);
	text_from_octets(mac, sizeof(mac), ret);
	return true;
}

/*
 * The MAC address behind an InfiniBand port's GUID: the last 8 of the 20 octets of its interface,
 * made from a MAC address by putting 03:00 or ff:fe in the middle.
 */
static bool mac_behind_guid(const char *address, uint64_t *ret)
{
	size_t tail = TEXT_GUID_SIZE - 1;
	uint64_t guid, middle;

	if (!address || strlen(address) != 3 * 20 - 1 ||
	    !text_to_guid(address + strlen(address) - tail, &guid))
		return false;
	middle = guid >> 24 & 0xffff;
	if (middle != 0x0300 && middle != 0xfffe)
		return false;
	*ret = guid >> 40 << 24 | (guid & 0xffffff);
	return *ret != 0;
}

/*
 * The GUID of a VF: 02, the MAC address behind the PF's GUID, the number of the VF, as the operator
 * makes them for pools (docs/api.md). Where that is not to be had, 02 and a hash of whatever tells
 * the PF from all others; false when nothing does.
 */
static bool derive_guid(const struct planning *p, const struct pf *pf, int number,
			char ret[TEXT_GUID_SIZE])
{
	const char *device = json_str_at(rdma_hardware(p, pf->address), "nodeGuid");
	const char *own = is_valid_guid(device) ? device : address_of(pf);
	auto_free char *text = NULL;
	uint64_t rest;

	if (number >= 0 && number <= UINT8_MAX && mac_behind_guid(address_of(pf), &rest)) {
		rest = rest << 8 | (unsigned int)number;
	} else if (own) {
		text = str_printf("%s/%d", own, number);
		rest = str_hash(text, strlen(text)) & 0x00ffffffffffffff;
	} else {
		return false;
	}
	text_from_guid(rest | (uint64_t)0x02 << 56, ret);
	return true;
}

/* ---- what is to become of it ----------------------------------------------------------------- */

static bool has_kernel_driver(const struct vf *vf)
{
	return vf->driver && !observed_is_userspace_driver(vf->driver);
}

static const char *why_bind(const struct vf *vf)
{
	switch (vf->wanted) {
	case VF_DRIVER_KEEP:
		return NULL;
	case VF_DRIVER_KERNEL:
		if (has_kernel_driver(vf))
			return NULL;
		return vf->driver ? "it is bound to a userspace driver, wanted the kernel's"
				  : "it has no driver";
	case VF_DRIVER_VFIO:
		if (str_eq(vf->driver, "vfio-pci"))
			return NULL;
		return vf->driver ? "it is bound to the kernel's driver, wanted vfio-pci"
				  : "it has no driver, wanted vfio-pci";
	}
	return NULL;
}

/* The GUID that spec asks for; false when it leaves that to us. */
static bool asked_guid(const struct vf *vf, char ret[TEXT_GUID_SIZE])
{
	if (!vf->group || vf->group->guid_start == 0)
		return false;
	text_from_guid(vf->group->guid_start + (uint64_t)(vf->number - vf->group->first), ret);
	return true;
}

static bool is_right_guid(const struct vfs_run *run, const struct vf *vf, const char *guid)
{
	char asked[TEXT_GUID_SIZE];

	if (run->pf->now.is_ib && asked_guid(vf, asked))
		return str_eq(guid, asked);
	return is_valid_guid(guid);
}

static void decide_vf(const struct vfs_run *run, struct vf *vf)
{
	const struct vf_group *group = vf->group;

	if (!group)
		vf->wanted = vf->driver ? VF_DRIVER_KEEP : VF_DRIVER_KERNEL;
	else if (group->is_usable)
		vf->wanted = group->is_vfio ? VF_DRIVER_VFIO : VF_DRIVER_KERNEL;
	vf->is_guid_bad = vf->guid && group && group->is_usable && has_kernel_driver(vf) &&
			  (group->is_rdma || run->pf->now.is_ib) &&
			  rdma_hardware(run->p, vf->address) && !is_right_guid(run, vf, vf->guid);
	vf->rebind = why_bind(vf);
	if (!vf->rebind && vf->is_guid_bad)
		vf->rebind = WHY_GUID;
	vf->is_stopped = !vf->address;
}

static bool is_held(const struct vf *vf)
{
	return vf->holder && !vf->is_empty;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The PF lists all of its VFs at each such step: one for all of them (execute_link.c). */
static void batch_put(struct vfs_run *run, enum batch_name name, const struct vf *vf,
		      const char *value)
{
	auto_free char *number = str_printf("%d", vf->number);

	assert(name < BATCHES && vf->address && value);
	if (!run->batches[name])
		run->batches[name] = json_object();
	json_put_str(run->batches[name], number, value);
}

static bool is_in_batch(const struct vfs_run *run, enum batch_name name, const struct vf *vf)
{
	auto_free char *number = str_printf("%d", vf->number);

	return json_object_get(run->batches[name], number);
}

static void plan_batch(struct vfs_run *run, enum batch_name name)
{
	const struct batch_kind *kind = &batch_kinds[name];
	json_auto_t *addresses = json_array();
	json_t *step, *entry;

	/* Those whose node GUID was refused get no port GUID either. */
	for (size_t i = 0; i < run->pf->n_vfs; i++) {
		auto_free char *number = str_printf("%d", run->pf->vfs[i].number);

		if (run->pf->vfs[i].is_stopped)
			(void)json_object_del(run->batches[name], number);
		else if (is_in_batch(run, name, &run->pf->vfs[i]))
			json_array_append_new(addresses, json_string(run->pf->vfs[i].address));
	}
	if (json_array_size(addresses) == 0)
		return;
	step = json_pack("{s:s, s:s, s:O}", "step", kind->step, "pf", run->pf->address, "vfs",
			 run->batches[name]);
	json_put_str(step, "which", kind->which);
	entry = planner_add(run->p, run->pf, NULL, step, "%s", kind->why);
	if (entry)
		json_object_set(entry, "vfs", addresses);
	if (entry || !kind->is_needed)
		return;
	for (size_t i = 0; i < run->pf->n_vfs; i++)
		run->pf->vfs[i].is_stopped |= is_in_batch(run, name, &run->pf->vfs[i]);
}

/* Its driver has started since with this very address, and it did not help. */
static void say_bad_guid(struct vfs_run *run, struct vf *vf)
{
	planner_problem(run->p, run->pf, "BadGuid",
			"VF " QUOTE " has the node GUID " QUOTE
			", with which RDMA does not work, also after its driver has started anew: "
			"update the NIC's firmware, and see the kernel log",
			vf->address, vf->guid);
	vf->is_stopped = true;
}

/*
 * An mlx5 VF takes its node GUID from the address that its PF gives it, once, when its driver
 * starts (mlx5, eswitch.c, node_guid_gen_from_mac()). The host's PF of a BlueField in DPU mode can
 * neither list nor change what its VFs are given (NVIDIA BlueField BSP manual, Controlling Host PF
 * and VF Parameters).
 */
static void plan_mac_for_guid(struct vfs_run *run, struct vf *vf)
{
	const char *admin = json_str_at(vf->entry, "host", "adminMac");
	char mac[TEXT_MAC_SIZE];

	if (run->pf->now.is_switch_elsewhere) {
		planner_problem(
			run->p, run->pf, "BadGuid",
			"VF " QUOTE " has the node GUID " QUOTE
			", with which RDMA does not work, and addresses come from the card's "
			"own processor: write one to "
			"/sys/class/net/p%d/smart_nic/vf%d/mac there, and unbind the VF's "
			"driver, which the agent starts anew",
			vf->address, vf->guid, run->pf->now.port - 1, vf->number);
		vf->is_stopped = true;
	} else if (!derive_mac(run->pf, vf->number, mac) ||
		   (str_eq(admin, mac) && str_eq(vf->mac, mac))) {
		say_bad_guid(run, vf);
	} else if (!str_eq(admin, mac)) {
		batch_put(run, BATCH_MAC_FOR_GUID, vf, mac);
	}
}

static void plan_infiniband(struct vfs_run *run, struct vf *vf)
{
	const char *node = json_str_at(vf->entry, "host", "adminNodeGuid");
	const char *port = json_str_at(vf->entry, "host", "adminPortGuid");
	char guid[TEXT_GUID_SIZE];

	/* What the PF gives it is as it should be. */
	if (!vf->rebind ||
	    (!vf->is_guid_bad && node && is_right_guid(run, vf, node) && str_eq(node, port)))
		return;
	if (!asked_guid(vf, guid) && !derive_guid(run->p, run->pf, vf->number, guid)) {
		planner_problem(run->p, run->pf, "BadGuid",
				"VF " QUOTE " gets no GUID, for that of the PF is not known: load "
				"ib_ipoib on the host",
				vf->address);
		vf->is_stopped = true;
		return;
	}
	/* The address of an InfiniBand interface ends with the GUID that its driver has found. */
	if (vf->is_guid_bad && str_ends(vf->mac, guid)) {
		say_bad_guid(run, vf);
		return;
	}
	if (!str_eq(node, guid))
		batch_put(run, BATCH_NODE_GUID, vf, guid);
	if (!str_eq(port, guid))
		batch_put(run, BATCH_PORT_GUID, vf, guid);
}

/*
 * An address that the PF gives stays when the driver changes, and only the PF can give it another.
 * One that works already is kept. A driver that cannot give any is no reason to leave the VF
 * without driver.
 */
static void plan_address(struct vfs_run *run, struct vf *vf)
{
	const struct pf *pf = run->pf;
	char derived[TEXT_MAC_SIZE];
	unsigned char mac[6];

	if (is_held(vf) || vf->is_stopped || !vf->group || !vf->group->is_usable)
		return;
	if (pf->now.is_ib) {
		plan_infiniband(run, vf);
		/* Fresh InfiniBand VFs are down. */
		if (str_eq(json_str_at(vf->entry, "host", "linkState"), "disable"))
			batch_put(run, BATCH_LINK, vf, "auto");
	} else if (vf->is_guid_bad) {
		plan_mac_for_guid(run, vf);
	} else if (pf->now.is_switch_elsewhere ||
		   text_to_unicast_mac(json_str_at(vf->entry, "host", "adminMac"), mac)) {
		return;
	} else if (has_kernel_driver(vf) && text_to_unicast_mac(vf->mac, mac)) {
		batch_put(run, BATCH_MAC_KEEP, vf, vf->mac);
	} else if (derive_mac(pf, vf->number, derived)) {
		batch_put(run, BATCH_MAC_NEW, vf, derived);
	}
}

/* ---- drivers --------------------------------------------------------------------------------- */

bool plan_rebind(struct planning *p, const struct pf *pf, const struct vf *vf, const char *driver,
		 const char *why)
{
	json_t *override, *probe;

	if (!str_eq(vf->driver_override, driver)) {
		override =
			json_pack("{s:s, s:s}", "step", "set-driver-override", "vf", vf->address);
		json_put_str(override, "driver", driver);
		if (!planner_add(p, pf, vf, override, "%s", why))
			return false;
	}
	if (vf->driver &&
	    !planner_add(p, pf, vf,
			 json_pack("{s:s, s:s}", "step", "unbind-driver", "vf", vf->address), "%s",
			 why))
		return false;
	probe = json_pack("{s:s, s:s}", "step", "probe-driver", "vf", vf->address);
	json_put_str(probe, "driver", driver);
	return planner_add(p, pf, vf, probe, "%s", why);
}

static bool plan_wait(struct vfs_run *run, const struct vf *vf, const char *part)
{
	return planner_add(
		run->p, run->pf, vf,
		json_pack("{s:s, s:s, s:s}", "step", "wait-vf", "vf", vf->address, "for", part),
		"its driver has just started");
}

static bool is_rdma(const struct vf *vf)
{
	return vf->group && vf->group->is_usable && vf->group->is_rdma;
}

static void plan_mtu(struct vfs_run *run, const struct vf *vf)
{
	int wanted = vf->group && vf->group->is_usable ? vf->group->mtu : 0;
	int mtu = (int)json_integer_value(json_at(vf->entry, "mtu"));
	json_int_t most = json_integer_value(json_at(vf->entry, "host", "maxMtu"));

	/* A driver that starts begins with an MTU of its own. */
	if (wanted == 0 || !run->may_mtu || (!vf->rebind && (mtu == 0 || mtu == wanted)))
		return;
	if (most > 0 && wanted > most) {
		planner_problem(run->p, run->pf, "MtuOutOfRange",
				"VF " QUOTE
				": mtu is %d, but its driver takes %lld at most: lower mtu "
				"in the policy",
				vf->address, wanted, (long long)most);
		return;
	}
	(void)planner_add(run->p, run->pf, vf,
			  json_pack("{s:s, s:s, s:i}", "step", "set-mtu", "device", vf->address,
				    "mtu", wanted),
			  "MTU of the VF, wanted %d", wanted);
}

/* Its driver is there, and not all that was to come of it. */
static void check_parts(struct vfs_run *run, const struct vf *vf)
{
	if (!vf->group || !vf->group->is_usable)
		return;
	if (!json_at(vf->entry, "name"))
		planner_problem(
			run->p, run->pf, "VfWithoutInterface",
			"VF " QUOTE " has the driver " QUOTE
			" but no network interface: see the kernel log; for InfiniBand load "
			"ib_ipoib",
			vf->address, vf->driver);
	else if (is_rdma(vf) && json_array_size(json_at(vf->entry, "host", "rdma")) == 0 &&
		 run->n_without_rdma++ == 0)
		run->without_rdma = vf->address;
}

static void plan_driver(struct vfs_run *run, struct vf *vf)
{
	if (is_held(vf) && vf->rebind)
		planner_block(run->p, run->pf, vf, NULL, vf->rebind);
	if (is_held(vf) || vf->is_stopped)
		return;
	switch (vf->wanted) {
	case VF_DRIVER_KEEP:
		return;
	case VF_DRIVER_KERNEL:
		if (vf->rebind && (!plan_rebind(run->p, run->pf, vf, NULL, vf->rebind) ||
				   !plan_wait(run, vf, "netdev") ||
				   (is_rdma(vf) && run->has_rdma && !plan_wait(run, vf, "rdma"))))
			return;
		plan_mtu(run, vf);
		if (!vf->rebind)
			check_parts(run, vf);
		return;
	case VF_DRIVER_VFIO:
		if (vf->rebind)
			(void)plan_rebind(run->p, run->pf, vf, "vfio-pci", vf->rebind);
		return;
	}
}

/*
 * On again in any case: a run that was cut off may have left it off. Without it only vfio-pci
 * binds. Of a PF that others manage, autoprobe is theirs, unless one of its VFs has to have the
 * kernel's driver.
 */
static void plan_autoprobe(struct vfs_run *run)
{
	struct pf *pf = run->pf;
	bool is_needed = !pf->wanted.is_external;

	for (size_t i = 0; i < pf->n_vfs; i++)
		is_needed |= pf->vfs[i].rebind && pf->vfs[i].wanted == VF_DRIVER_KERNEL &&
			     !is_held(&pf->vfs[i]);
	if (!is_needed || !pf->now.is_autoprobe_off ||
	    planner_add(run->p, pf, NULL,
			json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf", pf->address,
				  "on", 1),
			"drivers are to bind to the VFs again"))
		return;
	for (size_t i = 0; i < pf->n_vfs; i++)
		pf->vfs[i].is_stopped |= pf->vfs[i].wanted == VF_DRIVER_KERNEL && pf->vfs[i].rebind;
}

void plan_vfs(struct planning *p, struct pf *pf, bool may_mtu)
{
	struct vfs_run run = {
		.p = p,
		.pf = pf,
		.has_rdma = rdma_hardware(p, pf->address) && observed_vfs_get_rdma(pf->now.driver),
		.may_mtu = may_mtu,
	};
	size_t i;

	assert(pf->is_wanted && pf->now.entry);
	for (i = 0; i < pf->n_vfs; i++)
		decide_vf(&run, &pf->vfs[i]);
	for (i = 0; i < pf->n_vfs; i++)
		plan_address(&run, &pf->vfs[i]);
	for (i = 0; i < BATCHES; i++)
		plan_batch(&run, (enum batch_name)i);
	plan_autoprobe(&run);
	for (i = 0; i < pf->n_vfs; i++)
		plan_driver(&run, &pf->vfs[i]);
	if (run.n_without_rdma > 0) {
		bool is_one = run.n_without_rdma == 1;

		planner_problem(
			run.p, run.pf, "NoRdmaDevice",
			"isRdma is wanted, but %zu VF%s (" QUOTE "%s) ha%s no RDMA device: %s, or "
			"take isRdma out of the policy",
			run.n_without_rdma, is_one ? "" : "s", run.without_rdma,
			is_one ? "" : ", ...", is_one ? "s" : "ve",
			observed_vfs_get_rdma(run.pf->now.driver)
				? "load the NIC's RDMA driver (mlx5_ib, irdma, bnxt_re), see "
				  "whether "
				  "its firmware has RDMA on"
				: "the kernel's own drivers give none to VFs of this NIC; Intel's "
				  "irdma and iavf do (resource_profile and max_rdma_vfs of irdma)");
	}
	for (i = 0; i < BATCHES; i++)
		json_decref(run.batches[i]);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The VFs that are there: address, driver, MTU
 * (Documentation/networking/device_drivers/ethernet/mellanox/mlx5). Two passes over the VFs of a
 * PF: addresses while nothing can bind to new ones, then drivers, one VF after the other, since
 * RDMA devices are named in order of arrival.
 *
 * A VF that somebody holds has no step, whatever it looks like.
 */
#include "nodeagent/plan/planner_internal.h"

enum vf_driver {
	VF_DRIVER_KEEP,   /* whatever is bound */
	VF_DRIVER_KERNEL, /* the one that the kernel chooses */
	VF_DRIVER_VFIO,
};

#define WHY_GUID "its node GUID is none, or not the one asked for"

struct vf {
	const json_t *now;
	const char *address;
	const char *bound;  /* its driver; NULL: none */
	const char *holder; /* who would notice a change; NULL: nobody */
	const struct vf_group *group;
	enum vf_driver driver;
	int number;
	const char *rebind; /* why its driver has to start (again); NULL: it need not */
	bool is_stopped;    /* what has to come first was refused */
};

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

struct vfs {
	struct planning *p;
	const struct pf_wish *wish;
	const struct pf_now *now;
	bool is_ib;
	bool has_rdma; /* the PF, and its VFs will have RDMA devices, too */
	bool may_mtu;
	size_t n, n_without_rdma;
	const char *without_rdma; /* the first of them */
	struct vf *items;
	json_t *batches[BATCHES]; /* {"3": value}; NULL: none */
};

const char *vf_holder(const struct planning *p, const json_t *vf)
{
	const char *address = json_str_or(json_at(vf, "pciAddress"), "");
	const char *pod = json_str_at(p->in->held, address);
	const char *name = json_str_at(vf, "host", "holder", "name");

	if (pod)
		return pod;
	if (p->in->is_held_awaited && !p->in->held)
		return "a pod perhaps (the kubelet has not said yet which devices pods have)";
	/* Also below a bond, a bridge or a VLAN that carries its default route or address. */
	if (json_find(json_at(p->in->observed, "node", "protected"), "pciAddress", address))
		return "the node itself";
	if (json_is_false(json_at(vf, "host", "inUse")))
		return NULL;
	return name ? name : json_str_or(json_at(vf, "host", "holder", "kind"), "someone");
}

/* ---- what is to become of it ----------------------------------------------------------------- */

static bool has_kernel_driver(const struct vf *vf)
{
	return vf->bound && !observed_is_userspace_driver(vf->bound);
}

static const char *why_bind(const struct vf *vf)
{
	switch (vf->driver) {
	case VF_DRIVER_KEEP:
		return NULL;
	case VF_DRIVER_KERNEL:
		if (has_kernel_driver(vf))
			return NULL;
		return vf->bound ? "it is bound to a userspace driver, wanted the kernel's"
				 : "it has no driver";
	case VF_DRIVER_VFIO:
		if (str_eq(vf->bound, "vfio-pci"))
			return NULL;
		return vf->bound ? "it is bound to the kernel's driver, wanted vfio-pci"
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

static bool is_right_guid(const struct vfs *vfs, const struct vf *vf, const char *guid)
{
	char asked[TEXT_GUID_SIZE];

	if (vfs->is_ib && asked_guid(vf, asked))
		return str_eq(guid, asked);
	return vf_guid_is_valid(guid);
}

/* RDMA by hardware with a GUID that nobody can work with, or another than was asked for. */
static bool has_bad_guid(const struct vfs *vfs, const struct vf *vf)
{
	const char *guid = json_str_at(vf->now, "guid");

	return guid && vf->group && vf->group->is_usable && has_kernel_driver(vf) &&
	       (vf->group->is_rdma || vfs->is_ib) && rdma_hardware(vfs->p, vf->address) &&
	       !is_right_guid(vfs, vf, guid);
}

static void read_vf(const struct vfs *vfs, const json_t *now, struct vf *ret)
{
	/*
	 * A VF without driver has no interface, no RDMA device and no vfio file, so nothing of a
	 * pod can be in it: after a boot the kubelet still names the pod that had it, and that pod
	 * waits for the driver.
	 */
	bool is_empty = !json_at(now, "driver") && json_is_false(json_at(now, "host", "inUse"));

	*ret = (struct vf){
		.now = now,
		.address = json_str_at(now, "pciAddress"),
		.bound = json_str_at(now, "driver"),
		.holder = is_empty ? NULL : vf_holder(vfs->p, now),
		.number = (int)json_integer_value(json_at(now, "vfID")),
	};
	ret->group = pf_wish_group(vfs->wish, ret->number);
	if (!ret->group)
		ret->driver = ret->bound ? VF_DRIVER_KEEP : VF_DRIVER_KERNEL;
	else if (ret->group->is_usable)
		ret->driver = ret->group->is_vfio ? VF_DRIVER_VFIO : VF_DRIVER_KERNEL;
	ret->rebind = why_bind(ret);
	if (!ret->rebind && has_bad_guid(vfs, ret))
		ret->rebind = WHY_GUID;
	ret->is_stopped = !ret->address;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The PF lists all of its VFs at each such step: one for all of them (execute_link.c). */
static void batch_put(struct vfs *vfs, enum batch_name name, const struct vf *vf, const char *value)
{
	auto_free char *number = str_printf("%d", vf->number);

	if (!vfs->batches[name])
		vfs->batches[name] = json_object();
	json_put_str(vfs->batches[name], number, value);
}

static bool is_in_batch(const struct vfs *vfs, enum batch_name name, const struct vf *vf)
{
	auto_free char *number = str_printf("%d", vf->number);

	return json_object_get(vfs->batches[name], number);
}

static void plan_batch(struct vfs *vfs, enum batch_name name)
{
	const struct batch_kind *kind = &batch_kinds[name];
	json_auto_t *addresses = json_array();
	json_t *step;

	/* Those whose node GUID was refused get no port GUID either. */
	for (size_t i = 0; i < vfs->n; i++) {
		auto_free char *number = str_printf("%d", vfs->items[i].number);

		if (vfs->items[i].is_stopped)
			(void)json_object_del(vfs->batches[name], number);
		else if (is_in_batch(vfs, name, &vfs->items[i]))
			json_array_append_new(addresses, json_string(vfs->items[i].address));
	}
	if (json_array_size(addresses) == 0)
		return;
	step = json_pack("{s:s, s:s, s:O}", "step", kind->step, "pf", vfs->now->address, "vfs",
			 vfs->batches[name]);
	json_put_str(step, "which", kind->which);
	if (planner_add_vfs(vfs->p, vfs->now->address, addresses, step, kind->why) ||
	    !kind->is_needed)
		return;
	for (size_t i = 0; i < vfs->n; i++)
		vfs->items[i].is_stopped |= is_in_batch(vfs, name, &vfs->items[i]);
}

/* Its driver has started since with this very address, and it did not help. */
static void say_bad_guid(struct vfs *vfs, struct vf *vf)
{
	steps_problem(vfs->p, vfs->now->address, "BadGuid",
		      "VF " QUOTE " has the node GUID " QUOTE
		      ", with which RDMA does not work, also after its driver has started anew: "
		      "update the NIC's firmware, and see the kernel log",
		      vf->address, json_str_or(json_at(vf->now, "guid"), ""));
	vf->is_stopped = true;
}

/*
 * A BlueField in DPU mode (NVIDIA BlueField BSP manual, Controlling Host PF and VF Parameters): the
 * host's PF can neither list nor change what its VFs are given.
 */
static void say_guid_elsewhere(struct vfs *vfs, struct vf *vf)
{
	steps_problem(vfs->p, vfs->now->address, "BadGuid",
		      "VF " QUOTE " has the node GUID " QUOTE
		      ", with which RDMA does not work, and addresses come from the card's own "
		      "processor: write one to /sys/class/net/p%d/smart_nic/vf%d/mac there, and "
		      "unbind the VF's driver, which the agent starts anew",
		      vf->address, json_str_or(json_at(vf->now, "guid"), ""), pf_port(vfs->now) - 1,
		      vf->number);
	vf->is_stopped = true;
}

/*
 * An mlx5 VF takes its node GUID from the address that its PF gives it, once, when its driver
 * starts (mlx5, eswitch.c, node_guid_gen_from_mac()).
 */
static void plan_mac_for_guid(struct vfs *vfs, struct vf *vf)
{
	const char *admin = json_str_at(vf->now, "host", "adminMac");
	char mac[TEXT_MAC_SIZE];

	if (!vf_mac_derive(vfs->now->entry, vf->number, mac) ||
	    (str_eq(admin, mac) && str_eq(json_str_at(vf->now, "mac"), mac))) {
		say_bad_guid(vfs, vf);
		return;
	}
	if (!str_eq(admin, mac))
		batch_put(vfs, BATCH_MAC_FOR_GUID, vf, mac);
}

/*
 * An address that the PF gives stays when the driver changes, and nobody but the PF can give it
 * another. One that works already is kept. A driver that cannot give any is no reason to leave the
 * VF without driver.
 */
static void plan_ethernet(struct vfs *vfs, struct vf *vf)
{
	const char *mac = json_str_at(vf->now, "mac");
	char derived[TEXT_MAC_SIZE];

	if (vf->rebind && has_bad_guid(vfs, vf)) {
		if (vfs->now->is_switch_elsewhere)
			say_guid_elsewhere(vfs, vf);
		else
			plan_mac_for_guid(vfs, vf);
		return;
	}
	if (vfs->now->is_switch_elsewhere)
		return;
	if (vf_mac_is_valid(json_str_at(vf->now, "host", "adminMac")))
		return;
	if (has_kernel_driver(vf) && vf_mac_is_valid(mac))
		batch_put(vfs, BATCH_MAC_KEEP, vf, mac);
	else if (vf_mac_derive(vfs->now->entry, vf->number, derived))
		batch_put(vfs, BATCH_MAC_NEW, vf, derived);
}

static void plan_infiniband(struct vfs *vfs, struct vf *vf)
{
	const char *node = json_str_at(vf->now, "host", "adminNodeGuid");
	const char *port = json_str_at(vf->now, "host", "adminPortGuid");
	bool is_bad = has_bad_guid(vfs, vf);
	char guid[TEXT_GUID_SIZE];

	/* What the PF gives it is as it should be. */
	if (!vf->rebind || (!is_bad && node && is_right_guid(vfs, vf, node) && str_eq(node, port)))
		return;
	if (!asked_guid(vf, guid) && !vf_guid_derive(vfs->p, vfs->now->entry, vf->number, guid)) {
		steps_problem(vfs->p, vfs->now->address, "BadGuid",
			      "VF " QUOTE " gets no GUID, for that of the PF is not known: load "
			      "ib_ipoib on the host",
			      vf->address);
		vf->is_stopped = true;
		return;
	}
	/* The address of an InfiniBand interface ends with the GUID that its driver has found. */
	if (is_bad && str_ends(json_str_at(vf->now, "mac"), guid)) {
		say_bad_guid(vfs, vf);
		return;
	}
	if (!str_eq(node, guid))
		batch_put(vfs, BATCH_NODE_GUID, vf, guid);
	if (!str_eq(port, guid))
		batch_put(vfs, BATCH_PORT_GUID, vf, guid);
}

static void plan_address(struct vfs *vfs, struct vf *vf)
{
	if (vf->holder || vf->is_stopped || !vf->group || !vf->group->is_usable)
		return;
	if (!vfs->is_ib) {
		plan_ethernet(vfs, vf);
		return;
	}
	plan_infiniband(vfs, vf);
	/* Fresh InfiniBand VFs are down. */
	if (str_eq(json_str_at(vf->now, "host", "linkState"), "disable"))
		batch_put(vfs, BATCH_LINK, vf, "auto");
}

/* ---- drivers --------------------------------------------------------------------------------- */

bool plan_rebind(struct planning *p, const char *pf, const json_t *vf, const char *driver,
		 const char *why)
{
	const char *address = json_str_at(vf, "pciAddress");
	json_t *override, *probe;

	if (!str_eq(json_str_at(vf, "host", "driverOverride"), driver)) {
		override = json_pack("{s:s, s:s}", "step", "set-driver-override", "vf", address);
		json_put_str(override, "driver", driver);
		if (!planner_add(p, pf, address, override, "%s", why))
			return false;
	}
	if (json_at(vf, "driver") &&
	    !planner_add(p, pf, address,
			 json_pack("{s:s, s:s}", "step", "unbind-driver", "vf", address), "%s",
			 why))
		return false;
	probe = json_pack("{s:s, s:s}", "step", "probe-driver", "vf", address);
	json_put_str(probe, "driver", driver);
	return planner_add(p, pf, address, probe, "%s", why);
}

static bool plan_wait(struct vfs *vfs, const struct vf *vf, const char *part)
{
	return planner_add(
		vfs->p, vfs->now->address, vf->address,
		json_pack("{s:s, s:s, s:s}", "step", "wait-vf", "vf", vf->address, "for", part),
		"its driver has just started");
}

static bool is_rdma(const struct vf *vf)
{
	return vf->group && vf->group->is_usable && vf->group->is_rdma;
}

static void plan_mtu(struct vfs *vfs, const struct vf *vf)
{
	int wanted = vf->group && vf->group->is_usable ? vf->group->mtu : 0;
	int mtu = (int)json_integer_value(json_at(vf->now, "mtu"));
	json_int_t most = json_integer_value(json_at(vf->now, "host", "maxMtu"));

	/* A driver that starts begins with an MTU of its own. */
	if (wanted == 0 || !vfs->may_mtu || (!vf->rebind && (mtu == 0 || mtu == wanted)))
		return;
	if (most > 0 && wanted > most) {
		steps_problem(vfs->p, vfs->now->address, "MtuOutOfRange",
			      "VF " QUOTE
			      ": mtu is %d, but its driver takes %lld at most: lower mtu "
			      "in the policy",
			      vf->address, wanted, (long long)most);
		return;
	}
	(void)planner_add(vfs->p, vfs->now->address, vf->address,
			  json_pack("{s:s, s:s, s:i}", "step", "set-mtu", "device", vf->address,
				    "mtu", wanted),
			  "MTU of the VF, wanted %d", wanted);
}

static void plan_kernel_driver(struct vfs *vfs, struct vf *vf)
{
	if (vf->rebind) {
		if (!plan_rebind(vfs->p, vfs->now->address, vf->now, NULL, vf->rebind) ||
		    !plan_wait(vfs, vf, "netdev"))
			return;
		if (is_rdma(vf) && vfs->has_rdma && !plan_wait(vfs, vf, "rdma"))
			return;
	}
	plan_mtu(vfs, vf);
}

/* Its driver is there, and not all that was to come of it. */
static void check_parts(struct vfs *vfs, const struct vf *vf)
{
	if (vf->rebind || !vf->group || !vf->group->is_usable)
		return;
	if (!json_at(vf->now, "name"))
		steps_problem(vfs->p, vfs->now->address, "VfWithoutInterface",
			      "VF " QUOTE " has the driver " QUOTE
			      " but no network interface: see the kernel log; for InfiniBand load "
			      "ib_ipoib",
			      vf->address, vf->bound);
	else if (is_rdma(vf) && json_array_size(json_at(vf->now, "host", "rdma")) == 0 &&
		 vfs->n_without_rdma++ == 0)
		vfs->without_rdma = vf->address;
}

static void plan_driver(struct vfs *vfs, struct vf *vf)
{
	if (vf->holder && vf->rebind)
		steps_blocked(vfs->p, vfs->now->address, vf->address, vf->holder, false, "%s",
			      vf->rebind);
	if (vf->holder || vf->is_stopped)
		return;
	switch (vf->driver) {
	case VF_DRIVER_KEEP:
		return;
	case VF_DRIVER_KERNEL:
		plan_kernel_driver(vfs, vf);
		check_parts(vfs, vf);
		return;
	case VF_DRIVER_VFIO:
		if (vf->rebind)
			(void)plan_rebind(vfs->p, vfs->now->address, vf->now, "vfio-pci",
					  vf->rebind);
		return;
	}
}

/*
 * On again in any case: a run that was cut off may have left it off. Without it only vfio-pci
 * binds.
 */
static void plan_autoprobe(struct vfs *vfs)
{
	const char *pf = vfs->now->address;

	if (!vfs->now->is_autoprobe_off ||
	    planner_add(vfs->p, pf, NULL,
			json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf", pf, "on", 1),
			"drivers are to bind to the VFs again"))
		return;
	for (size_t i = 0; i < vfs->n; i++)
		vfs->items[i].is_stopped |=
			vfs->items[i].driver == VF_DRIVER_KERNEL && vfs->items[i].rebind;
}

/*
 * A PF that others manage: autoprobe is theirs, unless one of its VFs has to have the kernel's
 * driver.
 */
static bool needs_autoprobe(const struct vfs *vfs)
{
	if (!vfs->wish->is_external)
		return true;
	for (size_t i = 0; i < vfs->n; i++)
		if (vfs->items[i].rebind && vfs->items[i].driver == VF_DRIVER_KERNEL &&
		    !vfs->items[i].holder)
			return true;
	return false;
}

static void say_no_rdma(const struct vfs *vfs)
{
	const char *driver = json_str_at(vfs->now->entry, "driver");
	bool is_one = vfs->n_without_rdma == 1;

	steps_problem(vfs->p, vfs->now->address, "NoRdmaDevice",
		      "isRdma is wanted, but %zu VF%s (" QUOTE "%s) ha%s no RDMA device: %s, or "
		      "take isRdma out of the policy",
		      vfs->n_without_rdma, is_one ? "" : "s", vfs->without_rdma,
		      is_one ? "" : ", ...", is_one ? "s" : "ve",
		      observed_vfs_get_rdma(driver)
			      ? "load the NIC's RDMA driver (mlx5_ib, irdma, bnxt_re), see whether "
				"its firmware has RDMA on"
			      : "the kernel's own drivers give none to VFs of this NIC; Intel's "
				"irdma and iavf do (resource_profile and max_rdma_vfs of irdma)");
}

void plan_vfs(struct planning *p, const struct pf_wish *wish, const struct pf_now *now,
	      bool may_mtu)
{
	json_t *list = json_at(now->entry, "Vfs"), *vf;
	struct vfs vfs = {
		.p = p,
		.wish = wish,
		.now = now,
		.is_ib = now->is_ib,
		.has_rdma = rdma_hardware(p, now->address) &&
			    observed_vfs_get_rdma(json_str_at(now->entry, "driver")),
		.may_mtu = may_mtu,
		.items = mem_calloc(json_array_size(list) + 1, sizeof(*vfs.items)),
	};
	size_t i;

	json_array_foreach (list, i, vf)
		read_vf(&vfs, vf, &vfs.items[vfs.n++]);
	for (i = 0; i < vfs.n; i++)
		plan_address(&vfs, &vfs.items[i]);
	for (i = 0; i < BATCHES; i++)
		plan_batch(&vfs, (enum batch_name)i);
	if (needs_autoprobe(&vfs))
		plan_autoprobe(&vfs);
	for (i = 0; i < vfs.n; i++)
		plan_driver(&vfs, &vfs.items[i]);
	if (vfs.n_without_rdma > 0)
		say_no_rdma(&vfs);
	for (i = 0; i < BATCHES; i++)
		json_decref(vfs.batches[i]);
	free(vfs.items);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One PF that spec names: can it be done at all, then the PF itself, then its VFs.
 *
 * A PF that somebody else manages (externallyManaged) is only checked; its VFs are set up like all
 * others.
 */
#include "nodeagent/plan/planner_internal.h"

#include <assert.h>

void pf_now_read(const json_t *entry, struct pf_now *ret)
{
	*ret = (struct pf_now){
		.address = json_str_at(entry, "pciAddress"),
		.entry = entry,
		.protected = json_str_at(entry, "host", "protected"),
		.carries = json_str_at(entry, "host", "carries"),
		.eswitch = json_str_at(entry, "eSwitchMode"),
		.name = json_str_at(entry, "name"),
		.num_vfs = (int)json_integer_value(json_at(entry, "numVfs")),
		.mtu = (int)json_integer_value(json_at(entry, "mtu")),
		.is_ib = str_eq(json_str_at(entry, "linkType"), "IB"),
		.is_switch_elsewhere = json_is_true(json_at(entry, "host", "switchElsewhere")),
		.is_down = str_eq(json_str_at(entry, "linkAdminState"), "down"),
		.is_autoprobe_off = json_is_false(json_at(entry, "host", "driversAutoprobe")),
	};
}

/* ---- can it be done? ------------------------------------------------------------------------- */

/*
 * NICs of virtual machines and desktops: no firmware gives these SR-IOV. virtio-pci could have it
 * (sriov_configure in drivers/virtio/virtio_pci_common.c) if a hypervisor offered it; where one
 * does, totalvfs is there. Drivers that are missing here are told of the firmware.
 */
static bool driver_makes_no_vfs(const char *driver)
{
	static const char *const drivers[] = {"virtio-pci", "vmxnet3", "e1000", "e1000e",
					      "8139cp",     "r8169",   "igc",   "atlantic"};

	for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
		if (str_eq(driver, drivers[i]))
			return true;
	return false;
}

static bool check_sriov(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	json_int_t total = json_integer_value(json_at(now->entry, "totalvfs"));
	const char *driver = json_str_at(now->entry, "driver");
	auto_free char *remedy = NULL;

	if (wish->num_vfs == 0 || wish->is_external || wish->num_vfs <= total)
		return true;
	/* Nothing else is done to it before. */
	if (firmware_plan(p, wish, now))
		return false;
	if (!json_at(now->entry, "totalvfs") && driver_makes_no_vfs(driver)) {
		steps_problem(p, now->address, "NoSriov",
			      "its driver %s makes no VFs, and it has no sriov_totalvfs in sysfs: "
			      "select another NIC",
			      driver);
		return false;
	}
	if (total == 0)
		remedy = firmware_enable_sriov(now, wish->num_vfs);
	if (total == 0 && json_is_false(json_at(p->in->observed, "node", "sriovKernel"))) {
		steps_problem(p, now->address, "NoSriov",
			      "no NIC of this node shows SR-IOV: enable it in the machine's "
			      "firmware (SR-IOV, VT-d or AMD-Vi), boot a kernel with "
			      "CONFIG_PCI_IOV, or, if the NIC's firmware has it off, %s",
			      remedy);
		return false;
	}
	if (total == 0) {
		steps_problem(p, now->address, "NoSriov",
			      "its firmware has SR-IOV off: %s, or choose another NIC", remedy);
		return false;
	}
	remedy = firmware_raise_vfs(now, wish->num_vfs);
	steps_problem(p, now->address, "VfCountOutOfRange",
		      "numVfs is %d, but it can have %lld VFs at most: lower numVfs, or %s",
		      wish->num_vfs, (long long)total, remedy);
	return false;
}

static bool check_link_type(struct planning *p, const struct pf_wish *wish,
			    const struct pf_now *now)
{
	const char *type = json_str_at(now->entry, "linkType");
	auto_free char *remedy = NULL;

	if (!wish->link || str_eq(wish->link, type))
		return true;
	remedy = firmware_set_link_type(now, wish->link);
	steps_problem(p, now->address, "LinkTypeMismatch",
		      "linkType %s is wanted, the port is " QUOTE ": correct the policy, or %s",
		      wish->link, type ? type : "neither", remedy);
	return false;
}

bool plan_can_set_eswitch(const struct pf_now *now)
{
	return now->eswitch && !now->is_switch_elsewhere && !now->is_ib &&
	       json_is_true(json_at(now->entry, "host", "devlink"));
}

static bool check_eswitch(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	const char *why = now->is_ib ? "an InfiniBand port has none"
			  : now->is_switch_elsewhere
				  ? "the switch is the card's own processor's (BlueField in DPU "
				    "mode), which has it in switchdev"
				  : "its driver has no switch that devlink can set";

	if (!wish->eswitch || str_eq(wish->eswitch, now->eswitch) || plan_can_set_eswitch(now))
		return true;
	steps_problem(p, now->address, "ESwitchUnsupported",
		      "eSwitchMode %s is wanted, but %s (driver " QUOTE
		      "): take eSwitchMode out of the policy",
		      wish->eswitch, why, json_str_or(json_at(now->entry, "driver"), "none"));
	return false;
}

/* What whoever manages the PF has to have done. Too few VFs: those that are there are set up. */
static bool check_external(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	if (now->num_vfs < wish->num_vfs)
		steps_problem(
			p, now->address, "TooFewVfs",
			"it is externallyManaged and has %d of %d VFs: whoever manages it has "
			"to make the others",
			now->num_vfs, wish->num_vfs);
	if (wish->eswitch && !str_eq(wish->eswitch, now->eswitch)) {
		steps_problem(p, now->address, "ESwitchMismatch",
			      "it is externallyManaged and its eSwitchMode is " QUOTE
			      ", wanted %s: whoever manages it has to set it",
			      now->eswitch ? now->eswitch : "not known", wish->eswitch);
		return false;
	}
	if (wish->mtu > now->mtu) {
		steps_problem(p, now->address, "MtuTooLow",
			      "it is externallyManaged and its MTU is %d, wanted %d: whoever "
			      "manages it has to raise it",
			      now->mtu, wish->mtu);
		return false;
	}
	return true;
}

static void say_group(struct planning *p, const struct pf_now *now, const struct vf_group *group,
		      const char *reason, const char *text)
{
	steps_problem(p, now->address, reason, "VFs %d-%d (policy " QUOTE "): %s", group->first,
		      group->last, json_str_or(json_at(group->spec, "policyName"), "without name"),
		      text);
}

static void check_group(struct planning *p, const struct pf_wish *wish, const struct pf_now *now,
			struct vf_group *group)
{
	const char *vdpa = json_str_or(json_at(group->spec, "vdpaType"), "");
	json_auto_t *load = json_pack("{s:s, s:s}", "step", "load-module", "module", "vfio-pci");

	if (group->last >= wish->num_vfs)
		say_group(p, now, group, "VfRangeOutOfRange",
			  "the range goes beyond numVfs: raise numVfs, or correct the range");
	if (*vdpa)
		say_group(
			p, now, group, "VdpaUnsupported",
			"vDPA devices are not made by this agent: take vdpaType out of the policy");
	if (group->is_vfio && json_is_false(json_at(p->in->observed, "node", "iommu"))) {
		say_group(p, now, group, "NoIommu",
			  "vfio-pci needs an IOMMU: enable it in the firmware (VT-d, AMD-Vi) and "
			  "boot with intel_iommu=on or amd_iommu=on");
		group->is_usable = false;
	}
	/* Why, the failure of that step says. */
	if (group->is_vfio && !has_module(p, "vfio_pci") && steps_is_refused(p, load))
		group->is_usable = false;
}

static bool check_pf(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	for (size_t i = 0; i < wish->n_groups; i++)
		if (wish->groups[i].is_usable)
			check_group(p, wish, now, &wish->groups[i]);
	if (!check_sriov(p, wish, now) || !check_link_type(p, wish, now))
		return false;
	return wish->is_external ? check_external(p, wish, now) : check_eswitch(p, wish, now);
}

/* ---- rules of udev --------------------------------------------------------------------------- */

static void plan_rules(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	const struct {
		const char *name;
		bool is_needed;
		const char *why;
	} rules[] = {
		{"nm-unmanaged",
		 wish->num_vfs > 0 &&
			 !json_is_false(json_at(p->in->observed, "node", "networkManager")),
		 "NetworkManager is to leave the VFs alone"},
		{"pf-name", str_eq(wish->eswitch, "switchdev"),
		 "the PF is to keep its name in switchdev mode"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		json_t *step;

		if (!rules[i].is_needed ||
		    json_list_has(json_at(now->entry, "host", "udevRules"), rules[i].name))
			continue;
		step = json_pack("{s:s, s:s, s:s}", "step", "write-udev-rule", "pf", now->address,
				 "rule", rules[i].name);
		if (str_eq(rules[i].name, "pf-name"))
			json_put_str(step, "name", now->name);
		(void)planner_add(p, now->address, NULL, step, "%s", rules[i].why);
	}
}

/* ---- number of VFs, embedded switch ---------------------------------------------------------- */

/* Names everyone who holds a VF; true when somebody does. */
static bool is_blocked(struct planning *p, const struct pf_now *now, const char *why)
{
	bool blocked = false;
	json_t *vf;
	size_t i;

	json_array_foreach (json_at(now->entry, "Vfs"), i, vf) {
		const char *holder = vf_holder(p, vf);

		if (!holder)
			continue;
		steps_blocked(p, now->address, json_str_at(vf, "pciAddress"), holder, true,
			      "%s, which removes all VFs of the PF", why);
		blocked = true;
	}
	/* Numbered but not listed: we do not know whose they are. */
	if (json_array_size(json_at(now->entry, "Vfs")) < (size_t)now->num_vfs) {
		steps_problem(p, now->address, "VfUnknown",
			      "%s, but not all of its VFs can be seen: look at the kernel log",
			      why);
		blocked = true;
	}
	return blocked;
}

static json_t *count_step(const struct pf_now *now, int from, int count)
{
	json_t *step = json_pack("{s:s, s:s, s:i, s:i}", "step", "set-num-vfs", "pf", now->address,
				 "count", count, "from", from);

	if (now->protected && now->may_have_vfs)
		json_put_bool(step, "force", true);
	return step;
}

/*
 * When the switch gets its mode. ice takes one only while there are no VFs
 * (drivers/net/ethernet/intel/ice/ice_eswitch.c, ice_eswitch_mode_set()); mlx5 before Linux 6.0
 * only while there are some (mellanox/mlx5/core/eswitch_offloads.c,
 * eswitch_devlink_esw_mode_check()). Nobody says beforehand.
 */
enum eswitch_order { ESWITCH_BEFORE_VFS, ESWITCH_AFTER_VFS };

static json_t *eswitch_step(const struct pf_now *now, const char *mode, enum eswitch_order order)
{
	json_t *step = json_pack("{s:s, s:s, s:s}", "step", "set-eswitch", "pf", now->address,
				 "mode", mode);

	if (order == ESWITCH_AFTER_VFS)
		json_put_bool(step, "afterVfs", true);
	return step;
}

/* Each step only when the one before it can be. */
static void plan_new_vfs(struct planning *p, const struct pf_now *now, int count,
			 const char *eswitch, enum eswitch_order order, const char *why)
{
	const char *pf = now->address;
	bool before = eswitch && order == ESWITCH_BEFORE_VFS;

	if (count > 0 && !now->is_autoprobe_off &&
	    !planner_add(p, pf, NULL,
			 json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf", pf, "on", 0),
			 "VFs get their addresses before their drivers start"))
		return;
	if (now->num_vfs > 0 &&
	    !planner_add(p, pf, NULL, count_step(now, now->num_vfs, 0), "%s", why))
		return;
	if (before && !planner_add(p, pf, NULL, eswitch_step(now, eswitch, order), "%s", why))
		return;
	if (count == 0 || !planner_add(p, pf, NULL, count_step(now, 0, count), "%s", why))
		return;
	if (planner_add(p, pf, NULL,
			json_pack("{s:s, s:s, s:i}", "step", "wait-vfs", "pf", pf, "count", count),
			"%s", why) &&
	    eswitch && !before)
		(void)planner_add(p, pf, NULL, eswitch_step(now, eswitch, order), "%s", why);
}

/*
 * The mode for VFs that are there already. mlx5 takes it while they have no drivers. VFs that are
 * made for this have none; those of somebody else may.
 */
static void plan_eswitch_of_vfs(struct planning *p, const struct pf_now *now, const char *eswitch,
				const char *why)
{
	json_t *vf;
	size_t i;

	json_array_foreach (json_at(now->entry, "Vfs"), i, vf) {
		const char *address = json_str_at(vf, "pciAddress");

		if (json_at(vf, "driver") &&
		    !planner_add(p, now->address, address,
				 json_pack("{s:s, s:s}", "step", "unbind-driver", "vf", address),
				 "%s", why))
			return;
	}
	(void)planner_add(p, now->address, NULL, eswitch_step(now, eswitch, ESWITCH_AFTER_VFS),
			  "%s", why);
}

static bool is_order_refused(const struct planning *p, const struct pf_now *now,
			     const char *eswitch, enum eswitch_order order)
{
	json_auto_t *set = eswitch_step(now, eswitch, order);

	return steps_is_refused(p, set);
}

/* Part of the way leads nowhere: better not to begin, and to keep what is there in order. */
static bool is_way_refused(const struct planning *p, const struct pf_now *now, int count)
{
	json_auto_t *away = count_step(now, now->num_vfs, 0);
	json_auto_t *make = count_step(now, 0, count);

	return (now->num_vfs > 0 && steps_is_refused(p, away)) ||
	       (count > 0 && steps_is_refused(p, make));
}

/*
 * Drivers make the PF's interface anew for another mode, and those on it go; some drop its link
 * for other VFs, which the policy wants in so many words where the node's own traffic is on it.
 */
static bool disturbs_the_pf(const struct pf_now *now, const char *eswitch)
{
	return eswitch || (observed_vfs_drop_link(json_str_at(now->entry, "driver")) &&
			   !(now->protected && now->may_have_vfs));
}

bool plan_vf_count(struct planning *p, const struct pf_now *now, int count, const char *eswitch)
{
	enum eswitch_order order = ESWITCH_BEFORE_VFS;
	auto_free char *why = NULL;

	assert(count >= 0);
	if (str_eq(eswitch, now->eswitch) || !plan_can_set_eswitch(now))
		eswitch = NULL;
	if (count == now->num_vfs && !eswitch)
		return true;
	why = eswitch ? str_printf("eSwitchMode is " QUOTE ", wanted %s", now->eswitch, eswitch)
		      : str_printf("numVfs is %d, wanted %d", now->num_vfs, count);
	if (now->carries && disturbs_the_pf(now, eswitch)) {
		steps_pf_blocked(p, now->address, now->carries, why);
		return true;
	}
	if (is_blocked(p, now, why))
		return true;
	/* Behind another switch than is wanted VFs are of no use to anybody: no drivers. */
	if (eswitch && is_order_refused(p, now, eswitch, ESWITCH_BEFORE_VFS)) {
		if (count == 0 || str_eq(eswitch, "legacy") ||
		    is_order_refused(p, now, eswitch, ESWITCH_AFTER_VFS))
			return false;
		order = ESWITCH_AFTER_VFS;
	}
	if (order == ESWITCH_AFTER_VFS && count == now->num_vfs) {
		plan_eswitch_of_vfs(p, now, eswitch, why);
		return false;
	}
	if (is_way_refused(p, now, count))
		return !eswitch;
	plan_new_vfs(p, now, count, eswitch, order, why);
	return false;
}

/* ---- RoCE LAG -------------------------------------------------------------------------------- */

/*
 * mlx5 joins the Ethernet ports of a bond into one RDMA device while no port has VFs in legacy
 * mode. The first VF ends that: the device goes and with it every connection on it
 * (drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c, mlx5_lag_check_prereq()).
 */
static bool is_lag_in_the_way(struct planning *p, const struct pf_wish *wish,
			      const struct pf_now *now, const char *eswitch)
{
	const char *bond = json_str_at(now->entry, "host", "master"), *device = NULL;
	const json_t *port;
	size_t i;

	if (!bond || now->is_ib || wish->num_vfs == 0 || now->num_vfs > 0 ||
	    wish->allows_lag_loss || str_eq(eswitch, "switchdev") ||
	    !str_eq(json_str_at(now->entry, "driver"), "mlx5_core"))
		return false;
	json_array_foreach (json_at(p->in->observed, "interfaces"), i, port) {
		const char *address = json_str_or(json_at(port, "pciAddress"), "");

		if (!str_eq(json_str_at(port, "host", "master"), bond))
			continue;
		if (json_integer_value(json_at(port, "numVfs")) > 0)
			return false;
		if (!device)
			device = json_str_at(rdma_hardware(p, address), "name");
	}
	if (!device)
		return false;
	steps_lag_blocked(p, now->address, bond, device);
	return true;
}

/* ---- MTU and link of the PF ------------------------------------------------------------------ */

/*
 * Only ever raised: others may have raised it for reasons of theirs. True when it will do for the
 * VFs.
 */
static bool plan_mtu(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	json_int_t most = json_integer_value(json_at(now->entry, "host", "maxMtu"));

	if (wish->mtu == 0 || wish->mtu <= now->mtu)
		return true;
	if (most > 0 && wish->mtu > most) {
		steps_problem(
			p, now->address, "MtuOutOfRange",
			"mtu is %d, but its driver takes %lld at most: lower mtu in the policy",
			wish->mtu, (long long)most);
		return false;
	}
	return planner_add(p, now->address, NULL,
			   json_pack("{s:s, s:s, s:i}", "step", "set-mtu", "device", now->address,
				     "mtu", wish->mtu),
			   "MTU is %d, wanted at least %d", now->mtu, wish->mtu);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void plan_pf(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	bool is_there = true, may_mtu = true;
	const char *eswitch = wish->eswitch;

	if (!check_pf(p, wish, now))
		return;
	if (!wish->is_external) {
		plan_rules(p, wish, now);
		/* Spec says nothing: as it was found, if we have changed it, else as it is. */
		if (!eswitch)
			eswitch = json_str_at(found_pf(p, now), "eSwitchMode");
		may_mtu = plan_mtu(p, wish, now);
	}
	/* bnxt_en makes no VFs on a PF that is down, and says that it did; bnx2x refuses. */
	if (wish->num_vfs > 0 && now->is_down && !now->protected)
		(void)planner_add(
			p, now->address, NULL,
			json_pack("{s:s, s:s}", "step", "link-up", "device", now->address),
			"the PF is down, so its VFs have no link");
	if (!wish->is_external)
		is_there = !is_lag_in_the_way(p, wish, now, eswitch) &&
			   plan_vf_count(p, now, wish->num_vfs, eswitch);
	if (is_there)
		plan_vfs(p, wish, now, may_mtu);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void need_module(struct planning *p, const char *module, const char *loaded, const char *why)
{
	if (!has_module(p, loaded))
		(void)planner_add(p, NULL, NULL,
				  json_pack("{s:s, s:s}", "step", "load-module", "module", module),
				  "%s", why);
}

void plan_modules(struct planning *p, const struct pf_wish *wishes, size_t n)
{
	bool vfio = false, rdma = false, mlx5 = false;

	for (size_t i = 0; i < n; i++) {
		for (size_t g = 0; wishes[i].entry && g < wishes[i].n_groups; g++) {
			vfio |= wishes[i].groups[g].is_vfio;
			rdma |= wishes[i].groups[g].is_rdma;
			mlx5 |= wishes[i].groups[g].is_rdma &&
				str_eq(json_str_at(wishes[i].entry, "driver"), "mlx5_core");
		}
	}
	if (mlx5)
		need_module(p, "mlx5_ib", "mlx5_ib", "RDMA devices of mlx5 come with it");
	if (rdma) {
		need_module(p, "ib_uverbs", "ib_uverbs", "pods reach RDMA devices through it");
		need_module(p, "rdma_ucm", "rdma_ucm", "pods reach the RDMA CM through it");
	}
	if (vfio && !json_is_false(json_at(p->in->observed, "node", "iommu")))
		need_module(p, "vfio-pci", "vfio_pci", "VFs are to be bound to it");
}

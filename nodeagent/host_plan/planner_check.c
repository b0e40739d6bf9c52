// SPDX-License-Identifier: Apache-2.0
/*
 * Can a PF become what spec wants of it? Looked at before anything is done to it.
 *
 * What only a NIC's firmware can change needs a reset of the card and touches all of its ports, so
 * we say it, in the words of its vendor's tool; we do it where a policy asks for it in so many
 * words, and the driver offers it through devlink.
 */
#include "nodeagent/host_plan/planner_internal.h"

/* ---- words for firmware ---------------------------------------------------------------------- */

enum { VENDOR_OTHER, VENDOR_NVIDIA, VENDOR_INTEL, VENDOR_BROADCOM };

static int vendor_of(const struct pf *pf)
{
	const char *vendor = json_str_or(json_at(pf->now.entry, "vendor"), "");

	if (str_eq(vendor, "15b3"))
		return VENDOR_NVIDIA;
	if (str_eq(vendor, "8086"))
		return VENDOR_INTEL;
	return str_eq(vendor, "14e4") ? VENDOR_BROADCOM : VENDOR_OTHER;
}

/* NVIDIA: the manual of MFT, mlxconfig. Broadcom: Documentation/networking/devlink/bnxt.rst. */
static char *firmware_enable_sriov(const struct pf *pf, int vfs)
{
	switch (vendor_of(pf)) {
	case VENDOR_NVIDIA:
		return str_printf("mlxconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=%d, and reboot",
				  pf->address, vfs);
	case VENDOR_BROADCOM:
		return str_printf("devlink dev param set pci/%s name enable_sriov value true cmode "
				  "permanent, and reboot",
				  pf->address);
	case VENDOR_INTEL:
		return str_dup("enable SR-IOV for this NIC in the machine's setup, and reboot");
	default:
		return str_dup("enable SR-IOV with the tool of the NIC's vendor, and reboot");
	}
}

static char *firmware_raise_vfs(const struct pf *pf, int vfs)
{
	if (vendor_of(pf) == VENDOR_NVIDIA)
		return str_printf("mlxconfig -d %s set NUM_OF_VFS=%d, and reboot", pf->address,
				  vfs);
	/* igb, ixgbe, i40e and ice: what the controller has, divided among its ports. */
	if (vendor_of(pf) == VENDOR_INTEL)
		return str_dup("choose another NIC");
	return str_dup("raise the limit with the tool of the NIC's vendor, and reboot");
}

/* ---- SR-IOV ---------------------------------------------------------------------------------- */

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

static bool check_sriov(struct planning *p, const struct pf *pf)
{
	json_int_t total = json_integer_value(json_at(pf->now.entry, "totalvfs"));
	auto_free char *remedy = NULL;

	if (pf->wanted.num_vfs == 0 || pf->wanted.is_external || pf->wanted.num_vfs <= total)
		return true;
	/* Nothing else is done to it before. */
	if (pf->wanted.allows_firmware && !pf->now.protected && pf->now.has_devlink &&
	    planner_add(p, pf, NULL,
			json_pack("{s:s, s:s, s:i}", "step", "set-firmware", "pf", pf->address,
				  "count", pf->wanted.num_vfs),
			"its firmware lets it have %lld VFs, wanted %d", (long long)total,
			pf->wanted.num_vfs))
		return false;
	remedy = total == 0 ? firmware_enable_sriov(pf, pf->wanted.num_vfs)
			    : firmware_raise_vfs(pf, pf->wanted.num_vfs);
	if (!json_at(pf->now.entry, "totalvfs") && driver_makes_no_vfs(pf->now.driver))
		planner_problem(p, pf, "NoSriov",
				"its driver %s makes no VFs, and it has no sriov_totalvfs in "
				"sysfs: select another NIC",
				pf->now.driver);
	else if (total == 0 && json_is_false(json_at(p->in->observed, "node", "sriovKernel")))
		planner_problem(p, pf, "NoSriov",
				"no NIC of this node shows SR-IOV: enable it in the machine's "
				"firmware (SR-IOV, VT-d or AMD-Vi), boot a kernel with "
				"CONFIG_PCI_IOV, or, if the NIC's firmware has it off, %s",
				remedy);
	else if (total == 0)
		planner_problem(p, pf, "NoSriov",
				"its firmware has SR-IOV off: %s, or choose another NIC", remedy);
	else
		planner_problem(p, pf, "VfCountOutOfRange",
				"numVfs is %d, but it can have %lld VFs at most: lower numVfs, or "
				"%s",
				pf->wanted.num_vfs, (long long)total, remedy);
	return false;
}

/* ---- type of link, eSwitch ------------------------------------------------------------------- */

static bool check_link_type(struct planning *p, const struct pf *pf)
{
	auto_free char *remedy = NULL;

	if (!pf->wanted.link || str_eq(pf->wanted.link, pf->now.link))
		return true;
	remedy = vendor_of(pf) == VENDOR_NVIDIA
			 ? str_printf("mlxconfig -d %s set LINK_TYPE_P%d=%d, and reboot",
				      pf->address, pf->now.port,
				      str_eq(pf->wanted.link, "IB") ? 1 : 2)
			 : str_dup("the NIC's vendor may have a tool that changes it");
	planner_problem(p, pf, "LinkTypeMismatch",
			"linkType %s is wanted, the port is " QUOTE ": correct the policy, or %s",
			pf->wanted.link, pf->now.link ? pf->now.link : "neither", remedy);
	return false;
}

static bool check_eswitch(struct planning *p, const struct pf *pf)
{
	const char *why = pf->now.is_ib ? "an InfiniBand port has none"
			  : pf->now.is_switch_elsewhere
				  ? "the switch is the card's own processor's (BlueField in DPU "
				    "mode), which has it in switchdev"
				  : "its driver has no switch that devlink can set";

	if (!pf->wanted.eswitch || str_eq(pf->wanted.eswitch, pf->now.eswitch) ||
	    pf->now.can_set_eswitch)
		return true;
	planner_problem(p, pf, "ESwitchUnsupported",
			"eSwitchMode %s is wanted, but %s (driver " QUOTE
			"): take eSwitchMode out of the policy",
			pf->wanted.eswitch, why, pf->now.driver ? pf->now.driver : "none");
	return false;
}

/* ---- PFs of others --------------------------------------------------------------------------- */

/*
 * What the other manager of the PF has to have done. With too few VFs, those that are there are set
 * up.
 */
static bool check_external(struct planning *p, const struct pf *pf)
{
	if (pf->now.num_vfs < pf->wanted.num_vfs)
		planner_problem(
			p, pf, "TooFewVfs",
			"it is externallyManaged and has %d of %d VFs: whoever manages it has "
			"to make the others",
			pf->now.num_vfs, pf->wanted.num_vfs);
	if (pf->wanted.eswitch && !str_eq(pf->wanted.eswitch, pf->now.eswitch)) {
		planner_problem(p, pf, "ESwitchMismatch",
				"it is externallyManaged and its eSwitchMode is " QUOTE
				", wanted %s: whoever manages it has to set it",
				pf->now.eswitch ? pf->now.eswitch : "not known",
				pf->wanted.eswitch);
		return false;
	}
	if (pf->wanted.mtu > pf->now.mtu) {
		planner_problem(p, pf, "MtuTooLow",
				"it is externallyManaged and its MTU is %d, wanted %d: whoever "
				"manages it has to raise it",
				pf->now.mtu, pf->wanted.mtu);
		return false;
	}
	return true;
}

/* ---- groups of VFs --------------------------------------------------------------------------- */

static void say_group(struct planning *p, const struct pf *pf, const struct vf_group *group,
		      const char *reason, const char *text)
{
	planner_problem(p, pf, reason, "VFs %d-%d (policy " QUOTE "): %s", group->first,
			group->last,
			json_str_or(json_at(group->spec, "policyName"), "without name"), text);
}

static void check_group(struct planning *p, const struct pf *pf, struct vf_group *group)
{
	const char *vdpa = json_str_or(json_at(group->spec, "vdpaType"), "");
	json_auto_t *load = json_pack("{s:s, s:s}", "step", "load-module", "module", "vfio-pci");

	if (group->last >= pf->wanted.num_vfs)
		say_group(p, pf, group, "VfRangeOutOfRange",
			  "the range goes beyond numVfs: raise numVfs, or correct the range");
	if (*vdpa)
		say_group(
			p, pf, group, "VdpaUnsupported",
			"vDPA devices are not made by this agent: take vdpaType out of the policy");
	if (group->is_vfio && json_is_false(json_at(p->in->observed, "node", "iommu"))) {
		say_group(p, pf, group, "NoIommu",
			  "vfio-pci needs an IOMMU: enable it in the firmware (VT-d, AMD-Vi) and "
			  "boot with intel_iommu=on or amd_iommu=on");
		group->is_usable = false;
	}
	/* Why, the failure of that step says. */
	if (group->is_vfio && !has_module(p, "vfio_pci") && planner_is_refused(p, load))
		group->is_usable = false;
}

bool check_pf(struct planning *p, struct pf *pf)
{
	assert(pf->is_wanted && pf->now.entry);
	for (size_t i = 0; i < pf->wanted.n_groups; i++)
		if (pf->wanted.groups[i].is_usable)
			check_group(p, pf, &pf->wanted.groups[i]);
	if (!check_sriov(p, pf) || !check_link_type(p, pf))
		return false;
	return pf->wanted.is_external ? check_external(p, pf) : check_eswitch(p, pf);
}

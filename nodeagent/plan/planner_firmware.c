// SPDX-License-Identifier: Apache-2.0
/*
 * What only a NIC's firmware can change, in the words of its vendor's tool. It needs a reset of the
 * card and touches all of its ports, so we say it; we do it where a policy asks for it in so many
 * words, and the driver offers it through devlink.
 */
#include <string.h>

#include "lib/base/str.h"
#include "nodeagent/plan/planner_internal.h"

enum { VENDOR_OTHER, VENDOR_NVIDIA, VENDOR_INTEL, VENDOR_BROADCOM };

static int vendor_of(const struct pf_now *now)
{
	const char *vendor = json_str_or(json_at(now->entry, "vendor"), "");

	if (str_eq(vendor, "15b3"))
		return VENDOR_NVIDIA;
	if (str_eq(vendor, "8086"))
		return VENDOR_INTEL;
	return str_eq(vendor, "14e4") ? VENDOR_BROADCOM : VENDOR_OTHER;
}

int pf_port(const struct pf_now *now)
{
	const char *dot = strrchr(now->address, '.');

	return dot && dot[1] >= '0' && dot[1] <= '7' ? dot[1] - '0' + 1 : 1;
}

bool firmware_plan(struct planning *p, const struct pf_wish *wish, const struct pf_now *now)
{
	if (!wish->allows_firmware || now->protected ||
	    !json_is_true(json_at(now->entry, "host", "devlink")))
		return false;
	return planner_add(p, now->address, NULL,
			   json_pack("{s:s, s:s, s:i}", "step", "set-firmware", "pf", now->address,
				     "count", wish->num_vfs),
			   "its firmware lets it have %lld VFs, wanted %d",
			   (long long)json_integer_value(json_at(now->entry, "totalvfs")),
			   wish->num_vfs);
}

/* NVIDIA: the manual of MFT, mlxconfig. Broadcom: Documentation/networking/devlink/bnxt.rst. */
char *firmware_enable_sriov(const struct pf_now *now, int vfs)
{
	switch (vendor_of(now)) {
	case VENDOR_NVIDIA:
		return str_printf("mlxconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=%d, and reboot",
				  now->address, vfs);
	case VENDOR_BROADCOM:
		return str_printf("devlink dev param set pci/%s name enable_sriov value true cmode "
				  "permanent, and reboot",
				  now->address);
	case VENDOR_INTEL:
		return str_dup("enable SR-IOV for this NIC in the machine's setup, and reboot");
	default:
		return str_dup("enable SR-IOV with the tool of the NIC's vendor, and reboot");
	}
}

char *firmware_raise_vfs(const struct pf_now *now, int vfs)
{
	if (vendor_of(now) == VENDOR_NVIDIA)
		return str_printf("mlxconfig -d %s set NUM_OF_VFS=%d, and reboot", now->address,
				  vfs);
	/* igb, ixgbe, i40e and ice: what the controller has, divided among its ports. */
	if (vendor_of(now) == VENDOR_INTEL)
		return str_dup("choose another NIC");
	return str_dup("raise the limit with the tool of the NIC's vendor, and reboot");
}

char *firmware_set_link_type(const struct pf_now *now, const char *type)
{
	if (vendor_of(now) == VENDOR_NVIDIA)
		return str_printf("mlxconfig -d %s set LINK_TYPE_P%d=%d, and reboot", now->address,
				  pf_port(now), str_eq(type, "IB") ? 1 : 2);
	return str_dup("the NIC's vendor may have a tool that changes it");
}

// SPDX-License-Identifier: Apache-2.0
/* What was made, in words: steps as the planner writes them, and the text. */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/change_summary.h"
#include "nodeagent/model/step.h"
#include "tests/support/yaml.h"

#define A    "0000:0a:00.0"
#define B    "0000:0b:00.0"
#define A_0  "0000:0a:00.2"
#define A_1  "0000:0a:00.3"
#define GONE "0000:0c:00.0"

#define NODE(step)        "{step: {step: " step "}}, "
#define PF(pf, step)      "{pf: '" pf "', step: {step: " step "}}, "
#define VF(pf, vf, step)  "{pf: '" pf "', vf: '" vf "', step: {step: " step "}}, "
#define VFS(pf, vf, step) "{pf: '" pf "', vfs: ['" vf "'], step: {step: " step "}}, "

#define COUNT(pf, from, to)                                                                        \
	PF(pf, "set-num-vfs, pf: '" pf "', count: " #to ", from: " #from)                          \
	PF(pf, "wait-vfs, pf: '" pf "', count: " #to)
#define AUTOPROBE(pf, on)    PF(pf, "set-autoprobe, pf: '" pf "', \"on\": " on)
#define ESWITCH(pf, mode)    PF(pf, "set-eswitch, pf: '" pf "', mode: " mode)
#define PF_MTU(pf, mtu)      PF(pf, "set-mtu, device: '" pf "', mtu: " mtu)
#define VF_MTU(pf, vf, mtu)  VF(pf, vf, "set-mtu, device: '" vf "', mtu: " mtu)
#define RULE(pf, what, rule) PF(pf, what "-udev-rule, pf: '" pf "', rule: " rule)
#define MAC(pf, vf, index)                                                                         \
	VFS(pf, vf, "set-vf-mac, pf: '" pf "', vfs: {'" index "': '02:00:00:00:00:01'}")
#define GUID(pf, vf, index, which)                                                                 \
	VFS(pf, vf,                                                                                \
	    "set-vf-guid, pf: '" pf "', which: " which ", vfs: {'" index                           \
	    "': '02:00:00:00:00:00:00:01'}")
#define PROBE(pf, vf)                                                                              \
	VF(pf, vf, "unbind-driver, vf: '" vf "'")                                                  \
	VF(pf, vf, "probe-driver, vf: '" vf "'")                                                   \
	VF(pf, vf, "wait-vf, vf: '" vf "', for: netdev")
#define VFIO(pf, vf)                                                                               \
	VF(pf, vf, "set-driver-override, vf: '" vf "', driver: vfio-pci")                          \
	VF(pf, vf, "probe-driver, vf: '" vf "', driver: vfio-pci")

static const struct {
	const char *steps, *text;
} rows[] = {
	{"", "nothing changed"},
	{PF(A, "wait-vfs, pf: '" A "', count: 4"), "nothing changed"},
	/* A node's first policy: what comes first is the least of it. */
	{RULE(A, "write", "nm-unmanaged") AUTOPROBE(A, "false") COUNT(A, 0, 2) PF_MTU(A, "9000")
		 MAC(A, A_0, "0") MAC(A, A_1, "1") AUTOPROBE(A, "true") PROBE(A, A_0)
			 VF_MTU(A, A_0, "9000") PROBE(A, A_1) VF_MTU(A, A_1, "9000"),
	 "enp10s0: 2 VFs made, MTU 9000, 2 VFs with MTU 9000, 2 VFs bound to the kernel's driver, "
	 "2 VFs given MAC addresses, udev rule nm-unmanaged written"},
	/* The number of VFs. */
	{COUNT(A, 0, 1), "enp10s0: 1 VF made"},
	{COUNT(A, 4, 0), "enp10s0: 4 VFs removed"},
	{COUNT(A, 4, 0) COUNT(A, 0, 6), "enp10s0: 6 VFs instead of 4"},
	{COUNT(A, 4, 0) ESWITCH(A, "switchdev") COUNT(A, 0, 4),
	 "enp10s0: 4 VFs made anew, eSwitchMode switchdev"},
	{COUNT(A, 0, 4) COUNT(A, 4, 0), "nothing changed"},
	{COUNT(A, 0, 2) PROBE(A, A_0) COUNT(A, 2, 0) COUNT(A, 0, 3), "enp10s0: 3 VFs made"},
	/* Each PF by its name, one that is away by its address; the node. */
	{NODE("load-module, module: vfio-pci") COUNT(A, 0, 2) PF_MTU(A, "2000") COUNT(B, 2, 0)
		 COUNT(GONE, 0, 1),
	 "enp10s0: 2 VFs made, MTU 2000; enp11s0: 2 VFs removed; " GONE
	 ": 1 VF made; node: module vfio-pci loaded"},
	/* Everything else. */
	{VFIO(A, A_0) PROBE(A, A_1),
	 "enp10s0: 1 VF bound to vfio-pci, 1 VF bound to the kernel's driver"},
	{GUID(A, A_0, "0", "node") GUID(A, A_0, "0", "port"), "enp10s0: 1 VF given GUIDs"},
	{PF_MTU(A, "2000") PF_MTU(A, "1500"), "enp10s0: MTU 1500"},
	{VF_MTU(A, A_0, "2000"), "enp10s0: 1 VF with MTU 2000"},
	{PF(A, "link-up, device: '" A "'"), "enp10s0: link up"},
	{RULE(A, "write", "nm-unmanaged")
		 PF(A, "set-nic-setting, pf: '" A "', setting: pfc, value: [3]")
			 PF(A, "set-nic-setting, pf: '" A "', setting: trust, value: dscp"),
	 "enp10s0: pfc set, trust set, udev rule nm-unmanaged written"},
	{PF(A, "set-firmware, pf: '" A "', count: 16"), "enp10s0: firmware set for 16 VFs"},
	{VFS(A, A_0 "', '" A_1, "set-vf-link-state, pf: '" A "', vfs: {'0': auto, '1': auto}"),
	 "enp10s0: 2 VFs with another link state"},
	{AUTOPROBE(A, "true"), "enp10s0: drivers bind to its VFs by themselves"},
	{AUTOPROBE(A, "false"), "enp10s0: drivers do not bind to its VFs by themselves"},
	{RULE(A, "remove", "nm-unmanaged") RULE(A, "remove", "pf-name"),
	 "enp10s0: udev rule nm-unmanaged removed, udev rule pf-name removed"},
	{NODE("load-module, module: ib_core") NODE("set-rdma-netns-mode, mode: exclusive")
		 NODE("write-rdma-next-boot, mode: exclusive"),
	 "node: rdmaMode exclusive, rdmaMode exclusive from the next boot on, module ib_core "
	 "loaded"},
	{NODE("remove-rdma-next-boot"), "node: rdmaMode of the next boot left to the node"},
	{NODE("record-reboot, cause: rdma-mode-exclusive, boot: b1"),
	 "node: reboot recorded for rdma-mode-exclusive"},
	{NODE("reboot, cause: rdma-mode-exclusive, boot: b1"),
	 "node: reboot asked for, because of rdma-mode-exclusive"},
	{NODE("close-reboot, cause: rdma-mode-shared"),
	 "node: record of reboots closed for rdma-mode-shared"},
	/* The least important are counted. */
	{RULE(A, "write", "nm-unmanaged") RULE(A, "write", "pf-name, name: enp10s0") COUNT(A, 0, 2)
		 PF_MTU(A, "2000") VF_MTU(A, A_0, "2000") PROBE(A, A_0) MAC(A, A_0, "0")
			 ESWITCH(A, "legacy") PF(A, "link-up, device: '" A "'") COUNT(B, 0, 2)
				 PF_MTU(B, "2000"),
	 "enp10s0: 2 VFs made, eSwitchMode legacy, MTU 2000, 1 VF with MTU 2000, 1 VF bound to the "
	 "kernel's driver, 1 VF given MAC addresses; enp11s0: 2 VFs made, MTU 2000; and 3 more "
	 "changes"},
};

TEST(says_the_most_important_first_and_counts_the_rest)
{
	json_auto_t *observed = yaml("{interfaces: [{pciAddress: '" A "', name: enp10s0}, "
				     "{pciAddress: '" B "', name: enp11s0}]}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *steps = str_printf("[%s]", rows[i].steps);
		json_auto_t *entries = yaml(steps);
		auto_free char *text = NULL;
		const json_t *entry;
		struct err err = {0};
		size_t k;

		json_array_foreach (entries, k, entry)
			if (!step_check(json_at(entry, "step"), &err))
				fail_msg("%s", err.text);
		text = change_summary_text(entries, observed);
		assert_string_equal(text, rows[i].text);
	}
}

/* A kind of step that is new has to be put into words, or to be said to be on the way. */
TEST(every_kind_of_step_is_known)
{
	static const char *const on_the_way[] = {"wait-vfs", "set-driver-override", "unbind-driver",
						 "wait-vf"};
	const struct step_kind *kinds;
	size_t n;

	kinds = step_kinds(&n);
	for (size_t i = 0; i < n; i++) {
		auto_free char *word = str_printf("{step: %s", kinds[i].name);
		bool is_known = false;

		for (size_t k = 0; k < ARRAY_LEN(on_the_way); k++)
			is_known |= str_eq(kinds[i].name, on_the_way[k]);
		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			is_known |= strstr(rows[k].steps, word) != NULL;
		if (!is_known)
			fail_msg("no row has the step %s", kinds[i].name);
	}
}

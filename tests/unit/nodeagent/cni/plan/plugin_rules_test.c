// SPDX-License-Identifier: Apache-2.0
/* What our plugins refuse of a network, without its pod and node: nothing that either may bring. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_rules.h"
#include "tests/support/yaml.h"

TEST(takes_what_pod_node_and_cluster_complete)
{
	static const char *const configs[] = {
		"{type: sriov, vlan: 5}",
		"{type: ib-sriov, ibKubernetesEnabled: true}",
		"{type: macvlan}",
		"{type: host-device}",
		"{type: bridge, ipam: {type: host-local}, capabilities: {ipRanges: true}}",
		"{type: coordinator, mode: auto}",
		"{type: other, mtu: x}",
		"{}",
		"{name: n, cniVersion: 1.0.0, plugins: [{type: bridge, ipam: {type: host-local,"
		" subnet: 10.0.0.0/24}}, {type: ipvlan}, {type: tuning, mtu: 1500},"
		" {type: rdma}]}",
		"{cniVersion: 1.0.0, plugins: [{type: dummy, ipam: {type: static,"
		" addresses: [{address: 10.0.0.1/24}, {address: 10.0.1.1/24}]}}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
		json_auto_t *config = yaml(configs[i]);
		struct err err = {0};

		if (plugin_rules_check(config, NULL, &err))
			fail_msg("%s: %s", configs[i], err.text);
	}
}

TEST(refuses_what_each_pod_would_be_refused_for)
{
	static const struct {
		const char *config, *says;
		size_t position;
		const char *reason;
	} cases[] = {
		{"{type: sriov, vlan: 4095}", "sriov: vlan", 0, "BadField"},
		{"{type: sriov, trust: true}", "sriov: trust", 0, "BadField"},
		{"{type: macvlan, mode: bridged}", "macvlan: mode", 0, "BadField"},
		{"{type: macvlan, MTU: '9000'}", "macvlan: mtu", 0, "BadField"},
		{"{type: ipvlan, mode: l4, ipam: {type: spiderpool}}", "ipvlan: mode", 0,
		 "BadField"},
		{"{type: vlan, ipam: {type: spiderpool}}", "vlan: master", 0, "BadField"},
		{"{type: dummy}", "dummy: ipam.type", 0, "BadField"},
		{"{type: bridge, vlan: 5000}", "bridge: vlan", 0, "BadField"},
		{"{type: bridge, ipMasq: true}", "bridge: ipMasq", 0, "NotSupported"},
		{"{type: host-device, kernelpath: /proc}", "host-device: kernelpath", 0,
		 "BadField"},
		{"{type: ifacer, interfaces: [a, b], bond: {mode: 1, options: miimon=x}}",
		 "ifacer: bond.options", 0, "BadField"},
		{"{type: rdma, deviceID: 5}", "rdma: deviceID", 0, "BadField"},
		{"{plugins: [{type: macvlan}, {type: tuning, sysctl: {kernel.x: '1'}}]}",
		 "tuning: sysctl", 1, "BadField"},
		{"{plugins: [{type: macvlan}, {type: other}, {type: coordinator, mode: some}]}",
		 "coordinator: mode", 2, "BadField"},
		{"{type: macvlan, ipam: {type: static, addresses: [{address: 10.0.0.1}]}}",
		 "static: ", 0, "BadField"},
		{"{type: macvlan, ipam: {type: host-local}}", "host-local: ", 0, "BadField"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		struct err err = {0};
		size_t position = 99;

		if (plugin_rules_check(config, &position, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, cases[i].reason);
		assert_int_equal(position, cases[i].position);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

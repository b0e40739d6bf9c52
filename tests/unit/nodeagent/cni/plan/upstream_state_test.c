// SPDX-License-Identifier: Apache-2.0
/* What sriov-cni, ib-sriov-cni and rdma-cni kept becomes what our plugins keep. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/upstream_state.h"
#include "tests/support/yaml.h"

#define VF  "deviceID: '0000:01:10.2', Master: enp1s0, VFID: 1"
#define WAS "HostIFName: enp1s0v1, EffectiveMAC: '0A:01:02:03:04:05', MTU: 1500"

static void assert_read(const char *plugin, const char *kept_text, const char *want_text)
{
	json_auto_t *kept = yaml(kept_text), *want = yaml(want_text), *saved = NULL;
	struct err err = {0};

	saved = upstream_state_read(plugin, kept, &err);
	if (!saved)
		fail_msg("%s: %s", kept_text, err.text);
	if (!json_same(saved, want)) {
		auto_free char *text = json_text(saved);

		fail_msg("got %s, not %s", text, want_text);
	}
}

TEST(a_vf_gets_back_what_the_configuration_had_changed)
{
	assert_read("sriov",
		    "{" VF ", ipam: {type: whereabouts}, MAC: '02:00:00:00:00:0a', vlan: 5, "
		    "vlanQoS: 3, spoofchk: 'off', trust: 'on', max_tx_rate: 100, link_state: "
		    "enable, OrigVfState: {" WAS ", AdminMAC: '00:00:00:00:00:00', SpoofChk: true, "
		    "Vlan: 7, VlanQoS: 0, VlanProto: 33024}}",
		    "{device: '0000:01:10.2', pf: enp1s0, name: enp1s0v1, mac: "
		    "'0a:01:02:03:04:05', mtu: 1500, ipam: true, settings: ["
		    "{in: host, do: vf, dev: enp1s0, vf: 1, vlan: 7, qos: 0, proto: 33024, was: "
		    "{vlan: 5, qos: 3, proto: 33024}},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, mac: '00:00:00:00:00:00', was: {mac: "
		    "'02:00:00:00:00:0a'}},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, minRate: 0, maxRate: 0, was: {minRate: "
		    "0, maxRate: 100}},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, spoofchk: true, was: {spoofchk: "
		    "false}},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, trust: false, was: {trust: true}},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, linkState: 0, was: {linkState: 1}}]}");
}

TEST(nothing_is_set_that_was_not_asked_for)
{
	/* As all versions write what is absent. */
	assert_read("sriov",
		    "{" VF ", MAC: '', vlan: null, vlanQoS: null, min_tx_rate: null, max_tx_rate: "
		    "null, OrigVfState: {" WAS ", Vlan: 7, AdminMAC: '02:00:00:00:00:0b'}}",
		    "{device: '0000:01:10.2', pf: enp1s0, name: enp1s0v1, mac: "
		    "'0a:01:02:03:04:05', mtu: 1500, ipam: false, settings: []}");
}

TEST(a_vf_of_user_space_has_no_interface)
{
	assert_read("sriov",
		    "{" VF ", DPDKMode: true, vlan: 9, vlanProto: 802.1ad, OrigVfState: "
		    "{HostIFName: '', Vlan: 7, VlanProto: 34984}}",
		    "{device: '0000:01:10.2', pf: enp1s0, ipam: false, settings: [{in: host, do: "
		    "vf, dev: enp1s0, vf: 1, vlan: 7, qos: 0, proto: 34984, was: {vlan: 9, qos: "
		    "0, proto: 34984}}]}");
}

TEST(an_infiniband_vf_gets_its_guid_back)
{
	assert_read("ib-sriov",
		    "{" VF ", HostIFNames: ibs1v1, HostIFGUID: '02:00:00:00:00:00:00:07', "
		    "link_state: enable, RdmaNetState: {sandboxRdmaDevName: mlx5_4}}",
		    "{device: '0000:01:10.2', name: ibs1v1, rdma: mlx5_4, rebind: true, ipam: "
		    "false, settings: [{in: host, do: vf, dev: enp1s0, vf: 1, linkState: 0},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, nodeGuid: '02:00:00:00:00:00:00:07'},"
		    "{in: host, do: vf, dev: enp1s0, vf: 1, portGuid: "
		    "'02:00:00:00:00:00:00:07'}]}");
	assert_read("ib-sriov", "{" VF ", HostIFNames: ibs1v1, HostIFGUID: ''}",
		    "{device: '0000:01:10.2', name: ibs1v1, rebind: false, ipam: false, settings: "
		    "[]}");
}

/* NICs take no zeros. */
TEST(a_guid_of_zeros_comes_back_as_ones)
{
	json_auto_t *kept = yaml("{" VF ", HostIFGUID: '00:00:00:00:00:00:00:00'}");
	json_auto_t *saved = upstream_state_read("ib-sriov", kept, NULL);
	const json_t *step = json_array_get(json_at(saved, "settings"), 0);

	assert_string_equal(json_str_at(step, "nodeGuid"), "ff:ff:ff:ff:ff:ff:ff:ff");
}

TEST(an_rdma_device_is_known_by_its_name)
{
	assert_read("rdma",
		    "{version: '1.0', deviceID: '0000:01:10.0', sandboxRdmaDevName: mlx5_4, "
		    "containerRdmaDevName: mlx5_4}",
		    "{device: '0000:01:10.0', rdma: mlx5_4}");
}

TEST(what_cannot_be_read_is_refused_by_name)
{
	static const struct {
		const char *plugin, *kept, *says;
	} cases[] = {
		{"sriov", "[]", "deviceID"},
		{"sriov", "{" VF ", vlan: 4095}", "vlan"},
		{"sriov", "{" VF ", OrigVfState: {Vlan: -1}}", "Vlan"},
		{"sriov", "{" VF ", OrigVfState: {MTU: big}}", "MTU"},
		{"sriov", "{" VF ", OrigVfState: {HostIFName: a/b}}", "HostIFName"},
		{"sriov", "{" VF "}", "OrigVfState.HostIFName"},
		{"sriov", "{deviceID: '0000:01:10.2', OrigVfState: {" WAS "}}", "Master"},
		{"ib-sriov", "{deviceID: mlx5_4}", "deviceID"},
		{"ib-sriov", "{" VF ", HostIFNames: much-too-long-a-name}", "HostIFNames"},
		{"rdma", "{deviceID: '0000:01:10.0'}", "sandboxRdmaDevName"},
		{"rdma", "{sandboxRdmaDevName: mlx5_4}", "deviceID"},
		{"coordinator", "{}", "coordinator"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *kept = yaml(cases[i].kept);
		struct err err = {0};

		assert_null(upstream_state_read(cases[i].plugin, kept, &err));
		assert_true(str_eq(err.reason, "BadUpstreamState") ||
			    str_eq(err.reason, "BadField"));
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].kept, err.text);
	}
}

TEST(files_are_called_as_the_plugins_call_them)
{
	auto_free char *sriov = upstream_state_path("sriov", "rail0", "c1", "net1");
	auto_free char *ib = upstream_state_path("ib-sriov", "rail0", "c1", "net1");
	auto_free char *rdma = upstream_state_path("rdma", "rail0", "c1", "net1");

	assert_string_equal(sriov, "/var/lib/cni/sriov/c1-net1");
	assert_string_equal(ib, "/var/lib/cni/ib-sriov/c1-net1");
	assert_string_equal(rdma, "/var/lib/cni/rdma/rail0-c1-net1");
	assert_null(upstream_state_path("coordinator", "rail0", "c1", "net1"));
}

// SPDX-License-Identifier: Apache-2.0
/* What a change of a NodeState's spec costs the node. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/sriov/impact.h"
#include "tests/support/yaml.h"

#define PF "pciAddress: '0000:3b:00.0'"

/* A NIC of 8 VFs, 2 made, the second in pod ml/train-0; RDMA devices are shared. */
static const char status_yaml[] =
	"system: {rdmaMode: shared}\n"
	"resources:\n"
	"- {name: spidernet.io/rail, kind: sriov, offered: 2, allocated: 1,\n"
	"   pods: [{device: '0000:3b:00.3', pod: ml/train-0/main}]}\n"
	"- {name: spidernet.io/shared, kind: shared, offered: 100, allocated: 7}\n"
	"interfaces:\n"
	"- " PF "\n"
	"  name: ens1f0\n"
	"  mtu: 1500\n"
	"  numVfs: 2\n"
	"  totalvfs: 8\n"
	"  eSwitchMode: legacy\n"
	"  Vfs:\n"
	"  - {vfID: 0, pciAddress: '0000:3b:00.2', driver: mlx5_core}\n"
	"  - {vfID: 1, pciAddress: '0000:3b:00.3', driver: mlx5_core}\n";

static const char two_vfs[] =
	"interfaces: [{" PF ", numVfs: 2, vfGroups: [{vfRange: 0-1, deviceType: netdevice}]}]";

static json_t *cost(const char *before, const char *spec)
{
	json_auto_t *status = yaml(status_yaml), *was = yaml(before), *wanted = yaml(spec);

	return node_impact(was, wanted, status);
}

static void check(const char *before, const char *spec, const char *class, size_t changes,
		  size_t pods)
{
	json_auto_t *impact = cost(before, spec);

	assert_string_equal(json_str_at(impact, "class"), class);
	assert_int_equal(json_array_size(json_at(impact, "changes")), changes);
	assert_int_equal(json_array_size(json_at(impact, "pods")), pods);
}

TEST(the_same_spec_costs_nothing)
{
	check(two_vfs, two_vfs, "none", 0, 0);
	check("{}", "{}", "none", 0, 0);
}

TEST(another_number_of_vfs_ends_the_pods_that_hold_some)
{
	json_auto_t *impact = cost(two_vfs, "interfaces: [{" PF ", numVfs: 4}]");
	const json_t *change = json_array_get(json_at(impact, "changes"), 0);
	const json_t *pod = json_array_get(json_at(impact, "pods"), 0);

	assert_string_equal(json_str_at(impact, "class"), "evict");
	assert_string_equal(
		json_str_at(change, "message"),
		"numVfs is 2, wanted 4: all VFs are removed first, 1 of them is in pods");
	assert_int_equal(json_integer_value(json_at(change, "vfsBefore")), 2);
	assert_int_equal(json_integer_value(json_at(change, "vfs")), 4);
	assert_string_equal(json_str_at(pod, "pod"), "ml/train-0");
	assert_string_equal(json_str_at(pod, "container"), "main");
	assert_string_equal(json_str_at(pod, "resource"), "spidernet.io/rail");
	assert_string_equal(json_str_at(pod, "device"), "0000:3b:00.3");
	assert_string_equal(json_str_at(pod, "nic"), "ens1f0");
	assert_null(json_at(impact, "unknown"));
}

TEST(more_vfs_than_the_nic_has_are_not_made)
{
	check(two_vfs, "interfaces: [{" PF ", numVfs: 9}]", "none", 1, 0);
}

TEST(another_eswitch_mode_removes_all_vfs)
{
	check(two_vfs, "interfaces: [{" PF ", numVfs: 2, eSwitchMode: switchdev}]", "evict", 1, 1);
	check(two_vfs, "interfaces: [{" PF ", numVfs: 2, eSwitchMode: legacy}]", "none", 1, 0);
}

TEST(a_mode_that_nobody_wants_any_more_removes_all_vfs)
{
	static const char switchdev[] = "interfaces: [{" PF ", numVfs: 2, eSwitchMode: switchdev}]";
	json_auto_t *status = yaml(status_yaml), *before = yaml(switchdev);
	json_auto_t *spec = yaml("interfaces: [{" PF ", numVfs: 2}]"), *impact = NULL;
	json_t *pf = json_array_get(json_at(status, "interfaces"), 0);

	json_put_str(pf, "eSwitchMode", "switchdev");
	impact = node_impact(before, spec, status);
	assert_string_equal(json_str_at(impact, "class"), "evict");
	assert_int_equal(json_array_size(json_at(impact, "pods")), 1);
	check("interfaces: [{" PF ", numVfs: 2, eSwitchMode: legacy}]",
	      "interfaces: [{" PF ", numVfs: 2}]", "none", 0, 0);
}

TEST(of_what_the_agent_refuses_nothing_is_done)
{
	static const char external[] = PF ", numVfs: 2, externallyManaged: true, vfGroups: "
					  "[{vfRange: 0-1, deviceType: vfio-pci}]";
	auto_free char *well = str_printf("interfaces: [{%s}]", external);
	auto_free char *mode = str_printf("interfaces: [{%s, eSwitchMode: switchdev}]", external);
	auto_free char *mtu = str_printf("interfaces: [{%s, mtu: 9000}]", external);

	check(two_vfs, "interfaces: [{" PF ", numVfs: 4, linkType: ib}]", "none", 1, 0);
	check(two_vfs, well, "evict", 2, 1);
	check(two_vfs, mode, "none", 1, 0);
	check(two_vfs, mtu, "none", 1, 0);
}

TEST(a_driver_changes_for_the_vfs_of_its_group_alone)
{
	check(two_vfs,
	      "interfaces: [{" PF ", numVfs: 2, vfGroups: [{vfRange: 0-0, deviceType: vfio-pci}]}]",
	      "none", 2, 0);
	check(two_vfs,
	      "interfaces: [{" PF ", numVfs: 2, vfGroups: [{vfRange: 1-1, deviceType: vfio-pci}]}]",
	      "evict", 2, 1);
}

TEST(an_mtu_costs_no_pod)
{
	check(two_vfs,
	      "interfaces: [{" PF ", numVfs: 2, mtu: 9000,"
	      " vfGroups: [{vfRange: 0-1, deviceType: netdevice}]}]",
	      "none", 1, 0);
	check(two_vfs, "interfaces: [{" PF ", numVfs: 4, mtu: 9000}]", "evict", 2, 1);
}

TEST(a_nic_that_policies_leave_loses_its_vfs)
{
	check(two_vfs, "{}", "evict", 1, 1);
	check("{}", "{}", "none", 0, 0);
	check("interfaces: [{" PF ", numVfs: 2, externallyManaged: true}]", "{}", "none", 0, 0);
}

TEST(the_number_of_an_external_nic_is_not_ours)
{
	check("{}", "interfaces: [{" PF ", numVfs: 1, externallyManaged: true}]", "none", 0, 0);
}

TEST(another_rdma_mode_is_a_boot)
{
	check("{}", "system: {rdmaMode: exclusive}", "reboot", 1, 0);
	check("{}", "system: {rdmaMode: shared}", "none", 0, 0);
	check("system: {rdmaMode: exclusive}", "{}", "reboot", 1, 0);
}

TEST(what_the_kubelet_does_not_tell_counts_as_in_use)
{
	json_auto_t *status = yaml(status_yaml), *before = yaml(two_vfs), *impact = NULL;
	json_auto_t *spec = yaml("interfaces: [{" PF ", numVfs: 4}]"), *other = NULL;
	json_auto_t *vfio = yaml("interfaces: [{" PF
				 ", numVfs: 2, vfGroups: [{vfRange: 0-0, deviceType: vfio-pci}]}]");
	json_t *resource = json_array_get(json_at(status, "resources"), 0);

	json_object_del(resource, "allocated");
	json_object_del(resource, "pods");
	impact = node_impact(before, spec, status);
	assert_string_equal(json_str_at(impact, "class"), "evict");
	assert_int_equal(json_integer_value(json_at(impact, "unknown")), 2);
	other = node_impact(before, vfio, status);
	assert_string_equal(json_str_at(other, "class"), "evict");
}

TEST(without_a_status_nothing_can_be_said)
{
	json_auto_t *spec = yaml(two_vfs);
	json_auto_t *impact = node_impact(NULL, spec, NULL);

	assert_string_equal(json_str_at(impact, "class"), "none");
	assert_int_equal(json_array_size(json_at(impact, "changes")), 0);
}

/* Of the NIC above, with a driver and settings. */
static json_t *cost_of_settings(const char *before, const char *spec, const char *driver)
{
	json_auto_t *status = yaml(status_yaml), *was = yaml(before), *wanted = yaml(spec);
	json_t *pf = json_array_get(json_at(status, "interfaces"), 0);

	json_put_str(pf, "driver", driver);
	json_put(pf, "settings", yaml("{pfc: [], trust: pcp, rings: {rx: 512, tx: 512}}"));
	return node_impact(was, wanted, status);
}

TEST(settings_cost_pods_where_they_take_the_link_down)
{
#define NIC(settings) "nicSettings: [{" PF ", settings: {" settings "}, ifSupported: [ecn]}]"
	static const struct {
		const char *before, *spec, *driver, *class, *message;
	} rows[] = {
		{"{}", NIC("pfc: []"), "mlx5_core", "none", NULL},
		{"{}", NIC("rings: {rx: 512}"), "mlx5_core", "none", NULL},
		{"{}", NIC("trust: dscp"), "mlx5_core", "none", "settings change: trust \"dscp\""},
		{"{}", NIC("trust: dscp"), "ice", "evict",
		 "settings that take the link down change: trust \"dscp\""},
		{"{}", NIC("pfc: [3], rings: {rx: 8192}"), "mlx5_core", "evict",
		 "settings that take the link down change: pfc [3], rings {\"rx\":8192}"},
		{NIC("pfc: []"), "{}", "mlx5_core", "evict",
		 "settings that take the link down change: pfc as it was found"},
		/* The driver does not offer it, as before. */
		{NIC("rdmaCmTos: 106"), NIC("rdmaCmTos: 106"), "mlx5_core", "none", NULL},
		{"{}", NIC("rdmaCmTos: 106"), "mlx5_core", "none",
		 "settings change: rdmaCmTos 106"},
		{"{}", NIC("ecn: [3]"), "mlx5_core", "none", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *impact =
			cost_of_settings(rows[i].before, rows[i].spec, rows[i].driver);
		const json_t *change = json_array_get(json_at(impact, "changes"), 0);

		if (!str_eq(json_str_at(impact, "class"), rows[i].class) ||
		    !str_eq(json_str_at(change, "message"), rows[i].message))
			fail_msg("%zu: %s", i, json_text(impact));
		assert_int_equal(json_array_size(json_at(impact, "pods")),
				 str_eq(rows[i].class, "evict"));
	}
}

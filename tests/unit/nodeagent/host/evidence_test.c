// SPDX-License-Identifier: Apache-2.0
/* Evidence of use: what keeps a step from a device, and what it costs to know. */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host/evidence.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/netlink/rtnl_link.h"
#include "nodeagent/worker/execute.h"

#define PF    TREE_MLX
#define VF    "0000:3c:00.0"
#define OTHER "0000:3c:00.1"

#define CLAIMS "var/lib/orbweaver/dra/claims.json"

#define SWITCHDEV  "{\"step\": \"set-eswitch\", \"pf\": \"" PF "\", \"mode\": \"switchdev\"}"
#define SET_VFS(n) "{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": " #n "}"
#define SET_MTU(n) "{\"step\": \"set-mtu\", \"device\": \"" PF "\", \"mtu\": " #n "}"
#define GIVE_MAC(mac)                                                                              \
	"{\"step\": \"set-vf-mac\", \"pf\": \"" PF "\", \"vfs\": {\"0\": \"" mac "\"}}"
#define UNBIND "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}"

/* The second port of the card, in the same bond. */
static const struct tree_pf second = {.address = "0000:3b:00.1",
				      .driver = "mlx5_core",
				      .netdev = "ens1f1np1",
				      .vendor = "15b3",
				      .device = "101b",
				      .vf_device = "101c",
				      .vf_driver = "mlx5_core",
				      .vf_bus = 0x3d,
				      .total = 128,
				      .has_devlink = true,
				      .master = "bond0"};

static struct host_tree *tree_with(const struct tree_pf *pf)
{
	struct host_tree *tree = host_tree_new();
	json_auto_t *nobody = json_object();

	if (pf->master)
		host_tree_add_interface(tree, pf->master, "bond");
	host_tree_add_pf(tree, pf);
	host_set_held(host_tree_host(tree), nobody);
	return tree;
}

static int set_up(void **state)
{
	*state = tree_with(&tree_mlx);
	return 0;
}

static int set_up_bond(void **state)
{
	struct tree_pf first = tree_mlx;

	first.rdma = "mlx5_bond_0";
	first.master = "bond0";
	*state = tree_with(&first);
	host_tree_add_pf(*state, &second);
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static int run(struct host_tree *tree, const char *text, struct err *err)
{
	json_auto_t *step = json_parse(text, strlen(text), NULL), *result = NULL;

	*err = (struct err){0};
	return host_execute(host_tree_host(tree), step, &result, err);
}

static void does(struct host_tree *tree, const char *text)
{
	struct err err;

	if (run(tree, text, &err) < 0)
		fail_msg("%s: %s: %s", text, err.reason, err.text);
}

/* With this reason, and these words in the text; nothing is written. */
static void refuses(struct host_tree *tree, const char *text, const char *reason, const char *words)
{
	int changes = host_tree_changes(tree);
	struct err err;

	assert_int_equal(run(tree, text, &err), -1);
	if (!str_eq(err.reason, reason) || !strstr(err.text, words))
		fail_msg("%s: %s: %s", text, err.reason, err.text);
	assert_int_equal(host_tree_changes(tree), changes);
}

TEST_WITH(a_pf_whose_rdma_device_is_open_keeps_its_switch, set_up, tear_down)
{
	host_tree_open_verbs(*state, "mlx5_0", 3);
	refuses(*state, SWITCHDEV, "PfInUse", "3 processes that have mlx5_0 open");
	/* VFs come and go beside it. */
	does(*state, SET_VFS(2));
}

TEST_WITH(a_pf_that_interfaces_lie_on_keeps_its_switch, set_up, tear_down)
{
	host_tree_add_address(*state, "ens1f0np0", "192.0.2.7");
	refuses(*state, SWITCHDEV, "PfInUse", "ens1f0np0 has an address");
}

static struct host_tree *tree_of_driver(const char *driver)
{
	struct tree_pf pf = tree_mlx;

	pf.driver = driver;
	pf.rdma = NULL;
	return tree_with(&pf);
}

/* Pods' interfaces keep the number, as the plan shows; the node's own addresses bear it. */
TEST(a_pf_whose_link_vfs_would_drop_gets_them_beside_an_address)
{
	static const char *const drivers[] = {"igb", "ixgbe", "ice"};

	for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
		struct host_tree *tree = tree_of_driver(drivers[i]);

		host_tree_add_address(tree, "ens1f0np0", "192.0.2.7");
		does(tree, SET_VFS(2));
		does(tree, SET_VFS(0));
		host_tree_free(tree);
	}
}

TEST_WITH(a_pf_in_a_bond_keeps_its_switch, set_up_bond, tear_down)
{
	refuses(*state, SWITCHDEV, "PfInUse", "bond0, of which ens1f0np0 is a part");
}

TEST_WITH(a_port_of_a_bond_is_used_by_the_node, set_up_bond, tear_down)
{
	struct evidence *evidence = evidence_new(host_tree_host(*state));
	auto_free char *who = evidence_node_user(evidence, PF);

	evidence_free(evidence);
	assert_string_equal(who, "bond0, of which ens1f0np0 is a part");
}

TEST_WITH(a_pf_in_a_bond_keeps_its_mtu, set_up_bond, tear_down)
{
	does(*state, SET_MTU(9000));
	refuses(*state, SET_MTU(1500), "PfInUse", "bond0, of which ens1f0np0 is a part");
}

TEST_WITH(a_pf_that_nothing_lies_on_does_not, set_up, tear_down)
{
	does(*state, SET_MTU(9000));
	does(*state, SET_MTU(1500));
}

TEST_WITH(a_live_roce_lag_keeps_the_vfs_of_all_its_ports, set_up_bond, tear_down)
{
	static const char *const counts[] = {
		SET_VFS(2), "{\"step\": \"set-num-vfs\", \"pf\": \"0000:3b:00.1\", \"count\": 2}"};

	host_tree_open_verbs(*state, "mlx5_bond_0", 1);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		refuses(*state, counts[i], "PfInUse", "is a port of bond0");
}

TEST_WITH(a_roce_lag_that_nobody_has_open_does_not, set_up_bond, tear_down)
{
	does(*state, SET_VFS(2));
}

TEST_WITH(a_vf_whose_rdma_device_is_open_is_in_use, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_open_verbs(*state, "mlx5_0v0", 1);
	refuses(*state, UNBIND, "VfInUse", "1 processes that have mlx5_0v0 open");
	refuses(*state, SET_VFS(0), "VfInUse", VF);
	does(*state, "{\"step\": \"unbind-driver\", \"vf\": \"" OTHER "\"}");
}

/* Unbinding would sleep in the kernel until the file is closed. */
TEST_WITH(a_vf_under_soft_roce_that_a_process_has_open_is_in_use, set_up, tear_down)
{
	struct sysfs_text name;

	does(*state, SET_VFS(2));
	/* Its own RDMA device is gone: the VF of a NIC without RDMA. */
	host_tree_remove(*state, "sys/bus/pci/devices/" VF "/infiniband");
	assert_true(pci_netdev(host_tree_host(*state), VF, &name));
	host_tree_add_rxe(*state, name.text);
	host_tree_file(*state, "proc/4242/comm", "perftest\n");
	host_tree_link(*state, "proc/4242/fd/3", "/dev/infiniband/uverbs9");
	refuses(*state, UNBIND, "VfInUse", "perftest (pid 4242)");
	refuses(*state, SET_VFS(0), "VfInUse", VF);
	host_tree_remove(*state, "proc/4242/fd/3");
	does(*state, UNBIND);
}

static void bind_vfio(struct host_tree *tree)
{
	does(tree, SET_VFS(1));
	does(tree,
	     "{\"step\": \"set-driver-override\", \"vf\": \"" VF "\", \"driver\": \"vfio-pci\"}");
	does(tree, UNBIND);
	does(tree, "{\"step\": \"probe-driver\", \"vf\": \"" VF "\"}");
}

/*
 * A node with a million open files would take seconds for each step: the kernel knows it of the
 * device.
 */
TEST_WITH(no_open_file_is_looked_at_where_the_kernel_knows_it_of_the_device, set_up, tear_down)
{
	bind_vfio(*state);
	host_tree_link(*state, "sys/bus/pci/devices/" VF "/iommu_group",
		       "../../../../kernel/iommu_groups/7");
	host_tree_file(*state, "proc/4242/comm", "other\n");
	host_tree_link(*state, "proc/4242/fd/11", "/dev/vfio/7");
	host_tree_file(*state, "sys/bus/pci/devices/" VF "/enable", "1\n");
	refuses(*state, UNBIND, "VfInUse", "VFIO");
	/* Who looked at the files would find one. */
	host_tree_file(*state, "sys/bus/pci/devices/" VF "/enable", "0\n");
	does(*state, UNBIND);
}

TEST_WITH(open_files_are_looked_at_where_the_kernel_does_not_know, set_up, tear_down)
{
	bind_vfio(*state);
	host_tree_link(*state, "sys/bus/pci/devices/" VF "/iommu_group",
		       "../../../../kernel/iommu_groups/7");
	host_tree_file(*state, "proc/4242/comm", "qemu\n");
	host_tree_link(*state, "proc/4242/fd/11", "/dev/vfio/7");
	refuses(*state, UNBIND, "VfInUse", "qemu (pid 4242)");
}

/* For migration of virtual machines; bound by whoever runs these. */
TEST_WITH(a_vendors_own_vfio_driver_is_one_of_vfio, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *vf;

	bind_vfio(*state);
	host_tree_link(*state, "sys/bus/pci/devices/" VF "/driver", "../../drivers/mlx5_vfio_pci");
	host_tree_link(*state, "sys/bus/pci/devices/" VF "/iommu_group",
		       "../../../../kernel/iommu_groups/7");
	host_tree_file(*state, "proc/4242/comm", "qemu\n");
	host_tree_link(*state, "proc/4242/fd/11", "/dev/vfio/7");
	refuses(*state, UNBIND, "VfInUse", "qemu (pid 4242)");
	refuses(*state, SET_VFS(0), "VfInUse", "qemu (pid 4242)");
	observed = host_observe(host_tree_host(*state), HOST_OBSERVE_HOLDERS, NULL);
	vf = json_array_get(json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"), 0);
	assert_true(json_is_true(json_at(vf, "host", "inUse")));
	assert_string_equal(json_str_at(vf, "host", "holder", "kind"), "vfio");
	/* The kernel knows it of these, too: no open file is looked at. */
	host_tree_file(*state, "sys/bus/pci/devices/" VF "/enable", "1\n");
	refuses(*state, UNBIND, "VfInUse", "VFIO");
	host_tree_file(*state, "sys/bus/pci/devices/" VF "/enable", "0\n");
	does(*state, SET_VFS(0));
}

/* A program of DPDK's on the host. Its driver has enabled the function since it was bound. */
TEST_WITH(a_vf_of_uio_is_looked_for_among_open_files, set_up, tear_down)
{
	bind_vfio(*state);
	host_tree_link(*state, "sys/bus/pci/devices/" VF "/driver",
		       "../../drivers/uio_pci_generic");
	host_tree_file(*state, "sys/bus/pci/devices/" VF "/enable", "1\n");
	host_tree_file(*state, "sys/bus/pci/devices/" VF "/uio/uio3/name", "x\n");
	host_tree_file(*state, "proc/4242/comm", "dpdk-testpmd\n");
	host_tree_link(*state, "proc/4242/fd/11", "/dev/uio3");
	refuses(*state, SET_VFS(0), "VfInUse", "dpdk-testpmd (pid 4242)");
	host_tree_remove(*state, "proc/4242/fd/11");
	does(*state, SET_VFS(0));
}

TEST_WITH(the_observed_document_says_the_same, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *vf;

	does(*state, SET_VFS(2));
	host_tree_open_verbs(*state, "mlx5_0v1", 2);
	observed = host_observe(host_tree_host(*state), HOST_OBSERVE_HOLDERS, NULL);
	vf = json_array_get(json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"), 1);
	assert_true(json_is_true(json_at(vf, "host", "inUse")));
	assert_string_equal(json_str_at(vf, "host", "holder", "kind"), "process");
}

/* ---- what else there is on a NIC ------------------------------------------------------------- */

/* An interface of the node becomes one of the PF's, of this number and port. */
static void give_to_pf(struct host_tree *tree, const char *name, int index, const char *port)
{
	auto_free char *of_pf = str_printf("sys/bus/pci/devices/" PF "/net/%s/ifindex", name);
	auto_free char *number = str_printf("sys/class/net/%s/ifindex", name);
	auto_free char *text = str_printf("%d\n", index);

	host_tree_file(tree, of_pf, text);
	host_tree_file(tree, number, text);
	for (int i = 0; port && i < 2; i++) {
		auto_free char *path =
			str_printf("sys/class/net/%s/phys_%s", name, i ? "port_name" : "switch_id");

		host_tree_file(tree, path, i ? port : "5e00\n");
	}
}

static int number_of(struct host_tree *tree, const char *name)
{
	auto_interfaces struct rtnl_interfaces list = {0};
	const struct rtnl_interface *interface;

	assert_int_equal(rtnl_list(host_tree_host(tree)->netlink, &list, NULL), 0);
	interface = rtnl_by_name(&list, name);
	assert_non_null(interface);
	return interface->index;
}

/* A bridge, a route of the node: they end with the VF. */
TEST_WITH(representors_that_the_node_uses_keep_their_vfs, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_add_interface(*state, "eth4", NULL);
	give_to_pf(*state, "eth4", number_of(*state, "eth4"), "pf0vf0\n");
	does(*state, SET_VFS(0));
	does(*state, SET_VFS(2));
	host_tree_add_address(*state, "eth4", "192.0.2.44");
	refuses(*state, SET_VFS(0), "PfInUse", "eth4 has an address");
	refuses(*state, SWITCHDEV, "PfInUse", "eth4 has an address");
}

/* Its own interface is free; the card's second one, of the same function, is not. */
TEST_WITH(each_interface_of_a_function_counts, set_up, tear_down)
{
	host_tree_add_interface(*state, "eth9", NULL);
	give_to_pf(*state, "eth9", number_of(*state, "eth9"), NULL);
	host_tree_add_address(*state, "eth9", "192.0.2.49");
	refuses(*state, SWITCHDEV, "PfInUse", "eth9 has an address");
	/* VFs come and go beside a port. */
	does(*state, SET_VFS(2));
}

TEST_WITH(an_interface_that_was_not_listed_may_be_in_use, set_up, tear_down)
{
	give_to_pf(*state, "late0", 999, NULL);
	refuses(*state, SWITCHDEV, "PfInUse", "late0 came or went");
}

/* The plugin host-device gives PFs to pods. */
TEST_WITH(a_pf_in_another_namespace_keeps_its_switch, set_up, tear_down)
{
	host_tree_move_away(*state, PF);
	refuses(*state, SWITCHDEV, "PfInUse", "another network namespace");
}

TEST_WITH(a_pf_whose_vfs_would_drop_the_link_of_a_pod_gets_none, set_up, tear_down)
{
	struct host_tree *tree = tree_of_driver("ixgbe");

	host_tree_move_away(tree, PF);
	refuses(tree, SET_VFS(2), "PfInUse", "another network namespace");
	host_tree_free(tree);
}

TEST_WITH(a_pf_of_a_virtual_machine_gets_no_vfs, set_up, tear_down)
{
	host_tree_link(*state, "sys/bus/pci/devices/" PF "/driver", "../../drivers/vfio-pci");
	host_tree_file(*state, "sys/bus/pci/devices/" PF "/enable", "1\n");
	refuses(*state, SET_VFS(2), "PfInUse", "VFIO");
}

TEST_WITH(a_pf_with_a_subfunction_keeps_its_switch, set_up, tear_down)
{
	host_tree_file(*state, "sys/bus/pci/devices/" PF "/mlx5_core.eth.0/x", "");
	host_tree_file(*state, "sys/bus/pci/devices/" PF "/mlx5_core.sf.4/sfnum", "88\n");
	refuses(*state, SWITCHDEV, "PfInUse", "its subfunction mlx5_core.sf.4");
}

TEST_WITH(a_pf_with_a_subnet_manager_or_a_clock_keeps_its_switch, set_up, tear_down)
{
	static const char *const files[][2] = {
		{"infiniband_mad/umad2/dev", "/dev/infiniband/umad2"},
		{"infiniband_mad/issm2/dev", "/dev/infiniband/issm2"},
		{"ptp/ptp1/dev", "/dev/ptp1"},
	};

	host_tree_file(*state, "proc/4242/comm", "opensm\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *path = str_printf("sys/bus/pci/devices/" PF "/%s", files[i][0]);

		host_tree_file(*state, path, "1:1\n");
		host_tree_link(*state, "proc/4242/fd/5", files[i][1]);
		refuses(*state, SWITCHDEV, "PfInUse", files[i][1]);
		host_tree_remove(*state, "proc/4242/fd/5");
	}
	does(*state, SWITCHDEV);
}

TEST_WITH(soft_roce_beside_a_vfs_own_rdma_device_counts, set_up, tear_down)
{
	struct sysfs_text name;

	does(*state, SET_VFS(2));
	assert_true(pci_netdev(host_tree_host(*state), VF, &name));
	host_tree_add_rxe(*state, name.text);
	host_tree_file(*state, "proc/4242/comm", "perftest\n");
	host_tree_link(*state, "proc/4242/fd/3", "/dev/infiniband/uverbs9");
	refuses(*state, UNBIND, "VfInUse", "perftest (pid 4242)");
}

TEST_WITH(a_team_is_a_lag_like_a_bond, set_up, tear_down)
{
	struct host_tree *tree = host_tree_new();
	struct tree_pf first = tree_mlx;
	json_auto_t *nobody = json_object();

	first.rdma = "mlx5_bond_0";
	first.master = "team0";
	host_tree_add_interface(tree, "team0", "team");
	host_tree_add_pf(tree, &first);
	host_set_held(host_tree_host(tree), nobody);
	host_tree_open_verbs(tree, "mlx5_bond_0", 1);
	refuses(tree, SET_VFS(2), "PfInUse", "is a port of team0");
	host_tree_free(tree);
}

/* The port's MTU is that of all its VFs. */
TEST_WITH(a_pf_whose_vf_a_pod_has_keeps_its_mtu, set_up, tear_down)
{
	does(*state, SET_MTU(9000));
	does(*state, SET_VFS(2));
	does(*state, SET_MTU(4000));
	host_tree_move_away(*state, VF);
	refuses(*state, SET_MTU(1500), "VfInUse", VF);
	does(*state, SET_MTU(9000));
}

/* What a PF gives to a VF resets it. */
TEST_WITH(a_vf_that_the_node_uses_keeps_what_its_pf_gave_it, set_up, tear_down)
{
	struct sysfs_text name;

	does(*state, SET_VFS(2));
	does(*state, GIVE_MAC("02:00:00:00:00:01"));
	assert_true(pci_netdev(host_tree_host(*state), VF, &name));
	host_tree_add_address(*state, name.text, "192.0.2.99");
	refuses(*state, GIVE_MAC("02:00:00:00:00:02"), "VfInUse", "has an address");
	/* Nothing to be changed is no change. */
	does(*state, GIVE_MAC("02:00:00:00:00:01"));
	does(*state, "{\"step\": \"link-up\", \"device\": \"" VF "\"}");
	refuses(*state, "{\"step\": \"set-mtu\", \"device\": \"" VF "\", \"mtu\": 1400}", "VfInUse",
		"has an address");
}

/* /proc is not the host's, or not there: nothing is known of its processes. */
TEST_WITH(without_the_hosts_proc_all_may_be_in_use, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_remove(*state, "proc/1");
	refuses(*state, UNBIND, "VfInUse", "nobody knows whom");
}

static const json_t *observed_vf(const json_t *observed, size_t number)
{
	return json_array_get(json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"),
			      number);
}

static void assert_used_by_the_node(struct host_tree *tree, const char *words)
{
	json_auto_t *observed = NULL, *cheap = NULL;
	const json_t *vf;

	refuses(tree, UNBIND, "VfInUse", words);
	refuses(tree, SET_VFS(0), "VfInUse", words);
	observed = host_observe(host_tree_host(tree), HOST_OBSERVE_HOLDERS, NULL);
	vf = observed_vf(observed, 0);
	assert_true(json_is_true(json_at(vf, "host", "inUse")));
	assert_non_null(strstr(json_str_or(json_at(vf, "host", "holder", "name"), ""), words));
	assert_true(json_is_false(json_at(observed_vf(observed, 1), "host", "inUse")));
	does(tree, "{\"step\": \"unbind-driver\", \"vf\": \"" OTHER "\"}");
	if (!str_eq(json_str_at(vf, "host", "holder", "kind"), "host"))
		return;
	/* A cheap look, from which the kubelet is told, says so, too. */
	cheap = host_observe(host_tree_host(tree), 0, NULL);
	assert_true(json_same(json_at(observed_vf(cheap, 0), "host", "holder"),
			      json_at(vf, "host", "holder")));
	assert_true(json_is_true(json_at(observed_vf(cheap, 0), "host", "inUse")));
	assert_true(json_is_false(json_at(observed_vf(cheap, 1), "host", "inUse")));
}

/* docs/host.md: "Any evidence counts; disagreement is in use". Storage, iSCSI, a second fabric. */
TEST_WITH(a_vf_with_an_address_of_the_node_is_in_use, set_up, tear_down)
{
	struct sysfs_text name;

	does(*state, SET_VFS(2));
	assert_true(pci_netdev(host_tree_host(*state), VF, &name));
	host_tree_add_address(*state, name.text, "192.0.2.99");
	assert_used_by_the_node(*state, "has an address");
}

TEST_WITH(a_vf_that_routes_lead_out_of_is_in_use, set_up, tear_down)
{
	struct evidence *evidence = evidence_new(host_tree_host(*state));
	auto_free char *who = NULL, *other = NULL;
	struct sysfs_text name;

	does(*state, SET_VFS(2));
	assert_true(pci_netdev(host_tree_host(*state), VF, &name));
	host_tree_add_default_route(*state, name.text);
	who = evidence_node_user(evidence, VF);
	other = evidence_node_user(evidence, OTHER);
	evidence_free(evidence);
	assert_non_null(strstr(who, "routes lead out of"));
	assert_null(other);
}

/* Between the list of interfaces and the question about this one. */
TEST_WITH(a_vf_whose_interface_came_or_went_has_an_unknown_user, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	auto_free char *path = NULL;
	const json_t *host;
	struct sysfs_text name;

	does(*state, SET_VFS(2));
	assert_true(pci_netdev(host_tree_host(*state), VF, &name));
	path = str_printf("sys/class/net/%s/ifindex", name.text);
	host_tree_file(*state, path, "4711\n");
	observed = host_observe(host_tree_host(*state), 0, NULL);
	host = json_at(observed_vf(observed, 0), "host");
	assert_true(json_is_true(json_at(host, "inUse")));
	assert_true(json_is_true(json_at(host, "holder", "unknown")));
	assert_non_null(strstr(json_str_or(json_at(host, "holder", "name"), ""), "came or went"));
	assert_null(json_at(observed_vf(observed, 1), "host", "holder", "unknown"));
}

static size_t n_exchanges;

static int count_exchange(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
			  struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	n_exchanges += n;
	return host_tree_doors()->exchange(ctx, protocol, messages, n, answers, data, err);
}

/* How many questions the kernel is asked for the node's use of all these VFs, in one look. */
static size_t questions_for(struct host_tree *tree, int vfs)
{
	struct host_doors doors = *host_tree_doors();
	struct host *host = host_tree_host(tree);
	struct evidence *evidence;
	struct sysfs_text vf;
	int n = 0;

	doors.exchange = count_exchange;
	host_set_doors(host, &doors, tree);
	n_exchanges = 0;
	evidence = evidence_new(host);
	for (; n < vfs && pci_virtfn(host, PF, n, &vf); n++) {
		auto_free char *who = evidence_node_user(evidence, vf.text);

		assert_null(who);
	}
	evidence_free(evidence);
	host_set_doors(host, host_tree_doors(), tree);
	assert_int_equal(n, vfs);
	return n_exchanges;
}

/* One dump each of links, addresses and routes; those of a family are one each. */
TEST_WITH(the_node_s_use_of_128_vfs_is_asked_for_as_often_as_that_of_one, set_up, tear_down)
{
	size_t one;

	does(*state, SET_VFS(128));
	one = questions_for(*state, 1);
	assert_in_range(one, 3, 5);
	assert_int_equal(questions_for(*state, 128), one);
}

/* However the administrator named it, and whoever its driver is for: a VM, a container. */
TEST_WITH(a_vf_that_is_a_vdpa_device_in_use_is_in_use, set_up, tear_down)
{
	static const char *const drivers[] = {"vhost_vdpa", "virtio_vdpa"};

	does(*state, SET_VFS(2));
	host_tree_link(*state, "sys/bus/vdpa/devices/storage0",
		       "../../../devices/pci0000:3b/0000:3b:00.0/" VF "/storage0");
	host_tree_file(*state, "sys/devices/pci0000:3b/0000:3b:00.0/" VF "/storage0/uevent", "");
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
		auto_free char *target =
			str_printf("../../../../../bus/vdpa/drivers/%s", drivers[i]);

		host_tree_link(*state, "sys/devices/pci0000:3b/0000:3b:00.0/" VF "/storage0/driver",
			       target);
		refuses(*state, UNBIND, "VfInUse", drivers[i]);
		refuses(*state, SET_VFS(0), "VfInUse", drivers[i]);
		host_tree_remove(*state,
				 "sys/devices/pci0000:3b/0000:3b:00.0/" VF "/storage0/driver");
	}
	does(*state, UNBIND);
}

/* NVMe-oF, NFS over RDMA, SMB Direct, Lustre, SMC-R and iSER have no context. */
TEST_WITH(a_vf_that_a_module_of_the_kernel_uses_is_in_use, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_use_in_kernel(*state, 2, "nvme_rdma");
	assert_used_by_the_node(*state, "the kernel (nvme_rdma on mlx5_0v0");
	host_tree_use_in_kernel(*state, 2, NULL);
	does(*state, UNBIND);
}

TEST_WITH(a_pf_that_a_module_of_the_kernel_uses_keeps_its_switch, set_up, tear_down)
{
	host_tree_use_in_kernel(*state, 1, "ko2iblnd");
	refuses(*state, SWITCHDEV, "PfInUse", "ko2iblnd on mlx5_0");
	/* It is not in the way of VFs. */
	does(*state, SET_VFS(2));
	host_tree_use_in_kernel(*state, 1, NULL);
	does(*state, SET_VFS(0));
	does(*state, SWITCHDEV);
}

TEST_WITH(a_roce_lag_that_a_module_of_the_kernel_uses_keeps_its_vfs, set_up_bond, tear_down)
{
	host_tree_use_in_kernel(*state, 1, "nvme_rdma");
	refuses(*state, SET_VFS(2), "PfInUse", "nvme_rdma on mlx5_bond_0");
}

/* IPoIB, and servers that listen on every device, are on all of them. */
TEST_WITH(what_every_device_has_is_no_user, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_use_in_kernel(*state, 2, "ib_ipoib");
	does(*state, UNBIND);
}

/* Whatever the kubelet and the host show. */
TEST_WITH(a_vf_that_is_prepared_for_a_claim_is_in_use, set_up, tear_down)
{
	does(*state, SET_VFS(2));
	host_tree_file(
		*state, CLAIMS,
		"{\"claims\": {\"u\": {\"namespace\": \"ns\", \"pod\": \"p\", \"name\": \"c\", "
		"\"devices\": [{\"request\": \"r\", \"pool\": \"n\", \"device\": \"d\", "
		"\"resource\": \"spidernet.io/x\", \"id\": \"" VF
		"\", \"cdi\": []}], \"cdi\": {}}}}");
	refuses(*state, UNBIND, "VfInUse", "prepared for claim ns/p/c");
	refuses(*state, SET_VFS(0), "VfInUse", "prepared for claim ns/p/c");
	/* What cannot be read counts as use. */
	host_tree_file(*state, CLAIMS, "{\"claims\": ");
	refuses(*state, UNBIND, "VfInUse", "nobody knows whom");
	host_tree_file(*state, CLAIMS, "{\"claims\": {}}");
	does(*state, UNBIND);
}

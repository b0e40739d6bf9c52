// SPDX-License-Identifier: Apache-2.0
/*
 * What devices have counted, on the host made of files: where they are, in which namespace, and
 * what of it is there.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/counters.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/rdma.h"

#define VF0 "0000:3c:00.0"
#define VF1 "0000:3c:00.1"

static int set_up(void **state)
{
	*state = host_tree_new();
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static void make_vfs(struct host_tree *tree, const char *pf, const char *count)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/sriov_numvfs", pf);
	struct err err = {0};

	assert_int_equal(host_tree_doors()->write(tree, -1, path, count, strlen(count), &err), 0);
}

static void be_exclusive(struct host_tree *tree)
{
	struct err err = {0};

	assert_int_equal(rdma_set_mode(host_tree_host(tree), RDMA_MODE_EXCLUSIVE, &err), 0);
}

/* Of VFs, these; NULL: all. */
static json_t *list(struct host_tree *tree, const char *vf)
{
	json_auto_t *wanted = vf ? json_pack("[s]", vf) : NULL;
	struct err err = {0};
	json_t *ret = counters_list(host_tree_host(tree), wanted, &err);

	if (!ret)
		fail_msg("%s: %s", err.reason, err.text);
	return ret;
}

static const json_t *device_of(const json_t *list, const char *address)
{
	return json_find(json_at(list, "devices"), "pciAddress", address);
}

static json_t *read_device(struct host_tree *tree, const json_t *device)
{
	struct err err = {0};
	json_t *ret = counters_read(host_tree_host(tree), device, &err);

	if (!ret)
		fail_msg("%s: %s", err.reason, err.text);
	return ret;
}

/* "mlx5_0v1 net1 rdmaAway netdevAway run/netns/cni-1": what is told of it and where it is. */
static void assert_place(const json_t *list, const char *address, const char *want)
{
	const json_t *device = device_of(list, address);
	auto_free char *got =
		str_printf("%s %s%s%s %s", json_str_or(json_at(device, "rdma"), "-"),
			   json_str_or(json_at(device, "netdev"), "-"),
			   json_is_true(json_at(device, "rdmaAway")) ? " rdmaAway" : "",
			   json_is_true(json_at(device, "netdevAway")) ? " netdevAway" : "",
			   json_str_or(json_at(device, "namespace", "path"), "-"));

	assert_string_equal(got, want);
}

static int64_t number_at(const json_t *counted, const char *part, const char *name)
{
	const json_t *value = json_at(counted, part, name);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* ---- where they are -------------------------------------------------------------------------- */

TEST_WITH(lists_pfs_and_the_vfs_that_are_asked_for, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *some = NULL, *all = NULL;
	const json_t *vf;

	host_tree_add_pf(tree, &tree_mlx);
	host_tree_add_pf(tree, &tree_ib);
	make_vfs(tree, TREE_MLX, "3");
	some = list(tree, VF1);
	assert_int_equal(json_array_size(json_at(some, "devices")), 3);
	assert_place(some, TREE_MLX, "mlx5_0 ens1f0np0 -");
	assert_place(some, TREE_IB, "mlx5_7 ibs3 -");
	assert_place(some, VF1, "mlx5_0v1 ens1f0np0v1 -");
	assert_int_equal(json_array_size(json_at(device_of(some, TREE_MLX), "vfs")), 3);
	vf = device_of(some, VF1);
	assert_true(json_is_true(json_at(vf, "isVf")));
	assert_string_equal(json_str_at(vf, "pf"), TREE_MLX);
	assert_string_equal(json_str_at(vf, "pfNetdev"), "ens1f0np0");
	assert_int_equal(json_integer_value(json_at(vf, "vf")), 1);
	assert_string_equal(json_str_at(vf, "state"), "ACTIVE");
	all = list(tree, NULL);
	assert_int_equal(json_array_size(json_at(all, "devices")), 5);
}

TEST_WITH(a_vf_in_a_pods_namespace_is_found_there, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *exclusive = NULL;

	host_tree_add_pf(tree, &tree_mlx);
	make_vfs(tree, TREE_MLX, "2");
	be_exclusive(tree);
	host_tree_move_to(tree, VF1, "cni-1", "net1");
	exclusive = list(tree, VF1);
	assert_place(exclusive, VF1, "mlx5_0v1 net1 rdmaAway netdevAway run/netns/cni-1");
}

TEST_WITH(in_shared_mode_the_rdma_device_stays_with_the_host, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *got = NULL;

	host_tree_add_pf(tree, &tree_mlx);
	make_vfs(tree, TREE_MLX, "2");
	host_tree_move_to(tree, VF1, "cni-1", "net1");
	got = list(tree, VF1);
	assert_place(got, VF1, "mlx5_0v1 net1 netdevAway run/netns/cni-1");
}

TEST_WITH(a_vf_that_nobody_finds_is_listed_without_a_place, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *got = NULL;

	host_tree_add_pf(tree, &tree_mlx);
	make_vfs(tree, TREE_MLX, "1");
	host_tree_move_away(tree, VF0);
	got = list(tree, NULL);
	assert_place(got, VF0, "mlx5_0v0 - -");
}

TEST_WITH(software_devices_have_the_function_of_their_interface, set_up, tear_down)
{
	struct host_tree *tree = *state;
	struct tree_pf igb = {.address = "0000:01:00.0",
			      .driver = "igb",
			      .netdev = "enp1s0",
			      .vendor = "8086",
			      .device = "10c9"};
	json_auto_t *on_nic = NULL, *on_bond = NULL;

	host_tree_add_pf(tree, &igb);
	host_tree_add_interface(tree, "bond0", "bond");
	host_tree_add_rxe(tree, "enp1s0");
	on_nic = list(tree, NULL);
	assert_place(on_nic, "0000:01:00.0", "rxe0 enp1s0 -");
	host_tree_add_rxe(tree, "bond0");
	on_bond = list(tree, NULL);
	assert_place(on_bond, "0000:01:00.0", "- enp1s0 -");
	assert_string_equal(json_str_at(json_array_get(json_at(on_bond, "devices"), 0), "netdev"),
			    "bond0");
}

TEST_WITH(a_kernel_without_rdma_has_interfaces_all_the_same, set_up, tear_down)
{
	struct host_tree *tree = *state;
	struct tree_pf plain = tree_mlx;
	json_auto_t *got = NULL;

	plain.rdma = NULL;
	host_tree_add_pf(tree, &plain);
	host_tree_unload_rdma(tree);
	got = list(tree, NULL);
	assert_place(got, TREE_MLX, "- ens1f0np0 -");
}

TEST_WITH(a_host_without_pci_is_an_error, set_up, tear_down)
{
	struct host_tree *tree = *state;
	struct err err = {0};

	host_tree_remove(tree, "sys/bus/pci/devices");
	assert_null(counters_list(host_tree_host(tree), NULL, &err));
	assert_string_equal(err.reason, "HostUnreadable");
}

/* ---- what they have counted ------------------------------------------------------------------ */

TEST_WITH(reads_what_a_pf_and_its_rdma_device_have_counted, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *listed = NULL, *counted = NULL;

	host_tree_add_pf(tree, &tree_mlx);
	host_tree_file(tree, "sys/class/infiniband/mlx5_0/tc/1/traffic_class",
		       "Global tclass=106\n");
	make_vfs(tree, TREE_MLX, "2");
	listed = list(tree, VF1);
	counted = read_device(tree, device_of(listed, TREE_MLX));
	/* Device 1, the sixth; interface 2, its seventh. */
	assert_int_equal(number_at(counted, "rdma", "out_of_sequence"), 1005);
	assert_int_equal(number_at(counted, "ethernet", "rx_vport_rdma_unicast_bytes"), 2006);
	assert_int_equal(number_at(counted, "ethernet", "rx_prio3_pause"), 2018);
	/* One of thousands, and one that only looks like those of priorities. */
	assert_int_equal(number_at(counted, "ethernet", "ch0_events"), -1);
	assert_int_equal(number_at(counted, "ethernet", "rx_prio3_pause_duration"), -1);
	/* By netlink: a group, forward error correction, pauses. */
	assert_int_equal(number_at(counted, "ethernet", "ethernet_checksum_errors"), 201);
	assert_int_equal(number_at(counted, "ethernet", "ethernet_fragments"), 202);
	assert_int_equal(number_at(counted, "ethernet", "fec_uncorrectable_blocks"), 204);
	assert_int_equal(number_at(counted, "ethernet", "pause_frames_received"), 205);
	assert_int_equal(json_integer_value(json_at(counted, "speedMbps")), 25000);
	assert_int_equal(json_integer_value(json_at(counted, "trafficClass")), 106);
	assert_int_equal(json_integer_value(json_at(counted, "vfs", "1", "rx_bytes")), 102);
	assert_int_equal(json_integer_value(json_at(counted, "vfs", "0", "tx_dropped")), 8);
	assert_null(json_at(counted, "problem"));
}

TEST_WITH(reads_the_counters_of_ports, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *listed = NULL, *counted = NULL;

	host_tree_add_pf(tree, &tree_ib);
	listed = list(tree, NULL);
	counted = read_device(tree, device_of(listed, TREE_IB));
	assert_null(json_at(counted, "port"));
#define COUNTER(name, text)                                                                        \
	host_tree_file(tree, "sys/class/infiniband/mlx5_7/ports/1/counters/" name, text "\n")
	COUNTER("port_rcv_data", "4611686018427387903");
	COUNTER("port_xmit_data", "2305843009213693951");
	COUNTER("link_downed", "255");
	COUNTER("symbol_error", "N/A (no PMA)");
	COUNTER("port_xmit_wait", "18446744073709551615");
	COUNTER("of_a_later_kernel", "1");
#undef COUNTER
	json_decref(counted);
	counted = read_device(tree, device_of(listed, TREE_IB));
	assert_int_equal(number_at(counted, "port", "port_data_transmitted_bytes"),
			 9223372036854775804);
	assert_int_equal(number_at(counted, "port", "link_downed"), 255);
	/* More than 2^63 bytes, no number, 2^64 - 1, not known: no counter each. */
	assert_int_equal(json_object_size(json_at(counted, "port")), 2);
	assert_null(json_at(counted, "problem"));
}

TEST_WITH(reads_in_a_pods_namespace_and_comes_back, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *listed = NULL, *counted = NULL, *of_pf = NULL;

	host_tree_add_pf(tree, &tree_mlx);
	make_vfs(tree, TREE_MLX, "2");
	be_exclusive(tree);
	host_tree_move_to(tree, VF1, "cni-1", "net1");
	listed = list(tree, VF1);
	counted = read_device(tree, device_of(listed, VF1));
	assert_int_equal(number_at(counted, "rdma", "out_of_sequence"), 3005);
	assert_int_equal(number_at(counted, "ethernet", "tx_vport_rdma_unicast_bytes"), 4008);
	/* A VF has no wire. */
	assert_int_equal(number_at(counted, "ethernet", "ethernet_checksum_errors"), -1);
	assert_null(json_at(counted, "vfs"));
	of_pf = read_device(tree, device_of(listed, TREE_MLX));
	assert_int_equal(number_at(of_pf, "rdma", "out_of_sequence"), 1005);
}

TEST_WITH(what_is_not_counted_is_absent, set_up, tear_down)
{
	struct host_tree *tree = *state;
	struct tree_pf igb = {.address = "0000:01:00.0",
			      .driver = "igb",
			      .netdev = "enp1s0",
			      .vendor = "8086",
			      .device = "10c9",
			      .vf_device = "10ca",
			      .vf_driver = "igbvf",
			      .vf_bus = 2,
			      .total = 7};
	json_auto_t *listed = NULL, *counted = NULL;

	host_tree_add_pf(tree, &igb);
	host_tree_add_rxe(tree, "enp1s0");
	make_vfs(tree, "0000:01:00.0", "2");
	listed = list(tree, NULL);
	counted = read_device(tree, device_of(listed, "0000:01:00.0"));
	assert_int_equal(json_object_size(json_at(counted, "rdma")), 0);
	assert_int_equal(json_object_size(json_at(counted, "ethernet")), 0);
	/* Zeroes, of which nobody knows whether anything was counted. */
	assert_int_equal(json_object_size(json_at(counted, "vfs")), 0);
	assert_null(json_at(counted, "speedMbps"));
	assert_null(json_at(counted, "trafficClass"));
	assert_null(json_at(counted, "problem"));
}

TEST_WITH(a_speed_that_nobody_knows_is_absent, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *listed = NULL, *counted = NULL;

	host_tree_add_pf(tree, &tree_ib);
	listed = list(tree, NULL);
	counted = read_device(tree, device_of(listed, TREE_IB));
	assert_int_equal(number_at(counted, "rdma", "out_of_sequence"), 1005);
	assert_null(json_at(counted, "speedMbps"));
}

TEST_WITH(a_driver_that_counts_its_vfs_in_files_is_read_there, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *listed = NULL, *counted = NULL;

	host_tree_add_pf(tree, &tree_mlx);
	make_vfs(tree, TREE_MLX, "1");
	host_tree_file(tree, "sys/class/net/ens1f0np0/device/sriov/0/stats/tx_errors", "7\n");
	host_tree_file(tree, "sys/class/net/ens1f0np0/device/sriov/0/stats/tx_spoofed", "no\n");
	listed = list(tree, NULL);
	counted = read_device(tree, device_of(listed, TREE_MLX));
	assert_int_equal(json_object_size(json_at(counted, "vfs", "0")), 1);
	assert_int_equal(json_integer_value(json_at(counted, "vfs", "0", "tx_errors")), 7);
}

TEST_WITH(a_device_that_left_its_namespace_is_an_error, set_up, tear_down)
{
	struct host_tree *tree = *state;
	json_auto_t *listed = NULL;
	struct err err = {0};

	host_tree_add_pf(tree, &tree_mlx);
	make_vfs(tree, TREE_MLX, "1");
	host_tree_move_to(tree, VF0, "cni-1", "net1");
	listed = list(tree, NULL);
	host_tree_remove(tree, "run/netns/cni-1");
	assert_null(counters_read(host_tree_host(tree), device_of(listed, VF0), &err));
	assert_string_equal(err.reason, "NamespaceGone");
	assert_int_equal(err.class, ERR_TRANSIENT);
}

TEST_WITH(enters_nothing_that_is_no_namespaces_path, set_up, tear_down)
{
	static const char *const paths[] = {"",
					    "etc/hostname",
					    "run/netns/",
					    "run/netns/..",
					    "run/netns/../netns/x",
					    "/run/netns/x",
					    "proc/self/ns/net",
					    "proc/1/ns/net/",
					    "proc/1/ns/mnt",
					    "proc/1/../../etc/hostname"};
	struct host_tree *tree = *state;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		json_auto_t *device =
			json_pack("{s:{s:s, s:i}}", "namespace", "path", paths[i], "inode", 1);
		struct err err = {0};

		assert_null(counters_read(host_tree_host(tree), device, &err));
		assert_string_equal(err.reason, "BadRequest");
	}
}

/* As a kernel answers, behind the first octet: a sum with its lanes, statistics nest by nest. */
TEST_WITH(reads_answers_about_the_wire, set_up, tear_down)
{
	static const char *const files[] = {"ethtool-stats", "ethtool-fec-pause"};
	json_auto_t *counters = json_object(), *want = NULL;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *path = str_printf("tests/fuzz/corpus/host_netlink/%s", files[i]);
		auto_strbuf struct strbuf text = {0};
		auto_free void *bytes = NULL;

		assert_int_equal(fs_read(AT_FDCWD, path, 4096, &text, &err), 0);
		bytes = mem_dup(text.data + 1, text.len - 1);
		ethtool_decode_wire(bytes, text.len - 1, counters);
	}
	want = json_pack("{s:i, s:i, s:i, s:i, s:i}", "ethernet_checksum_errors", 3,
			 "ethernet_bytes_received", 12345678, "fec_corrected_blocks", 9,
			 "fec_uncorrectable_blocks", 2, "pause_frames_transmitted", 7);
	assert_true(json_equal(counters, want));
}

TEST_WITH(leaves_out_what_no_metric_can_have, set_up, tear_down)
{
	static const char *const names[] = {
		"",    "a\"b",
		"7up", "\xff",
		"a\n", "of_sixty_four_letters_which_is_one_more_than_there_is_room_for_it_"};
	json_auto_t *counters = json_object();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		counted_add(counters, names[i], 1);
	counted_add(counters, "unsigned", UINT64_MAX);
	assert_int_equal(json_object_size(counters), 0);
	counted_add(counters, "two ports", INT64_MAX - 1);
	counted_add(counters, "two ports", 1);
	counted_add(counters, "two ports", 1);
	assert_true(json_integer_value(json_at(counters, "two ports")) == INT64_MAX);
	for (int i = 0; i < COUNTED_MAX + 1; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "c%d", i);
		counted_add(counters, name, 0);
	}
	assert_int_equal(json_object_size(counters), COUNTED_MAX);
}

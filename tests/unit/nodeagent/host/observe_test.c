// SPDX-License-Identifier: Apache-2.0
/* Observing simulated hosts. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"

#define MLX TREE_MLX
#define IGB "0000:01:00.0"
#define IB  TREE_IB

static const struct tree_pf igb = {.address = IGB,
				   .driver = "igb",
				   .netdev = "enp1s0",
				   .vendor = "8086",
				   .device = "10c9",
				   .vf_device = "10ca",
				   .vf_driver = "igbvf",
				   .vf_bus = 0x02,
				   .total = 7};

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

static json_t *look(struct host_tree *tree)
{
	struct err err = {0};
	json_t *observed = host_observe(host_tree_host(tree), HOST_OBSERVE_HOLDERS, &err);

	if (!observed)
		fail_msg("%s: %s", err.reason, err.text);
	return observed;
}

static void write_sysfs(struct host_tree *tree, const char *path, const char *text)
{
	auto_free char *full = str_printf("sys/bus/pci/devices/%s", path);
	const struct host_doors *doors = host_tree_doors();
	struct err err = {0};

	assert_int_equal(doors->write(tree, -1, full, text, strlen(text), &err), 0);
}

static const json_t *pf_of(const json_t *observed, const char *address)
{
	return json_find(json_at(observed, "interfaces"), "pciAddress", address);
}

static const json_t *vf_of(const json_t *observed, const char *pf, size_t number)
{
	return json_array_get(json_at(pf_of(observed, pf), "Vfs"), number);
}

TEST_WITH(shows_a_pf_as_users_know_it, set_up, tear_down)
{
	json_auto_t *observed = NULL, *status = NULL;
	auto_free char *text = NULL;

	host_tree_add_pf(*state, &igb);
	observed = look(*state);
	status = observed_status_interfaces(observed);
	text = json_text(json_array_get(status, 0));
	assert_string_equal(text,
			    "{\"Vfs\":[],\"deviceID\":\"10c9\",\"driver\":\"igb\",\"eSwitchMode\":"
			    "\"legacy\",\"linkAdminState\":\"down\",\"linkType\":\"ETH\",\"mac\":"
			    "\"02:00:00:00:00:02\",\"mtu\":1500,\"name\":\"enp1s0\",\"numVfs\":0,"
			    "\"pciAddress\":\"0000:01:00.0\",\"totalvfs\":7,\"vendor\":\"8086\"}");
}

TEST_WITH(finds_the_host_bridge_wherever_it_is, set_up, tear_down)
{
	static const struct {
		const char *address, *path, *bridges, *root;
	} rows[] = {
		{"0000:02:00.0", "pci0000:00/0000:00:01.0", "pci0000:00/0000:00:01.0",
		 "pci0000:00"},
		{"0001:00:00.0",
		 "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/"
		 "00000001-7870-47b5-b203-907d12ca697e/pci0001:00",
		 "pci0001:00", "pci0001:00"},
		{"0000:04:00.0", "platform/soc/40000000.pcie/pci0000:00/0000:00:00.0",
		 "pci0000:00/0000:00:00.0", "pci0000:00"},
		/* A domain of VMD is below another host bridge. */
		{"10000:e1:00.0", "pci0000:e0/0000:e0:00.5/pci10000:e0/10000:e0:02.0",
		 "pci0000:e0/0000:e0:00.5/pci10000:e0/10000:e0:02.0", "pci0000:e0"},
		{"0000:06:00.0", "pci-fake/pci0000:x0/pci000:00/pci0000:000", NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *observed = NULL;
		const json_t *host;
		struct tree_pf pf = igb;

		pf.address = rows[i].address;
		pf.path = rows[i].path;
		host_tree_add_pf(*state, &pf);
		observed = look(*state);
		host = json_at(
			json_find(json_at(observed, "interfaces"), "pciAddress", rows[i].address),
			"host");
		assert_string_equal(json_str_or(json_at(host, "path"), ""),
				    rows[i].bridges ? rows[i].bridges : "");
		assert_string_equal(json_str_or(json_at(host, "pcieRoot"), ""),
				    rows[i].root ? rows[i].root : "");
		tear_down(state);
		set_up(state);
	}
}

TEST_WITH(names_what_networks_can_be_over, set_up, tear_down)
{
	json_auto_t *observed = NULL, *links = NULL;
	auto_free char *text = NULL;

	host_tree_add_pf(*state, &tree_mlx);
	host_tree_add_pf(*state, &igb);
	write_sysfs(*state, MLX "/sriov_numvfs", "4");
	observed = look(*state);
	text = json_text(json_at(observed, "node", "links"));
	assert_string_equal(text, "[\"enp1s0\",\"ens1f0np0\"]");
}

TEST_WITH(sorts_pfs_by_address_and_128_vfs_by_number, set_up, tear_down)
{
	json_auto_t *observed = NULL;

	host_tree_add_pf(*state, &tree_mlx);
	host_tree_add_pf(*state, &igb);
	write_sysfs(*state, MLX "/sriov_numvfs", "128");
	observed = look(*state);
	assert_string_equal(
		json_str_at(json_array_get(json_at(observed, "interfaces"), 0), "pciAddress"), IGB);
	for (size_t i = 0; i < 128; i++)
		assert_int_equal(json_integer_value(json_at(vf_of(observed, MLX, i), "vfID")), i);
	assert_null(vf_of(observed, MLX, 128));
	assert_string_equal(json_str_at(vf_of(observed, MLX, 127), "name"), "ens1f0np0v127");
}

TEST_WITH(says_the_same_bytes_when_nothing_changed, set_up, tear_down)
{
	json_auto_t *one = NULL, *two = NULL;
	auto_free char *first = NULL, *second = NULL;

	host_tree_add_pf(*state, &tree_mlx);
	host_tree_add_pf(*state, &tree_ib);
	write_sysfs(*state, MLX "/sriov_numvfs", "9");
	one = look(*state);
	two = look(*state);
	first = json_text(one);
	second = json_text(two);
	assert_string_equal(first, second);
}

TEST_WITH(takes_a_vf_in_a_pod_as_in_use_and_not_as_gone, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *vf;

	host_tree_add_pf(*state, &tree_mlx);
	write_sysfs(*state, MLX "/sriov_numvfs", "4");
	host_tree_move_away(*state, "0000:3c:00.2");
	observed = look(*state);
	vf = vf_of(observed, MLX, 2);
	assert_string_equal(json_str_at(vf, "driver"), "mlx5_core");
	assert_null(json_at(vf, "name"));
	assert_null(json_at(vf, "mac"));
	assert_true(json_is_true(json_at(vf, "host", "inUse")));
	assert_string_equal(json_str_at(vf, "host", "holder", "kind"), "netns");
	assert_false(json_is_true(json_at(vf_of(observed, MLX, 1), "host", "inUse")));
	assert_int_equal(json_integer_value(json_at(pf_of(observed, MLX), "host", "usedVfs")), 1);
}

TEST_WITH(believes_a_note_of_sriov_cni_only_while_its_namespace_is_there, set_up, tear_down)
{
	json_auto_t *held = NULL, *left = NULL;

	host_tree_add_pf(*state, &igb);
	write_sysfs(*state, IGB "/sriov_numvfs", "2");
	host_tree_file(*state, "var/lib/cni/sriov/pci/0000:02:00.1", "/run/netns/cni-42");
	host_tree_file(*state, "run/netns/cni-42", "");
	held = look(*state);
	assert_string_equal(json_str_at(vf_of(held, IGB, 1), "host", "holder", "kind"), "claimed");
	assert_string_equal(json_str_at(vf_of(held, IGB, 1), "host", "holder", "name"),
			    "/run/netns/cni-42");

	host_tree_remove(*state, "run/netns/cni-42");
	left = look(*state);
	assert_false(json_is_true(json_at(vf_of(left, IGB, 1), "host", "inUse")));
}

TEST_WITH(a_vf_that_a_cni_plugin_of_ours_attached_is_in_use, set_up, tear_down)
{
	json_auto_t *held = NULL, *earlier = NULL, *now = NULL, *left = NULL;

	host_tree_add_pf(*state, &igb);
	write_sysfs(*state, IGB "/sriov_numvfs", "2");
	host_tree_file(*state, "var/lib/orbweaver/cni/devices/0000:02:00.1.json",
		       "{\"container\": \"c0ffee\", \"ifname\": \"net1\"}");
	held = look(*state);
	assert_string_equal(json_str_at(vf_of(held, IGB, 1), "host", "holder", "kind"), "claimed");
	assert_string_equal(json_str_at(vf_of(held, IGB, 1), "host", "holder", "name"),
			    "interface net1 of sandbox c0ffee");

	/* The power was cut: the VF would wait for a driver, and its sandbox for the VF. */
	host_tree_file(
		*state, "var/lib/orbweaver/cni/devices/0000:02:00.1.json",
		"{\"container\": \"c0ffee\", \"ifname\": \"net1\", \"boot\": \"boot-zero\"}");
	earlier = look(*state);
	assert_false(json_is_true(json_at(vf_of(earlier, IGB, 1), "host", "inUse")));
	host_tree_file(*state, "var/lib/orbweaver/cni/devices/0000:02:00.1.json",
		       "{\"container\": \"c0ffee\", \"ifname\": \"net1\", \"boot\": \"boot-one\"}");
	now = look(*state);
	assert_true(json_is_true(json_at(vf_of(now, IGB, 1), "host", "inUse")));

	host_tree_remove(*state, "var/lib/orbweaver/cni/devices/0000:02:00.1.json");
	left = look(*state);
	assert_false(json_is_true(json_at(vf_of(left, IGB, 1), "host", "inUse")));
}

TEST_WITH(names_who_has_a_vfio_group_open, set_up, tear_down)
{
	json_auto_t *open = NULL, *closed = NULL, *unknown = NULL;
	struct err err = {0};

	host_tree_add_pf(*state, &igb);
	write_sysfs(*state, IGB "/sriov_drivers_autoprobe", "0");
	write_sysfs(*state, IGB "/sriov_numvfs", "1");
	write_sysfs(*state, "0000:02:00.0/driver_override", "vfio-pci\n");
	write_sysfs(*state, "../drivers_probe", "0000:02:00.0");

	closed = look(*state);
	assert_true(json_is_false(json_at(vf_of(closed, IGB, 0), "host", "inUse")));
	unknown = host_observe(host_tree_host(*state), 0, &err);
	assert_true(json_is_true(json_at(vf_of(unknown, IGB, 0), "host", "inUse")));

	host_tree_file(*state, "proc/4242/comm", "qemu\n");
	host_tree_link(*state, "proc/4242/fd/11", "/dev/vfio/7");
	open = look(*state);
	assert_true(json_is_true(json_at(vf_of(open, IGB, 0), "host", "inUse")));
	assert_string_equal(json_str_at(vf_of(open, IGB, 0), "host", "holder", "name"),
			    "qemu (pid 4242)");
}

TEST_WITH(shows_guids_most_significant_octet_first, set_up, tear_down)
{
	json_auto_t *observed = NULL;

	host_tree_add_pf(*state, &tree_mlx);
	write_sysfs(*state, MLX "/sriov_numvfs", "1");
	observed = look(*state);
	assert_string_equal(json_str_at(vf_of(observed, MLX, 0), "guid"),
			    "00:00:00:00:00:00:00:00");
	assert_string_equal(
		json_str_at(json_array_get(json_at(observed, "rdma", "devices"), 0), "nodeGuid"),
		"02:00:00:00:00:00:00:01");
}

TEST_WITH(shows_infiniband_ports, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *device;

	host_tree_add_pf(*state, &tree_ib);
	host_tree_file(*state, "sys/class/infiniband/mlx5_7/ports/1/link_layer", "InfiniBand\n");
	host_tree_file(*state, "sys/class/infiniband/mlx5_7/ports/1/gids/0",
		       "fe80:0000:0000:0000:b859:9f03:0012:3456\n");
	host_tree_file(*state, "sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_7\n");
	host_tree_file(*state, "sys/class/infiniband_verbs/uverbs3/dev", "231:195\n");
	host_tree_file(*state, "dev/infiniband/uverbs3", "");
	observed = look(*state);
	device = json_array_get(json_at(observed, "rdma", "devices"), 0);
	assert_string_equal(json_str_at(pf_of(observed, IB), "linkType"), "IB");
	assert_string_equal(json_str_at(device, "pciAddress"), IB);
	assert_string_equal(json_str_at(json_array_get(json_at(device, "ports"), 0), "portGuid"),
			    "b8:59:9f:03:00:12:34:56");
	assert_string_equal(json_str_at(json_array_get(json_at(device, "charDevices"), 0), "path"),
			    "/dev/infiniband/uverbs3");
}

TEST_WITH(does_without_an_rdma_subsystem, set_up, tear_down)
{
	json_auto_t *observed = NULL;

	host_tree_add_pf(*state, &igb);
	host_tree_unload_rdma(*state);
	observed = look(*state);
	assert_null(json_at(observed, "rdma", "netnsMode"));
	assert_int_equal(json_array_size(json_at(observed, "rdma", "devices")), 0);
	assert_int_equal(json_array_size(json_at(observed, "problems")), 0);
}

TEST_WITH(lists_functions_that_it_cannot_work_with_apart, set_up, tear_down)
{
	static const struct tree_pf bare = {.address = "0000:05:00.0",
					    .vendor = "8086",
					    .device = "1572",
					    .vf_device = "154c",
					    .total = 64};
	json_auto_t *observed = NULL;

	host_tree_add_pf(*state, &bare);
	observed = look(*state);
	assert_int_equal(json_array_size(json_at(observed, "interfaces")), 0);
	assert_string_equal(json_str_at(json_array_get(json_at(observed, "unusable"), 0), "reason"),
			    "NoDriver");
}

TEST_WITH(protects_what_carries_the_default_route_and_the_nodes_address, set_up, tear_down)
{
	struct tree_pf port = igb;
	json_auto_t *observed = NULL, *addresses = NULL;

	port.master = "br0";
	host_tree_add_interface(*state, "br0", "bridge");
	host_tree_add_pf(*state, &port);
	host_tree_add_pf(*state, &tree_mlx);
	host_tree_add_pf(*state, &tree_ib);
	host_tree_add_default_route(*state, "br0");
	host_tree_add_address(*state, "ens1f0np0", "192.0.2.7");
	addresses = json_pack("[s, s]", "node-1.example", "192.0.2.7");
	host_set_node_addresses(host_tree_host(*state), addresses);
	observed = look(*state);
	assert_string_equal(json_str_at(pf_of(observed, IGB), "host", "protected"),
			    "carries the default route (br0)");
	assert_string_equal(json_str_at(pf_of(observed, MLX), "host", "protected"),
			    "carries the node's address (ens1f0np0)");
	assert_null(json_at(pf_of(observed, IB), "host", "protected"));
}

TEST_WITH(protects_the_pf_of_a_vf_that_carries_the_default_route, set_up, tear_down)
{
	json_auto_t *observed = NULL;

	host_tree_add_pf(*state, &igb);
	write_sysfs(*state, IGB "/sriov_numvfs", "2");
	host_tree_add_default_route(*state, "enp1s0v1");
	observed = look(*state);
	assert_string_equal(json_str_at(pf_of(observed, IGB), "host", "protected"),
			    "carries the default route (enp1s0v1)");
}

TEST_WITH(reports_the_last_word_on_the_next_boot, set_up, tear_down)
{
	json_auto_t *from_file = NULL, *from_line = NULL;

	host_tree_file(*state, "etc/modprobe.d/mlnx.conf", "options ib_core netns_mode=1\n");
	host_tree_file(*state, "etc/modprobe.d/zz-orbweaver-rdma.conf",
		       "options ib_core netns_mode=0\n# boot-zero\n");
	host_tree_file(*state, "usr/lib/modprobe.d/zzz.conf", "options ib_core foo=1\n");
	from_file = look(*state);
	assert_string_equal(json_str_at(from_file, "rdma", "netnsModeNextBoot", "mode"),
			    "exclusive");
	assert_string_equal(json_str_at(from_file, "rdma", "netnsModeNextBoot", "file"),
			    "/etc/modprobe.d/zz-orbweaver-rdma.conf");
	assert_true(json_is_false(json_at(from_file, "rdma", "netnsModeNextBoot", "ownSinceBoot")));

	host_tree_file(*state, "proc/cmdline", "ro ib_core.netns_mode=1 quiet\n");
	from_line = look(*state);
	assert_string_equal(json_str_at(from_line, "rdma", "netnsModeNextBoot", "mode"), "shared");
	assert_string_equal(json_str_at(from_line, "rdma", "netnsModeNextBoot", "source"),
			    "command-line");
	assert_int_equal(
		json_array_size(json_at(from_line, "rdma", "netnsModeNextBoot", "overruled")), 2);
}

TEST_WITH(names_programs_that_manage_the_same_nics, set_up, tear_down)
{
	json_auto_t *alone = look(*state), *both = NULL, *cheap = NULL;
	const json_t *rival;
	struct err err = {0};

	host_tree_file(*state, "proc/41/comm", "sriov-network-o\n");
	assert_true(json_is_false(json_at(alone, "node", "networkManager")));
	host_tree_file(*state, "usr/sbin/NetworkManager", "");
	host_tree_file(*state, "proc/42/comm", "sriov-network-c\n");
	both = host_observe(host_tree_host(*state), HOST_OBSERVE_HOLDERS, &err);
	rival = json_array_get(json_at(both, "node", "rivals"), 0);
	assert_int_equal(json_array_size(json_at(both, "node", "rivals")), 1);
	assert_string_equal(json_str_at(rival, "name"), "sriov-network-config-daemon");
	assert_int_equal(json_integer_value(json_at(rival, "pid")), 42);
	assert_true(json_is_true(json_at(both, "node", "networkManager")));
	/* Nothing is done after a cheap look. */
	cheap = host_observe(host_tree_host(*state), 0, &err);
	assert_null(json_at(cheap, "node", "rivals"));
}

TEST_WITH(finds_modules_that_are_built_in_by_what_they_do, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	auto_free char *list = NULL;
	struct utsname system;

	host_tree_remove(*state, "sys/bus/pci/drivers/vfio-pci");
	host_tree_file(*state, "sys/class/infiniband_verbs/abi_version", "6\n");
	host_tree_file(*state, "sys/class/misc/rdma_cm/dev", "10:58\n");
	assert_int_equal(uname(&system), 0);
	list = str_printf("lib/modules/%s/modules.builtin", system.release);
	host_tree_file(*state, list,
		       "kernel/drivers/infiniband/core/ib_umad.ko\n"
		       "kernel/drivers/vfio/pci/vfio-pci-core.ko\n"
		       "kernel/drivers/infiniband/hw/mlx5/mlx5-ib.ko\n");
	observed = look(*state);
	assert_true(json_list_has(json_at(observed, "node", "modules"), "ib_uverbs"));
	assert_true(json_list_has(json_at(observed, "node", "modules"), "rdma_ucm"));
	assert_true(json_list_has(json_at(observed, "node", "modules"), "ib_umad"));
	assert_true(json_list_has(json_at(observed, "node", "modules"), "mlx5_ib"));
	assert_false(json_list_has(json_at(observed, "node", "modules"), "vfio_pci"));
}

TEST_WITH(shows_the_rdma_device_that_ports_of_a_bond_share, set_up, tear_down)
{
	struct tree_pf first = tree_mlx, second = tree_mlx;
	json_auto_t *observed = NULL, *want = NULL;

	host_tree_add_interface(*state, "bond0", "bond");
	first.rdma = "mlx5_bond_0";
	first.master = second.master = "bond0";
	second.address = "0000:3b:00.1";
	second.netdev = "ens1f1np1";
	second.rdma = NULL;
	second.vf_bus = 0x3d;
	host_tree_add_pf(*state, &first);
	host_tree_add_pf(*state, &second);
	observed = look(*state);
	want = json_pack("{s:s, s:[s, s], s:[s]}", "bond", "bond0", "ports", TREE_MLX,
			 "0000:3b:00.1", "rdma", "mlx5_bond_0");
	assert_true(json_same(json_at(pf_of(observed, TREE_MLX), "host", "lag"), want));
	assert_true(json_same(json_at(pf_of(observed, "0000:3b:00.1"), "host", "lag"), want));
}

/* What its firmware is set to can be changed through it, SR-IOV first of all. */
TEST_WITH(devlink_is_said_of_a_pf_without_sriov, set_up, tear_down)
{
	struct tree_pf off = tree_mlx;
	json_auto_t *observed = NULL;

	off.total = 0;
	host_tree_add_pf(*state, &off);
	observed = look(*state);
	assert_true(json_is_true(json_at(pf_of(observed, TREE_MLX), "host", "devlink")));
	assert_null(json_at(pf_of(observed, TREE_MLX), "totalvfs"));
}

TEST_WITH(counts_pci_errors, set_up, tear_down)
{
	json_auto_t *observed = NULL;
	const json_t *host;

	host_tree_add_pf(*state, &tree_mlx);
	host_tree_file(*state, "sys/bus/pci/devices/" TREE_MLX "/aer_dev_fatal",
		       "Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2\n");
	observed = look(*state);
	host = json_at(pf_of(observed, TREE_MLX), "host");
	assert_int_equal(json_integer_value(json_at(host, "fatalPciErrors")), 2);
	assert_null(json_at(host, "nonFatalPciErrors"));
	assert_null(json_at(host, "lag"));
}

TEST_WITH(names_health_reporters_in_error, set_up, tear_down)
{
	json_auto_t *well = NULL, *broken = NULL;

	host_tree_add_pf(*state, &tree_mlx);
	host_tree_add_pf(*state, &tree_ib);
	well = look(*state);
	assert_null(json_at(pf_of(well, MLX), "host", "healthErrors"));
	host_tree_break(*state, MLX, "fw_fatal");
	broken = look(*state);
	assert_true(json_list_has(json_at(pf_of(broken, MLX), "host", "healthErrors"), "fw_fatal"));
	assert_int_equal(json_array_size(json_at(pf_of(broken, MLX), "host", "healthErrors")), 1);
	assert_null(json_at(pf_of(broken, IB), "host", "healthErrors"));
}

TEST_WITH(says_so_when_there_is_no_sysfs, set_up, tear_down)
{
	struct err err = {0};

	host_tree_remove(*state, "sys");
	assert_null(host_observe(host_tree_host(*state), 0, &err));
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "HostUnreadable");
}

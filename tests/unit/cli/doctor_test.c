// SPDX-License-Identifier: Apache-2.0
/* The doctor on a host made of files: nothing on a good one, each planted fault by its name. */
#include "tests/support/test.h"

#include "cli/doctor/doctor.h"
#include "cli/simulate/host/host_tree.h"
#include "lib/json/json.h"
#include "nodeagent/host/inspect.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/model/host_checks.h"
#include "nodeagent/worker/answer.h"
#include "tests/support/golden_machine.h"

/* A second port of the card, so that ports can differ. */
static const struct tree_pf second = {.address = "0000:3b:00.1",
				      .driver = "mlx5_core",
				      .netdev = "ens1f1",
				      .rdma = "mlx5_1",
				      .vendor = "15b3",
				      .device = "101b",
				      .vf_device = "1018",
				      .vf_driver = "mlx5_core",
				      .vf_bus = 0x3d,
				      .total = 8};

static void pci(struct host_tree *tree, const char *address, const char *name, const char *text)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_file(tree, path, text);
}

static void put_pcie(struct host_tree *tree, const char *address)
{
	pci(tree, address, "current_link_speed", "16.0 GT/s PCIe\n");
	pci(tree, address, "max_link_speed", "16.0 GT/s PCIe\n");
	pci(tree, address, "current_link_width", "16\n");
	pci(tree, address, "max_link_width", "16\n");
	pci(tree, address, "numa_node", "1\n");
}

static void put_ecn(struct host_tree *tree, const char *netdev, const char *on)
{
	static const char *const sides[] = {"np", "rp"};

	for (size_t s = 0; s < 2; s++)
		for (int i = 0; i < 8; i++) {
			auto_free char *path = str_printf("sys/class/net/%s/ecn/roce_%s/enable/%d",
							  netdev, sides[s], i);

			host_tree_file(tree, path, i == 3 ? on : "0\n");
		}
}

static void put_program(struct host_tree *tree, const char *pid, const char *name,
			const char *memlock)
{
	auto_free char *comm = str_printf("proc/%s/comm", pid), *text = str_printf("%s\n", name);
	auto_free char *limits = str_printf("proc/%s/limits", pid);
	auto_free char *lines = str_printf("Max open files            1024         4096     files\n"
					   "Max locked memory         %s    %s    bytes\n",
					   memlock, memlock);

	host_tree_file(tree, comm, text);
	host_tree_file(tree, limits, lines);
}

static void put_uverbs(struct host_tree *tree, const char *name, const char *device)
{
	auto_free char *ibdev = str_printf("sys/class/infiniband_verbs/%s/ibdev", name);
	auto_free char *number = str_printf("sys/class/infiniband_verbs/%s/dev", name);
	auto_free char *file = str_printf("dev/infiniband/%s", name);
	auto_free char *line = str_printf("%s\n", device);

	host_tree_file(tree, ibdev, line);
	host_tree_file(tree, number, "231:192\n");
	host_tree_file(tree, file, "");
}

/* Fields of a configuration space as lspci -vv has them; MaxPayload may be 512 bytes. */
struct config {
	int payload, read; /* MaxPayload, MaxReadReq, bytes */
	bool redirects, has_ats, lacks_vf_bars;
};

static void put_config(struct host_tree *tree, const char *address, const struct config *config)
{
	const int payload = __builtin_ctz((unsigned int)config->payload / 128),
		  read = __builtin_ctz((unsigned int)config->read / 128);
	uint8_t bytes[512] = {[0x34] = 0x40, [0x40] = 0x01, 0x60, [0x60] = 0x10};
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/config", address);

	bytes[0x64] = 2;
	bytes[0x68] = (uint8_t)(payload << 5);
	bytes[0x69] = (uint8_t)(read << 4);
	/* ACS, ATS and SR-IOV, each with the next one's place. */
	memcpy(bytes + 0x100, (uint8_t[]){0x0d, 0, 0x01, 0x12}, 4);
	bytes[0x106] = config->redirects ? 0x1d : 0x11;
	memcpy(bytes + 0x120, (uint8_t[]){0x0f, 0, 0x01, 0x14}, 4);
	bytes[0x127] = config->has_ats ? 0x80 : 0;
	memcpy(bytes + 0x140, (uint8_t[]){0x10, 0, 0x01, 0}, 4);
	bytes[0x164] = 0x0c;
	bytes[0x16a] = config->lacks_vf_bars ? 0 : 0x20;
	host_tree_bytes(tree, path, bytes, sizeof(bytes));
}

static const struct config good_config = {.payload = 512, .read = 4096};

/* What pods need of any node. */
static void put_node(struct host_tree *tree)
{
	static const char *const modules[] = {"ib_core",  "ib_uverbs", "rdma_cm",
					      "rdma_ucm", "mlx5_ib",   "gdrdrv"};

	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		auto_free char *path = str_printf("sys/module/%s/x", modules[i]);

		host_tree_file(tree, path, "");
	}
	host_tree_file(tree, "sys/class/misc/rdma_cm/dev", "10:60\n");
	host_tree_file(tree, "dev/infiniband/rdma_cm", "");
	put_program(tree, "100", "containerd", "unlimited");
	put_program(tree, "101", "kubelet", "unlimited");
	host_tree_file(tree, "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
	host_tree_file(tree, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
		       "performance\n");
	host_tree_file(tree, "var/lib/kubelet/device-plugins/kubelet.sock", "");
	host_tree_file(tree, "etc/cni/net.d/10-calico.conflist", "{}");
	host_tree_file(tree, "opt/cni/bin/macvlan", "");
}

/* A node as its administrator wants it: two RoCE ports, a GPU beside them, all that pods need. */
static int set_up(void **state)
{
	static const char *const ports[] = {TREE_MLX, "0000:3b:00.1"};
	struct host_tree *tree = host_tree_new();

	host_tree_add_pf(tree, &tree_mlx);
	host_tree_add_pf(tree, &second);
	put_node(tree);
	host_tree_file(tree, "sys/module/nvidia_peermem/x", "");
	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		put_pcie(tree, ports[i]);
	put_config(tree, TREE_MLX, &good_config);
	put_uverbs(tree, "uverbs0", tree_mlx.rdma);
	put_uverbs(tree, "uverbs1", second.rdma);
	put_ecn(tree, tree_mlx.netdev, "1\n");
	put_ecn(tree, second.netdev, "1\n");
	pci(tree, "0000:3c:10.0", "class", "0x030200\n");
	pci(tree, "0000:3c:10.0", "vendor", "0x10de\n");
	pci(tree, "0000:3c:10.0", "numa_node", "1\n");
	*state = tree;
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static json_t *check(struct host_tree *tree, const char *mode)
{
	struct err err = {0};
	struct host *host = host_tree_host(tree);
	json_auto_t *observed = host_observe(host, HOST_OBSERVE_HOLDERS | HOST_OBSERVE_GIDS, &err);
	json_auto_t *facts = NULL;

	if (!observed)
		fail_msg("%s: %s", err.reason, err.text);
	facts = host_inspect(host, observed);
	return host_checks_run(observed, facts, mode);
}

/* Exactly these, in this order: "reason subject, reason subject". */
static void are(const json_t *findings, const char *want)
{
	auto_strbuf struct strbuf got = {0};
	json_t *finding;
	size_t i;

	json_array_foreach (findings, i, finding) {
		strbuf_addf(&got, "%s%s %s", i > 0 ? ", " : "", json_str_at(finding, "reason"),
			    json_str_or(json_at(finding, "subject"), "-"));
		assert_non_null(json_str_at(finding, "remedy"));
		assert_true(*json_str_at(finding, "seen"));
	}
	assert_string_equal(strbuf_str(&got), want);
}

/* What other parts of a NodeState show, or nothing else than doctor looks at. */
static bool is_left_to_doctor(const json_t *finding)
{
	static const char *const reasons[] = {
		"RdmaModeDiffers",   "RdmaModeNotKept", "RdmaFilesMissing", "RdmaLinkDown",
		"GidTableEmpty",     "NoRoceV2",        "BadGuid",          "MtuMismatch",
		"NoSriov",           "NoDriver",        "DeviceUnhealthy",  "PcieDegraded",
		"KubeletAbsent",     "NoIommu",         "NoClusterNetwork", "CniBinaryMissing",
		"OtherConfigDaemon", "InterruptsFar",
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(json_str_at(finding, "reason"), reasons[i]))
			return true;
	return false;
}

/* And the rest of them is what the agent lists, by the look and the facts of its worker. */
static void finds(struct host_tree *tree, const char *mode, const char *want)
{
	json_auto_t *findings = check(tree, mode), *settings = json_array(), *listed = NULL;
	json_auto_t *request = json_pack("{s:i, s:s}", "id", 1, "kind", "inspect");
	json_auto_t *reply = answer_request(host_tree_host(tree), request);
	json_auto_t *observed = host_observe(host_tree_host(tree), 0, NULL);
	json_t *finding;
	size_t i;

	are(findings, want);
	json_array_foreach (findings, i, finding)
		if (!is_left_to_doctor(finding))
			json_array_append(settings, finding);
	listed = host_checks_of_settings(observed, json_at(reply, "result"));
	if (!json_same(listed, settings))
		fail_msg("%s", json_text(listed));
}

TEST_WITH(a_good_host_has_nothing, set_up, tear_down)
{
	finds(*state, NULL, "");
	finds(*state, "shared", "");
}

TEST_WITH(the_mode_is_compared_with_what_is_wanted, set_up, tear_down)
{
	finds(*state, "exclusive", "RdmaModeDiffers rdma system");
}

TEST_WITH(a_mode_that_the_next_boot_changes, set_up, tear_down)
{
	host_tree_file(*state, "etc/modprobe.d/ib.conf", "options ib_core netns_mode=0\n");
	finds(*state, NULL, "RdmaModeNotKept rdma system");
}

TEST_WITH(an_old_kernel, set_up, tear_down)
{
	host_tree_file(*state, "proc/sys/kernel/osrelease", "5.2.21\n");
	finds(*state, NULL, "KernelTooOld kernel");
	host_tree_file(*state, "sys/module/mlx5_core/version", "4.7-3.2.9\n");
	finds(*state, NULL, "");
}

TEST_WITH(a_module_that_is_not_loaded, set_up, tear_down)
{
	host_tree_remove(*state, "sys/module/rdma_ucm");
	host_tree_remove(*state, "sys/class/misc/rdma_cm");
	finds(*state, NULL, "ModuleMissing rdma_ucm");
}

TEST_WITH(device_files_that_are_missing, set_up, tear_down)
{
	host_tree_remove(*state, "dev/infiniband/rdma_cm");
	finds(*state, NULL, "RdmaFilesMissing /dev/infiniband/rdma_cm");
}

TEST_WITH(a_card_on_half_of_its_lanes, set_up, tear_down)
{
	pci(*state, TREE_MLX, "current_link_width", "8\n");
	finds(*state, NULL, "PcieDegraded ens1f0np0");
}

TEST_WITH(congestion_control_that_is_off_on_one_port, set_up, tear_down)
{
	put_ecn(*state, second.netdev, "0\n");
	finds(*state, NULL, "EcnOff ens1f1, EcnDiffers ens1f1");
}

TEST_WITH(traffic_classes_that_differ, set_up, tear_down)
{
	host_tree_file(*state, "sys/class/infiniband/mlx5_0/tc/1/traffic_class",
		       "Global tclass=96\n");
	host_tree_file(*state, "sys/class/infiniband/mlx5_1/tc/1/traffic_class",
		       "Global tclass=0\n");
	finds(*state, NULL, "TrafficClassDiffers mlx5_1");
}

TEST_WITH(a_gpu_without_its_modules_and_far_from_a_nic, set_up, tear_down)
{
	host_tree_remove(*state, "sys/module/nvidia_peermem");
	host_tree_remove(*state, "sys/module/gdrdrv");
	pci(*state, "0000:3c:10.0", "numa_node", "0\n");
	finds(*state, NULL,
	      "PeerMemMissing nvidia_peermem, GdrCopyMissing gdrdrv, NumaMisfit 0000:3c:10.0");
}

TEST_WITH(a_runtime_that_may_not_lock_memory, set_up, tear_down)
{
	put_program(*state, "100", "containerd", "65536");
	/* From which no pod inherits anything. */
	put_program(*state, "101", "kubelet", "65536");
	finds(*state, NULL, "MemlockLow containerd");
}

TEST_WITH(a_kubelet_and_a_network_that_are_not_there, set_up, tear_down)
{
	host_tree_remove(*state, "var/lib/kubelet");
	host_tree_remove(*state, "etc/cni/net.d");
	host_tree_remove(*state, "opt/cni/bin/macvlan");
	finds(*state, NULL,
	      "KubeletAbsent /var/lib/kubelet/device-plugins/kubelet.sock, "
	      "NoClusterNetwork /etc/cni/net.d, CniBinaryMissing /opt/cni/bin/macvlan");
}

TEST_WITH(another_config_daemon, set_up, tear_down)
{
	put_program(*state, "102", "sriov-network-c", "unlimited");
	finds(*state, NULL, "OtherConfigDaemon sriov-network-config-daemon");
}

TEST_WITH(processors_that_save_power_and_no_iommu, set_up, tear_down)
{
	host_tree_file(*state, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
		       "powersave\n");
	host_tree_remove(*state, "sys/kernel/iommu_groups");
	finds(*state, NULL, "NoIommu IOMMU, CpuGovernor cpufreq");
}

TEST_WITH(firmware_in_error, set_up, tear_down)
{
	host_tree_break(*state, TREE_MLX, "fw_fatal");
	finds(*state, NULL, "DeviceUnhealthy ens1f0np0");
}

TEST_WITH(a_card_without_sriov_and_one_without_driver, set_up, tear_down)
{
	static const struct tree_pf off = {.address = "0000:5e:00.0",
					   .driver = "mlx5_core",
					   .netdev = "ens2f0",
					   .rdma = "mlx5_2",
					   .vendor = "15b3",
					   .device = "1019"};
	static const struct tree_pf bare = {
		.address = "0000:5f:00.0", .vendor = "15b3", .device = "1019"};

	host_tree_add_pf(*state, &off);
	put_pcie(*state, off.address);
	put_uverbs(*state, "uverbs2", off.rdma);
	host_tree_add_pf(*state, &bare);
	finds(*state, NULL, "NoDriver 0000:5f:00.0, NoSriov ens2f0");
}

TEST_WITH(dmabuf_in_place_of_a_module, set_up, tear_down)
{
	host_tree_remove(*state, "sys/module/nvidia_peermem");
	host_tree_file(*state, "proc/driver/nvidia/version",
		       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15\n");
	finds(*state, NULL, "");
	host_tree_file(*state, "proc/sys/kernel/osrelease", "5.10.0-28-amd64\n");
	finds(*state, NULL, "PeerMemMissing nvidia_peermem");
	host_tree_file(*state, "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
	host_tree_file(*state, "proc/driver/nvidia/version",
		       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n");
	finds(*state, NULL, "PeerMemMissing nvidia_peermem");
}

TEST_WITH(registers_of_a_nic, set_up, tear_down)
{
	static const struct {
		struct config config;
		const char *want;
	} rows[] = {
		{{.payload = 256, .read = 4096}, "PcieSettings ens1f0np0"},
		{{.payload = 512, .read = 512}, "PcieSettings ens1f0np0"},
		{{.payload = 512, .read = 4096, .lacks_vf_bars = true}, "NoSriov ens1f0np0"},
		/* It has no peer below a switch. */
		{{.payload = 512, .read = 4096, .has_ats = true}, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_config(*state, TREE_MLX, &rows[i].config);
		finds(*state, NULL, rows[i].want);
	}
}

#define PF  "sys/bus/pci/devices/" TREE_MLX
#define CPU "sys/devices/system/cpu/cpu0/cpuidle/"

/* Each by files that a good host does not have, and that go again. */
TEST_WITH(settings_of_the_host, set_up, tear_down)
{
	static const struct {
		const char *want, *files[12]; /* path, text, … */
	} rows[] = {
		{"IommuTranslates ens1f0np0", {PF "/iommu_group/type", "DMA-FQ\n"}},
		{"", {PF "/iommu_group/type", "identity\n"}},
		{"InterruptsFar ens1f0np0",
		 {PF "/msi_irqs/40", "msix\n", "proc/irq/40/effective_affinity_list", "3\n",
		  "sys/devices/system/node/node1/cpu4/x", ""}},
		{"",
		 {PF "/msi_irqs/40", "msix\n", PF "/msi_irqs/41", "msix\n",
		  "proc/irq/40/effective_affinity_list", "3\n",
		  "proc/irq/41/effective_affinity_list", "4\n",
		  "sys/devices/system/node/node1/cpu4/x", ""}},
		{"CpuIdleStates cpuidle",
		 {CPU "state3/name", "C6\n", CPU "state3/latency", "170\n", CPU "state3/disable",
		  "0\n"}},
		{"",
		 {CPU "state3/name", "C6\n", CPU "state3/latency", "170\n", CPU "state3/disable",
		  "1\n"}},
		{"IrqBalance irqbalance", {"proc/104/comm", "irqbalance\n"}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (const char *const *file = rows[i].files; *file; file += 2)
			host_tree_file(*state, file[0], file[1]);
		finds(*state, NULL, rows[i].want);
		for (const char *const *file = rows[i].files; *file; file += 2)
			host_tree_remove(*state, file[0]);
	}
}

TEST_WITH(a_bridge_with_less_than_its_port, set_up, tear_down)
{
	host_tree_add_interface(*state, "br0", "bridge");
	host_tree_file(*state, "sys/class/net/br0/mtu", "1500\n");
	host_tree_link(*state, "sys/class/net/ens1f0np0/master", "../br0");
	finds(*state, NULL, "");
	host_tree_file(*state, "sys/class/net/br0/mtu", "1450\n");
	/* As ovs-system, whose MTU no packet meets. */
	finds(*state, NULL, "");
	host_tree_file(*state, "sys/class/net/br0/bridge/bridge_id", "8000.020000000001\n");
	finds(*state, NULL, "MtuMismatch br0");
}

/* ---- machines that people have --------------------------------------------------------------- */

static void put_files(struct host_tree *tree, const char *folder, const json_t *files)
{
	const char *path;
	json_t *text;

	json_each (files, path, text) {
		auto_free char *whole = str_printf("%s%s", folder, path);

		host_tree_file(tree, whole, json_string_value(text));
	}
}

/* The tree borrows from the machine. */
static struct host_tree *put_machine(const json_t *machine)
{
	struct host_tree *tree = golden_machine_build(machine);
	const json_t *host = json_at(machine, "host");
	json_t *nic;
	size_t i;

	assert_non_null(host);
	if (json_is_true(json_at(host, "isNode")))
		put_node(tree);
	put_files(tree, "", json_at(host, "files"));
	json_array_foreach (json_at(machine, "nics"), i, nic) {
		const char *address = json_str_at(nic, "address");
		auto_free char *uverbs = str_printf("uverbs%zu", i);
		auto_free char *folder = str_printf("sys/bus/pci/devices/%s/", address);
		auto_free char *bridges = str_dup(json_str_at(nic, "path"));
		char *next = bridges, *bridge = strsep(&next, "/");

		put_files(tree, folder, json_at(host, "nicFiles"));
		if (json_str_at(nic, "rdma"))
			put_uverbs(tree, uverbs, json_str_at(nic, "rdma"));
		put_config(tree, address, &good_config);
		/* What the kernel turns on where the IOMMU is: harmless above both. */
		for (bool is_root = true; (bridge = strsep(&next, "/")); is_root = false)
			put_config(tree, bridge,
				   &(struct config){
					   .payload = 512, .read = 512, .redirects = is_root});
	}
	return tree;
}

TEST(nothing_false_on_machines_that_people_have)
{
	static const struct {
		const char *machine, *want;
	} rows[] = {
		{"dgx-h100", ""},
		{"gb200", ""},
		{"two-sockets", ""},
		/* True, and all that there is: nobody wants RDMA of it. */
		{"laptop",
		 "ModuleMissing ib_core, ModuleMissing ib_uverbs, ModuleMissing rdma_cm, "
		 "ModuleMissing rdma_ucm, KubeletAbsent "
		 "/var/lib/kubelet/device-plugins/kubelet.sock, NoClusterNetwork /etc/cni/net.d, "
		 "CniBinaryMissing /opt/cni/bin/macvlan, CpuGovernor cpufreq"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *machine = golden_machine_read(rows[i].machine);
		struct host_tree *tree = put_machine(machine);

		if (str_eq(rows[i].machine, "laptop")) {
			json_auto_t *observed = host_observe(host_tree_host(tree), 0, NULL);
			json_auto_t *facts = host_inspect(host_tree_host(tree), observed);
			json_auto_t *findings = check(tree, NULL);
			json_auto_t *listed = host_checks_of_settings(observed, facts);

			are(findings, rows[i].want);
			are(listed, "");
		} else {
			finds(tree, NULL, rows[i].want);
		}
		host_tree_free(tree);
	}
}

/*
 * On each side of the switch of GPU 0 and its NIC; and on a bridge that only other NICs are below.
 */
TEST(acs_and_ats_between_gpu_and_nic)
{
	static const struct config redirects = {.payload = 512, .read = 512, .redirects = true};
	static const struct config ats = {.payload = 512, .read = 4096, .has_ats = true};
	json_auto_t *machine = golden_machine_read("dgx-h100");
	struct host_tree *tree = put_machine(machine);

	put_config(tree, "0000:17:00.0", &redirects);
	put_config(tree, "0000:19:00.0", &redirects);
	put_config(tree, "0000:18:00.0", &ats);
	finds(tree, NULL, "AcsRedirects 0000:17:00.0, AcsRedirects 0000:19:00.0, AtsOn ibp24s0");
	host_tree_free(tree);
}

/* ---- of documents: what the simulated kernel does not vary ----------------------------------- */

TEST_WITH(ports_guids_and_mtu, set_up, tear_down)
{
	struct host_tree *tree = *state;
	struct err err = {0};
	json_auto_t *observed =
		host_observe(host_tree_host(tree), HOST_OBSERVE_HOLDERS | HOST_OBSERVE_GIDS, &err);
	json_auto_t *facts = host_inspect(host_tree_host(tree), observed), *findings = NULL,
		    *settings = NULL;
	json_t *devices = json_at(observed, "rdma", "devices");
	json_t *first = json_array_get(devices, 0), *other = json_array_get(devices, 1);
	json_t *port = json_array_get(json_at(first, "ports"), 0);
	json_t *pf = json_array_get(json_at(observed, "interfaces"), 0);

	json_put_str(port, "state", "DOWN");
	json_put(port, "gids", json_pack("{s:i, s:i}", "size", 16, "used", 0));
	json_put_str(first, "nodeGuid", "00:00:00:00:00:00:00:00");
	json_put_str(first, "fwVersion", "16.35.2000");
	json_put_str(other, "fwVersion", "16.35.3006");
	json_put(json_array_get(json_at(other, "ports"), 0), "gids",
		 json_pack("{s:i, s:i, s:i}", "size", 16, "used", 2, "rocev1", 2));
	json_put(pf, "Vfs",
		 json_pack("[{s:s, s:s, s:i}]", "pciAddress", "0000:3c:00.0", "driver", "vfio-pci",
			   "mtu", 9000));
	json_put_int(facts, "hugePages", 0);
	findings = host_checks_run(observed, facts, NULL);
	/* The worst come first. */
	are(findings,
	    "RdmaLinkDown mlx5_0, GidTableEmpty mlx5_0, BadGuid mlx5_0, MtuMismatch 0000:3c:00.0, "
	    "NoRoceV2 mlx5_1, FirmwareDiffers mlx5_1, NoHugePages hugepages");
	settings = host_checks_of_settings(observed, facts);
	are(settings, "FirmwareDiffers mlx5_1, NoHugePages hugepages");
}

/* By rail, whatever the addresses are. */
TEST(nodes_are_compared_rail_by_rail)
{
	static const char *const nodes[][4] = {/* name, first letter of addresses, speeds */
					       {"a", "p", "400000 Mb/s", "400000 Mb/s"},
					       {"b", "r", "400000 Mb/s", "200000 Mb/s"},
					       {"c", "p", "400000 Mb/s", "400000 Mb/s"},
					       {"d", "p", "400000 Mb/s", NULL}};
	json_auto_t *world = json_object(), *findings = NULL;
	json_t *states = json_need_object(world, "sriovnetworknodestates");

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		json_t *rails = json_array(), *ports = json_array();

		for (int rail = 0; rail < 2 && nodes[i][2 + rail]; rail++) {
			auto_free char *address = str_printf("%s%d", nodes[i][1], rail);

			json_array_append_new(rails, json_pack("{s:i, s:s}", "rail", rail,
							       "pciAddress", address));
			json_array_append_new(ports, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}",
							       "pciAddress", address, "vendor",
							       "15b3", "deviceID", "1021",
							       "linkType", "ETH", "linkSpeed",
							       nodes[i][2 + rail], "mtu", 9000));
		}
		json_put(states, nodes[i][0],
			 json_pack("{s:{s:s}, s:{}, s:{s:{s:o}, s:o}}", "metadata", "name",
				   nodes[i][0], "spec", "status", "rails", "list", rails,
				   "interfaces", ports));
	}
	findings = doctor_compare(world);

	are(findings, "NodesDiffer number of rails, NodesDiffer link speed of rail 1");
	assert_string_equal(json_str_at(json_array_get(findings, 1), "seen"),
			    "200000 Mb/s on b, 400000 Mb/s on 2 others");
}

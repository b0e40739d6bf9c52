// SPDX-License-Identifier: Apache-2.0
/*
 * Facts for nodeagent/model/host_checks.h, each read by itself from a few small files: a fact that
 * cannot be read costs no other. Whether a fact is good or bad is judged there.
 */
#include "nodeagent/host/inspect.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host/module.h"
#include "nodeagent/host/pci.h"

#define CMDLINE_MAX 4096
#define LIMITS_MAX  8192
/* IEEE 802.1Q. */
#define PRIORITIES 8

/* The file whose path the format gives: see sysfs.h. */
__attribute__((format(printf, 3, 4))) static bool
read_text(const struct host *host, struct sysfs_text *ret, const char *fmt, ...)
{
	auto_free char *path = NULL;
	va_list ap;

	va_start(ap, fmt);
	path = str_vprintf(fmt, ap);
	va_end(ap);
	return sysfs_read(host, path, ret);
}

#define READ_NUMBER(host, ret, ...)                                                                \
	({                                                                                         \
		struct sysfs_text text_;                                                           \
		read_text(host, &text_, __VA_ARGS__) && sysfs_parse_int(text_.text, ret);          \
	})

static void put_text(const struct host *host, json_t *ret, const char *key, const char *path)
{
	struct sysfs_text text;

	if (sysfs_read(host, path, &text))
		json_put_str(ret, key, text.text);
}

static void put_number(const struct host *host, json_t *ret, const char *key, const char *path)
{
	int64_t number;

	if (sysfs_read_int(host, path, &number) && number >= 0)
		json_put_int(ret, key, number);
}

/* ---- kernel and modules ---------------------------------------------------------------------- */

static json_t *modules(const struct host *host)
{
	static const char *const names[] = {
		"ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm",       "mlx5_core",
		"mlx5_ib", "ib_ipoib",  "gdrdrv",  "nvidia_peermem", "nv_peer_mem",
	};
	json_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		json_put_bool(ret, names[i], module_is_there(host, names[i]));
	return ret;
}

static json_t *versions(const struct host *host)
{
	static const char *const names[] = {"mlx5_core", "ib_core", "nvidia"};
	json_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *path = str_printf("sys/module/%s/version", names[i]);

		put_text(host, ret, names[i], path);
	}
	return ret;
}

/* ---- network functions ----------------------------------------------------------------------- */

/*
 * Congestion control of a port, a digit for each priority; only NVIDIA's own driver (MLNX_OFED) has
 * these files.
 */
static json_t *ecn_of(const struct host *host, const char *netdev, const char *side)
{
	char digits[PRIORITIES + 1] = "";
	size_t n = 0;

	for (int i = 0; i < PRIORITIES; i++) {
		int64_t on;

		if (READ_NUMBER(host, &on, "sys/class/net/%s/ecn/roce_%s/enable/%d", netdev, side,
				i))
			digits[n++] = on ? '1' : '0';
	}
	return n == PRIORITIES ? json_string(digits) : NULL;
}

/* How many interrupts the function has, and how many of them CPUs of other NUMA nodes handle. */
static void put_interrupts(const struct host *host, const char *address, json_t *ret)
{
	json_auto_t *interrupts = sysfs_list(host, pci_path(address, "msi_irqs").text);
	json_int_t numa = json_integer_value(json_at(ret, "numaNode")), far = 0;
	json_t *item;
	size_t i;

	if (!json_at(ret, "numaNode") || !interrupts)
		return;
	json_array_foreach (interrupts, i, item) {
		auto_free char *near = NULL;
		int64_t cpu;

		if (!READ_NUMBER(host, &cpu, "proc/irq/%s/effective_affinity_list",
				 json_string_value(item)))
			continue;
		near = str_printf("sys/devices/system/node/node%lld/cpu%lld", (long long)numa,
				  (long long)cpu);
		far += !sysfs_exists(host, near);
	}
	json_put(ret, "interrupts",
		 json_pack("{s:i, s:I}", "all", (int)json_array_size(interrupts), "far", far));
}

/* Bridge or bond that the interface is a port of. The MTU of Open vSwitch's means nothing. */
static void put_master(const struct host *host, const char *netdev, json_t *ret)
{
	auto_free char *link = str_printf("sys/class/net/%s/master", netdev);
	struct sysfs_text master;
	auto_free char *bridge = NULL, *bond = NULL;
	int64_t mtu;

	if (!sysfs_link(host, link, &master))
		return;
	bridge = str_printf("sys/class/net/%s/bridge", master.text);
	bond = str_printf("sys/class/net/%s/bonding", master.text);
	if ((sysfs_exists(host, bridge) || sysfs_exists(host, bond)) &&
	    READ_NUMBER(host, &mtu, "sys/class/net/%s/mtu", master.text))
		json_put(ret, "master",
			 json_pack("{s:s, s:I}", "name", master.text, "mtu", (json_int_t)mtu));
}

/* Its configuration space, and its bridges; those whose ACS redirects are added to `redirects`. */
static void put_config(const struct host *host, const char *address, json_t *ret, json_t *redirects)
{
	auto_free char *path = pci_bridges(host, address);
	char *rest = path, *name;
	struct pci_config config, bridge;
	int payload;

	json_put_str(ret, "path", path);
	if (!pci_config_read(host, address, &config))
		config = (struct pci_config){0};
	payload = config.max_payload_supported;
	/* The first is the host bridge, which has none. */
	for (name = strsep(&rest, "/"); (name = strsep(&rest, "/"));) {
		if (!pci_config_read(host, name, &bridge))
			continue;
		if (bridge.redirects && !json_list_has(redirects, name))
			json_array_append_new(redirects, json_string(name));
		if (bridge.max_payload_supported && bridge.max_payload_supported < payload)
			payload = bridge.max_payload_supported;
	}
	if (!config.max_payload)
		return;
	json_put(ret, "config",
		 json_pack("{s:i, s:i, s:i, s:b, s:b}", "maxPayload", config.max_payload,
			   "maxPayloadOfPath", payload, "maxReadRequest", config.max_read_request,
			   "ats", config.has_ats, "lacksVfBars", config.lacks_vf_bars));
}

static json_t *function_facts(const struct host *host, const json_t *pf, json_t *redirects)
{
	static const struct {
		const char *key, *file;
	} links[] = {
		{"speed", "current_link_speed"}, {"speedMax", "max_link_speed"},
		{"width", "current_link_width"}, {"widthMax", "max_link_width"},
		{"iommu", "iommu_group/type"},
	};
	const char *address = json_str_or(json_at(pf, "pciAddress"), "");
	const char *netdev = json_str_or(json_at(pf, "name"), "");
	json_t *ret = json_object(), *np = ecn_of(host, netdev, "np"),
	       *rp = ecn_of(host, netdev, "rp");

	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		put_text(host, ret, links[i].key, pci_path(address, links[i].file).text);
	put_number(host, ret, "numaNode", pci_path(address, "numa_node").text);
	put_config(host, address, ret, redirects);
	put_interrupts(host, address, ret);
	put_master(host, netdev, ret);
	if (np && rp)
		json_put(ret, "ecn", json_pack("{s:O, s:O}", "np", np, "rp", rp));
	json_decref(np);
	json_decref(rp);
	return ret;
}

static json_t *traffic_classes(const struct host *host, const json_t *observed)
{
	json_t *ret = json_object(), *device;
	size_t i;

	json_array_foreach (json_at(observed, "rdma", "devices"), i, device) {
		const char *name = json_str_or(json_at(device, "name"), "");
		auto_free char *path =
			str_printf("sys/class/infiniband/%s/tc/1/traffic_class", name);

		put_text(host, ret, name, path);
	}
	return ret;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static json_t *gpus(const struct host *host, json_t *redirects)
{
	json_auto_t *addresses = sysfs_list(host, "sys/bus/pci/devices");
	json_t *ret = json_array(), *item;
	size_t i;

	json_array_foreach (addresses, i, item) {
		const char *address = json_string_value(item);
		struct sysfs_text vendor;
		int64_t class;
		json_t *gpu;

		/* Base class 03, display: VGA and 3D controllers. */
		if (!sysfs_read_int(host, pci_path(address, "class").text, &class) ||
		    class >> 16 != 3 ||
		    !sysfs_read(host, pci_path(address, "vendor").text, &vendor))
			continue;
		gpu = json_object();
		json_put_str(gpu, "pciAddress", address);
		json_put_str(gpu, "vendor",
			     str_starts(vendor.text, "0x") ? vendor.text + 2 : vendor.text);
		put_number(host, gpu, "numaNode", pci_path(address, "numa_node").text);
		put_config(host, address, gpu, redirects);
		json_array_append_new(ret, gpu);
	}
	return ret;
}

/* ---- programs and processors ----------------------------------------------------------------- */

/* The soft limit of "Max locked memory" in /proc/PID/limits; -1: none. False: not said. */
static bool memlock_of(const struct host *host, const char *pid, int64_t *ret)
{
	auto_free char *path = str_printf("proc/%s/limits", pid);
	auto_strbuf struct strbuf text = {0};
	const char *line;
	char word[32];

	if (!sysfs_read_file(host, path, LIMITS_MAX, &text))
		return false;
	line = strstr(strbuf_str(&text), "Max locked memory");
	if (!line || sscanf(line, "Max locked memory %31s", word) != 1)
		return false;
	*ret = -1;
	return str_eq(word, "unlimited") || str_to_int(word, 0, INT64_MAX, ret);
}

/* Pods inherit the limits of what starts them; irqbalance moves the interrupts of NICs. */
static void put_programs(const struct host *host, json_t *ret)
{
	static const char *const programs[] = {"containerd", "crio", "dockerd"};
	json_auto_t *pids = sysfs_list(host, "proc");
	json_t *memlock = json_array(), *pid;
	size_t i, k;

	json_array_foreach (pids, i, pid) {
		struct sysfs_text comm;
		int64_t bytes, number;

		if (!str_to_int(json_string_value(pid), 1, INT32_MAX, &number) ||
		    !read_text(host, &comm, "proc/%s/comm", json_string_value(pid)))
			continue;
		if (str_eq(comm.text, "irqbalance"))
			json_put_bool(ret, "irqbalance", true);
		for (k = 0; k < ARRAY_LEN(programs); k++)
			if (str_eq(comm.text, programs[k]) &&
			    memlock_of(host, json_string_value(pid), &bytes))
				json_array_append_new(memlock, json_pack("{s:s, s:I}", "program",
									 programs[k], "bytes",
									 (json_int_t)bytes));
	}
	json_put(ret, "memlock", memlock);
}

/* The state of the first processor that takes longest to leave; the others have the same. */
static void put_idle(const struct host *host, json_t *ret)
{
	static const char folder[] = "sys/devices/system/cpu/cpu0/cpuidle";
	json_auto_t *states = sysfs_list(host, folder);
	int64_t us, most = -1, disabled;
	struct sysfs_text name;
	json_t *item;
	size_t i;

	json_array_foreach (states, i, item) {
		const char *state = json_string_value(item);

		if (!READ_NUMBER(host, &us, "%s/%s/latency", folder, state) || us <= most ||
		    !READ_NUMBER(host, &disabled, "%s/%s/disable", folder, state) || disabled ||
		    !read_text(host, &name, "%s/%s/name", folder, state))
			continue;
		most = us;
		json_put(ret, "idle",
			 json_pack("{s:s, s:I}", "name", name.text, "us", (json_int_t)us));
	}
}

static void put_huge_pages(const struct host *host, json_t *ret)
{
	static const char folder[] = "sys/kernel/mm/hugepages";
	json_auto_t *sizes = sysfs_list(host, folder);
	int64_t n, all = 0;
	json_t *size;
	size_t i;

	json_array_foreach (sizes, i, size)
		if (READ_NUMBER(host, &n, "%s/%s/nr_hugepages", folder, json_string_value(size)))
			all += n;
	if (sizes)
		json_put_int(ret, "hugePages", all);
}

static json_t *governors(const struct host *host)
{
	json_auto_t *processors = sysfs_list(host, "sys/devices/system/cpu/cpufreq");
	json_t *ret = json_object(), *policy;
	size_t i;

	json_array_foreach (processors, i, policy) {
		struct sysfs_text name;

		if (read_text(host, &name, "sys/devices/system/cpu/cpufreq/%s/scaling_governor",
			      json_string_value(policy)))
			json_put_int(ret, name.text,
				     json_integer_value(json_at(ret, name.text)) + 1);
	}
	return ret;
}

static void put_list(const struct host *host, json_t *ret, const char *key, const char *folder)
{
	json_t *names = sysfs_list(host, folder);

	if (names)
		json_put(ret, key, names);
}

json_t *host_inspect(struct host *host, const json_t *observed)
{
	auto_strbuf struct strbuf cmdline = {0};
	json_t *ret = json_object(), *functions = json_object(), *redirects = json_array(), *pf;
	size_t i;

	json_array_foreach (json_at(observed, "interfaces"), i, pf)
		json_put(functions, json_str_or(json_at(pf, "pciAddress"), ""),
			 function_facts(host, pf, redirects));
	put_text(host, ret, "kernel", "proc/sys/kernel/osrelease");
	if (sysfs_read_file(host, "proc/cmdline", CMDLINE_MAX, &cmdline))
		json_put_str(ret, "cmdline", strbuf_str(&cmdline));
	json_put(ret, "modules", modules(host));
	json_put(ret, "versions", versions(host));
	json_put(ret, "functions", functions);
	json_put(ret, "trafficClass", traffic_classes(host, observed));
	json_put(ret, "gpus", gpus(host, redirects));
	json_put(ret, "redirects", redirects);
	put_text(host, ret, "nvidia", "proc/driver/nvidia/version");
	put_programs(host, ret);
	put_idle(host, ret);
	put_huge_pages(host, ret);
	json_put(ret, "governors", governors(host));
	json_put_bool(ret, "kubeletSocket",
		      sysfs_exists(host, "var/lib/kubelet/device-plugins/kubelet.sock"));
	put_list(host, ret, "cniConf", "etc/cni/net.d");
	put_list(host, ret, "cniBinaries", "opt/cni/bin");
	return ret;
}

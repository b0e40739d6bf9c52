// SPDX-License-Identifier: Apache-2.0
/*
 * Facts for `orbweaver doctor --local`, each read by itself from a few small files: a fact that
 * cannot be read costs no other. Whether a fact is good or bad is judged by the doctor's own rules
 * (cli), not here.
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
		auto_free char *path =
			str_printf("sys/class/net/%s/ecn/roce_%s/enable/%d", netdev, side, i);
		int64_t on;

		if (sysfs_read_int(host, path, &on))
			digits[n++] = on ? '1' : '0';
	}
	return n == PRIORITIES ? json_string(digits) : NULL;
}

static json_t *function_facts(const struct host *host, const json_t *pf)
{
	static const struct {
		const char *key, *file;
	} links[] = {
		{"speed", "current_link_speed"},
		{"speedMax", "max_link_speed"},
		{"width", "current_link_width"},
		{"widthMax", "max_link_width"},
	};
	const char *address = json_str_or(json_at(pf, "pciAddress"), "");
	const char *netdev = json_str_or(json_at(pf, "name"), "");
	json_t *ret = json_object(), *np = ecn_of(host, netdev, "np"),
	       *rp = ecn_of(host, netdev, "rp");

	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		put_text(host, ret, links[i].key, pci_path(address, links[i].file).text);
	put_number(host, ret, "numaNode", pci_path(address, "numa_node").text);
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

static json_t *gpus(const struct host *host)
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

/* Pods inherit the limits of what starts them. */
static json_t *memlocks(const struct host *host)
{
	static const char *const programs[] = {"containerd", "crio", "dockerd", "kubelet"};
	json_auto_t *pids = sysfs_list(host, "proc");
	json_t *ret = json_array(), *pid;
	size_t i, k;

	json_array_foreach (pids, i, pid) {
		auto_free char *path = str_printf("proc/%s/comm", json_string_value(pid));
		struct sysfs_text comm;
		int64_t bytes, number;

		if (!str_to_int(json_string_value(pid), 1, INT32_MAX, &number) ||
		    !sysfs_read(host, path, &comm))
			continue;
		for (k = 0; k < ARRAY_LEN(programs); k++)
			if (str_eq(comm.text, programs[k]) &&
			    memlock_of(host, json_string_value(pid), &bytes))
				json_array_append_new(ret, json_pack("{s:s, s:I}", "program",
								     programs[k], "bytes",
								     (json_int_t)bytes));
	}
	return ret;
}

static json_t *governors(const struct host *host)
{
	json_auto_t *processors = sysfs_list(host, "sys/devices/system/cpu/cpufreq");
	json_t *ret = json_object(), *policy;
	size_t i;

	json_array_foreach (processors, i, policy) {
		auto_free char *path =
			str_printf("sys/devices/system/cpu/cpufreq/%s/scaling_governor",
				   json_string_value(policy));
		struct sysfs_text name;

		if (sysfs_read(host, path, &name))
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
	json_t *ret = json_object(), *functions = json_object(), *pf;
	size_t i;

	json_array_foreach (json_at(observed, "interfaces"), i, pf)
		json_put(functions, json_str_or(json_at(pf, "pciAddress"), ""),
			 function_facts(host, pf));
	put_text(host, ret, "kernel", "proc/sys/kernel/osrelease");
	if (sysfs_read_file(host, "proc/cmdline", CMDLINE_MAX, &cmdline))
		json_put_str(ret, "cmdline", strbuf_str(&cmdline));
	json_put(ret, "modules", modules(host));
	json_put(ret, "versions", versions(host));
	json_put(ret, "functions", functions);
	json_put(ret, "trafficClass", traffic_classes(host, observed));
	json_put(ret, "gpus", gpus(host));
	json_put(ret, "memlock", memlocks(host));
	json_put(ret, "governors", governors(host));
	json_put_bool(ret, "kubeletSocket",
		      sysfs_exists(host, "var/lib/kubelet/device-plugins/kubelet.sock"));
	put_list(host, ret, "cniConf", "etc/cni/net.d");
	put_list(host, ret, "cniBinaries", "opt/cni/bin");
	return ret;
}

// SPDX-License-Identifier: Apache-2.0
/* Rows of what can be wrong with a function, then what two functions are to each other. */
#include "nodeagent/model/host_checks_pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodeagent/model/findings.h"

/* Bytes; below, a NIC with such a link (GT/s times lanes) has too few requests under way. */
#define MAX_READ_LEAST 4096
#define FAST_LINK      (16 * 16)

static void check_function(struct host_facts *h, const json_t *pf, const json_t *function)
{
	const char *name = json_str_or(json_at(pf, "name"), json_str_at(pf, "pciAddress"));
	const json_t *config = json_at(function, "config");
	long long payload = json_integer_value(json_at(config, "maxPayload")),
		  payload_of_path = json_integer_value(json_at(config, "maxPayloadOfPath")),
		  read = json_integer_value(json_at(config, "maxReadRequest")),
		  interrupts = json_integer_value(json_at(function, "interrupts", "all")),
		  far = json_integer_value(json_at(function, "interrupts", "far")),
		  mtu = json_integer_value(json_at(pf, "mtu")),
		  master_mtu = json_integer_value(json_at(function, "master", "mtu"));
	const char *speed = json_str_at(function, "speed"),
		   *speed_max = json_str_at(function, "speedMax"),
		   *width = json_str_at(function, "width"),
		   *width_max = json_str_at(function, "widthMax");
	bool is_fast = speed_max && width_max &&
		       strtol(speed_max, NULL, 10) * strtol(width_max, NULL, 10) >= FAST_LINK;

	if (speed && speed_max && width && width_max &&
	    !(str_eq(speed, speed_max) && str_eq(width, width_max)))
		finding_add(h->findings, FINDING_WARNING, "PcieDegraded", name,
			    "what the card can do",
			    "reseat the card; use a slot with enough lanes; look at the "
			    "machine's firmware settings",
			    "PCI Express at %s x%s, the card can do %s x%s", speed, width,
			    speed_max, width_max);
	if (str_starts(json_str_or(json_at(function, "iommu"), ""), "DMA"))
		finding_add(h->findings, FINDING_WARNING, "IommuTranslates", name,
			    "mode passthrough",
			    "iommu=pt on the kernel's command line (arm64: iommu.passthrough=1); "
			    "VFs of vfio-pci stay isolated",
			    "the IOMMU translates the addresses of each transfer");
	if (json_is_true(json_at(config, "lacksVfBars")))
		finding_add(h->findings, FINDING_WARNING, "NoSriov", name, "addresses for its VFs",
			    "pci=realloc on the kernel's command line; MMIO above 4G in the "
			    "machine's firmware",
			    "no room in the address space for VFs");
	if (payload < payload_of_path)
		finding_add(h->findings, FINDING_INFO, "PcieSettings", name,
			    "what NIC and bridges can do",
			    "pci=pcie_bus_perf on the kernel's command line, or the machine's "
			    "firmware settings",
			    "MaxPayload is %lld bytes, its path can do %lld", payload,
			    payload_of_path);
	if (is_fast && read > 0 && read < MAX_READ_LEAST)
		finding_add(h->findings, FINDING_INFO, "PcieSettings", name, "4096 bytes",
			    "setpci -s ADDRESS CAP_EXP+8.w=5000:7000, after each boot",
			    "MaxReadReq is %lld bytes", read);
	if (far * 2 > interrupts)
		finding_add(h->findings, FINDING_INFO, "InterruptsFar", name,
			    "CPUs of its NUMA node",
			    "smp_affinity_list of /proc/irq, or set_irq_affinity_bynode.sh of "
			    "mlnx-tools; irqbalance undoes it",
			    "CPUs of other NUMA nodes handle %lld of its %lld interrupts", far,
			    interrupts);
	if (json_at(function, "master") && master_mtu < mtu)
		finding_add(h->findings, FINDING_WARNING, "MtuMismatch",
			    json_str_at(function, "master", "name"), "that of its port",
			    "ip link set BRIDGE mtu; pods on it lose larger packets",
			    "MTU %lld, its port %s has %lld", master_mtu, name, mtu);
}

void host_check_functions(struct host_facts *h)
{
	const char *address;
	json_t *function;

	json_each (json_at(h->facts, "functions"), address, function)
		if (host_is_rdma_nic(host_pf(h, address)))
			check_function(h, host_pf(h, address), function);
}

/* ---- GPU and NIC on one PCI Express switch --------------------------------------------------- */

/*
 * How much of the paths from the host bridge down is the same, whole bridges only; 0: nothing below
 * the host bridge.
 */
static size_t shared_path(const char *a, const char *b)
{
	size_t n = 0, ret = 0;

	for (; a[n] && a[n] == b[n]; n++)
		if (n > 0 && a[n] == '/')
			ret = n;
	if ((!a[n] || a[n] == '/') && (!b[n] || b[n] == '/'))
		ret = n;
	return ret > strcspn(a, "/") ? ret : 0;
}

static void check_redirects(struct host_facts *h, const char *rest, const char *gpu,
			    const char *nic)
{
	auto_free char *bridges = str_dup(rest);
	char *next = bridges, *bridge;

	while ((bridge = strsep(&next, "/")))
		if (json_list_has(json_at(h->facts, "redirects"), bridge) &&
		    !json_find(h->findings, "subject", bridge))
			finding_add(h->findings, FINDING_WARNING, "AcsRedirects", bridge,
				    "ACS without P2P redirects",
				    "ACS off in the machine's firmware; Linux 6.11: "
				    "pci=config_acs=00xx@BRIDGE; until the next boot: setpci "
				    "-s BRIDGE ECAP_ACS+6.w=0:c. Not where virtual machines "
				    "have devices of the switch",
				    "traffic between GPU %s and %s goes through the processor", gpu,
				    nic);
}

/*
 * Peers below one switch reach each other without the processor, unless ACS or ATS are in the way.
 */
void host_check_peers(struct host_facts *h)
{
	const char *address;
	json_t *function, *gpu;
	size_t i;

	json_each (json_at(h->facts, "functions"), address, function) {
		const char *name = json_str_or(json_at(host_pf(h, address), "name"), address);
		const char *path = json_str_or(json_at(function, "path"), "");
		bool has_peer = false;

		if (!host_is_rdma_nic(host_pf(h, address)))
			continue;
		json_array_foreach (json_at(h->facts, "gpus"), i, gpu) {
			const char *other = json_str_or(json_at(gpu, "path"), "");
			size_t shared = shared_path(path, other);

			if (shared == 0)
				continue;
			has_peer = true;
			check_redirects(h, path + shared, json_str_at(gpu, "pciAddress"), name);
			check_redirects(h, other + shared, json_str_at(gpu, "pciAddress"), name);
		}
		if (has_peer && json_is_true(json_at(function, "config", "ats")))
			finding_add(
				h->findings, FINDING_INFO, "AtsOn", name,
				"off, unless virtual machines have it",
				"mlxconfig -d ADDRESS set ATS_ENABLED=0, then a "
				"cold boot; or pci=noats",
				"address translation services are on beside GPUs of its switch");
	}
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/*
 * DMA-BUF takes the kernel, NVIDIA's driver and that of a NIC: those whose drivers/infiniband/hw
 * has reg_user_mr_dmabuf, and since when. NULL: it works; else what lacks. Borrowed.
 */
static const char *why_no_dmabuf(const struct host_facts *h)
{
	static const struct {
		const char *driver;
		unsigned int major, minor;
	} since[] = {{"mlx5_core", 5, 12}, {"efa", 5, 16}, {"ice", 6, 4}, {"bnxt_en", 6, 6}};
	const char *nvidia = json_str_at(h->facts, "nvidia");
	unsigned int major = 0, minor = 0;
	json_t *pf;
	size_t i;

	if (!nvidia || !strstr(nvidia, "Open Kernel Module"))
		return "the driver of the GPUs is not NVIDIA's open one";
	(void)sscanf(json_str_or(json_at(h->facts, "kernel"), ""), "%u.%u", &major, &minor);
	json_array_foreach (json_at(h->observed, "interfaces"), i, pf)
		for (size_t k = 0; k < ARRAY_LEN(since); k++)
			if (json_array_size(json_at(pf, "host", "rdma")) > 0 &&
			    str_eq(json_str_at(pf, "driver"), since[k].driver) &&
			    (major > since[k].major ||
			     (major == since[k].major && minor >= since[k].minor)))
				return NULL;
	return "the kernel has none for the driver of a NIC";
}

void host_check_gpus(struct host_facts *h)
{
	const char *why;
	json_t *gpu, *pf;
	size_t i, k;

	if (!json_find(json_at(h->facts, "gpus"), "vendor", VENDOR_NVIDIA) ||
	    json_array_size(host_devices(h)) == 0)
		return;
	why = why_no_dmabuf(h);
	if (why && !host_has_module(h, "nvidia_peermem") && !host_has_module(h, "nv_peer_mem"))
		finding_add(h->findings, FINDING_WARNING, "PeerMemMissing", "nvidia_peermem",
			    "loaded, or DMA-BUF with NVIDIA's open driver",
			    "modprobe nvidia_peermem; the GPU operator does it with "
			    "driver.rdma.enabled=true",
			    "not loaded, and no DMA-BUF: %s", why);
	if (!host_has_module(h, "gdrdrv"))
		finding_add(h->findings, FINDING_INFO, "GdrCopyMissing", "gdrdrv", "loaded",
			    "small copies between GPU and host are slower; the GPU "
			    "operator has gdrcopy.enabled=true",
			    "not loaded");
	json_array_foreach (json_at(h->facts, "gpus"), i, gpu) {
		const json_t *node = json_at(gpu, "numaNode");
		bool near = !node;

		json_array_foreach (json_at(h->observed, "interfaces"), k, pf)
			near = near ||
			       (host_is_rdma_nic(pf) &&
				json_equal((json_t *)node,
					   json_at(h->facts, "functions",
						   json_str_or(json_at(pf, "pciAddress"), ""),
						   "numaNode")));
		if (!near)
			finding_add(h->findings, FINDING_INFO, "NumaMisfit",
				    json_str_at(gpu, "pciAddress"), "a NIC on the same NUMA node",
				    "its traffic crosses sockets; put a NIC into a slot "
				    "of that socket",
				    "GPU on NUMA node %lld, no RDMA NIC is there",
				    (long long)json_integer_value(node));
	}
}

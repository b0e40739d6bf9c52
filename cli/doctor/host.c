// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of one host, by what it was seen like. See doctor.h.
 */
#include <stdio.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/findings.h"
#include "lib/json/json.h"

#define VENDOR_MELLANOX "15b3"
#define VENDOR_NVIDIA   "10de"
/* Below this, queues and buffers of one job do not fit: registering memory fails with ENOMEM. */
#define MEMLOCK_LEAST (1LL << 30)

struct host_facts {
	const json_t *observed, *facts;
	const char *rdma_mode;
	json_t *findings;
};

/* ---- helpers --------------------------------------------------------------------------------- */

static bool has_module(const struct host_facts *h, const char *name)
{
	return json_is_true(json_at(h->facts, "modules", name));
}

static const json_t *devices(const struct host_facts *h)
{
	return json_at(h->observed, "rdma", "devices");
}

static bool has_link_layer(const struct host_facts *h, const char *layer)
{
	json_t *pf;
	size_t i;

	json_array_foreach (json_at(h->observed, "interfaces"), i, pf)
		if (str_eq(json_str_at(pf, "linkType"), layer))
			return true;
	return false;
}

static bool has_vendor(const struct host_facts *h, const char *vendor)
{
	return json_find(json_at(h->observed, "interfaces"), "vendor", vendor) ||
	       json_find(json_at(h->observed, "unusable"), "vendor", vendor);
}

/* Does it have RDMA, or the promise of it? Others carry the node's own traffic. */
static bool is_rdma_nic(const json_t *pf)
{
	return json_array_size(json_at(pf, "host", "rdma")) > 0 ||
	       str_eq(json_str_at(pf, "vendor"), VENDOR_MELLANOX);
}

/* ---- kernel and modules ---------------------------------------------------------------------- */

static void check_kernel(struct host_facts *h)
{
	const char *release = json_str_at(h->facts, "kernel");
	const char *ofed = json_str_at(h->facts, "versions", "mlx5_core");
	unsigned int major, minor;

	/* NETLINK_RDMA's SYS_SET came with 5.3; MLNX_OFED 4.7 brings it along. */
	if (!release || ofed || sscanf(release, "%u.%u", &major, &minor) != 2 || major > 5 ||
	    (major == 5 && minor >= 3))
		return;
	finding_add(h->findings,
		    &(struct finding){
			    str_eq(h->rdma_mode, "exclusive") ? FINDING_ERROR : FINDING_WARNING,
			    "KernelTooOld", "kernel", "5.3, or MLNX_OFED 4.7",
			    "boot a newer kernel: RDMA devices cannot be given to pods of their "
			    "own in this one"},
		    "%s", release);
}

static void check_modules(struct host_facts *h)
{
	const struct {
		const char *name;
		bool needed;
		const char *remedy;
	} modules[] = {
		{"ib_core", true, "modprobe ib_core, and add it to /etc/modules-load.d"},
		{"ib_uverbs", true, "modprobe ib_uverbs: programs cannot open RDMA devices"},
		{"rdma_cm", true, "modprobe rdma_cm: connections cannot be made by address"},
		{"rdma_ucm", true, "modprobe rdma_ucm: connections cannot be made by address"},
		{"mlx5_ib", has_vendor(h, VENDOR_MELLANOX),
		 "modprobe mlx5_ib: NVIDIA's NICs have no RDMA device"},
		{"ib_ipoib", has_link_layer(h, "IB"),
		 "modprobe ib_ipoib: InfiniBand ports have no interface for addresses"},
	};

	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (modules[i].needed && !has_module(h, modules[i].name))
			finding_add(h->findings,
				    &(struct finding){FINDING_ERROR, "ModuleMissing",
						      modules[i].name, "loaded", modules[i].remedy},
				    "not loaded");
}

static void check_device_files(struct host_facts *h)
{
	json_t *device;
	size_t i;

	if (has_module(h, "rdma_ucm") &&
	    json_array_size(json_at(h->observed, "rdma", "charDevices")) == 0)
		finding_add(
			h->findings,
			&(struct finding){FINDING_ERROR, "RdmaFilesMissing",
					  "/dev/infiniband/rdma_cm", "there",
					  "look whether udev runs; modprobe -r rdma_ucm; modprobe "
					  "rdma_ucm"},
			"not there");
	json_array_foreach (devices(h), i, device)
		if (!json_find(json_at(device, "charDevices"), "type", "uverbs"))
			finding_add(h->findings,
				    &(struct finding){FINDING_ERROR, "RdmaFilesMissing",
						      json_str_at(device, "name"),
						      "a file /dev/infiniband/uverbsN",
						      "modprobe ib_uverbs"},
				    "it has no file in /dev/infiniband");
}

/* ---- RDMA ------------------------------------------------------------------------------------ */

static void check_rdma_mode(struct host_facts *h)
{
	const char *now = json_str_at(h->observed, "rdma", "netnsMode");
	const char *next =
		json_str_or(json_at(h->observed, "rdma", "netnsModeNextBoot", "mode"), "shared");
	const char *file =
		json_str_or(json_at(h->observed, "rdma", "netnsModeNextBoot", "file"), "no file");

	if (!now)
		return;
	if (h->rdma_mode && !str_eq(now, h->rdma_mode))
		finding_add(h->findings,
			    &(struct finding){FINDING_ERROR, "RdmaModeDiffers", "rdma system",
					      h->rdma_mode,
					      "set rdmaMode in a SriovNetworkPoolConfig, or: rdma "
					      "system set netns MODE"},
			    "netns %s", now);
	if (!str_eq(now, next))
		finding_add(
			h->findings,
			&(struct finding){FINDING_WARNING, "RdmaModeNotKept", "rdma system", now,
					  "set rdmaMode in a SriovNetworkPoolConfig; by hand: "
					  "options ib_core netns_mode=0 (exclusive) or 1 (shared) "
					  "in /etc/modprobe.d, and a new initramfs if it has "
					  "ib_core"},
			"netns %s now, %s after the next boot (%s)", now, next, file);
}

static const json_t *pf_at(const struct host_facts *h, const char *address)
{
	return json_find(json_at(h->observed, "interfaces"), "pciAddress", address);
}

static void check_port(struct host_facts *h, const json_t *device, const json_t *port)
{
	const char *name = json_str_or(json_at(device, "name"), "?");
	const char *state = json_str_at(port, "state");
	bool is_ib = str_eq(json_str_at(port, "linkLayer"), "InfiniBand");

	if (state && !str_eq(state, "ACTIVE"))
		finding_add(h->findings,
			    &(struct finding){FINDING_ERROR, "RdmaLinkDown", name, "ACTIVE",
					      is_ib ? "check cable and switch, and that a subnet "
						      "manager runs"
						    : "check cable and switch; ip link set up"},
			    "port %lld is %s (%s)",
			    (long long)json_integer_value(json_at(port, "port")), state,
			    json_str_or(json_at(port, "physState"), "?"));
	if (json_at(port, "gids") && json_integer_value(json_at(port, "gids", "used")) == 0)
		finding_add(h->findings,
			    &(struct finding){FINDING_ERROR, "GidTableEmpty", name,
					      "a GID for each address",
					      "give its interface an address; set it up"},
			    "port %lld has no GID",
			    (long long)json_integer_value(json_at(port, "port")));
	else if (str_eq(json_str_at(device, "protocol"), "roce") && json_at(port, "gids") &&
		 json_integer_value(json_at(port, "gids", "rocev2")) == 0)
		finding_add(h->findings,
			    &(struct finding){FINDING_WARNING, "NoRoceV2", name,
					      "a RoCE v2 GID for each address",
					      "RoCE v1 does not pass routers; update driver or "
					      "firmware"},
			    "port %lld has RoCE v1 GIDs only",
			    (long long)json_integer_value(json_at(port, "port")));
}

/* Of PFs: those of VFs are up with them, and in pods out of sight. */
static void check_ports(struct host_facts *h)
{
	json_t *device, *port;
	size_t i, k;

	json_array_foreach (devices(h), i, device) {
		if (!pf_at(h, json_str_at(device, "pciAddress")))
			continue;
		json_array_foreach (json_at(device, "ports"), k, port)
			check_port(h, device, port);
	}
}

static bool is_zero_guid(const char *guid)
{
	return guid && strspn(guid, "0:") == strlen(guid);
}

static void check_guids(struct host_facts *h)
{
	json_t *device;
	size_t i;

	json_array_foreach (devices(h), i, device)
		if (is_zero_guid(json_str_at(device, "nodeGuid")))
			finding_add(
				h->findings,
				&(struct finding){FINDING_ERROR, "BadGuid",
						  json_str_at(device, "name"), "a GUID of its own",
						  "a policy with isRdma: true sets one; by hand: "
						  "ip link set PF vf N node_guid, then bind its "
						  "driver anew"},
				"node GUID is zero");
}

/* ---- NICs ------------------------------------------------------------------------------------ */

static void check_sriov(struct host_facts *h)
{
	json_t *pf;
	size_t i;

	json_array_foreach (json_at(h->observed, "interfaces"), i, pf) {
		int64_t total = json_integer_value(json_at(pf, "totalvfs"));

		if (!is_rdma_nic(pf) || str_eq(json_str_at(pf, "driver"), "virtio-pci"))
			continue;
		if (total == 0)
			finding_add(
				h->findings,
				&(struct finding){FINDING_WARNING, "NoSriov",
						  json_str_at(pf, "name"), "SR-IOV on",
						  "mlxconfig -d ADDRESS set SRIOV_EN=1 "
						  "NUM_OF_VFS=8, then a cold boot; needed for VFs "
						  "only"},
				"no VFs: SR-IOV is off in the firmware of %s",
				json_str_or(json_at(pf, "pciAddress"), "?"));
		if (json_array_size(json_at(pf, "host", "healthErrors")) > 0)
			finding_add(
				h->findings,
				&(struct finding){FINDING_ERROR, "DeviceUnhealthy",
						  json_str_at(pf, "name"), "no error",
						  "devlink health show; reset or replace the NIC"},
				"%s reports an error",
				json_str_or(json_array_get(json_at(pf, "host", "healthErrors"), 0),
					    "?"));
	}
}

static void check_unusable(struct host_facts *h)
{
	json_t *function;
	size_t i;

	json_array_foreach (json_at(h->observed, "unusable"), i, function)
		if (str_eq(json_str_at(function, "vendor"), VENDOR_MELLANOX))
			finding_add(
				h->findings,
				&(struct finding){FINDING_ERROR, json_str_at(function, "reason"),
						  json_str_at(function, "pciAddress"),
						  "a driver and an interface",
						  "modprobe mlx5_core; see dmesg"},
				"%s", json_str_or(json_at(function, "message"), "cannot be used"));
}

static void check_mtu(struct host_facts *h)
{
	json_t *pf, *vf;
	size_t i, k;

	json_array_foreach (json_at(h->observed, "interfaces"), i, pf)
		json_array_foreach (json_at(pf, "Vfs"), k, vf)
			if (json_integer_value(json_at(vf, "mtu")) >
			    json_integer_value(json_at(pf, "mtu")))
				finding_add(h->findings,
					    &(struct finding){
						    FINDING_ERROR, "MtuMismatch",
						    json_str_or(json_at(vf, "name"),
								json_str_at(vf, "pciAddress")),
						    "at most that of its PF",
						    "set mtu in the policy, or: ip link set PF "
						    "mtu"},
					    "MTU %lld, its PF %s has %lld",
					    (long long)json_integer_value(json_at(vf, "mtu")),
					    json_str_or(json_at(pf, "name"), "?"),
					    (long long)json_integer_value(json_at(pf, "mtu")));
}

static void check_pcie(struct host_facts *h)
{
	const char *address;
	json_t *function;

	json_each (json_at(h->facts, "functions"), address, function) {
		const char *speed = json_str_at(function, "speed"),
			   *speed_max = json_str_at(function, "speedMax");
		const char *width = json_str_at(function, "width"),
			   *width_max = json_str_at(function, "widthMax");

		if (!is_rdma_nic(pf_at(h, address)) || !speed || !speed_max || !width ||
		    !width_max || (str_eq(speed, speed_max) && str_eq(width, width_max)))
			continue;
		finding_add(
			h->findings,
			&(struct finding){FINDING_WARNING, "PcieDegraded",
					  json_str_or(json_at(pf_at(h, address), "name"), address),
					  "what the card can do",
					  "seat the card anew; use a slot with enough lanes; look "
					  "at the machine's firmware settings"},
			"PCI Express at %s x%s, the card can do %s x%s", speed, width, speed_max,
			width_max);
	}
}

/* Ports of one kind should have one firmware. */
static void check_firmware(struct host_facts *h)
{
	json_auto_t *seen = json_object();
	json_t *device;
	size_t i;

	json_array_foreach (devices(h), i, device) {
		const json_t *pf = pf_at(h, json_str_at(device, "pciAddress"));
		const char *model = json_str_at(pf, "deviceID");
		const char *version = json_str_at(device, "fwVersion");
		const json_t *first = json_at(seen, model ? model : "");

		if (!model || !version)
			continue;
		if (!first)
			json_object_set(seen, model, device);
		else if (!str_eq(json_str_at(first, "fwVersion"), version))
			finding_add(
				h->findings,
				&(struct finding){FINDING_WARNING, "FirmwareDiffers",
						  json_str_at(device, "name"),
						  json_str_at(first, "fwVersion"),
						  "flash the same firmware on NICs of one kind"},
				"firmware %s, %s of the same kind has %s", version,
				json_str_or(json_at(first, "name"), "?"),
				json_str_or(json_at(first, "fwVersion"), "?"));
	}
}

/* ---- congestion control ---------------------------------------------------------------------- */

static void check_ecn(struct host_facts *h)
{
	const char *first = NULL, *first_name = NULL, *address;
	json_t *function;

	json_each (json_at(h->facts, "functions"), address, function) {
		const char *name = json_str_or(json_at(pf_at(h, address), "name"), address);
		const char *np = json_str_at(function, "ecn", "np");
		const char *rp = json_str_at(function, "ecn", "rp");

		if (!np || !rp)
			continue;
		if (!strchr(np, '1') || !strchr(rp, '1'))
			finding_add(h->findings,
				    &(struct finding){
					    FINDING_WARNING, "EcnOff", name,
					    "on for the priority of RoCE",
					    "echo 1 >/sys/class/net/PORT/ecn/roce_np/enable/3 "
					    "and …/roce_rp/enable/3"},
				    "congestion control is off: roce_np %s, roce_rp %s", np, rp);
		if (first && !str_eq(first, np))
			finding_add(h->findings,
				    &(struct finding){FINDING_WARNING, "EcnDiffers", name, first,
						      "configure all ports alike"},
				    "roce_np is %s, that of %s is %s", np, first_name, first);
		if (!first) {
			first = np;
			first_name = name;
		}
	}
}

static void check_traffic_class(struct host_facts *h)
{
	const char *first = NULL, *first_name = NULL, *name;
	json_t *value;

	json_each (json_at(h->facts, "trafficClass"), name, value) {
		const char *class = json_string_value(value);

		if (first && !str_eq(first, class))
			finding_add(h->findings,
				    &(struct finding){FINDING_WARNING, "TrafficClassDiffers", name,
						      first, "configure all ports alike"},
				    "traffic class is %s, that of %s is %s", class, first_name,
				    first);
		if (!first) {
			first = class;
			first_name = name;
		}
	}
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static void check_gpus(struct host_facts *h)
{
	json_t *gpu, *pf;
	size_t i, k;

	if (!json_find(json_at(h->facts, "gpus"), "vendor", VENDOR_NVIDIA))
		return;
	if (!has_module(h, "nvidia_peermem") && !has_module(h, "nv_peer_mem"))
		finding_add(
			h->findings,
			&(struct finding){FINDING_WARNING, "PeerMemMissing", "nvidia_peermem",
					  "loaded, or dma-buf with NVIDIA's open driver",
					  "modprobe nvidia_peermem; the GPU operator does it with "
					  "driver.rdma.enabled=true"},
			"not loaded");
	if (!has_module(h, "gdrdrv"))
		finding_add(
			h->findings,
			&(struct finding){FINDING_INFO, "GdrCopyMissing", "gdrdrv", "loaded",
					  "small copies between GPU and host are slower; the GPU "
					  "operator has gdrcopy.enabled=true"},
			"not loaded");
	json_array_foreach (json_at(h->facts, "gpus"), i, gpu) {
		const json_t *node = json_at(gpu, "numaNode");
		bool near = !node;

		json_array_foreach (json_at(h->observed, "interfaces"), k, pf)
			near = near ||
			       (is_rdma_nic(pf) &&
				json_equal((json_t *)node,
					   json_at(h->facts, "functions",
						   json_str_or(json_at(pf, "pciAddress"), ""),
						   "numaNode")));
		if (!near)
			finding_add(h->findings,
				    &(struct finding){
					    FINDING_INFO, "NumaMisfit",
					    json_str_at(gpu, "pciAddress"),
					    "a NIC on the same NUMA node",
					    "its traffic crosses sockets; put a NIC into a slot "
					    "of that socket"},
				    "GPU on NUMA node %lld, no RDMA NIC is there",
				    (long long)json_integer_value(node));
	}
}

/* ---- the node -------------------------------------------------------------------------------- */

static void check_limits(struct host_facts *h)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(h->facts, "memlock"), i, entry) {
		int64_t bytes = json_integer_value(json_at(entry, "bytes"));

		if (bytes >= 0 && bytes < MEMLOCK_LEAST)
			finding_add(
				h->findings,
				&(struct finding){FINDING_WARNING, "MemlockLow",
						  json_str_at(entry, "program"), "unlimited",
						  "LimitMEMLOCK=infinity in its systemd unit; pods "
						  "inherit it, and cannot register memory else"},
				"may lock %lld KiB", (long long)bytes / 1024);
	}
}

static void check_kubernetes(struct host_facts *h)
{
	if (!json_is_true(json_at(h->facts, "kubeletSocket")))
		finding_add(h->findings,
			    &(struct finding){FINDING_ERROR, "KubeletAbsent",
					      "/var/lib/kubelet/device-plugins/kubelet.sock",
					      "there",
					      "start the kubelet; it has to use /var/lib/kubelet"},
			    "not there");
	if (json_array_size(json_at(h->facts, "cniConf")) == 0)
		finding_add(h->findings,
			    &(struct finding){FINDING_ERROR, "NoClusterNetwork", "/etc/cni/net.d",
					      "the configuration of the cluster's network",
					      "install a network plugin"},
			    "no file");
	if (!json_list_has(json_at(h->facts, "cniBinaries"), "macvlan"))
		finding_add(h->findings,
			    &(struct finding){FINDING_WARNING, "CniBinaryMissing",
					      "/opt/cni/bin/macvlan", "there",
					      "install the reference CNI plugins "
					      "(containernetworking-plugins); needed for macvlan"},
			    "not there");
	if (json_array_size(json_at(h->observed, "node", "rivals")) > 0)
		finding_add(h->findings,
			    &(struct finding){FINDING_ERROR, "OtherConfigDaemon",
					      "sriov-network-config-daemon", "one program per node",
					      "remove it from this node, or keep our agent off it"},
			    "it runs here, and changes the same NICs");
}

static void check_iommu(struct host_facts *h)
{
	if (!json_is_true(json_at(h->observed, "node", "iommu")))
		finding_add(h->findings,
			    &(struct finding){FINDING_INFO, "NoIommu", "IOMMU", "on, for vfio-pci",
					      "turn VT-d or AMD-Vi on in the firmware, and "
					      "intel_iommu=on on the kernel's command line"},
			    "off");
}

static void check_governor(struct host_facts *h)
{
	int64_t slow = 0;
	const char *name;
	json_t *count;

	json_each (json_at(h->facts, "governors"), name, count)
		if (!str_eq(name, "performance"))
			slow += json_integer_value(count);
	if (slow > 0)
		finding_add(
			h->findings,
			&(struct finding){FINDING_INFO, "CpuGovernor", "cpufreq", "performance",
					  "cpupower frequency-set -g performance, for measurements "
					  "of latency"},
			"%lld processors save power", (long long)slow);
}

json_t *doctor_check_host(const json_t *observed, const json_t *facts, const char *rdma_mode)
{
	static void (*const checks[])(struct host_facts *) = {
		check_kernel,     check_modules, check_device_files,  check_rdma_mode, check_ports,
		check_guids,      check_sriov,   check_unusable,      check_mtu,       check_pcie,
		check_firmware,   check_ecn,     check_traffic_class, check_gpus,      check_limits,
		check_kubernetes, check_iommu,   check_governor,
	};
	struct host_facts h = {
		.observed = observed,
		.facts = facts,
		.rdma_mode = rdma_mode,
		.findings = json_array(),
	};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		checks[i](&h);
	findings_sort(h.findings);
	return h.findings;
}

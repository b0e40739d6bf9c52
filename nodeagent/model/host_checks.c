// SPDX-License-Identifier: Apache-2.0
/*
 * Each check reads the two documents and adds what it finds. The agent's are chosen by their
 * reasons, from the same list.
 */
#include "nodeagent/model/host_checks.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/model/findings.h"
#include "nodeagent/model/host_checks_pci.h"

/* Below this, queues and buffers of one job do not fit: registering memory fails with ENOMEM. */
#define MEMLOCK_LEAST (1LL << 30)
#define IDLE_US_MOST  50

static bool has_vendor(const struct host_facts *h, const char *vendor)
{
	return json_find(json_at(h->observed, "interfaces"), "vendor", vendor) ||
	       json_find(json_at(h->observed, "unusable"), "vendor", vendor);
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

		    str_eq(h->rdma_mode, "exclusive") ? FINDING_ERROR : FINDING_WARNING,
		    "KernelTooOld", "kernel", "5.3, or MLNX_OFED 4.7",
		    "boot a newer kernel: RDMA devices cannot be given to pods of their "
		    "own in this one",
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
		{"ib_ipoib", json_find(json_at(h->observed, "interfaces"), "linkType", "IB"),
		 "modprobe ib_ipoib: InfiniBand ports have no interface for addresses"},
	};

	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (modules[i].needed && !host_has_module(h, modules[i].name))
			finding_add(h->findings, FINDING_ERROR, "ModuleMissing", modules[i].name,
				    "loaded", modules[i].remedy, "not loaded");
}

static void check_device_files(struct host_facts *h)
{
	json_t *device;
	size_t i;

	if (host_has_module(h, "rdma_ucm") &&
	    json_array_size(json_at(h->observed, "rdma", "charDevices")) == 0)
		finding_add(h->findings, FINDING_ERROR, "RdmaFilesMissing",
			    "/dev/infiniband/rdma_cm", "there",
			    "look whether udev runs; modprobe -r rdma_ucm; modprobe "
			    "rdma_ucm",
			    "not there");
	json_array_foreach (host_devices(h), i, device)
		if (!json_find(json_at(device, "charDevices"), "type", "uverbs"))
			finding_add(h->findings, FINDING_ERROR, "RdmaFilesMissing",
				    json_str_at(device, "name"), "a file /dev/infiniband/uverbsN",
				    "modprobe ib_uverbs", "it has no file in /dev/infiniband");
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
		finding_add(h->findings, FINDING_ERROR, "RdmaModeDiffers", "rdma system",
			    h->rdma_mode,
			    "set rdmaMode in a SriovNetworkPoolConfig, or: rdma "
			    "system set netns MODE",
			    "netns %s", now);
	if (!str_eq(now, next))
		finding_add(h->findings, FINDING_WARNING, "RdmaModeNotKept", "rdma system", now,
			    "set rdmaMode in a SriovNetworkPoolConfig; by hand: "
			    "options ib_core netns_mode=0 (exclusive) or 1 (shared) "
			    "in /etc/modprobe.d, and a new initramfs if it has "
			    "ib_core",
			    "netns %s now, %s after the next boot (%s)", now, next, file);
}

static void check_port(struct host_facts *h, const json_t *device, const json_t *port)
{
	const char *name = json_str_or(json_at(device, "name"), "?");
	const char *state = json_str_at(port, "state");
	bool is_ib = str_eq(json_str_at(port, "linkLayer"), "InfiniBand");

	if (state && !str_eq(state, "ACTIVE"))
		finding_add(h->findings, FINDING_ERROR, "RdmaLinkDown", name, "ACTIVE",
			    is_ib ? "check cable and switch, and that a subnet "
				    "manager runs"
				  : "check cable and switch; ip link set up",
			    "port %lld is %s (%s)",
			    (long long)json_integer_value(json_at(port, "port")), state,
			    json_str_or(json_at(port, "physState"), "?"));
	if (json_at(port, "gids") && json_integer_value(json_at(port, "gids", "used")) == 0)
		finding_add(h->findings, FINDING_ERROR, "GidTableEmpty", name,
			    "a GID for each address", "give its interface an address; set it up",
			    "port %lld has no GID",
			    (long long)json_integer_value(json_at(port, "port")));
	else if (str_eq(json_str_at(device, "protocol"), "roce") && json_at(port, "gids") &&
		 json_integer_value(json_at(port, "gids", "rocev2")) == 0)
		finding_add(h->findings, FINDING_WARNING, "NoRoceV2", name,
			    "a RoCE v2 GID for each address",
			    "RoCE v1 does not pass routers; update driver or "
			    "firmware",
			    "port %lld has RoCE v1 GIDs only",
			    (long long)json_integer_value(json_at(port, "port")));
}

/* Of PFs: those of VFs are up with them, and in pods out of sight. */
static void check_ports(struct host_facts *h)
{
	json_t *device, *port;
	size_t i, k;

	json_array_foreach (host_devices(h), i, device) {
		if (!host_pf(h, json_str_at(device, "pciAddress")))
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

	json_array_foreach (host_devices(h), i, device)
		if (is_zero_guid(json_str_at(device, "nodeGuid")))
			finding_add(h->findings, FINDING_ERROR, "BadGuid",
				    json_str_at(device, "name"), "a GUID of its own",
				    "a policy with isRdma: true sets one; by hand: "
				    "ip link set PF vf N node_guid, then bind its "
				    "driver again",
				    "node GUID is zero");
}

/* ---- NICs ------------------------------------------------------------------------------------ */

static void check_sriov(struct host_facts *h)
{
	json_t *pf;
	size_t i;

	json_array_foreach (json_at(h->observed, "interfaces"), i, pf) {
		int64_t total = json_integer_value(json_at(pf, "totalvfs"));

		if (!host_is_rdma_nic(pf) || str_eq(json_str_at(pf, "driver"), "virtio-pci"))
			continue;
		if (total == 0)
			finding_add(h->findings, FINDING_WARNING, "NoSriov",
				    json_str_at(pf, "name"), "SR-IOV on",
				    "mlxconfig -d ADDRESS set SRIOV_EN=1 "
				    "NUM_OF_VFS=8, then a cold boot; needed for VFs "
				    "only",
				    "no VFs: SR-IOV is off in the firmware of %s",
				    json_str_or(json_at(pf, "pciAddress"), "?"));
		if (json_array_size(json_at(pf, "host", "healthErrors")) > 0)
			finding_add(
				h->findings, FINDING_ERROR, "DeviceUnhealthy",
				json_str_at(pf, "name"), "no error",
				"devlink health show; reset or replace the NIC",
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
			finding_add(h->findings, FINDING_ERROR, json_str_at(function, "reason"),
				    json_str_at(function, "pciAddress"),
				    "a driver and an interface", "modprobe mlx5_core; see dmesg",
				    "%s",
				    json_str_or(json_at(function, "message"), "cannot be used"));
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

					    FINDING_ERROR, "MtuMismatch",
					    json_str_or(json_at(vf, "name"),
							json_str_at(vf, "pciAddress")),
					    "at most that of its PF",
					    "set mtu in the policy, or: ip link set PF "
					    "mtu",
					    "MTU %lld, its PF %s has %lld",
					    (long long)json_integer_value(json_at(vf, "mtu")),
					    json_str_or(json_at(pf, "name"), "?"),
					    (long long)json_integer_value(json_at(pf, "mtu")));
}

/* ---- ports that should be alike -------------------------------------------------------------- */

/* Is it as the first of its kind? `seen` keeps that: { kind: { "name", "value" } }. */
static void check_same(struct host_facts *h, json_t *seen, const char *kind, const char *reason,
		       const char *what, const char *name, const char *value)
{
	const json_t *first = json_at(seen, kind);
	const char *expected = json_str_at(first, "value");

	if (!first)
		json_put(seen, kind, json_pack("{s:s, s:s}", "name", name, "value", value));
	else if (!str_eq(expected, value))
		finding_add(h->findings, FINDING_WARNING, reason, name, expected,
			    "make ports of one kind alike", "%s is %s, that of %s is %s", what,
			    value, json_str_at(first, "name"), expected);
}

static void check_alike(struct host_facts *h)
{
	json_auto_t *seen = json_object();
	const char *key;
	json_t *item;
	size_t i;

	json_array_foreach (host_devices(h), i, item) {
		const char *model =
			json_str_at(host_pf(h, json_str_at(item, "pciAddress")), "deviceID");
		const char *version = json_str_at(item, "fwVersion");

		if (model && version)
			check_same(h, seen, model, "FirmwareDiffers", "firmware",
				   json_str_or(json_at(item, "name"), "?"), version);
	}
	json_each (json_at(h->facts, "functions"), key, item) {
		const char *name = json_str_or(json_at(host_pf(h, key), "name"), key);
		const char *np = json_str_at(item, "ecn", "np"),
			   *rp = json_str_at(item, "ecn", "rp");

		if (!np || !rp)
			continue;
		if (!strchr(np, '1') || !strchr(rp, '1'))
			finding_add(h->findings, FINDING_WARNING, "EcnOff", name,
				    "on for the priority of RoCE",
				    "echo 1 >/sys/class/net/PORT/ecn/roce_np/enable/3 and "
				    "…/roce_rp/enable/3",
				    "congestion control is off: roce_np %s, roce_rp %s", np, rp);
		check_same(h, seen, "ecn", "EcnDiffers", "roce_np", name, np);
	}
	json_each (json_at(h->facts, "trafficClass"), key, item)
		check_same(h, seen, "class", "TrafficClassDiffers", "traffic class", key,
			   json_string_value(item));
}

/* ---- the node -------------------------------------------------------------------------------- */

static void check_limits(struct host_facts *h)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(h->facts, "memlock"), i, entry) {
		int64_t bytes = json_integer_value(json_at(entry, "bytes"));

		if (bytes >= 0 && bytes < MEMLOCK_LEAST)
			finding_add(h->findings, FINDING_WARNING, "MemlockLow",
				    json_str_at(entry, "program"), "unlimited",
				    "LimitMEMLOCK=infinity in its systemd unit, which pods "
				    "inherit; or the capability IPC_LOCK in each pod",
				    "may lock %lld KiB", (long long)bytes / 1024);
	}
}

static void check_node(struct host_facts *h)
{
	if (!json_is_true(json_at(h->facts, "kubeletSocket")))
		finding_add(h->findings, FINDING_ERROR, "KubeletAbsent",
			    "/var/lib/kubelet/device-plugins/kubelet.sock", "there",
			    "start the kubelet; it has to use /var/lib/kubelet", "not there");
	if (json_array_size(json_at(h->facts, "cniConf")) == 0)
		finding_add(h->findings, FINDING_ERROR, "NoClusterNetwork", "/etc/cni/net.d",
			    "the configuration of the cluster's network",
			    "install a network plugin", "no file");
	if (!json_list_has(json_at(h->facts, "cniBinaries"), "macvlan"))
		finding_add(h->findings, FINDING_WARNING, "CniBinaryMissing",
			    "/opt/cni/bin/macvlan", "there",
			    "install the reference CNI plugins "
			    "(containernetworking-plugins); needed for macvlan",
			    "not there");
	if (json_array_size(json_at(h->observed, "node", "rivals")) > 0)
		finding_add(h->findings, FINDING_ERROR, "OtherConfigDaemon",
			    "sriov-network-config-daemon", "one program per node",
			    "remove it from this node, or keep our agent off it",
			    "it runs here, and changes the same NICs");
	if (!json_is_true(json_at(h->observed, "node", "iommu")))
		finding_add(h->findings, FINDING_INFO, "NoIommu", "IOMMU", "on, for vfio-pci",
			    "turn VT-d or AMD-Vi on in the firmware, and "
			    "intel_iommu=on on the kernel's command line",
			    "off");
}

/* What costs latency on processors, where there are RDMA devices that could need it. */
static void check_processors(struct host_facts *h)
{
	int64_t slow = 0, us = json_integer_value(json_at(h->facts, "idle", "us"));
	bool has_rdma = json_array_size(host_devices(h)) > 0, has_vfio = false;
	const char *name;
	json_t *count, *pf;
	size_t i;

	json_array_foreach (json_at(h->observed, "interfaces"), i, pf)
		has_vfio = has_vfio || json_find(json_at(pf, "Vfs"), "driver", "vfio-pci");
	json_each (json_at(h->facts, "governors"), name, count)
		if (!str_eq(name, "performance"))
			slow += json_integer_value(count);
	if (slow > 0)
		finding_add(h->findings, FINDING_INFO, "CpuGovernor", "cpufreq", "performance",
			    "cpupower frequency-set -g performance, for measurements "
			    "of latency",
			    "%lld processors save power", (long long)slow);
	if (has_rdma && us > IDLE_US_MOST)
		finding_add(h->findings, FINDING_INFO, "CpuIdleStates", "cpuidle",
			    "no state that takes longer than 50 us to leave",
			    "cpupower idle-set -D 50, or tuned-adm profile "
			    "latency-performance, for measurements of latency",
			    "%s is on, and takes %lld us to leave",
			    json_str_or(json_at(h->facts, "idle", "name"), "?"), (long long)us);
	if (has_rdma && json_is_true(json_at(h->facts, "irqbalance")))
		finding_add(h->findings, FINDING_INFO, "IrqBalance", "irqbalance",
			    "interrupts of NICs that stay where they are",
			    "systemctl disable --now irqbalance, or a policy script "
			    "that bans the NICs' interrupts",
			    "it runs, and moves interrupts of NICs");
	if (has_vfio && json_at(h->facts, "hugePages") &&
	    json_integer_value(json_at(h->facts, "hugePages")) == 0)
		finding_add(h->findings, FINDING_WARNING, "NoHugePages", "hugepages",
			    "some, for DPDK on VFs of vfio-pci",
			    "default_hugepagesz=1G hugepagesz=1G hugepages=N on "
			    "the kernel's command line; restart the kubelet",
			    "none");
}

json_t *host_checks_run(const json_t *observed, const json_t *facts, const char *rdma_mode)
{
	static void (*const checks[])(struct host_facts *) = {
		check_kernel,    check_modules,        check_device_files, check_rdma_mode,
		check_ports,     check_guids,          check_sriov,        check_unusable,
		check_mtu,       host_check_functions, host_check_peers,   check_alike,
		host_check_gpus, check_limits,         check_node,         check_processors,
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

/* ---- for NodeStates -------------------------------------------------------------------------- */

/*
 * Left out: links, GUIDs, MTU, RDMA mode, SR-IOV and lanes, which linkHealth, interfaces, problems
 * and RebootRequired are about; interrupts, which irqbalance moves; files of devices, which come
 * and go; what the agent itself could not run without.
 */
static bool is_of_settings(const json_t *finding)
{
	static const char *const reasons[] = {
		"KernelTooOld",    "ModuleMissing", "IommuTranslates", "PcieSettings",
		"AcsRedirects",    "AtsOn",         "PeerMemMissing",  "GdrCopyMissing",
		"NumaMisfit",      "EcnOff",        "EcnDiffers",      "TrafficClassDiffers",
		"FirmwareDiffers", "MemlockLow",    "CpuGovernor",     "CpuIdleStates",
		"IrqBalance",      "NoHugePages",
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(json_str_at(finding, "reason"), reasons[i]))
			return true;
	return false;
}

json_t *host_checks_of_settings(const json_t *observed, const json_t *facts)
{
	json_auto_t *all = host_checks_run(observed, facts, NULL);
	json_t *ret = json_array(), *item;
	bool has_rdma = false;
	size_t i;

	json_array_foreach (json_at(observed, "interfaces"), i, item)
		has_rdma = has_rdma || host_is_rdma_nic(item);
	json_array_foreach (all, i, item)
		if (has_rdma && is_of_settings(item))
			json_array_append(ret, item);
	return ret;
}

/* One of the same reason about the same subject; closely: and with the same expectation. */
static bool has_same(const json_t *list, const json_t *finding, bool closely)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (json_same(json_at(item, "reason"), json_at(finding, "reason")) &&
		    json_same(json_at(item, "subject"), json_at(finding, "subject")) &&
		    (!closely ||
		     json_same(json_at(item, "expected"), json_at(finding, "expected"))))
			return true;
	return false;
}

json_t *host_checks_settle(const json_t *found, const json_t *before, const json_t *shown)
{
	json_t *ret = json_array(), *item;
	size_t i;

	assert(json_is_array(found));
	json_array_foreach (found, i, item)
		if (json_array_size(ret) < HOST_CHECKS_MAX && !has_same(ret, item, true) &&
		    (has_same(before, item, false) || has_same(shown, item, false)))
			json_array_append(ret, item);
	return ret;
}

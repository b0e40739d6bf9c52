// SPDX-License-Identifier: Apache-2.0
/* From call and errno to the likely cause, by a table: the first row that fits. */
#include "cli/doctor/verbs_findings.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/model/findings.h"

static const char *const call_names[VERBS_CALLS] = {
	[VERBS_LIST] = "ibv_get_device_list",
	[VERBS_OPEN] = "ibv_open_device",
	[VERBS_PORT] = "ibv_query_port",
	[VERBS_PD] = "ibv_alloc_pd",
	[VERBS_REG_SMALL] = "ibv_reg_mr of 4 KiB",
	[VERBS_REG_LARGE] = "ibv_reg_mr of 64 MiB",
	[VERBS_REG_HUGE] = "ibv_reg_mr of a huge page",
	[VERBS_REG_DMABUF] = "ibv_reg_dmabuf_mr of GPU memory",
	[VERBS_CQ] = "ibv_create_cq",
	[VERBS_QP] = "ibv_create_qp of type RC",
	[VERBS_GID] = "ibv_query_gid",
	[VERBS_CONNECT] = "ibv_modify_qp to itself",
	[VERBS_SEND] = "ibv_post_send to itself",
	[VERBS_POLL] = "ibv_poll_cq of a message to itself",
};

enum when { ALWAYS, FILE_MISSING, MEMLOCK_LOW, CRASHED, LATE };
enum { ANY = -1 };

static const struct cause {
	enum verbs_call first, last;
	int sys;
	enum when when;
	enum finding_level level;
	const char *reason, *expected, *remedy;
} causes[] = {
	{VERBS_LIST, VERBS_POLL, ANY, LATE, FINDING_ERROR, "VerbsHung", "an answer within a minute",
	 "the driver hangs: see dmesg and devlink health show; reset the device or boot"},
	{VERBS_REG_SMALL, VERBS_REG_DMABUF, ANY, CRASHED, FINDING_ERROR, "VerbsFailed",
	 "64 MiB of memory for this check",
	 "raise limits.memory of the container, and hugepages-2Mi where that failed"},
	{VERBS_LIST, VERBS_POLL, ANY, CRASHED, FINDING_ERROR, "VerbsFailed", "no crash",
	 "update ibverbs-providers (rdma-core) to the version of the driver"},
	{VERBS_LIST, VERBS_OPEN, ANY, FILE_MISSING, FINDING_ERROR, "RdmaFilesMissing",
	 "a file /dev/infiniband/uverbsN",
	 "in a pod: request the device's resource; on a host: modprobe ib_uverbs"},
	{VERBS_LIST, VERBS_LIST, ENODEV, ALWAYS, FINDING_ERROR, "VerbsProviderMissing",
	 "a library for the device's driver", "install ibverbs-providers (rdma-core) in the image"},
	{VERBS_OPEN, VERBS_OPEN, EPERM, ALWAYS, FINDING_ERROR, "VerbsNotAllowed",
	 "a device that the container may open",
	 "its cgroup does not allow the file, or the device is in another network namespace: "
	 "request the device's resource; a hostPath of /dev/infiniband does not do"},
	{VERBS_OPEN, VERBS_OPEN, EACCES, ALWAYS, FINDING_ERROR, "VerbsNotAllowed",
	 "a file that this user may open",
	 "run as root, or give /dev/infiniband/uverbsN the mode 0666 (udev rules of rdma-core)"},
	{VERBS_OPEN, VERBS_QP, EAGAIN, ALWAYS, FINDING_ERROR, "VerbsFailed", "room in the cgroup",
	 "raise rdma.max of the container's cgroup"},
	{VERBS_PORT, VERBS_PORT, ENETDOWN, ALWAYS, FINDING_ERROR, "RdmaLinkDown",
	 "a port that is ACTIVE",
	 "check cable and switch, on InfiniBand the subnet manager; ip link set up"},
	{VERBS_REG_SMALL, VERBS_QP, ENOMEM, MEMLOCK_LOW, FINDING_ERROR, "MemlockLow",
	 "unlimited, or the capability IPC_LOCK",
	 "add IPC_LOCK to securityContext.capabilities of the container, or "
	 "LimitMEMLOCK=infinity to the runtime's systemd unit"},
	{VERBS_REG_DMABUF, VERBS_REG_DMABUF, ANY, ALWAYS, FINDING_WARNING, "DmaBufMissing",
	 "memory of GPUs by DMA-BUF",
	 "Linux 5.12, rdma-core 34, a NIC driver with DMA-BUF and NVIDIA's open driver; or "
	 "nvidia_peermem on the host"},
	{VERBS_REG_SMALL, VERBS_REG_LARGE, ENOMEM, ALWAYS, FINDING_ERROR, "VerbsFailed", "memory",
	 "raise limits.memory of the container; see dmesg for what the NIC lacks"},
	{VERBS_REG_HUGE, VERBS_REG_HUGE, EFAULT, ALWAYS, FINDING_INFO, "NoHugePages",
	 "huge pages, if the program uses them",
	 "the container's cgroup has none: request hugepages-2Mi in its limits"},
	{VERBS_REG_HUGE, VERBS_REG_HUGE, ANY, ALWAYS, FINDING_WARNING, "VerbsFailed", "a huge page",
	 "request hugepages-2Mi in the container's limits"},
	{VERBS_QP, VERBS_QP, EOPNOTSUPP, ALWAYS, FINDING_WARNING, "VerbsFailed",
	 "queue pairs of type RC",
	 "the device has none: programs need its own transport (EFA: libfabric)"},
	{VERBS_GID, VERBS_GID, ANY, ALWAYS, FINDING_ERROR, "GidTableEmpty",
	 "a GID for each address", "give its interface an address; set it up"},
	{VERBS_CONNECT, VERBS_POLL, ANY, ALWAYS, FINDING_ERROR, "GidNotUsable",
	 "a GID whose interface is up in this network namespace",
	 "attach the pod to the device's network: in mode shared its interface, in mode exclusive "
	 "the RDMA device, too, has to be in the pod's namespace; ip link set lo up"},
	{VERBS_LIST, VERBS_POLL, ANY, ALWAYS, FINDING_ERROR, "VerbsFailed", "no error",
	 "see dmesg; update the driver and rdma-core to versions that fit"},
};

static void add_failure(json_t *findings, const struct verbs_place *place, enum verbs_call call,
			const char *device, bool has_file, const struct verbs_report *report)
{
	const struct verbs_result *result = &report->calls[call];
	const bool runs = result->outcome == VERBS_RUNS;
	const bool holds[] = {
		[ALWAYS] = !runs,
		[FILE_MISSING] = !runs && !has_file,
		[MEMLOCK_LOW] = !runs && !place->may_lock && place->memlock >= 0 &&
				place->memlock <= VERBS_LARGE,
		[CRASHED] = runs && !report->is_late,
		[LATE] = runs && report->is_late,
	};
	const struct cause *cause = causes;
	auto_strbuf struct strbuf seen = {0};
	json_t *entry;

	while (call < cause->first || call > cause->last || !holds[cause->when] ||
	       (cause->sys != ANY && cause->sys != result->sys))
		cause++;
	if (runs)
		strbuf_addf(&seen,
			    report->is_late ? "does not return" : "ends the process by signal %d",
			    report->signal);
	else
		strbuf_addf(&seen, "fails: %s",
			    call == VERBS_POLL && *report->text ? report->text
								: strerror(result->sys));
	if (cause->when == MEMLOCK_LOW)
		strbuf_addf(&seen, "; the process may lock %lld KiB",
			    (long long)place->memlock / 1024);
	finding_add(findings, cause->level, cause->reason, device, cause->expected, cause->remedy,
		    "%s %s", call_names[call], strbuf_str(&seen));
	entry = json_array_get(findings, json_array_size(findings) - 1);
	json_put_str(entry, "call", call_names[call]);
	json_put_str(entry, "errno", result->sys ? strerrorname_np(result->sys) : NULL);
}

void verbs_findings_add(json_t *findings, const struct verbs_place *place, const char *device,
			bool has_file, const struct verbs_report *report)
{
	const struct verbs_result *calls = report->calls;
	/* After a message that came back, what did not work with other GIDs does not matter. */
	bool came_back = calls[VERBS_POLL].outcome == VERBS_DONE;
	bool works = came_back && calls[VERBS_REG_LARGE].outcome == VERBS_DONE;
	size_t before = json_array_size(findings);
	auto_free char *by = NULL;

	assert(device);
	for (enum verbs_call call = 0; call < (came_back ? VERBS_GID : VERBS_CALLS); call++)
		if (calls[call].outcome == VERBS_RUNS || calls[call].outcome == VERBS_FAILED)
			add_failure(findings, place, call, device, has_file, report);
	if (!works && json_array_size(findings) == before)
		finding_add(findings, FINDING_ERROR, "VerbsFailed", device,
			    "a message to itself that comes back",
			    "look at dmesg; raise limits.memory of the container",
			    "the process that tries it ended before the end, signal %d",
			    report->signal);
	if (!works)
		return;
	by = report->gid_index < 0 ? str_dup("its LID")
				   : str_printf("GID index %d", report->gid_index);
	finding_add(findings, FINDING_INFO, "VerbsWork", device, NULL, "nothing to do",
		    "port %d; registered 4 KiB, 64 MiB%s%s; a message to itself by %s came back",
		    report->port,
		    calls[VERBS_REG_HUGE].outcome == VERBS_DONE        ? ", a huge page"
		    : calls[VERBS_REG_HUGE].outcome == VERBS_NOT_TRIED ? ", no huge page is free"
								       : "",
		    calls[VERBS_REG_DMABUF].outcome == VERBS_DONE ? ", GPU memory" : "", by);
}

void verbs_findings_none(json_t *findings, const struct verbs_place *place, const char *device)
{
	if (place->has_files && (device || !place->has_devices))
		finding_add(
			findings, FINDING_ERROR, "RdmaModeDiffers", device,
			"an RDMA device in this network namespace",
			"mode exclusive: isRdma and rdmaIsolation, so that the CNI plugin moves "
			"the device; or rdmaMode: shared; on the host: rdma system, rdma dev",
			"a file is in /dev/infiniband, and no such device in this namespace; "
			"the RDMA mode is %s",
			place->rdma_mode ? place->rdma_mode : "not known");
	else
		finding_add(findings, FINDING_ERROR, "RdmaFilesMissing",
			    device ? device : "/dev/infiniband", "an RDMA device and its file",
			    "in a pod: request the device's resource; on a host: load the NIC's "
			    "RDMA driver, modprobe ib_uverbs",
			    "no RDMA device here has a file");
}

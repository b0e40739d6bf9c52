// SPDX-License-Identifier: Apache-2.0
/*
 * Which devices are offered to the kubelet under which names: three kinds of pools, one pure
 * function.
 *
 * SR-IOV pools come from the VF groups of NodeState.spec, and from the upstream plugin's own
 * configuration ("resourceList"). Shared RDMA pools come from the "config.json" of the shared
 * device plugin. Character device pools come from smarter-device-manager's list. Formats: the
 * READMEs of the plugins that wrote them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * The kubelet takes messages of 4 MiB: some 200,000 tokens (grpc-go,
 * defaultServerMaxReceiveMessageSize). In all pools together.
 */
#define POOLS_TOKENS_MAX 200000
/* Entries of one configuration, and resources made of device files. */
#define POOLS_ENTRIES_MAX 256

/* Words for the configurations, in messages and as "source" of problems. */
#define POOLS_SOURCE_SHARED    "configList of the shared device plugin"
#define POOLS_SOURCE_LIST      "resourceList"
#define POOLS_SOURCE_DEV_FILES "the list of device files"

struct pools_input {
	const char *prefix;     /* "spidernet.io" */
	const json_t *spec;     /* NodeState.spec, or NULL */
	const json_t *observed; /* the observed document; NULL: nothing is known of the host yet */
	/* Documents of pools_read_*(), or NULL. */
	const json_t *resource_list;
	const json_t *shared;
	const json_t *dev_files;
	/*
	 * Names below /dev, folders too, sorted: ["infiniband", "infiniband/uverbs0", …]. For
	 * dev_files, and to see whether vhost-net and vfio files are there; NULL: not known, they
	 * are taken to be.
	 */
	const json_t *dev_names;
	/*
	 * Devices that pods have: {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}}, or NULL
	 * when not known.
	 */
	const json_t *allocated;
	/*
	 * What this function returned last time, or NULL: a held device that is out of sight
	 * stays.
	 */
	const json_t *before;
	bool packed;           /* preferred allocation fills one PF after the other; else spreads */
	const char *job_files; /* resources whose pods get a folder (model/job_folder.h), or NULL */
};

/*
 * Returns new, never NULL; resources sorted by name, devices by id (as bytes):
 *
 *	{"resources": [{"name", "kind", "policy", "wanted", "causes", "gpus", "jobFiles",
 *			"env", "permissions", "nodes", "devices": [{"id", "healthy", "cause",
 *			"numa", "pf", "nodes", "details", "info"}]}],
 *	 "problems": [{"resource", "reason", "message", "source"}]}
 *
 * Of a resource:
 *	name		"spidernet.io/mellanoxrdma"
 *	kind		"sriov", "shared", "devices"
 *	policy		"spread", "packed": how preferred allocations are chosen
 *	wanted		devices that the configuration asks for
 *	causes		why there are fewer, or why some are unhealthy; bounded:
 *			["0000:3b:00.5: no RDMA device yet"]
 *	gpus		true: the node has GPUs or several rails, and devices are on several NICs,
 *			so that it matters which of them a pod gets (affinity.h, same_rails.h); else
 *			absent
 *	jobFiles	true: containers get a folder with what their job needs to know; else absent
 *	env		only of kind "sriov"; variable with the list of ids:
 *			"PCIDEVICE_SPIDERNET_IO_MELLANOXRDMA"
 *	permissions	"rw": of all device nodes
 *	nodes		absent when there are none; device nodes that come with any device:
 *			["/dev/infiniband/rdma_cm"]
 *
 * Of a device; all but the first two may be absent:
 *	id		"0000:3b:00.2"
 *	healthy		true
 *	cause		why it cannot be given to a pod now, healthy (in use) or not
 *	numa		0; not when it is unknown, or not to be said
 *	pf		"0000:3b:00.0": what "spread" spreads over; only of kind "sriov"
 *	nodes		["/dev/infiniband/uverbs1"]: device nodes, the same path in the container;
 *			where that differs {"path": in the container, "hostPath"}
 *	details		{"rdma": {"uverbs": …}}: its part of the variable <env>_INFO
 *	info		device-info document for Multus (k8snetworkplumbingwg)
 *
 * Of a problem, bounded:
 *	resource	absent where it is about none
 *	source		POOLS_SOURCE_*, or other words: where a name in that configuration is wrong,
 *			whatever the node; else absent
 *
 * A pool whose configuration is good is there with its name even without a single device. Pure:
 * equal input, equal bytes.
 */
json_t *pools_compute(const struct pools_input *input);

/*
 * Does a problem of this reason leave the node other than it should be? Of the rest people learn by
 * an event: pods get the device all the same, or the configuration is for other nodes.
 */
bool pools_is_fault(const char *reason);
/* Append the problems that do, as { "reason", "message" }. */
void pools_add_faults(const json_t *pools, json_t *list);
/*
 * Problems that `before` does not have, new. Both documents are of pools_compute(), or both of one
 * pools_read_*(); before may be NULL.
 */
json_t *pools_new_problems(const json_t *pools, const json_t *before);

/*
 * Texts as users bring them, checked. Returns the document, new, or NULL with err ERR_INVALID
 * "BadSharedConfig", "BadResourceList", "BadDeviceList" when it is none of that kind as a whole.
 * len bytes, foreign.
 *
 * An entry that is wrong is left out, the others stay: "problems" of the document says which,
 * naming field, value and what would be right; pools_compute() repeats it. Keys are taken in any
 * case, as Go does; unknown ones are problems, and ignored. Problems of entries have also "at": how
 * many good ones are before it, and "entry": its names; those of unknown keys "key", and "fault":
 * the message without what comes of it. "kept" is pools_keep_good()'s.
 *
 *	shared         {"periodicUpdateInterval": seconds, "configList": […], "problems": […]}
 *	resource list  {"resourceList": […], "problems": […]}; "selectors" is always a list
 *	dev files      {"devices": [{"devicematch", "nummaxdevices"}], "problems": […]}
 */
json_t *pools_read_shared(const char *text, size_t len, struct err *err);
json_t *pools_read_resource_list(const char *text, size_t len, struct err *err);
/* YAML, as smarter-device-manager has it. */
json_t *pools_read_dev_files(const char *text, size_t len, struct err *err);

/*
 * What could not be read in `document`, or only without a key that is new and unknown, goes on as
 * it was in `before`, a document of the same kind or NULL: a bad edit takes no resource away. Its
 * problem says so.
 */
void pools_keep_good(json_t *document, const json_t *before);

/*
 * `pools`, the document of pools_compute(), while `devices` ({id: anything}, NULL: none) are being
 * changed: each of them unhealthy, with that cause. New.
 */
json_t *pools_withdraw(const json_t *pools, const json_t *devices);

/*
 * Which files of RDMA devices pods were given, in shared mode; in exclusive mode they get a folder
 * (nodeagent/model/rdma_folder.h): a pod gets numbers (/dev/infiniband/uverbs3) when
 * it is admitted, and once: the kubelet keeps the answer over restarts and boots
 * (pkg/kubelet/cm/devicemanager, AllocResp of its checkpoint). The kernel numbers RDMA devices as
 * they arrive. So a pod that starts again after a boot may find the device of another VF under the
 * number that it got.
 *
 * pools_given(): what to keep on the disk, {"boot": the id of this boot, "devices":
 * {"spidernet.io/x": {"0000:3b:00.2": {"pod": "ns/pod/container", "files":
 * ["/dev/infiniband/uverbs3"]}}}}, new: what `before` says of devices that the same pods have
 * still, and of others what `pools` say now. A pod that has a device in the first list of a boot
 * and no record has "files" of none: it was given right before the last boot ended.
 *
 * pools_check_given(): devices of `pools` that are not what their pods were given become unhealthy,
 * with a problem "DeviceFilesMoved" that has a member "pod"; kubelets from 1.27 do not start these
 * pods then. So do those whose files such a pod has.
 */
json_t *pools_given(const json_t *before, const json_t *allocated, const json_t *pools,
		    const char *boot);
void pools_check_given(json_t *pools, const json_t *given);

/*
 * Devices that a status names together with their pod; "allocated" counts all. The schema in crds/
 * has the same bound.
 */
#define POOLS_STATUS_PODS_MAX 128

/*
 * What is said of one resource of pools_compute() (NULL: it is not offered yet), new: {"name",
 * "kind", "wanted", "registered": true, "offered": n, "healthy": n, "cause": "…"}. why_not: why
 * the kubelet does not have it, "" when that is not known; NULL: it has. `cause` says that, or why
 * fewer are healthy than wanted; absent where there is nothing to say.
 */
json_t *pools_resource_status(const json_t *resource, const char *why_not);

/*
 * NodeState.status.resources: device_plugins_status() with "allocated": n and "pods": [{"device",
 * "pod": "ns/pod/container"}], as `allocated` (pools_input) has them; both absent when that is
 * NULL: not known. New.
 *
 * `given`: entries of resources that claims have (or NULL), for those that no device plugin offers.
 *
 * A resource of `before`, the last status (or NULL), that nothing asks for any more stays while
 * pods have devices of it, with nothing offered.
 */
json_t *pools_status(const json_t *plugins, const json_t *given, const json_t *allocated,
		     const json_t *before);

/* Names of all resources in what pools_compute() returned; empty for NULL. Returns new. */
json_t *pools_names(const json_t *pools);

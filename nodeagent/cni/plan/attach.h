// SPDX-License-Identifier: Apache-2.0
/*
 * One CNI call of one plugin: what goes in, what comes out, who helps.
 *
 * Runs in a worker process of its own that may block and may be killed at any line. The planners of
 * this folder decide (pure); nodeagent/cni/execute looks and acts, and defines attach_run() in
 * attach_run.c, above both.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct netns; /* nodeagent/netlink/netns.h */

/*
 * ATTACH_BEGIN: what of ADD may go on beside others of the same pod, and whose end ADD waits for:
 * the start of a VF's driver.
 */
enum attach_command { ATTACH_ADD, ATTACH_CHECK, ATTACH_DEL, ATTACH_BEGIN };

/* Given by the server's worker; tests give their own. All members set. */
struct attach_services {
	void *context;
	/*
	 * Replace what is kept for this plugin and interface; on the disk when it returns, and
	 * synced unless the power takes along all that it is about. Called before the first change
	 * and whenever more is known. `state` is borrowed: one JSON object that comes back as
	 * attach_call.saved. NULL: nothing is left to undo.
	 */
	int (*save)(void *context, const json_t *state, struct err *err);
	/*
	 * The same at the end of an ADD, with its result: nothing is left to be done that the last
	 * save() does not say.
	 */
	void (*keep)(void *context, const json_t *state);
	/*
	 * IPAM of config.ipam. command: "ADD" returns a new CNI result as the plugin printed it;
	 * "DEL" and "CHECK" none (*ret_result is untouched).
	 */
	int (*ipam)(void *context, const char *command, const json_t *config, json_t **ret_result,
		    struct err *err);
	/*
	 * 1: the device belongs to this sandbox still, or to nobody. 0: it does not. -1 with err
	 * ERR_TRANSIENT: it cannot be known now.
	 */
	int (*owns)(void *context, const char *pci_address, struct err *err);
	/*
	 * 1: the kubelet has given the device to this pod, or there is no kubelet. 0: it has not.
	 * -1 with err ERR_TRANSIENT: it cannot be known now.
	 */
	int (*is_given)(void *context, const char *pci_address, struct err *err);
	/* Somebody else on the network has these addresses of the pod: [{"ip", "mac"}]. */
	void (*report)(void *context, const json_t *conflicts);
	/* After an ADD: so long the kernel took for links, addresses, routes and rules. */
	void (*took)(void *context, int64_t kernel_us);
};

/*
 * What the calls of one worker share: namespaces that stay open (netns_keep()), NULL at first; and
 * what netns_announce() takes (nodeagent/cni/execute/netns_detect.h), once the runtime has its
 * answer: an array, to which is appended. Owned by the worker.
 */
struct attach_worker {
	struct netns *namespaces;
	json_t *announcements;
};

/* Borrowed, all of it. */
struct attach_call {
	enum attach_command command;
	const char *type; /* "sriov", "macvlan", …: attach_knows() it */
	const char *container_id, *ifname;
	const char *netns_path; /* CNI_NETNS as it came: goes into results; "" or NULL with DEL */
	const char *args;       /* CNI_ARGS as it came, or NULL */
	const char *pod_namespace, *pod_name, *pod_uid; /* may be NULL */
	int netns;              /* descriptor of the pod's namespace; -1: gone (DEL only) */
	int host_netns;         /* descriptor of the node's namespace; -1: ours */
	int root;               /* descriptor of the host's root folder: /sys below it is read */
	const json_t *config;   /* stdin: object with name, cniVersion, prevResult, runtimeConfig */
	const json_t *settings; /* cluster's, for "coordinator" (SpiderCoordinator); or NULL */
	/*
	 * Of "coordinator". later: interfaces of networks that come after this one's, which are
	 * there already; finding: what was found on the network of this NIC
	 * (nodeagent/cni/execute/coordinator_detect.h). NULL: none; nothing was looked for yet.
	 */
	const json_t *later, *finding;
	struct attach_worker *worker; /* NULL: this call is alone */
	/*
	 * Where ATTACH_BEGIN leaves the process that goes on; ADD of the same worker is given it.
	 * -1: there could be none; 0: nothing has begun. lock: descriptor that holds the lock of
	 * the device, which that process keeps until its end; -1: none.
	 */
	int *beside;
	int lock;
	const char *kubelet_dir; /* its PodResources tell who the kubelet is; NULL: no kubelet */
	const json_t *granted;   /* addresses that IP pools gave this sandbox: texts; or NULL */
	/*
	 * DEL, CHECK: what ADD saved or kept last; or NULL. ADD: what ATTACH_BEGIN saved; of
	 * tuning: what another one of its list saved for the same interface.
	 */
	const json_t *saved;
	const struct attach_services *services;
};

/*
 * BEGIN changes nothing where it is 0 and *beside stays 0; DEL undoes it like ADD.
 * ADD: *ret_result is new, the CNI result in the configuration's version; on an error everything
 * that was done is undone, and what could not be is in the last save(). CHECK and DEL leave
 * *ret_result alone. DEL may come twice, without an ADD, with the namespace, the device, or its PF
 * gone; it fails only for a device that is in the pod's living namespace and could not be moved,
 * or of which it cannot be known whose it is.
 * What has to wait (for the device, its PF, or IPAM) is in DEL's last save(): the call is to be
 * repeated, with that, until save() gets NULL.
 *
 * ERR_INVALID    the configuration is wrong, or what it names does not fit: it fails again
 * ERR_CONFLICT   another pod has the device, or the address
 * ERR_TRANSIENT  not yet: the kubelet's next try may do
 * ERR_HOST       the kernel refused
 *
 * cni_error.h turns these into codes of the CNI specification.
 */
int attach_run(const struct attach_call *call, json_t **ret_result, struct err *err);

/* Does attach_run() know this type? */
bool attach_knows(const char *type);

/*
 * Is it one that containernetworking-plugins have, too? An administrator expects theirs where they
 * are installed. It takes no device, also where its configuration names one (a shared one), but
 * host-device. What it made ends with the namespace, or is in files of its own, or in what the
 * interface itself says: CHECK and DEL need no record of ADD.
 */
bool attach_is_common(const char *type);

// SPDX-License-Identifier: Apache-2.0
/* Who made a pod: the controller that SpiderEndpoints name, and whose pods keep their addresses. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "reconcilers/ipam/candidates.h"

/* Borrowed from the pod and valid as long as it, but for a Deployment's name. */
struct pod_controller {
	const char *api_version; /* "apps/v1"; "v1" for a pod of its own */
	const char *kind;        /* "Deployment", "StatefulSet", …; "Pod" for a pod of its own */
	char name[256];
};

/*
 * The top controller of a pod. A ReplicaSet's pod belongs to the Deployment whose name is the
 * ReplicaSet's without the pod's label pod-template-hash, which only Deployments set
 * (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label),
 * so no ReplicaSet has to be read. A Job is itself: that a CronJob made it cannot be told from the
 * pod.
 */
struct pod_controller pod_controller(const json_t *pod);

/*
 * The VirtualMachineInstance of KubeVirt whose pod it is: its name; NULL for any other pod. While a
 * machine migrates it has two living pods. Borrowed.
 */
const char *pod_machine(const json_t *pod);

/*
 * Is the endpoint that of the pod's machine, and names another pod until now? The pod's owner
 * reference says which machine, and users may write it.
 */
bool pod_is_successor(const json_t *pod, const json_t *endpoint);

/*
 * Is it a pod of this VirtualMachineInstance, as KubeVirt has it: by UID, and in status.activePods?
 * instance: as the API server has it; NULL: it does not exist.
 */
bool pod_is_of_instance(const json_t *pod, const json_t *instance);

/*
 * Does the pod keep its addresses when it is made again: a pod of a StatefulSet (apps/v1) or of a
 * virtual machine?
 */
bool pod_keeps_addresses(const json_t *pod, const struct ipam_settings *settings);

/*
 * The name that its SpiderEndpoint and its records have: that of the virtual machine instance for
 * its pods, else the pod's. Borrowed.
 */
const char *pod_endpoint_name(const json_t *pod, const struct ipam_settings *settings);

/*
 * May the pod get addresses and keep them? Not once it is being deleted or has terminated
 * (reconcilers/core/pod.h). Spiderpool also serves Failed pods whose restartPolicy is not Never: it
 * asks at ADD, which a rejected pod never reaches; addresses here are allocated at binding.
 */
bool pod_is_alive(const json_t *pod);

enum pod_sandbox {
	POD_SANDBOX_NONE, /* it waits for one: phase Pending, and no address */
	POD_SANDBOX_MADE, /* its CNI call is over, also while its init containers run */
	POD_SANDBOX_UNKNOWN,
};

/* What the kubelet has said of the sandbox of a pod that lives. */
enum pod_sandbox pod_sandbox(const json_t *pod);

/*
 * Is nothing of the pod with this UID left on its node? The endpoint says so, which users may
 * write: not of a pod that lives and has a sandbox by the kubelet's word. pod: NULL is not known.
 */
bool pod_is_down(const json_t *pod, const json_t *endpoint, const char *uid);

/* 0, or -1 with err set: ERR_INVALID "PodEnded", for a pod that may get none. */
int pod_need_alive(const json_t *pod, struct err *err);

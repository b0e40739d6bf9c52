// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs that pods hold, and how near the NICs of these pods are to them. Pure: devices of other
 * plugins come with the kubelet's PodResources, distances with the observed document.
 *
 * A GPU is known by the device IDs of three device plugins: NVIDIA's (the UUID, "GPU-…", with
 * "::N" where time slicing makes replicas), AMD's (the PCI address) and Intel's ("card0-0").
 * MIG devices, partitions, and GPUs of ResourceClaims are not known. docs/rails.md.
 */
#pragma once

#include <jansson.h>

/*
 * "allocated" is what pods have, {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}}, of all
 * device plugins; "observed" the observed document (docs/node-agent.md).
 */

/* The GPUs of containers: {"ns/pod/container": ["0000:1b:00.0"]}, new. */
json_t *affinity_holders(const json_t *observed, const json_t *allocated);

/*
 * For which pod does the kubelet want to know the preferred devices of `resource`? It admits one
 * pod at a time, and gives a container its resources one after the other.
 *
 * affinity_suspects(): pods with a container that holds GPUs and no device of the resource,
 * ["ns/pod"], new. Their specs tell which of them asks for the resource.
 * affinity_wanted(): the GPUs of that pod, a Pod of the API server, as PCI addresses, new: of the
 * first container that lacks devices of `resource`, or of the whole pod when that one has no GPUs.
 * NULL: no container lacks one, or the pod holds no GPU.
 */
json_t *affinity_suspects(const json_t *holders, const json_t *allocated, const char *resource);
json_t *affinity_wanted(const json_t *pod, const json_t *holders, const json_t *allocated,
			const char *resource);
/* How many devices of the resource that container asks for; 0: no container lacks one. */
size_t affinity_lacks(const json_t *pod, const json_t *allocated, const char *resource);

/*
 * What allocate_prefer() takes as `near`, new: {"gpus": [{"0000:3b:00.0": 0}], "free": true}: of
 * each GPU the distances (enum topology_distance) of all PFs.
 *
 * wanted: GPUs of the pod (affinity_wanted()). NULL: the pod is not known, or has no GPUs yet; then
 * those that no pod holds count, and "free" is set. NULL is returned when these tell nothing: all
 * GPUs are free, or none.
 */
json_t *affinity_near(const json_t *observed, const json_t *holders, const json_t *wanted);

/*
 * How far devices of pods are from the nearest GPU of their pod: {"spidernet.io/x":
 * {"0000:3b:00.2": "PIX"}}, new. Only PCI functions of the node's NICs, of pods with GPUs.
 */
json_t *affinity_distances(const json_t *observed, const json_t *allocated);
/* How many devices are at each distance: {"PIX": 2, "PXB": 0, …}, all of them, new. */
json_t *affinity_counts(const json_t *distances);
/* Put them as "gpuDistance" beside the pods in NodeState.status.resources (pools_status()). */
void affinity_show(json_t *status, const json_t *distances);

/*
 * Pods that got a device since `before` (`allocated` as it was) although a nearer one was left,
 * once for each pod and resource: [{"pod": "ns/pod/container", "message"}], new. Left is what
 * `pools` (pools.h) has healthy and no pod holds, on a PF of which the pod has nothing.
 */
json_t *affinity_missed(const json_t *observed, const json_t *pools, const json_t *allocated,
			const json_t *before);

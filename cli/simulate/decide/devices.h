// SPDX-License-Identifier: Apache-2.0
/*
 * Devices of a node's pools (nodeagent/devices) in the hands of a kubelet: what the Node says of
 * them, and which a pod gets. Pure.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * `pools`, of pools_compute(), with what other device plugins of the node offer: a resource for its
 * GPUs, as the vendor's plugin names it and them. It comes first, and is given first. New.
 */
json_t *devices_with_gpus(const json_t *pools, const json_t *observed);

/*
 * Pools are of pools_compute() or of devices_with_gpus(). Who has what: {resource: {id:
 * "namespace/pod/container"}}.
 */

/* As device_plugins_status() has it when the kubelet has all of them. New. */
json_t *devices_status(const json_t *pools);

/*
 * What Node.status says: {"capacity": {resource: "12"}, "allocatable": {…}}, new. `before`: what it
 * says now; resources of it that are ours (`ours`, {resource: anything}) and no longer offered are
 * "0", as a kubelet leaves them.
 */
json_t *devices_node_status(const json_t *pools, const json_t *ours);

/*
 * What the containers of the pod get beside what is allocated: an object of the same shape, new;
 * near GPUs that they get (nodeagent/devices/affinity.h), by the observed document. NULL with err
 * ERR_TRANSIENT "UnexpectedAdmissionError": there are too few that are healthy.
 */
json_t *devices_choose(const json_t *pools, const json_t *observed, const json_t *allocated,
		       const json_t *pod, struct err *err);

/* Add, and take away all of "namespace/pod". In place. */
void devices_add(json_t *allocated, const json_t *more);
void devices_release(json_t *allocated, const char *pod);

/* The device-info document of a device ("info" of a pool's), borrowed; NULL: none. */
const json_t *devices_info(const json_t *pools, const char *resource, const char *id);

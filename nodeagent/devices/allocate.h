// SPDX-License-Identifier: Apache-2.0
/* What a container gets for the devices it was given, and which devices to prefer. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * `resource`: an entry of "resources" (pools.h); its devices may be in any order, sorted ones are
 * quicker. Returns new: {"env": {name: value}, "nodes": [{"path", "hostPath", "permissions"}],
 * "mounts": [{"path", "hostPath"}]}, each device node once, sorted by path; mounts are read-only
 * and absent where the resource has no files for jobs. NULL with err ERR_INVALID "UnknownDevice",
 * "DeviceUnhealthy", "BadRequest".
 *
 * Time grows with the devices of the resource, and with the request times its logarithm.
 */
json_t *allocate_devices(const json_t *resource, const char *const *ids, size_t n, struct err *err);

/*
 * Choose `size` of `available`, all of `must` among them. ret_chosen: size pointers into available,
 * sorted by id. Ties by id, so that equal requests get equal answers. A device that the resource
 * does not know, or that is unhealthy, comes last. -1 with err ERR_INVALID "BadRequest" when that
 * cannot be done; ret_chosen is untouched then.
 *
 * near: of affinity_near() (affinity.h). Without it devices of one NUMA node are preferred, then
 * what the resource's policy says: "spread" takes the PF that has given least, "packed" the one
 * that has given most; for as many devices as the resource has PFs, or more, "spread" takes all PFs
 * in turn, whatever their nodes. With GPUs of the pod: different PFs, the nearest to a GPU first
 * and each GPU in its turn; one PF twice rather than one of another NUMA node. With GPUs that are
 * free: as without, among the devices that are nearest to one.
 */
int allocate_prefer(const json_t *resource, const char *const *available, size_t n_available,
		    const char *const *must, size_t n_must, size_t size, const json_t *near,
		    const char **ret_chosen, struct err *err);

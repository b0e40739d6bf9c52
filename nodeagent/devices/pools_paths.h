// SPDX-License-Identifier: Apache-2.0
/*
 * What pools may ask for on the node, checked by the process that serves the kubelet: the pools are
 * the agent's, and the kubelet believes what a device plugin answers, a disk's device file
 * included. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/*
 * Is this host path /dev/infiniband, /dev/vhost-net or /dev/net/tun, or below /dev/infiniband,
 * /dev/vfio or RDMA_FOLDER, or does it match a pattern of `more`? more: absolute paths with commas,
 * '*', '?' and '[' as in fnmatch(3), where '*' matches '/', too; NULL: none. A path with "." or
 * ".." in it never is.
 */
bool pools_path_is_allowed(const char *path, const char *more);

/* Can `more` be such a list? ERR_INVALID "BadFlag". */
int pools_paths_check(const char *more, struct err *err);

/*
 * `pools` (pools.h) without what a container may not get: a device with a host path that is not
 * allowed, with a path outside of the container's /dev, with permissions other than "rwm", or of a
 * resource whose variable is not PCIDEVICE_…, is unhealthy with that cause, which the resource's
 * causes repeat. New. *ret_cause is the first of them, new; NULL: all is allowed.
 */
json_t *pools_keep_allowed(const json_t *pools, const char *more, char **ret_cause);

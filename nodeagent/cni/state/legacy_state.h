// SPDX-License-Identifier: Apache-2.0
/*
 * Pods that sriov-cni, ib-sriov-cni or rdma-cni set up, whose DEL comes to us: their files below
 * /var/lib/cni (nodeagent/cni/plan/upstream_state.h). All calls block; `root` is a descriptor of
 * the host's root.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/cni/state/sandboxes.h"

/*
 * What DEL needs of an attachment that another plugin made, new (attach_call.saved); NULL: there is
 * no file, or none of that plugin, which is logged. NULL with err ERR_HOST "FileUnreadable": it
 * cannot be read now.
 */
json_t *legacy_state_read(int root, const char *container, const struct sandbox_key *key,
			  struct err *err);

/* Remove the file, and that the device (NULL: none) is somebody's. */
void legacy_state_forget(int root, const char *container, const struct sandbox_key *key,
			 const char *device);

/*
 * The attachment of sriov-cni that has a device, new: {"lives": its namespace is there,
 * "container", "plugin", "network", "ifname", "config", "saved"}; NULL: none. Without "saved" it
 * is none of that plugin. NULL with err ERR_TRANSIENT "DeviceNotClaimed": it cannot be known now.
 */
json_t *legacy_state_holder(int root, const char *device, struct err *err);

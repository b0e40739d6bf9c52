// SPDX-License-Identifier: Apache-2.0
/*
 * Devices that only the kubelet may give away: a network's configuration can name any device of the
 * node (deviceID, pciBusID, master), and whoever writes NetworkAttachmentDefinitions of a namespace
 * would take VFs past the requests that the scheduler counts. In a worker.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_WORKER_ALLOCATED_H
#define ORBWEAVER_NODEAGENT_CNI_WORKER_ALLOCATED_H

#include <jansson.h>

#include "lib/base/err.h"

/*
 * May the pod have all devices that a plugin's configuration names, by the kubelet's record
 * (nodeagent/cni/meta/checkpoint.h)? By address, or, VFs, by interface of the node (name,
 * alternative name, MAC, path); keys in any case, as Go reads them; those of plugins that this one
 * calls included. root: of the host. kubelet_dir: as we see it; NULL: there is no kubelet. 0 also
 * where that record is not there, or cannot be read, and where the runtime does not tell the pod's
 * UID: in use by others is found out elsewhere (device_owner(), the device's network namespace).
 * ERR_INVALID "DeviceNotGiven".
 */
int allocated_check(const char *kubelet_dir, int root, const json_t *config, const char *pod_uid,
		    struct err *err);

/*
 * The same for all plugins of these delegates (nodeagent/cni/meta/delegates.h), before the first
 * one runs.
 */
int allocated_check_delegates(const char *kubelet_dir, int root, const json_t *delegates,
			      const char *pod_uid, struct err *err);

#endif

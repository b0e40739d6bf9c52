// SPDX-License-Identifier: Apache-2.0
/*
 * Devices that only the kubelet may give away: a network's configuration can name any device of the
 * node (deviceID, pciBusID, master), and whoever writes NetworkAttachmentDefinitions of a namespace
 * would take VFs past the requests that the scheduler counts. In a worker.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/*
 * May the pod have all devices that a plugin's configuration names, by the kubelet's record
 * (nodeagent/cni/plan/checkpoint.h), and by the claims that kubeletd has prepared, which that
 * record does not have (nodeagent/model/dra_state.h)? A PF that host-device takes leaves its VFs
 * without one, so these are looked up, too. By address, or, VFs, by interface of the node (name,
 * alternative name, MAC, path); keys in any case, as Go reads them; those of plugins that this one
 * calls included. root: of the host. kubelet_dir: as we see it; NULL: there is no kubelet. pod:
 * {"namespace", "name", "uid"}, as far as the runtime tells. 0 also where the kubelet's record is
 * not there, or of another form, and without a UID: in use by others is found out elsewhere
 * (device_owner(), the device's network namespace).
 * ERR_INVALID "DeviceNotGiven"  another pod has it, or none has
 * ERR_TRANSIENT "DevicesUnknown"  record or interfaces cannot be read now
 * ERR_HOST "HostUnreadable"     the file of claims cannot be read
 */
int allocated_check(const char *kubelet_dir, int root, const json_t *config, const json_t *pod,
		    struct err *err);

/*
 * The same for all plugins of these delegates (nodeagent/cni/plan/delegates.h), before the first
 * one runs.
 */
int allocated_check_delegates(const char *kubelet_dir, int root, const json_t *delegates,
			      const json_t *pod, struct err *err);

/*
 * Has the kubelet given this PCI function to the pod? 1 where there is no kubelet (NULL); -1 with
 * err ERR_TRANSIENT "DevicesUnknown": its record cannot be read now.
 */
int allocated_is_given(const char *kubelet_dir, const char *device, const char *pod_uid,
		       struct err *err);

/*
 * checkpoint_devices_of() this pod: *ret is new, empty without a kubelet (NULL) or a UID. -1 as
 * above.
 */
int allocated_devices(const char *kubelet_dir, const char *pod_uid, json_t **ret, struct err *err);

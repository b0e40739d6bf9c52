// SPDX-License-Identifier: Apache-2.0
/*
 * Who uses a device that a network's configuration names, besides the node itself, which
 * host_device_check() and vf_check_node() are about? By evidence.h, right before a plugin changes
 * the device. What cannot be known counts as use.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/host/host.h"

/*
 * May this link of the node (look.h) leave it, or become a port? Not while interfaces of pods lie
 * on it. A function that is not a VF takes more along: its VFs, subfunctions, RDMA device, clock. A
 * VF is the kubelet's to give (allocated.h). type: the plugin, for messages.
 * ERR_CONFLICT "DeviceBusy", ERR_HOST "PfInUse", "VfInUse", "HostUnreadable".
 */
int device_use_check_link(const struct plugin_call *call, const char *type, const json_t *link,
			  struct err *err);

/*
 * May the RDMA device of this function move? The kernel takes it from all its users. host: of the
 * call, for this and the next one.
 * ERR_INVALID "DeviceNotGiven"  it is not a VF's, and the kubelet has not given it to the pod
 * ERR_TRANSIENT "DevicesUnknown"  what the kubelet has given cannot be known now
 * ERR_CONFLICT "DeviceBusy"     processes, or the kernel, use it
 */
int device_use_check_rdma(const struct plugin_call *call, const char *type, struct host *host,
			  const char *address, struct err *err);

/* May settings of this VF change, whose driver is one of user space? ERR_CONFLICT "DeviceBusy". */
int device_use_check_vfio(const struct plugin_call *call, const char *type, struct host *host,
			  const char *address, const char *driver, struct err *err);

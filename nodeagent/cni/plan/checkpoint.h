// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet's own record of the devices that it gives to pods: the file in which it keeps them
 * for its next start. It is written before a pod's sandbox is made and has pods by UID, init
 * containers included. Pure.
 *
 * Source: kubernetes pkg/kubelet/cm/devicemanager/checkpoint, 1.20 to 1.35; before 1.20 DeviceIDs
 * was a list.
 */
#pragma once

#include <jansson.h>

/* Below the kubelet's folder. */
#define CHECKPOINT_FILE "device-plugins/kubelet_internal_checkpoint"

enum checkpoint_holder {
	CHECKPOINT_UNKNOWN,   /* the document is not of the known form */
	CHECKPOINT_UNMANAGED, /* no device plugin offers the device as healthy */
	CHECKPOINT_OF_POD,    /* this pod was given it */
	CHECKPOINT_OTHER,     /* a device plugin offers it, and this pod was not given it */
};

/* Who has the device, a PCI address? */
enum checkpoint_holder checkpoint_holder_of(const json_t *checkpoint, const char *device,
					    const char *pod_uid);

/*
 * UIDs of all pods that were given the device, new; those that have ended stay in it until the next
 * Allocate.
 */
json_t *checkpoint_pods_of(const json_t *checkpoint, const char *device);

/*
 * What the containers of a pod were given: [ { "resource", "ids": [id, …] } ], an entry for each
 * container and resource, new.
 */
json_t *checkpoint_devices_of(const json_t *checkpoint, const char *pod_uid);

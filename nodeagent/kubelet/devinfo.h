// SPDX-License-Identifier: Apache-2.0
/*
 * Device-info files: what Multus puts into a pod's network status about a device
 * (k8snetworkplumbingwg, device-info specification 1.1.0). One file per device,
 * DIR/<prefix>-<name>-<id>-device.json, as the SR-IOV device plugin writes them.
 *
 * They are written when a device is offered, so that Allocate has nothing to write, and stay for as
 * long as it is: also while a pod has it, and when we end, for Multus reads them again when a
 * sandbox is made again.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * Make the files of this resource right: those of its devices that have "info" (pools.h), and no
 * others. Files that are right are not touched. The directory is made if it is missing; dir NULL:
 * nothing is done. -1 with err ERR_HOST "DevinfoNotWritten"; the others are written all the same.
 */
int devinfo_write(const char *dir, const json_t *resource, struct err *err);
/*
 * The same for some devices that are being allocated: another program may have cleaned the
 * directory since.
 */
int devinfo_ensure(const char *dir, const json_t *resource, const char *const *ids, size_t n,
		   struct err *err);
/* Remove the files of a resource that is offered no more. */
void devinfo_remove(const char *dir, const char *resource);

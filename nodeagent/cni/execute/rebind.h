// SPDX-License-Identifier: Apache-2.0
/*
 * Waiting for the new interface of a PCI function: its driver was started again, or its
 * RDMA device has moved, with which IPoIB interfaces end and others begin.
 */
#pragma once

#include <stdint.h>

#include "nodeagent/cni/execute/device.h"
#include "nodeagent/host/host.h"

enum { REBIND_MS = 10000 };

/*
 * Look until the function has an interface on the node, `ms` at most, and udev has given it its
 * name: the kernel's ("ib0") lasts some 10 ms. ERR_TRANSIENT "InterfaceGone".
 */
int device_wait(const struct host *host, const char *address, int64_t ms, struct device *ret,
		struct err *err);

/*
 * Start the driver of `device` again. Where no driver is bound, a process has ended between the two
 * writes: `driver` is started then, NULL is ERR_CONFLICT "DeviceBusy". Some seconds, in the kernel.
 */
int device_restart(struct host *host, const char *address, const char *driver,
		   const struct device *device, struct err *err);

/* device_restart(), and wait for the interface: *device is how it is then. */
int device_rebind(struct host *host, const char *address, const char *driver, struct device *device,
		  struct err *err);

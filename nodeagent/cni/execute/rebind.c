// SPDX-License-Identifier: Apache-2.0
/*
 * Called by the steps that change a VF's GUID or move its RDMA device: the interface of before is
 * gone then, and the next steps need the number of the new one. Polls; udev's database says when
 * the name is final.
 */
#include "nodeagent/cni/execute/rebind.h"

#include <assert.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "nodeagent/host/sysfs.h"

enum {
	LOOK_MS = 10,
	/* udev writes nothing about a device of which it knows nothing; then we go on. */
	SETTLE_MS = 3000,
};

/* Is udev through with the interface? It notes each by its number (systemd, sd-device). */
static bool is_settled(const struct host *host, const struct device *device)
{
	auto_free char *path = str_printf("run/udev/data/n%d", device->netdev_index);

	return device->netdev_index > 0 && sysfs_exists(host, path);
}

int device_wait(const struct host *host, const char *address, int64_t ms, struct device *ret,
		struct err *err)
{
	bool has_udev = sysfs_exists(host, "run/udev/control");
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t end = clock_ms() + ms, settled = 0;

	assert(ms >= 0);
	for (;;) {
		bool done = false;

		if (device_look(host, address, ret, NULL) == 0 && ret->netdev[0]) {
			settled = settled ? settled : clock_ms() + SETTLE_MS;
			done = !has_udev || clock_ms() > settled || is_settled(host, ret);
		}
		/* The name that was read before udev was through may be the old one. */
		if (done && device_look(host, address, ret, NULL) == 0 && ret->netdev[0])
			return 0;
		if (clock_ms() > end && !ret->netdev[0])
			return err_set(err, ERR_TRANSIENT, "InterfaceGone",
				       "%s has no interface on the node", address);
		(void)nanosleep(&pause, NULL);
	}
}

int device_restart(struct host *host, const char *address, const char *driver,
		   const struct device *device, struct err *err)
{
	bool is_bound = device->driver[0] != '\0';
	const char *name = is_bound ? device->driver : driver;
	auto_free char *unbind = NULL, *bind = NULL;

	if (!name)
		return err_set(err, ERR_CONFLICT, "DeviceBusy",
			       "no driver is bound to %s: bind the one that it had", address);
	unbind = str_printf("sys/bus/pci/drivers/%s/unbind", name);
	bind = str_printf("sys/bus/pci/drivers/%s/bind", name);
	if ((is_bound && sysfs_write(host, unbind, address, err)) ||
	    sysfs_write(host, bind, address, err))
		return err_in(err, "start the driver of %s again", address);
	return 0;
}

int device_rebind(struct host *host, const char *address, const char *driver, struct device *device,
		  struct err *err)
{
	if (device_restart(host, address, driver, device, err))
		return -1;
	return device_wait(host, address, REBIND_MS, device, err)
		       ? err_in(err, "start the driver of %s again", address)
		       : 0;
}

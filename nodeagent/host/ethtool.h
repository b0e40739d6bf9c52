// SPDX-License-Identifier: Apache-2.0
/*
 * What drivers of network interfaces count and report, by ioctl (linux/ethtool.h): statistics with
 * names of the driver's own have no other way (net/ethtool/ioctl.c). The kernel holds its lock for
 * all interfaces (rtnl) meanwhile.
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_ETHTOOL_H
#define ORBWEAVER_NODEAGENT_HOST_ETHTOOL_H

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/host/host.h"

/* Longer than any PCI address. */
#define ETHTOOL_BUS_SIZE 32

/*
 * Add the statistics whose names are wanted to `counters` (counted.h). A driver without statistics:
 * none. ERR_HOST "EthtoolRefused" when it cannot be asked.
 */
int ethtool_statistics(struct host *host, const char *interface,
		       bool (*is_wanted)(const char *name), json_t *counters, struct err *err);

/* Mb/s; false while it is not known, as of a link that is down. */
bool ethtool_speed(struct host *host, const char *interface, int64_t *ret);

/* Where its device is: for hardware on PCI an address. */
bool ethtool_bus(struct host *host, const char *interface, char ret[ETHTOOL_BUS_SIZE]);

#endif

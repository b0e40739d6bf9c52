// SPDX-License-Identifier: Apache-2.0
/*
 * What drivers of network interfaces count and report: by ioctl (linux/ethtool.h) statistics with
 * names of the driver's own, which have no other way (net/ethtool/ioctl.c); by netlink
 * (Documentation/networking/ethtool-netlink.rst) what is the same for all. The kernel holds its
 * lock for all interfaces (rtnl) meanwhile.
 */
#pragma once

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

/* ---- by netlink ------------------------------------------------------------------------------ */

/*
 * Add to `counters` (counted.h) what the interface has counted of the groups eth-phy, eth-mac,
 * eth-ctrl and rmon, by forward error correction, and of pauses. What kernel or driver do not
 * count is left out.
 */
void ethtool_wire(struct host *host, const char *interface, json_t *counters);
void ethtool_decode_wire(const void *bytes, size_t len, json_t *counters);

/*
 * What is received, and what is sent: "pauseFrames" (1: on) and "rings"; of "channels" `combined`
 * is the first. `max` is 0 where the driver does not say.
 */
struct ethtool_pair {
	struct {
		bool is_there;
		uint32_t is, max;
	} rx, tx;
	bool is_negotiated; /* pauses, with the other end */
};

/*
 * Read, and set what is_there. `setting` is one of the three. ERR_HOST "NetlinkRefused" with errno;
 * EOPNOTSUPP: the driver, or the kernel, does not have it.
 */
int ethtool_get_pair(struct host *host, const char *interface, const char *setting,
		     struct ethtool_pair *ret, struct err *err);
int ethtool_set_pair(struct host *host, const char *interface, const char *setting,
		     const struct ethtool_pair *pair, struct err *err);
/* False, and ret empty: there is no such answer in it. */
bool ethtool_decode_pair(const void *bytes, size_t len, const char *setting,
			 struct ethtool_pair *ret);

enum {
	/* Half a page of a transceiver's memory: what is read at once. */
	ETHTOOL_EEPROM_SIZE = 128,
};

/* Which half of which page: offset 0 or 128. */
struct ethtool_half {
	uint8_t i2c_address, page;
	uint32_t offset;
};

/*
 * Read it, under the kernel's lock for interfaces, some 10 ms. Needs CAP_NET_ADMIN. False: there is
 * no transceiver, or it does not have such a page.
 */
bool ethtool_read_eeprom(struct host *host, const char *interface, struct ethtool_half what,
			 unsigned char ret[ETHTOOL_EEPROM_SIZE]);
bool ethtool_decode_eeprom(const void *bytes, size_t len, unsigned char ret[ETHTOOL_EEPROM_SIZE]);

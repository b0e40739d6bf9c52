// SPDX-License-Identifier: Apache-2.0
/*
 * Where GIDs of given addresses are in the GID tables of RDMA devices that the host sees: all of
 * them in shared mode, those that are in no pod in exclusive mode.
 *
 * Tables have 256 slots and more, and a device that pods share has GIDs of all of them, so that
 * only those that are asked for are returned. Ports of link layer InfiniBand are left out: their
 * GIDs do not follow from addresses.
 */
#pragma once

#include "nodeagent/host/host.h"

enum {
	/* Addresses that are looked for; more are ignored. */
	GIDS_ADDRESSES_MAX = 2048,
	/* Slots of all devices that are read. 8 PFs with 256 each are 2048. */
	GIDS_SLOTS_MAX = 32 * 1024,
	/* GIDs of one address: versions, and devices of a bond. */
	GIDS_PER_ADDRESS = 16,
};

/*
 * wanted: { "addresses": [without prefix length], "functions": [PCI addresses of VFs] }. Tables of
 * VFs that are not in the list are not read.
 *
 * Returns new { ADDRESS: [ { "device": "mlx5_0", "port": 1, "index": 12, "version": 2, "netdev":
 * its interface, in whatever namespace } ] }, by device, port and index; addresses without a GID
 * are absent. NULL with err: ERR_BUG "BadField" when `wanted` is not of that shape.
 */
json_t *gids_find(struct host *host, const json_t *wanted, struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * What NICs and their RDMA devices have counted, wherever in the node's network namespaces they
 * are. For metrics: nothing here changes anything, and nothing of it is in the observed document,
 * which would differ with each look.
 *
 * Two steps, so that a device that does not answer costs its own counters only: where they are,
 * then one after the other. Sources and their cost: docs/metrics.md.
 */
#pragma once

#include "nodeagent/host/host.h"

/*
 * { "devices": [ … ] }, new: all PFs, those VFs that `vfs` names (an array of PCI addresses; NULL:
 * all), and RDMA devices on other interfaces (rxe on a bond). Sorted by PCI address, then by RDMA
 * device. NULL with err ERR_HOST "HostUnreadable" when not even PCI devices can be listed.
 *
 *	pciAddress          absent for a device on no PCI function
 *	isVf, pf, pfNetdev, vf
 *	                    of a VF: its PF, the name of the PF's interface, its number
 *	netdev, ifindex     its network interface, named as where it is; ifindex in the host's only
 *	rdma, rdmaIndex, ports[], protocol, firmware, nodeGuid, state
 *	                    its RDMA device; state as of the first port. A function with two RDMA
 *	                    devices is there twice, and has `netdev` once
 *	namespace           { "path", "inode" } of another one than the host's, in which it is:
 *	netdevAway, rdmaAway  what of it is there
 *	numaNode, driver
 *	vfs[]               of a PF that has VFs: their PCI addresses, by number
 *
 * What cannot be found out is absent.
 */
json_t *counters_list(struct host *host, const json_t *vfs, struct err *err);

/*
 * What one of them has counted by now, new; `device` is an entry of the list.
 *
 *	rdma        hardware counters of the RDMA device (counted.h)
 *	port        counters of the device's ports, bytes as bytes; absent where there are none
 *	ethernet    statistics of the interface: virtual ports, errors of the wire, and per priority
 *	            pauses and discards; of a PF also ethtool_wire()
 *	speedMbps   of the interface, while it is known
 *	trafficClass  that the RDMA device's connections get, where its driver shows it
 *	vfs         { "0": { … } } of a PF: what it has counted for its VFs
 *	problem     text: why something of this is missing that should be there
 *
 * NULL with err when the namespace is gone (ERR_TRANSIENT "NamespaceGone") or what is asked for is
 * not a device (ERR_BUG "BadRequest").
 */
json_t *counters_read(struct host *host, const json_t *device, struct err *err);

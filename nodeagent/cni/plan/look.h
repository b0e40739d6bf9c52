// SPDX-License-Identifier: Apache-2.0
/*
 * How planners see a network namespace, and questions about it. Pure.
 *
 *   {"links":      [{"index", "name", "altNames", "type" (ARPHRD_…), "kind", "flags" (IFF_…),
 *                    "mac", "mtu", "txqlen", "lower" (index, of whatever namespace),
 *                    "alias", "xdp" (XDP_ATTACHED_…), "parent" (PCI address), "mode" (of kind
 *                    ipoib, macvlan, ipvlan), "pkey" (ipoib), "vlan" (vlan), "filtering", "pvid"
 *                    (bridge), "master" (index of the bridge or bond that it is a port of)}],
 *    "addresses":  [{"dev", "address", "scope"}],
 *    "routes":     [{"family", "table", "dst", "gw", "dev", "src", "scope", "metric", "protocol",
 *                    "type", "mtu", "flags", "via" (true: its gateway is of the other family),
 *                    "nexthops": [{"dev", "gw", "flags"}]}],
 *    "rules":      [{"family", "priority", "table", "from", "to", "mark"}],
 *    "neighbours": [{"dev", "address", "mac", "permanent"}],
 *    "sources":    {address: address},
 *    "ways":       {address: the route by which the node reaches it},
 *    "gateways":   [address]}
 *
 * Numbers are the kernel's (linux/rtnetlink.h). Absent: zero, none. "dst" is always there, with its
 * prefix length.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/plan/addr.h"

/* Of "flags" (linux/if.h). */
enum { LOOK_UP = 1, LOOK_LOOPBACK = 8, LOOK_PROMISC = 0x100, LOOK_ALLMULTI = 0x200 };

/* Borrowed; NULL when there is none. By name, alternative names do not count. */
const json_t *look_link(const json_t *look, const char *name);
const json_t *look_link_by_index(const json_t *look, int64_t index);

/*
 * Append to `ret` the texts ("10.7.0.51/24") of the addresses of a device that reach beyond its
 * link, of these families (bits LOOK_V4, LOOK_V6).
 */
enum { LOOK_V4 = 1, LOOK_V6 = 2 };
void look_addresses(const json_t *look, const char *dev, unsigned int families, json_t *ret);
/* The first of a family as a text without prefix, new; NULL when there is none. */
char *look_first_address(const json_t *look, const char *dev, int family);

/* Take these devices out, and what is on them. names: texts, or NULL. */
void look_leave_out(json_t *look, const json_t *names);

/* Number, 0 when absent. */
int64_t look_number(const json_t *object, const char *key);

/* LOOK_V4 or LOOK_V6 of an address, network, or route. */
unsigned int look_family_bit(int64_t family);
unsigned int look_family_of(const char *address);

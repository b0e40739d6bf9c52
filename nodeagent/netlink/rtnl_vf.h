// SPDX-License-Identifier: Apache-2.0
/*
 * rtnetlink: what a PF's interface says of its VFs, and setting it. Decoding is pure.
 *
 * A list of more than 64 KiB (about 190 VFs with statistics, 280 without) has a length that is cut
 * to 16 bits (net/core/rtnetlink.c, rtnl_fill_vf(); later kernels refuse with EMSGSIZE). All
 * entries are there: each has a length of its own, and IFLA_NUM_VF says how many they are at most.
 */
#pragma once

#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/netlink/netlink.h"

#define RTNL_VF_NOT_COUNTED UINT64_MAX

/* One VF. Members without a "has_" before them count only where that is true. */
struct rtnl_vf {
	uint32_t index;
	unsigned char mac[6];
	bool has_vlan, has_proto, has_rate, has_spoofchk, has_trust, has_link_state;
	bool has_node_guid, has_port_guid, has_counters;
	bool spoofchk, trust;
	uint16_t proto; /* of the VLAN, ETH_P_…, host byte order */
	uint32_t vlan, qos, min_rate, max_rate;
	uint32_t link_state; /* IFLA_VF_LINK_STATE_… */
	uint64_t node_guid, port_guid;
	uint64_t counters[IFLA_VF_STATS_MAX + 1]; /* by IFLA_VF_STATS_…, or RTNL_VF_NOT_COUNTED */
};

struct rtnl_vfs {
	struct rtnl_vf *items;
	size_t n;
};

void rtnl_vfs_done(struct rtnl_vfs *vfs);
#define auto_vfs auto_call(rtnl_vfs_done)

/*
 * The VFs of a PF. From about 190 of them on new kernels cannot tell what they have counted
 * (EMSGSIZE). A driver that does not count, or could not now, leaves zeroes (net/core/rtnetlink.c,
 * rtnl_fill_vfinfo()).
 */
int rtnl_list_vfs(struct netlink *netlink, int pf_index, bool with_counters, struct rtnl_vfs *ret,
		  struct err *err);
void rtnl_decode_vfs(const void *bytes, size_t len, struct rtnl_vfs *ret);
const struct rtnl_vf *rtnl_vf_by_number(const struct rtnl_vfs *list, uint32_t number);

/*
 * Set one attribute (IFLA_VF_…) of the VF that the value, of linux/if_link.h, begins with. One
 * only: the kernel stops at the first error and undoes nothing (net/core/rtnetlink.c,
 * do_setvfinfo()).
 */
int rtnl_set_vf(struct netlink *netlink, int pf_index, int attribute, const void *value,
		size_t size, struct err *err);

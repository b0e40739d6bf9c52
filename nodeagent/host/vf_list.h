// SPDX-License-Identifier: Apache-2.0
/*
 * The list of VFs in what the kernel says of a PF's interface (RTM_NEWLINK, IFLA_VFINFO_LIST).
 * Pure.
 *
 * A list of more than 64 KiB (about 190 VFs with statistics, 280 without) has a length that is cut
 * to 16 bits (net/core/rtnetlink.c, rtnl_fill_vf(); later kernels refuse with EMSGSIZE). All
 * entries are there: each has a length of its own, and IFLA_NUM_VF says how many they are at most.
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_VF_LIST_H
#define ORBWEAVER_NODEAGENT_HOST_VF_LIST_H

#include <stdint.h>

#include "nodeagent/netlink/message.h"

struct vf_list {
	const struct nlattr *next; /* in the message */
	int left;                  /* bytes from there on */
	uint32_t n;                /* entries at most */
};

/* Of any message; without a list it has no entries. Borrows the message. */
struct vf_list vf_list_of(const struct nlmsghdr *message);
/* The next IFLA_VF_INFO, NULL at the end. A VF that its driver says nothing of has none. */
const struct nlattr *vf_list_next(struct vf_list *list);

#endif

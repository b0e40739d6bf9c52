// SPDX-License-Identifier: Apache-2.0
/*
 * One way through the list of VFs for its three readers: what the host is like, what VFs have
 * counted, and what a VF is set to before a pod gets it.
 * The length of the list itself is not believed: entries are counted.
 */
#include "nodeagent/host/vf_list.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

struct vf_list vf_list_of(const struct nlmsghdr *message)
{
	const struct nlattr *attr;
	uint32_t n = UINT32_MAX;
	int left;

	if (message->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_datalen(message) < (int)sizeof(struct ifinfomsg))
		return (struct vf_list){0};
	attr = nlmsg_attrdata(message, sizeof(struct ifinfomsg));
	left = nlmsg_attrlen(message, sizeof(struct ifinfomsg));
	while (left >= NLA_HDRLEN && nla_type(attr) != IFLA_VFINFO_LIST) {
		if (!nla_ok(attr, left))
			return (struct vf_list){0};
		if (nla_type(attr) == IFLA_NUM_VF)
			(void)netlink_u32(attr, &n);
		attr = nla_next(attr, &left);
	}
	/* What follows the list are no entries, so the message's end is end enough. */
	return left < NLA_HDRLEN ? (struct vf_list){0}
				 : (struct vf_list){nla_data(attr), left - NLA_HDRLEN, n};
}

const struct nlattr *vf_list_next(struct vf_list *list)
{
	const struct nlattr *attr = list->next;

	if (list->n == 0 || !nla_ok(attr, list->left) || nla_type(attr) != IFLA_VF_INFO)
		return NULL;
	list->next = nla_next(attr, &list->left);
	list->n--;
	return attr;
}

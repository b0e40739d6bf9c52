// SPDX-License-Identifier: Apache-2.0
/*
 * One way through the list of VFs for its three readers: what the host is like, what VFs have
 * counted, and what a VF is set to before a pod gets it.
 * The length of the list itself is not believed: entries are counted.
 */
#include "nodeagent/netlink/rtnl_vf.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/mem.h"
#include "nodeagent/netlink/message.h"
#include "nodeagent/netlink/rtnl_link.h"

/* ---- decoding -------------------------------------------------------------------------------- */

struct vf_list {
	const struct nlattr *next; /* in the message */
	int left;                  /* bytes from there on */
	uint32_t n;                /* entries at most */
};

/* Of any message; without a list it has no entries. Borrows the message. */
static struct vf_list vf_list_of(const struct nlmsghdr *message)
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
	/* What follows the list are not entries, so the message's end is end enough. */
	return left < NLA_HDRLEN ? (struct vf_list){0}
				 : (struct vf_list){nla_data(attr), left - NLA_HDRLEN, n};
}

/* The next IFLA_VF_INFO, NULL at the end. A VF that its driver says nothing of has none. */
static const struct nlattr *vf_list_next(struct vf_list *list)
{
	const struct nlattr *attr = list->next;

	if (list->n == 0 || !nla_ok(attr, list->left) || nla_type(attr) != IFLA_VF_INFO)
		return NULL;
	list->next = nla_next(attr, &list->left);
	list->n--;
	return attr;
}

void rtnl_vfs_done(struct rtnl_vfs *vfs)
{
	free(vfs->items);
	*vfs = (struct rtnl_vfs){0};
}

/*
 * Every value starts with the VF's number; its place in the list means nothing
 * (net/core/rtnetlink.c, rtnl_fill_vf()).
 */
static bool vf_value(const struct nlattr *attr, const struct rtnl_vf *vf, void *ret, size_t size)
{
	uint32_t number;

	if (!attr || (size_t)nla_len(attr) < size)
		return false;
	memcpy(ret, nla_data(attr), size);
	memcpy(&number, ret, sizeof(number));
	return number == vf->index;
}

static void decode_vlan(struct nlattr *const *attrs, struct rtnl_vf *ret)
{
	struct ifla_vf_vlan vlan;
	struct ifla_vf_vlan_info info;
	const struct nlattr *attr;
	int left;

	if (vf_value(attrs[IFLA_VF_VLAN], ret, &vlan, sizeof(vlan))) {
		ret->has_vlan = true;
		ret->vlan = vlan.vlan;
		ret->qos = vlan.qos;
	}
	if (!attrs[IFLA_VF_VLAN_LIST])
		return;
	nla_for_each_nested(attr, attrs[IFLA_VF_VLAN_LIST], left)
	{
		if (nla_type(attr) != IFLA_VF_VLAN_INFO ||
		    !vf_value(attr, ret, &info, sizeof(info)))
			continue;
		ret->has_proto = true;
		ret->proto = ntohs(info.vlan_proto);
	}
}

static void decode_counters(const struct nlattr *stats, struct rtnl_vf *ret)
{
	struct nlattr *attrs[IFLA_VF_STATS_MAX + 1];

	ret->has_counters = stats != NULL;
	if (!stats)
		return;
	netlink_parse_nested(stats, attrs, IFLA_VF_STATS_MAX);
	for (int type = 0; type <= IFLA_VF_STATS_MAX; type++)
		if (!netlink_u64(attrs[type], &ret->counters[type]))
			ret->counters[type] = RTNL_VF_NOT_COUNTED;
}

static bool decode_vf(const struct nlattr *info, struct rtnl_vf *ret)
{
	struct nlattr *attrs[IFLA_VF_MAX + 1];
	struct ifla_vf_mac mac;
	struct ifla_vf_rate rate;
	struct ifla_vf_spoofchk spoofchk;
	struct ifla_vf_trust trust;
	struct ifla_vf_link_state state;
	struct ifla_vf_guid guid;

	*ret = (struct rtnl_vf){0};
	netlink_parse_nested(info, attrs, IFLA_VF_MAX);
	if (!attrs[IFLA_VF_MAC] || (size_t)nla_len(attrs[IFLA_VF_MAC]) < sizeof(mac))
		return false;
	memcpy(&mac, nla_data(attrs[IFLA_VF_MAC]), sizeof(mac));
	ret->index = mac.vf;
	memcpy(ret->mac, mac.mac, sizeof(ret->mac));
	decode_vlan(attrs, ret);
	ret->has_rate = vf_value(attrs[IFLA_VF_RATE], ret, &rate, sizeof(rate));
	if (ret->has_rate) {
		ret->min_rate = rate.min_tx_rate;
		ret->max_rate = rate.max_tx_rate;
	}
	/* All ones: the driver does not say. */
	ret->has_spoofchk = vf_value(attrs[IFLA_VF_SPOOFCHK], ret, &spoofchk, sizeof(spoofchk)) &&
			    spoofchk.setting != UINT32_MAX;
	ret->spoofchk = ret->has_spoofchk && spoofchk.setting;
	ret->has_trust = vf_value(attrs[IFLA_VF_TRUST], ret, &trust, sizeof(trust)) &&
			 trust.setting != UINT32_MAX;
	ret->trust = ret->has_trust && trust.setting;
	ret->has_link_state = vf_value(attrs[IFLA_VF_LINK_STATE], ret, &state, sizeof(state));
	if (ret->has_link_state)
		ret->link_state = state.link_state;
	ret->has_node_guid = vf_value(attrs[IFLA_VF_IB_NODE_GUID], ret, &guid, sizeof(guid));
	if (ret->has_node_guid)
		ret->node_guid = guid.guid;
	ret->has_port_guid = vf_value(attrs[IFLA_VF_IB_PORT_GUID], ret, &guid, sizeof(guid));
	if (ret->has_port_guid)
		ret->port_guid = guid.guid;
	decode_counters(attrs[IFLA_VF_STATS], ret);
	return true;
}

static void decode_vf_list(struct vf_list list, struct rtnl_vfs *ret)
{
	struct vf_list count = list;
	const struct nlattr *info;
	size_t n = 0;

	while (vf_list_next(&count))
		n++;
	ret->items = mem_calloc(n + 1, sizeof(*ret->items));
	while ((info = vf_list_next(&list)))
		if (decode_vf(info, &ret->items[ret->n]))
			ret->n++;
}

void rtnl_decode_vfs(const void *bytes, size_t len, struct rtnl_vfs *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	*ret = (struct rtnl_vfs){0};
	while ((message = netlink_next(bytes, len, &at))) {
		struct vf_list list = vf_list_of(message);

		if (!list.next)
			continue;
		decode_vf_list(list, ret);
		return;
	}
}

const struct rtnl_vf *rtnl_vf_by_number(const struct rtnl_vfs *list, uint32_t number)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].index == number)
			return &list->items[i];
	return NULL;
}

/* ---- asking and setting ---------------------------------------------------------------------- */

int rtnl_list_vfs(struct netlink *netlink, int pf_index, bool with_counters, struct rtnl_vfs *ret,
		  struct err *err)
{
	auto_nl_msg struct nl_msg *msg = rtnl_link_request(RTM_GETLINK, 0, pf_index);
	auto_strbuf struct strbuf answer = {0};

	/* Statistics make the list too long for new kernels. */
	netlink_put_u32(msg, IFLA_EXT_MASK,
			RTEXT_FILTER_VF | (with_counters ? 0 : RTEXT_FILTER_SKIP_STATS));
	if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return err_in(err, "list the VFs of network interface %d", pf_index);
	rtnl_decode_vfs(answer.data, answer.len, ret);
	return 0;
}

int rtnl_set_vf(struct netlink *netlink, int pf_index, int attribute, const void *value,
		size_t size, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = rtnl_link_request(RTM_SETLINK, 0, pf_index);
	struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST | NLA_F_NESTED);
	struct nlattr *info = nla_nest_start(msg, IFLA_VF_INFO | NLA_F_NESTED);
	auto_strbuf struct strbuf answer = {0};

	netlink_put(msg, attribute, value, size);
	nla_nest_end(msg, info);
	nla_nest_end(msg, list);
	return netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err);
}

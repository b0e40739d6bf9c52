// SPDX-License-Identifier: Apache-2.0
/*
 * One function per kind of step, called by netns_execute.c right before it sends: the number of the
 * device is known by then. Nothing is looked up here, so that a list of steps becomes the same
 * bytes each time.
 */
#include "nodeagent/cni/execute/messages.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/fib_rules.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/rtnl_link.h"

static int family_of(const struct addr *address)
{
	return address->family == 4 ? AF_INET : AF_INET6;
}

/* Without a prefix length: that of a single address. */
static bool read_address(const json_t *step, const char *key, struct addr *ret)
{
	const char *text = json_str_at(step, key);

	return addr_parse_prefix(text, ret) || addr_parse(text, ret);
}

static void put_address(struct nl_msg *msg, int type, const struct addr *address)
{
	netlink_put(msg, type, address->octets, addr_len(address));
}

static void put_mac(struct nl_msg *msg, int type, const json_t *step, const char *key)
{
	unsigned char mac[6];

	if (text_to_mac(json_str_or(json_at(step, key), ""), mac))
		netlink_put(msg, type, mac, sizeof(mac));
}

static void put_number(struct nl_msg *msg, int type, const json_t *step, const char *key)
{
	if (json_at(step, key))
		netlink_put_u32(msg, type, (uint32_t)look_number(step, key));
}

static struct nl_msg *link_message(const json_t *step, int index)
{
	static const struct {
		const char *key;
		unsigned int flag;
	} flags[] = {{"up", IFF_UP}, {"promisc", IFF_PROMISC}, {"allmulti", IFF_ALLMULTI}};
	struct ifinfomsg header = {.ifi_index = index};
	struct nl_msg *msg;

	if (json_is_true(json_at(step, "deaf")))
		header.ifi_change |= IFF_PROMISC | IFF_ALLMULTI;
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (json_at(step, flags[i].key))
			header.ifi_change |= flags[i].flag;
		if (json_is_true(json_at(step, flags[i].key)))
			header.ifi_flags |= flags[i].flag;
	}
	msg = netlink_request(RTM_NEWLINK, 0, &header, sizeof(header));
	put_number(msg, IFLA_MASTER, step, "master");
	put_mac(msg, IFLA_ADDRESS, step, "mac");
	put_number(msg, IFLA_MTU, step, "mtu");
	put_number(msg, IFLA_TXQLEN, step, "txqlen");
	put_number(msg, IFLA_GROUP, step, "group");
	return msg;
}

/* By number, or all of a group, which the kernel takes down together (rtnl_group_dellink()). */
static struct nl_msg *unlink_message(const json_t *step, int index)
{
	struct nl_msg *msg = rtnl_link_request(RTM_DELLINK, 0, index);

	put_number(msg, IFLA_GROUP, step, "group");
	return msg;
}

/*
 * Name and namespace at once: no moment in which the device is anywhere else, or has a name that it
 * keeps when we end (net/core/rtnetlink.c, do_setlink(): it moves, then takes the name).
 */
static struct nl_msg *move_message(const json_t *step, int index, int other)
{
	struct nl_msg *msg = rtnl_link_request(RTM_SETLINK, 0, index);

	if (other >= 0)
		netlink_put_u32(msg, IFLA_NET_NS_FD, (uint32_t)other);
	netlink_put_str(msg, IFLA_IFNAME, json_str_or(json_at(step, "as"), ""));
	return msg;
}

static struct nl_msg *unalt_message(const json_t *step, int index)
{
	struct nl_msg *msg = rtnl_link_request(RTM_DELLINKPROP, 0, index);
	struct nlattr *list = nla_nest_start(msg, IFLA_PROP_LIST | NLA_F_NESTED);

	netlink_put_str(msg, IFLA_ALT_IFNAME, json_str_or(json_at(step, "name"), ""));
	(void)nla_nest_end(msg, list);
	return msg;
}

static struct nl_msg *alias_message(const json_t *step, int index)
{
	struct nl_msg *msg = rtnl_link_request(RTM_SETLINK, 0, index);
	const char *alias = json_str_or(json_at(step, "as"), "");

	/* Without the NUL, which the kernel would take for a text of one byte. */
	netlink_put(msg, IFLA_IFALIAS, alias, strlen(alias));
	return msg;
}

static struct nl_msg *unxdp_message(const json_t *step, int index)
{
	struct nl_msg *msg = rtnl_link_request(RTM_SETLINK, 0, index);
	struct nlattr *xdp = nla_nest_start(msg, IFLA_XDP | NLA_F_NESTED);
	const int32_t none = -1;

	netlink_put(msg, IFLA_XDP_FD, &none, sizeof(none));
	netlink_put_u32(msg, IFLA_XDP_FLAGS, (uint32_t)look_number(step, "mode"));
	(void)nla_nest_end(msg, xdp);
	return msg;
}

static void put_vf_vlan(struct nl_msg *msg, uint32_t vf, const json_t *step)
{
	struct ifla_vf_vlan_info info = {
		.vf = vf,
		.vlan = (uint32_t)look_number(step, "vlan"),
		.qos = (uint32_t)look_number(step, "qos"),
		.vlan_proto = htons((uint16_t)look_number(step, "proto")),
	};
	struct nlattr *list = nla_nest_start(msg, IFLA_VF_VLAN_LIST);

	netlink_put(msg, IFLA_VF_VLAN_INFO, &info, sizeof(info));
	(void)nla_nest_end(msg, list);
}

/* One attribute: the kernel stops at the first that it refuses, and undoes nothing. */
static void put_vf(struct nl_msg *msg, uint32_t vf, const json_t *step)
{
	struct ifla_vf_rate rate = {
		.vf = vf,
		.min_tx_rate = (uint32_t)look_number(step, "minRate"),
		.max_tx_rate = (uint32_t)look_number(step, "maxRate"),
	};
	struct ifla_vf_mac mac = {.vf = vf};
	struct ifla_vf_spoofchk spoofchk = {vf, json_is_true(json_at(step, "spoofchk"))};
	struct ifla_vf_trust trust = {vf, json_is_true(json_at(step, "trust"))};
	struct ifla_vf_link_state state = {vf, (uint32_t)look_number(step, "linkState")};
	struct ifla_vf_guid guid = {.vf = vf};
	uint64_t number;

	if (json_at(step, "vlan"))
		put_vf_vlan(msg, vf, step);
	else if (json_at(step, "maxRate"))
		netlink_put(msg, IFLA_VF_RATE, &rate, sizeof(rate));
	else if (json_at(step, "spoofchk"))
		netlink_put(msg, IFLA_VF_SPOOFCHK, &spoofchk, sizeof(spoofchk));
	else if (json_at(step, "trust"))
		netlink_put(msg, IFLA_VF_TRUST, &trust, sizeof(trust));
	else if (json_at(step, "linkState"))
		netlink_put(msg, IFLA_VF_LINK_STATE, &state, sizeof(state));
	else if (text_to_guid(json_str_or(json_at(step, "nodeGuid"), ""), &number) ||
		 text_to_guid(json_str_or(json_at(step, "portGuid"), ""), &number)) {
		guid.guid = number;
		netlink_put(msg,
			    json_at(step, "nodeGuid") ? IFLA_VF_IB_NODE_GUID : IFLA_VF_IB_PORT_GUID,
			    &guid, sizeof(guid));
	} else if (text_to_mac(json_str_or(json_at(step, "mac"), ""), mac.mac))
		netlink_put(msg, IFLA_VF_MAC, &mac, sizeof(mac));
}

static struct nl_msg *vf_message(const json_t *step, int index)
{
	struct nl_msg *msg = rtnl_link_request(RTM_SETLINK, 0, index);
	struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST | NLA_F_NESTED);
	struct nlattr *info = nla_nest_start(msg, IFLA_VF_INFO | NLA_F_NESTED);

	put_vf(msg, (uint32_t)look_number(step, "vf"), step);
	(void)nla_nest_end(msg, info);
	(void)nla_nest_end(msg, list);
	return msg;
}

static void put_end_of_pair(struct nl_msg *msg, const json_t *step, const char *name,
			    const char *mac)
{
	netlink_put_str(msg, IFLA_IFNAME, json_str_or(json_at(step, name), ""));
	put_mac(msg, IFLA_ADDRESS, step, mac);
	put_number(msg, IFLA_MTU, step, "mtu");
	netlink_put_u32(msg, IFLA_TXQLEN, 0);
}

static struct nl_msg *bridge_message(const json_t *step)
{
	struct nl_msg *msg = rtnl_link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
	struct nlattr *info, *data;

	netlink_put_str(msg, IFLA_IFNAME, json_str_or(json_at(step, "dev"), ""));
	put_number(msg, IFLA_MTU, step, "mtu");
	info = nla_nest_start(msg, IFLA_LINKINFO);
	netlink_put_str(msg, IFLA_INFO_KIND, "bridge");
	if (json_is_true(json_at(step, "filtering"))) {
		data = nla_nest_start(msg, IFLA_INFO_DATA);
		netlink_put_u8(msg, IFLA_BR_VLAN_FILTERING, 1);
		(void)nla_nest_end(msg, data);
	}
	(void)nla_nest_end(msg, info);
	return msg;
}

static void put_bond_addresses(struct nl_msg *msg, int type, const json_t *addresses)
{
	struct nlattr *list = nla_nest_start(msg, type);
	struct addr address;
	size_t i;
	json_t *text;

	json_array_foreach (addresses, i, text)
		if (addr_parse(json_string_value(text), &address))
			put_address(msg, (int)i, &address);
	(void)nla_nest_end(msg, list);
}

static void put_bond_option(struct nl_msg *msg, const json_t *option)
{
	int number = (int)look_number(option, "number");
	int64_t bits = look_number(option, "bits"), value = look_number(option, "value");

	if (json_at(option, "addresses"))
		put_bond_addresses(msg, number, json_at(option, "addresses"));
	else if (json_at(option, "mac"))
		put_mac(msg, number, option, "mac");
	else if (bits == 8)
		netlink_put_u8(msg, number, (uint8_t)value);
	else if (bits == 16)
		netlink_put_u16(msg, number, (uint16_t)value);
	else
		netlink_put_u32(msg, number, (uint32_t)value);
}

static struct nl_msg *bond_message(const json_t *step)
{
	struct nl_msg *msg = rtnl_link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
	struct nlattr *info, *data;
	size_t i;
	json_t *option;

	netlink_put_str(msg, IFLA_IFNAME, json_str_or(json_at(step, "dev"), ""));
	info = nla_nest_start(msg, IFLA_LINKINFO);
	netlink_put_str(msg, IFLA_INFO_KIND, "bond");
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	json_array_foreach (json_at(step, "options"), i, option)
		put_bond_option(msg, option);
	(void)nla_nest_end(msg, data);
	(void)nla_nest_end(msg, info);
	return msg;
}

/* To the bridge that the link is a port of (net/bridge/br_netlink.c). */
static struct nl_msg *bridge_request(uint16_t type, int index)
{
	struct ifinfomsg header = {.ifi_family = AF_BRIDGE, .ifi_index = index};

	return netlink_request(type, 0, &header, sizeof(header));
}

static struct nl_msg *port_message(const json_t *step, int index)
{
	struct nl_msg *msg = bridge_request(RTM_SETLINK, index);
	struct nlattr *info = nla_nest_start(msg, IFLA_PROTINFO | NLA_F_NESTED);

	netlink_put_u8(msg, IFLA_BRPORT_MODE, json_is_true(json_at(step, "hairpin")));
	if (json_at(step, "isolated"))
		netlink_put_u8(msg, IFLA_BRPORT_ISOLATED, json_is_true(json_at(step, "isolated")));
	(void)nla_nest_end(msg, info);
	return msg;
}

static void put_vlan(struct nl_msg *msg, const json_t *id, unsigned int flags)
{
	struct bridge_vlan_info info = {.flags = (uint16_t)flags,
					.vid = (uint16_t)json_integer_value(id)};

	netlink_put(msg, IFLA_BRIDGE_VLAN_INFO, &info, sizeof(info));
}

static struct nl_msg *vlans_message(const json_t *step, bool add, int index)
{
	struct nl_msg *msg = bridge_request(add ? RTM_SETLINK : RTM_DELLINK, index);
	struct nlattr *spec = nla_nest_start(msg, IFLA_AF_SPEC | NLA_F_NESTED);
	unsigned int flags = json_is_true(json_at(step, "pvid"))
				     ? BRIDGE_VLAN_INFO_PVID | BRIDGE_VLAN_INFO_UNTAGGED
				     : 0;
	size_t i;
	json_t *range;

	netlink_put_u16(msg, IFLA_BRIDGE_FLAGS,
			json_at(step, "self") ? BRIDGE_FLAGS_SELF : BRIDGE_FLAGS_MASTER);
	json_array_foreach (json_at(step, "ids"), i, range) {
		const json_t *first = json_array_get(range, 0), *last = json_array_get(range, 1);

		if (json_equal(first, last)) {
			put_vlan(msg, first, flags);
			continue;
		}
		put_vlan(msg, first, flags | BRIDGE_VLAN_INFO_RANGE_BEGIN);
		put_vlan(msg, last, flags | BRIDGE_VLAN_INFO_RANGE_END);
	}
	(void)nla_nest_end(msg, spec);
	return msg;
}

/* Both ends in one message: no moment in which the peer is in the pod (drivers/net/veth.c). */
static struct nl_msg *veth_message(const json_t *step, int other)
{
	bool is_down = json_is_false(json_at(step, "up"));
	struct ifinfomsg up = {.ifi_flags = is_down ? 0 : IFF_UP, .ifi_change = IFF_UP}, peer = {0};
	struct nl_msg *msg =
		netlink_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &up, sizeof(up));
	struct nlattr *info, *data, *end;

	put_end_of_pair(msg, step, "dev", "mac");
	info = nla_nest_start(msg, IFLA_LINKINFO);
	netlink_put_str(msg, IFLA_INFO_KIND, "veth");
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	end = nla_nest_start(msg, VETH_INFO_PEER);
	(void)nlmsg_append(msg, &peer, sizeof(peer), NLMSG_ALIGNTO);
	netlink_put_u32(msg, IFLA_NET_NS_FD, (uint32_t)other);
	put_end_of_pair(msg, step, "peer", "peerMac");
	(void)nla_nest_end(msg, end);
	(void)nla_nest_end(msg, data);
	(void)nla_nest_end(msg, info);
	return msg;
}

static struct nl_msg *ipoib_message(const json_t *step)
{
	struct nl_msg *msg = rtnl_link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL,
					       (int)look_number(step, "index"));
	struct nlattr *info, *data;

	netlink_put_str(msg, IFLA_IFNAME, json_str_or(json_at(step, "dev"), ""));
	put_number(msg, IFLA_LINK, step, "lower");
	info = nla_nest_start(msg, IFLA_LINKINFO);
	netlink_put_str(msg, IFLA_INFO_KIND, "ipoib");
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	netlink_put_u16(msg, IFLA_IPOIB_PKEY, (uint16_t)look_number(step, "pkey"));
	netlink_put_u16(msg, IFLA_IPOIB_MODE, (uint16_t)look_number(step, "mode"));
	netlink_put_u16(msg, IFLA_IPOIB_UMCAST, 1);
	(void)nla_nest_end(msg, data);
	(void)nla_nest_end(msg, info);
	return msg;
}

/* In the other namespace from the beginning: a move would wait for an RCU grace period. */
static struct nl_msg *upper_message(const json_t *step, int other)
{
	struct nl_msg *msg = rtnl_link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
	struct nlattr *info, *data;
	const char *kind = json_str_or(json_at(step, "kind"), "");
	uint32_t mode = (uint32_t)look_number(step, "mode");

	netlink_put_str(msg, IFLA_IFNAME, json_str_or(json_at(step, "dev"), ""));
	put_number(msg, IFLA_LINK, step, "lower");
	put_mac(msg, IFLA_ADDRESS, step, "mac");
	put_number(msg, IFLA_MTU, step, "mtu");
	if (json_at(step, "to"))
		netlink_put_u32(msg, IFLA_NET_NS_FD, (uint32_t)other);
	info = nla_nest_start(msg, IFLA_LINKINFO);
	netlink_put_str(msg, IFLA_INFO_KIND, kind);
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	/* What its kind alone has (linux/if_link.h). */
	if (str_eq(kind, "macvlan")) {
		netlink_put_u32(msg, IFLA_MACVLAN_MODE, mode);
		put_number(msg, IFLA_MACVLAN_BC_QUEUE_LEN, step, "queue");
	} else if (str_eq(kind, "ipvlan")) {
		netlink_put_u16(msg, IFLA_IPVLAN_MODE, (uint16_t)mode);
	} else if (json_at(step, "vlan")) {
		netlink_put_u16(msg, IFLA_VLAN_ID, (uint16_t)look_number(step, "vlan"));
	}
	(void)nla_nest_end(msg, data);
	(void)nla_nest_end(msg, info);
	return msg;
}

static struct nl_msg *address_message(const json_t *step, bool add, int index)
{
	struct ifaddrmsg header = {.ifa_index = (unsigned int)index};
	struct addr address;
	struct nl_msg *msg;

	if (!read_address(step, "address", &address))
		return NULL;
	header.ifa_family = (unsigned char)family_of(&address);
	header.ifa_prefixlen = address.prefix;
	msg = netlink_request(add ? RTM_NEWADDR : RTM_DELADDR, add ? NLM_F_CREATE | NLM_F_EXCL : 0,
			      &header, sizeof(header));
	put_address(msg, IFA_LOCAL, &address);
	put_address(msg, IFA_ADDRESS, &address);
	if (json_is_true(json_at(step, "broadcast")) && address.family == 4 &&
	    address.prefix < 31) {
		struct addr last = address;

		for (unsigned int bit = address.prefix; bit < 32; bit++)
			last.octets[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		put_address(msg, IFA_BROADCAST, &last);
	}
	return msg;
}

static struct nl_msg *route_message(const json_t *step, bool add, int index)
{
	struct rtmsg header = {
		.rtm_scope = (unsigned char)look_number(step, "scope"),
		.rtm_protocol = add ? RTPROT_BOOT : 0,
		.rtm_type = add ? RTN_UNICAST : 0,
		.rtm_flags = (unsigned int)look_number(step, "flags"),
	};
	int64_t table = look_number(step, "table");
	struct addr dst, other;
	struct nl_msg *msg;
	uint16_t flags = 0;

	if (!read_address(step, "dst", &dst))
		return NULL;
	header.rtm_family = (unsigned char)family_of(&dst);
	header.rtm_dst_len = dst.prefix;
	header.rtm_table = table < 256 ? (unsigned char)table : RT_TABLE_COMPAT;
	/* Exclusive: IPv6 would make one route with two next hops of two equal ones. */
	if (add)
		flags = json_is_true(json_at(step, "beside")) ? NLM_F_CREATE
							      : NLM_F_CREATE | NLM_F_EXCL;
	msg = netlink_request(add ? RTM_NEWROUTE : RTM_DELROUTE, flags, &header, sizeof(header));
	netlink_put_u32(msg, RTA_TABLE, (uint32_t)table);
	if (dst.prefix)
		put_address(msg, RTA_DST, &dst);
	if (index)
		netlink_put_u32(msg, RTA_OIF, (uint32_t)index);
	if (read_address(step, "gw", &other))
		put_address(msg, RTA_GATEWAY, &other);
	if (read_address(step, "src", &other))
		put_address(msg, RTA_PREFSRC, &other);
	if (json_at(step, "metric"))
		put_number(msg, RTA_PRIORITY, step, "metric");
	if (add && json_at(step, "mtu")) {
		struct nlattr *metrics = nla_nest_start(msg, RTA_METRICS);

		put_number(msg, RTAX_MTU, step, "mtu");
		(void)nla_nest_end(msg, metrics);
	}
	return msg;
}

static struct nl_msg *rule_message(const json_t *step, bool add)
{
	struct fib_rule_hdr header = {
		.family = look_number(step, "family") == 6 ? AF_INET6 : AF_INET,
		.action = FR_ACT_TO_TBL,
	};
	int64_t table = look_number(step, "table");
	struct addr from = {0}, to = {0};
	struct nl_msg *msg;

	if (read_address(step, "from", &from))
		header.src_len = from.prefix;
	if (read_address(step, "to", &to))
		header.dst_len = to.prefix;
	header.table = table < 256 ? (unsigned char)table : RT_TABLE_COMPAT;
	msg = netlink_request(add ? RTM_NEWRULE : RTM_DELRULE, add ? NLM_F_CREATE | NLM_F_EXCL : 0,
			      &header, sizeof(header));
	netlink_put_u32(msg, FRA_TABLE, (uint32_t)table);
	if (from.family)
		put_address(msg, FRA_SRC, &from);
	if (to.family)
		put_address(msg, FRA_DST, &to);
	put_number(msg, FRA_FWMARK, step, "mark");
	put_number(msg, FRA_PRIORITY, step, "priority");
	return msg;
}

static struct nl_msg *neighbour_message(const json_t *step, bool add, int index)
{
	struct ndmsg header = {.ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
	struct addr address;
	struct nl_msg *msg;

	if (!read_address(step, "address", &address))
		return NULL;
	header.ndm_family = (unsigned char)family_of(&address);
	msg = netlink_request(add ? RTM_NEWNEIGH : RTM_DELNEIGH,
			      add ? NLM_F_CREATE | NLM_F_REPLACE : 0, &header, sizeof(header));
	put_address(msg, NDA_DST, &address);
	if (add)
		put_mac(msg, NDA_LLADDR, step, "mac");
	return msg;
}

struct nl_msg *message_of_step(const json_t *step, int index, int other, struct err *err)
{
	const char *what = json_str_or(json_at(step, "do"), "");
	auto_free char *text = NULL;
	struct nl_msg *msg = NULL;

	assert(index >= 0 && other >= -1);
	if (str_eq(what, "link") || str_eq(what, "mac"))
		msg = link_message(step, index);
	else if (str_eq(what, "move"))
		msg = move_message(step, index, other);
	else if (str_eq(what, "rename"))
		msg = move_message(step, index, -1);
	else if (str_eq(what, "alias"))
		msg = alias_message(step, index);
	else if (str_eq(what, "unxdp"))
		msg = unxdp_message(step, index);
	else if (str_eq(what, "unalt"))
		msg = unalt_message(step, index);
	else if (str_eq(what, "vf"))
		msg = vf_message(step, index);
	else if (str_eq(what, "unlink"))
		msg = unlink_message(step, index);
	else if (str_eq(what, "ipoib"))
		msg = ipoib_message(step);
	else if (str_eq(what, "upper"))
		msg = upper_message(step, other);
	else if (str_eq(what, "veth"))
		msg = veth_message(step, other);
	else if (str_eq(what, "bridge"))
		msg = bridge_message(step);
	else if (str_eq(what, "bond"))
		msg = bond_message(step);
	else if (str_eq(what, "port"))
		msg = port_message(step, index);
	else if (str_ends(what, "vlans"))
		msg = vlans_message(step, what[0] == 'v', index);
	else if (str_ends(what, "address"))
		msg = address_message(step, what[0] == 'a', index);
	else if (str_ends(what, "route"))
		msg = route_message(step, what[0] == 'r', index);
	else if (str_ends(what, "rule"))
		msg = rule_message(step, what[0] == 'r');
	else if (str_ends(what, "neighbour"))
		msg = neighbour_message(step, what[0] == 'n', index);
	if (msg)
		return msg;
	text = step_text(step);
	(void)err_set(err, ERR_BUG, "BadStep", "%s: no such step", text);
	return NULL;
}

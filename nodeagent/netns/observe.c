// SPDX-License-Identifier: Apache-2.0
/*
 * What a network namespace looks like. See the header.
 */
#include "nodeagent/netns/observe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/attach/look.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/vf_list.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/message.h"

/* All that there are, so that nothing we look for is out of range with older headers. */
#define LINK_ATTR_MAX 80

static const char *const lists[] = {"links", "addresses", "routes", "rules", "neighbours"};

static json_t *new_look(void)
{
	json_t *look = json_object();

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		json_put(look, lists[i], json_array());
	json_put(look, "sources", json_object());
	return look;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void put_u32(json_t *object, const char *key, const struct nlattr *attr)
{
	uint32_t value;

	if (netlink_u32(attr, &value) && value)
		json_put_int(object, key, value);
}

static void put_number(json_t *object, const char *key, int64_t value)
{
	if (value)
		json_put_int(object, key, value);
}

/* An address of the family and, with `with_prefix`, its length. Nothing when it is malformed. */
static void put_address(json_t *object, const char *key, const struct nlattr *attr, int family,
			unsigned int prefix, bool with_prefix)
{
	struct addr address = {.family = family == AF_INET ? 4 : 6, .prefix = (uint8_t)prefix};
	char text[ADDR_TEXT_SIZE];

	if ((family != AF_INET && family != AF_INET6) || prefix > addr_len(&address) * 8)
		return;
	if (attr && (unsigned int)nla_len(attr) != addr_len(&address))
		return;
	if (attr)
		memcpy(address.octets, nla_data(attr), addr_len(&address));
	else if (prefix)
		return;
	if (with_prefix)
		addr_print_prefix(&address, text);
	else
		addr_print(&address, text);
	json_put_str(object, key, text);
}

static void put_mac(json_t *object, const char *key, const struct nlattr *attr)
{
	char text[3 * 32];

	if (!attr || nla_len(attr) < 1 || nla_len(attr) > 32)
		return;
	text_from_octets(nla_data(attr), (size_t)nla_len(attr), text);
	json_put_str(object, key, text);
}

/* Names the link by index where it is known; else nothing. */
static void put_dev(json_t *object, const json_t *look, int64_t index)
{
	json_put_str(object, "dev", json_str_at(look_link_by_index(look, index), "name"));
}

static void decode_alt_names(const struct nlattr *list, json_t *link)
{
	json_t *names = json_array();
	const struct nlattr *attr;
	int left;

	nla_for_each_nested(attr, list, left)
	{
		char name[128]; /* ALTIFNAMSIZ */

		if (nla_type(attr) == IFLA_ALT_IFNAME && netlink_str(attr, name, sizeof(name)))
			json_array_append_new(names, json_fmt("%s", name));
	}
	json_put(link, "altNames", names);
}

/* enum of IFLA_XDP_ATTACHED, linux/if_link.h. */
static void decode_xdp(const struct nlattr *xdp, json_t *link)
{
	struct nlattr *attrs[IFLA_XDP_MAX + 1];
	uint8_t attached;

	netlink_parse_nested(xdp, attrs, IFLA_XDP_MAX);
	if (netlink_u8(attrs[IFLA_XDP_ATTACHED], &attached) && attached)
		json_put_int(link, "xdp", attached);
}

/* What links of some kinds have, by the number of its attribute. */
static const struct {
	const char *kind, *key;
	int type;
} kind_numbers[] = {
	{"ipoib", "pkey", IFLA_IPOIB_PKEY},     {"ipoib", "mode", IFLA_IPOIB_MODE},
	{"macvlan", "mode", IFLA_MACVLAN_MODE}, {"ipvlan", "mode", IFLA_IPVLAN_MODE},
	{"vlan", "vlan", IFLA_VLAN_ID},
};

static void decode_kind(const char *kind, const struct nlattr *data, json_t *link)
{
	enum { NUMBER_MAX = IFLA_MACVLAN_MAX };
	struct nlattr *attrs[NUMBER_MAX + 1];
	uint16_t small;
	uint32_t large;

	netlink_parse_nested(data, attrs, NUMBER_MAX);
	for (size_t i = 0; i < ARRAY_LEN(kind_numbers); i++) {
		const struct nlattr *attr = attrs[kind_numbers[i].type];

		if (!str_eq(kind, kind_numbers[i].kind))
			continue;
		if (netlink_u16(attr, &small))
			json_put_int(link, kind_numbers[i].key, small);
		else if (netlink_u32(attr, &large))
			json_put_int(link, kind_numbers[i].key, large);
	}
}

static void decode_link(const struct nlmsghdr *message, json_t *look)
{
	struct nlattr *attrs[LINK_ATTR_MAX + 1], *info[IFLA_INFO_MAX + 1];
	const struct ifinfomsg *header = nlmsg_data(message);
	char name[IFNAMSIZ], kind[32], parent[32], alias[256]; /* IFALIASZ */
	json_auto_t *link = json_object();

	if (!netlink_parse(message, sizeof(*header), attrs, LINK_ATTR_MAX) ||
	    header->ifi_index <= 0 || !netlink_str(attrs[IFLA_IFNAME], name, sizeof(name)))
		return;
	json_put_int(link, "index", header->ifi_index);
	if (attrs[IFLA_XDP])
		decode_xdp(attrs[IFLA_XDP], link);
	if (netlink_str(attrs[IFLA_IFALIAS], alias, sizeof(alias)) && alias[0])
		json_put(link, "alias", json_fmt("%s", alias));
	json_put_str(link, "name", name);
	json_put_int(link, "type", header->ifi_type);
	json_put_int(link, "flags", header->ifi_flags);
	put_mac(link, "mac", attrs[IFLA_ADDRESS]);
	put_u32(link, "mtu", attrs[IFLA_MTU]);
	put_u32(link, "txqlen", attrs[IFLA_TXQLEN]);
	put_u32(link, "lower", attrs[IFLA_LINK]);
	if (attrs[IFLA_LINKINFO]) {
		netlink_parse_nested(attrs[IFLA_LINKINFO], info, IFLA_INFO_MAX);
		if (netlink_str(info[IFLA_INFO_KIND], kind, sizeof(kind)))
			json_put_str(link, "kind", kind);
		if (json_at(link, "kind") && info[IFLA_INFO_DATA])
			decode_kind(kind, info[IFLA_INFO_DATA], link);
	}
	if (netlink_str(attrs[IFLA_PARENT_DEV_NAME], parent, sizeof(parent)) &&
	    pci_address_is_valid(parent))
		json_put_str(link, "parent", parent);
	if (attrs[IFLA_PROP_LIST])
		decode_alt_names(attrs[IFLA_PROP_LIST], link);
	json_array_append(json_at(look, "links"), link);
}

static void decode_address(const struct nlmsghdr *message, json_t *look)
{
	struct nlattr *attrs[IFA_MAX + 1];
	const struct ifaddrmsg *header = nlmsg_data(message);
	json_auto_t *address = json_object();

	if (!netlink_parse(message, sizeof(*header), attrs, IFA_MAX))
		return;
	/* With a peer IFA_ADDRESS is the other end's. */
	put_address(address, "address", attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS],
		    header->ifa_family, header->ifa_prefixlen, true);
	put_dev(address, look, (int64_t)header->ifa_index);
	json_put_int(address, "index", (int64_t)header->ifa_index);
	put_number(address, "scope", header->ifa_scope);
	if (json_at(address, "address"))
		json_array_append(json_at(look, "addresses"), address);
}

static void decode_nexthops(const struct nlattr *attr, int family, const json_t *look,
			    json_t *route)
{
	const struct rtnexthop *hop = nla_data(attr);
	json_t *hops = json_array();
	int left = nla_len(attr);

	for (; left >= (int)sizeof(*hop) && hop->rtnh_len >= sizeof(*hop) && hop->rtnh_len <= left;
	     left -= NLMSG_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
		json_auto_t *object = json_object();
		const struct nlattr *inner = (const void *)RTNH_DATA(hop);
		int inner_left = (int)(hop->rtnh_len - sizeof(*hop));

		put_dev(object, look, hop->rtnh_ifindex);
		put_number(object, "flags", hop->rtnh_flags & RTNH_F_ONLINK);
		for (; nla_ok(inner, inner_left); inner = nla_next(inner, &inner_left))
			if (nla_type(inner) == RTA_GATEWAY)
				put_address(object, "gw", inner, family,
					    family == AF_INET ? 32 : 128, false);
		json_array_append(hops, object);
	}
	json_put(route, "nexthops", hops);
}

/* of_cache: those that the kernel makes of routes for one address count, too. */
static void decode_route(const struct nlmsghdr *message, bool of_cache, json_t *look)
{
	struct nlattr *attrs[RTA_MAX + 1], *metrics[RTAX_MAX + 1];
	const struct rtmsg *header = nlmsg_data(message);
	unsigned int full;
	json_auto_t *route = json_object();
	uint32_t table = 0, oif = 0;

	if (!netlink_parse(message, sizeof(*header), attrs, RTA_MAX) ||
	    (header->rtm_family != AF_INET && header->rtm_family != AF_INET6) ||
	    (header->rtm_flags & RTM_F_CLONED && !of_cache))
		return;
	full = header->rtm_family == AF_INET ? 32 : 128;
	json_put_int(route, "family", header->rtm_family == AF_INET ? 4 : 6);
	json_put_int(route, "table",
		     netlink_u32(attrs[RTA_TABLE], &table) ? table : header->rtm_table);
	put_address(route, "dst", attrs[RTA_DST], header->rtm_family, header->rtm_dst_len, true);
	put_address(route, "gw", attrs[RTA_GATEWAY], header->rtm_family, full, false);
	/* Of the other family: how IPv4 goes by gateways of IPv6. */
	if (attrs[RTA_VIA])
		json_put_bool(route, "via", true);
	put_address(route, "src", attrs[RTA_PREFSRC], header->rtm_family, full, false);
	if (netlink_u32(attrs[RTA_OIF], &oif))
		put_dev(route, look, oif);
	put_number(route, "scope", header->rtm_scope);
	put_number(route, "protocol", header->rtm_protocol);
	put_number(route, "type", header->rtm_type);
	put_number(route, "flags", header->rtm_flags & RTNH_F_ONLINK);
	put_u32(route, "metric", attrs[RTA_PRIORITY]);
	if (attrs[RTA_METRICS]) {
		netlink_parse_nested(attrs[RTA_METRICS], metrics, RTAX_MAX);
		put_u32(route, "mtu", metrics[RTAX_MTU]);
	}
	if (attrs[RTA_MULTIPATH])
		decode_nexthops(attrs[RTA_MULTIPATH], header->rtm_family, look, route);
	if (json_at(route, "dst"))
		json_array_append(json_at(look, "routes"), route);
}

static void decode_rule(const struct nlmsghdr *message, json_t *look)
{
	struct nlattr *attrs[FRA_MAX + 1];
	const struct fib_rule_hdr *header = nlmsg_data(message);
	json_auto_t *rule = json_object();
	uint32_t table = 0;

	if (!netlink_parse(message, sizeof(*header), attrs, FRA_MAX) ||
	    (header->family != AF_INET && header->family != AF_INET6) ||
	    header->action != FR_ACT_TO_TBL)
		return;
	json_put_int(rule, "family", header->family == AF_INET ? 4 : 6);
	json_put_int(rule, "table", netlink_u32(attrs[FRA_TABLE], &table) ? table : header->table);
	put_u32(rule, "priority", attrs[FRA_PRIORITY]);
	put_u32(rule, "mark", attrs[FRA_FWMARK]);
	if (attrs[FRA_SRC])
		put_address(rule, "from", attrs[FRA_SRC], header->family, header->src_len, true);
	if (attrs[FRA_DST])
		put_address(rule, "to", attrs[FRA_DST], header->family, header->dst_len, true);
	json_array_append(json_at(look, "rules"), rule);
}

static void decode_neighbour(const struct nlmsghdr *message, json_t *look)
{
	struct nlattr *attrs[NDA_MAX + 1];
	const struct ndmsg *header = nlmsg_data(message);
	json_auto_t *neighbour = json_object();

	if (!netlink_parse(message, sizeof(*header), attrs, NDA_MAX) || !attrs[NDA_DST])
		return;
	put_address(neighbour, "address", attrs[NDA_DST], header->ndm_family,
		    header->ndm_family == AF_INET ? 32 : 128, false);
	put_mac(neighbour, "mac", attrs[NDA_LLADDR]);
	put_dev(neighbour, look, header->ndm_ifindex);
	json_put_int(neighbour, "index", header->ndm_ifindex);
	json_put_bool(neighbour, "permanent", (header->ndm_state & NUD_PERMANENT) != 0);
	if (json_at(neighbour, "address"))
		json_array_append(json_at(look, "neighbours"), neighbour);
}

void netns_decode(const void *bytes, size_t len, json_t *look)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		switch (message->nlmsg_type) {
		case RTM_NEWLINK:
			decode_link(message, look);
			break;
		case RTM_NEWADDR:
			decode_address(message, look);
			break;
		case RTM_NEWROUTE:
			decode_route(message, false, look);
			break;
		case RTM_NEWRULE:
			decode_rule(message, look);
			break;
		case RTM_NEWNEIGH:
			decode_neighbour(message, look);
			break;
		}
	}
}

/* Each value starts with the VF's number. */
static bool vf_value(const struct nlattr *attr, int64_t vf, void *ret, size_t size)
{
	uint32_t number;

	if (!attr || (size_t)nla_len(attr) < size)
		return false;
	memcpy(ret, nla_data(attr), size);
	memcpy(&number, ret, sizeof(number));
	return number == vf;
}

static void decode_vf_vlan(const struct nlattr *const *attrs, int64_t vf, json_t *ret)
{
	struct ifla_vf_vlan vlan;
	struct ifla_vf_vlan_info info;
	const struct nlattr *attr;
	int left;

	if (vf_value(attrs[IFLA_VF_VLAN], vf, &vlan, sizeof(vlan))) {
		json_put_int(ret, "vlan", vlan.vlan);
		json_put_int(ret, "qos", vlan.qos);
	}
	if (!attrs[IFLA_VF_VLAN_LIST])
		return;
	nla_for_each_nested(attr, attrs[IFLA_VF_VLAN_LIST],
			    left) if (nla_type(attr) == IFLA_VF_VLAN_INFO &&
				      vf_value(attr, vf, &info, sizeof(info)))
		json_put_int(ret, "proto", ntohs(info.vlan_proto));
}

static json_t *decode_vf(const struct nlattr *info, int64_t vf)
{
	struct nlattr *attrs[IFLA_VF_MAX + 1];
	struct ifla_vf_mac mac;
	struct ifla_vf_rate rate;
	struct ifla_vf_spoofchk spoofchk;
	struct ifla_vf_trust trust;
	struct ifla_vf_link_state state;
	struct ifla_vf_guid guid;
	char text[18], guid_text[TEXT_GUID_SIZE];
	json_t *ret;

	netlink_parse_nested(info, attrs, IFLA_VF_MAX);
	if (!vf_value(attrs[IFLA_VF_MAC], vf, &mac, sizeof(mac)))
		return NULL;
	ret = json_object();
	text_from_octets(mac.mac, 6, text);
	json_put_str(ret, "mac", text);
	decode_vf_vlan((const struct nlattr *const *)attrs, vf, ret);
	if (vf_value(attrs[IFLA_VF_RATE], vf, &rate, sizeof(rate))) {
		json_put_int(ret, "minRate", rate.min_tx_rate);
		json_put_int(ret, "maxRate", rate.max_tx_rate);
	}
	/* All ones: the driver does not say. */
	if (vf_value(attrs[IFLA_VF_SPOOFCHK], vf, &spoofchk, sizeof(spoofchk)) &&
	    spoofchk.setting != UINT32_MAX)
		json_put_bool(ret, "spoofchk", spoofchk.setting != 0);
	if (vf_value(attrs[IFLA_VF_TRUST], vf, &trust, sizeof(trust)) &&
	    trust.setting != UINT32_MAX)
		json_put_bool(ret, "trust", trust.setting != 0);
	if (vf_value(attrs[IFLA_VF_LINK_STATE], vf, &state, sizeof(state)))
		json_put_int(ret, "linkState", state.link_state);
	if (vf_value(attrs[IFLA_VF_IB_NODE_GUID], vf, &guid, sizeof(guid))) {
		text_from_guid(guid.guid, guid_text);
		json_put_str(ret, "nodeGuid", guid_text);
	}
	if (vf_value(attrs[IFLA_VF_IB_PORT_GUID], vf, &guid, sizeof(guid))) {
		text_from_guid(guid.guid, guid_text);
		json_put_str(ret, "portGuid", guid_text);
	}
	return ret;
}

json_t *netns_decode_vf(const void *bytes, size_t len, int64_t vf)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		struct vf_list list = vf_list_of(message);
		const struct nlattr *info;

		while ((info = vf_list_next(&list))) {
			json_t *found = decode_vf(info, vf);

			if (found)
				return found;
		}
	}
	return NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask(struct netns *ns, struct nl_msg *request, json_t *look, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = request;
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netns_netlink(ns), NETLINK_ROUTE, msg, &answer, err))
		return -1;
	netns_decode(answer.data, answer.len, look);
	return 0;
}

static struct nl_msg *dump(uint16_t type, const void *header, size_t len)
{
	return netlink_request(type, NLM_F_DUMP, header, len);
}

int netns_observe(struct netns *ns, unsigned int parts, json_t **ret, struct err *err)
{
	static const struct ifinfomsg links;
	static const struct ifaddrmsg addresses;
	static const struct rtmsg routes = {.rtm_family = AF_UNSPEC};
	static const struct fib_rule_hdr rules;
	static const struct ndmsg neighbours;
	static const struct {
		enum netns_part part;
		uint16_t type;
		const void *header;
		size_t len;
		const char *name;
	} dumps[] = {
		{NETNS_LINKS, RTM_GETLINK, &links, sizeof(links), "links"},
		{NETNS_ADDRESSES, RTM_GETADDR, &addresses, sizeof(addresses), "addresses"},
		{NETNS_ROUTES, RTM_GETROUTE, &routes, sizeof(routes), "routes"},
		{NETNS_RULES, RTM_GETRULE, &rules, sizeof(rules), "rules"},
		{NETNS_NEIGHBOURS, RTM_GETNEIGH, &neighbours, sizeof(neighbours), "neighbours"},
	};
	json_auto_t *look = new_look();

	for (size_t i = 0; i < ARRAY_LEN(dumps); i++)
		if (parts & dumps[i].part &&
		    ask(ns, dump(dumps[i].type, dumps[i].header, dumps[i].len), look, err))
			return err_in(err, "list %s of the namespace", dumps[i].name);
	*ret = take_ptr(look);
	return 0;
}

int netns_observe_link(struct netns *ns, const char *name, int index, json_t *look,
		       const json_t **ret, struct err *err)
{
	struct ifinfomsg header = {.ifi_index = name ? 0 : index};
	struct nl_msg *msg;
	struct err problem = {0};
	const json_t *known = name ? look_link(look, name) : look_link_by_index(look, index);

	if (known) {
		*ret = known;
		return 0;
	}
	msg = netlink_request(RTM_GETLINK, 0, &header, sizeof(header));
	if (name)
		netlink_put_str(msg, strlen(name) < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME, name);
	if (ask(ns, msg, look, &problem) && problem.sys != ENODEV) {
		if (err)
			*err = problem;
		return err_in(err, "look at a link");
	}
	*ret = name ? look_link(look, name) : look_link_by_index(look, index);
	return 0;
}

/* Fill in the names of devices that lists of `look` know by index only. */
static int name_devices(struct netns *ns, json_t *look, const char *list, struct err *err)
{
	size_t i;
	json_t *item;

	json_array_foreach (json_at(look, list), i, item) {
		const json_t *link = NULL;

		if (json_at(item, "dev"))
			continue;
		if (netns_observe_link(ns, NULL, (int)look_number(item, "index"), look, &link, err))
			return -1;
		json_put_str(item, "dev", json_str_at(link, "name"));
	}
	return 0;
}

/*
 * The route to this address, with these flags (RTM_F_…), new; NULL without err: there is none. The
 * answer about IPv4 is always what the cache would have (net/ipv4/route.c, rt_fill_info()).
 */
static json_t *ask_route(struct netns *ns, const struct addr *address, unsigned int flags,
			 struct err *err)
{
	auto_strbuf struct strbuf answer = {0};
	auto_nl_msg struct nl_msg *msg = NULL;
	const struct nlmsghdr *message;
	json_auto_t *look = new_look();
	struct rtmsg header = {.rtm_flags = flags};
	struct err problem = {0};
	size_t at = 0;

	header.rtm_family = address->family == 4 ? AF_INET : AF_INET6;
	header.rtm_dst_len = (unsigned char)(addr_len(address) * 8);
	msg = netlink_request(RTM_GETROUTE, 0, &header, sizeof(header));
	netlink_put(msg, RTA_DST, address->octets, addr_len(address));
	if (netlink_ask(netns_netlink(ns), NETLINK_ROUTE, msg, &answer, &problem) == 0) {
		message = netlink_next(answer.data, answer.len, &at);
		if (message && message->nlmsg_type == RTM_NEWROUTE)
			decode_route(message, true, look);
		return json_incref(json_array_get(json_at(look, "routes"), 0));
	}
	/* No route: the node does not speak to it. */
	if (problem.sys != ENETUNREACH && problem.sys != EHOSTUNREACH && problem.sys != EACCES &&
	    problem.sys != EINVAL)
		*err = problem;
	return NULL;
}

static int ask_way(struct netns *ns, const char *text, json_t *sources, json_t *ways,
		   struct err *err)
{
	json_auto_t *route = NULL;
	struct err problem = {0};
	struct addr address;

	if (!addr_parse_prefix(text, &address))
		return 0;
	route = ask_route(ns, &address, 0, &problem);
	if (!problem.class) {
		json_put_str(sources, text, json_str_or(json_at(route, "src"), ""));
		/* What the table has, not what the cache makes of it (RTM_F_CLONED). */
		json_put(ways, text, ask_route(ns, &address, RTM_F_FIB_MATCH, &problem));
	}
	if (!problem.class)
		return 0;
	if (err)
		*err = problem;
	return err_in(err, "ask how the node reaches %s", text);
}

static void add_gateway(json_t *gateways, const json_t *route)
{
	const char *gateway = json_str_at(route, "gw");
	struct addr address;

	if (addr_parse(gateway, &address) && !json_list_has(gateways, gateway))
		json_array_append_new(gateways, json_fmt("%s", gateway));
}

static int find_gateways(struct netns *ns, json_t *look, struct err *err)
{
	json_auto_t *all = NULL;
	json_t *gateways = json_array(), *route, *hop;
	size_t i, k;

	json_put(look, "gateways", gateways);
	if (netns_observe(ns, NETNS_ROUTES, &all, err))
		return -1;
	json_array_foreach (json_at(all, "routes"), i, route) {
		add_gateway(gateways, route);
		json_array_foreach (json_at(route, "nexthops"), k, hop)
			add_gateway(gateways, hop);
	}
	return 0;
}

/* Keep of the neighbours only those for one of the addresses. */
static void keep_neighbours(json_t *look, const json_t *addresses)
{
	json_t *list = json_at(look, "neighbours");

	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *address = json_str_at(json_array_get(list, i), "address");
		size_t k, len = strlen(address);
		bool wanted = false;

		for (k = 0; k < json_array_size(addresses); k++) {
			const char *text = json_string_value(json_array_get(addresses, k));

			wanted |= strncmp(text, address, len) == 0 && text[len] == '/';
		}
		if (!wanted)
			json_array_remove(list, i);
	}
}

/* Each link that a pod is on has one of these: nobody else speaks to it, and its name costs. */
static void drop_link_local(json_t *look)
{
	json_t *list = json_at(look, "addresses");

	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *text = json_str_at(json_array_get(list, i), "address");
		struct addr address;

		if (addr_parse_prefix(text, &address) && addr_is_link_local(&address))
			json_array_remove(list, i);
	}
}

int netns_observe_host(struct netns *ns, const json_t *addresses, unsigned int table, json_t **ret,
		       struct err *err)
{
	struct rtmsg header = {.rtm_family = AF_INET};
	json_auto_t *look = NULL;
	size_t i;
	json_t *address, *ways;

	if (netns_observe(ns, NETNS_ADDRESSES | NETNS_RULES | NETNS_NEIGHBOURS, &look, err))
		return -1;
	ways = json_need_object(look, "ways");
	keep_neighbours(look, addresses);
	drop_link_local(look);
	for (int family = 0; family < 2; family++) {
		struct nl_msg *msg;

		header.rtm_family = family ? AF_INET6 : AF_INET;
		msg = dump(RTM_GETROUTE, &header, sizeof(header));
		netlink_put_u32(msg, RTA_TABLE, table);
		/* A table that is not there yet is an error of its own. */
		(void)ask(ns, msg, look, NULL);
	}
	json_array_foreach (addresses, i, address)
		if (ask_way(ns, json_string_value(address), json_at(look, "sources"), ways, err))
			return -1;
	if (find_gateways(ns, look, err))
		return -1;
	if (name_devices(ns, look, "addresses", err) || name_devices(ns, look, "neighbours", err))
		return -1;
	*ret = take_ptr(look);
	return 0;
}

int netns_observe_vf(struct netns *ns, const char *pf, int64_t vf, json_t **ret, struct err *err)
{
	struct ifinfomsg header = {0};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_GETLINK, 0, &header, sizeof(header));
	auto_strbuf struct strbuf answer = {0};
	json_t *found;

	netlink_put_str(msg, IFLA_IFNAME, pf);
	/* Statistics would make the list too long for new kernels (host/vf_list.h). */
	netlink_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS);
	if (netlink_ask(netns_netlink(ns), NETLINK_ROUTE, msg, &answer, err))
		return err_in(err, "look at the VFs of %s", pf);
	found = netns_decode_vf(answer.data, answer.len, vf);
	if (!found)
		return err_set(err, ERR_HOST, "InterfaceGone", "%s does not know its VF %lld", pf,
			       (long long)vf);
	*ret = found;
	return 0;
}

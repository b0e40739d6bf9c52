// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses, routes, rules and neighbours: one decoder of each message, and above it the questions
 * that evidence of use asks: which interfaces do they concern?
 */
#include "nodeagent/netlink/rtnl_route.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/mem.h"
#include "nodeagent/netlink/message.h"

/* ---- decoding -------------------------------------------------------------------------------- */

static unsigned int len_of(int family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
}

static void decode_ip(const struct nlattr *attr, int family, struct rtnl_address *ret)
{
	if (!attr || !len_of(family) || (unsigned int)nla_len(attr) != len_of(family))
		return;
	ret->len = len_of(family);
	memcpy(ret->octets, nla_data(attr), ret->len);
}

bool rtnl_decode_ifaddr(const struct nlmsghdr *message, struct rtnl_ifaddr *ret)
{
	struct nlattr *attrs[IFA_MAX + 1];
	const struct ifaddrmsg *header = nlmsg_data(message);

	*ret = (struct rtnl_ifaddr){0};
	if (message->nlmsg_type != RTM_NEWADDR ||
	    !netlink_parse(message, sizeof(*header), attrs, IFA_MAX))
		return false;
	ret->index = (int)header->ifa_index;
	ret->family = header->ifa_family;
	ret->prefix = header->ifa_prefixlen;
	ret->scope = header->ifa_scope;
	/* On point-to-point interfaces ADDRESS is the peer's and LOCAL ours. */
	decode_ip(attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS], header->ifa_family,
		  &ret->address);
	return true;
}

static void decode_hop(const char *at, const struct rtnexthop *hop, int family,
		       struct rtnl_hop *ret)
{
	const struct nlattr *attr = (const void *)(at + sizeof(*hop));
	int left = hop->rtnh_len - (int)sizeof(*hop);

	*ret = (struct rtnl_hop){.index = hop->rtnh_ifindex, .flags = hop->rtnh_flags};
	for (; nla_ok(attr, left); attr = nla_next(attr, &left))
		if (nla_type(attr) == RTA_GATEWAY)
			decode_ip(attr, family, &ret->gateway);
}

static void decode_hops(const struct nlattr *multipath, struct rtnl_route *ret)
{
	const char *at = nla_data(multipath);
	size_t left = (size_t)nla_len(multipath);
	struct rtnexthop hop;

	ret->hops = mem_calloc(left / sizeof(hop) + 1, sizeof(*ret->hops));
	while (left >= sizeof(hop)) {
		memcpy(&hop, at, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left)
			return;
		decode_hop(at, &hop, ret->family, &ret->hops[ret->n_hops++]);
		if ((size_t)RTNH_ALIGN(hop.rtnh_len) >= left)
			return;
		left -= RTNH_ALIGN(hop.rtnh_len);
		at += RTNH_ALIGN(hop.rtnh_len);
	}
}

void rtnl_route_done(struct rtnl_route *route)
{
	free(route->hops);
	*route = (struct rtnl_route){0};
}

/* A default route has no destination: all zeroes. */
static bool decode_dst(const struct nlattr *attr, struct rtnl_route *ret)
{
	decode_ip(attr, ret->family, &ret->dst);
	if (!attr && !ret->prefix)
		ret->dst.len = len_of(ret->family);
	return ret->dst.len > 0 && ret->prefix <= ret->dst.len * 8;
}

bool rtnl_decode_route(const struct nlmsghdr *message, struct rtnl_route *ret)
{
	struct nlattr *attrs[RTA_MAX + 1], *metrics[RTAX_MAX + 1];
	const struct rtmsg *header = nlmsg_data(message);
	uint32_t index = 0;

	*ret = (struct rtnl_route){0};
	if (message->nlmsg_type != RTM_NEWROUTE ||
	    !netlink_parse(message, sizeof(*header), attrs, RTA_MAX))
		return false;
	*ret = (struct rtnl_route){
		.family = header->rtm_family,
		.prefix = header->rtm_dst_len,
		.scope = header->rtm_scope,
		.protocol = header->rtm_protocol,
		.type = header->rtm_type,
		.flags = header->rtm_flags,
		.table = header->rtm_table,
		.has_via = attrs[RTA_VIA] != NULL,
	};
	if (!decode_dst(attrs[RTA_DST], ret)) {
		*ret = (struct rtnl_route){0};
		return false;
	}
	(void)netlink_u32(attrs[RTA_TABLE], &ret->table);
	decode_ip(attrs[RTA_GATEWAY], ret->family, &ret->gateway);
	decode_ip(attrs[RTA_PREFSRC], ret->family, &ret->src);
	if (netlink_u32(attrs[RTA_OIF], &index))
		ret->index = (int)index;
	(void)netlink_u32(attrs[RTA_PRIORITY], &ret->metric);
	(void)netlink_u32(attrs[RTA_NH_ID], &ret->next_hop);
	if (attrs[RTA_METRICS]) {
		netlink_parse_nested(attrs[RTA_METRICS], metrics, RTAX_MAX);
		(void)netlink_u32(metrics[RTAX_MTU], &ret->mtu);
	}
	if (attrs[RTA_MULTIPATH])
		decode_hops(attrs[RTA_MULTIPATH], ret);
	return true;
}

bool rtnl_decode_rule(const struct nlmsghdr *message, struct rtnl_rule *ret)
{
	struct nlattr *attrs[FRA_MAX + 1];
	const struct fib_rule_hdr *header = nlmsg_data(message);

	*ret = (struct rtnl_rule){0};
	if (message->nlmsg_type != RTM_NEWRULE ||
	    !netlink_parse(message, sizeof(*header), attrs, FRA_MAX) || !len_of(header->family))
		return false;
	*ret = (struct rtnl_rule){
		.family = header->family,
		.action = header->action,
		.from_prefix = header->src_len,
		.to_prefix = header->dst_len,
		.table = header->table,
	};
	(void)netlink_u32(attrs[FRA_TABLE], &ret->table);
	(void)netlink_u32(attrs[FRA_PRIORITY], &ret->priority);
	(void)netlink_u32(attrs[FRA_FWMARK], &ret->mark);
	decode_ip(attrs[FRA_SRC], header->family, &ret->from);
	decode_ip(attrs[FRA_DST], header->family, &ret->to);
	return true;
}

bool rtnl_decode_neighbour(const struct nlmsghdr *message, struct rtnl_neighbour *ret)
{
	struct nlattr *attrs[NDA_MAX + 1];
	const struct ndmsg *header = nlmsg_data(message);

	*ret = (struct rtnl_neighbour){0};
	if (message->nlmsg_type != RTM_NEWNEIGH ||
	    !netlink_parse(message, sizeof(*header), attrs, NDA_MAX))
		return false;
	decode_ip(attrs[NDA_DST], header->ndm_family, &ret->address);
	if (!ret->address.len)
		return false;
	rtnl_decode_hardware(attrs[NDA_LLADDR], &ret->mac);
	ret->index = header->ndm_ifindex;
	ret->state = header->ndm_state;
	return true;
}

/* ---- which interfaces ------------------------------------------------------------------------ */

void rtnl_indices_done(struct rtnl_indices *indices)
{
	free(indices->items);
	*indices = (struct rtnl_indices){0};
}

static void add_index(struct rtnl_indices *list, int index)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i] == index)
			return;
	list->items = mem_realloc(list->items, (list->n + 1) * sizeof(*list->items));
	list->items[list->n++] = index;
}

static void add_ways(const struct rtnl_route *route, struct rtnl_indices *ret)
{
	if (route->index)
		add_index(ret, route->index);
	for (size_t i = 0; i < route->n_hops; i++)
		add_index(ret, route->hops[i].index);
	if (!route->index && !route->n_hops && route->next_hop)
		ret->is_by_id = true;
}

void rtnl_decode_default_routes(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		auto_route struct rtnl_route route = {0};

		if (rtnl_decode_route(message, &route) && route.prefix == 0 &&
		    route.type == RTN_UNICAST && route.table == RT_TABLE_MAIN)
			add_ways(&route, ret);
	}
}

void rtnl_decode_with_routes(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		auto_route struct rtnl_route route = {0};

		if (rtnl_decode_route(message, &route) && route.protocol != RTPROT_KERNEL &&
		    route.type == RTN_UNICAST)
			add_ways(&route, ret);
	}
}

void rtnl_decode_next_hops(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[NHA_MAX + 1];
	uint32_t number;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at)))
		if (message->nlmsg_type == RTM_NEWNEXTHOP &&
		    netlink_parse(message, sizeof(struct nhmsg), attrs, NHA_MAX) &&
		    netlink_u32(attrs[NHA_OIF], &number))
			add_index(ret, (int)number);
}

static int list_next_hops(struct netlink *netlink, struct rtnl_indices *ret, struct err *err)
{
	struct nhmsg header = {.nh_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *msg =
		netlink_request(RTM_GETNEXTHOP, NLM_F_DUMP, &header, sizeof(header));
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return err_in(err, "list next hops");
	rtnl_decode_next_hops(answer.data, answer.len, ret);
	return 0;
}

/* Both families, each by a decoder of its answer. */
static int list_routes(struct netlink *netlink,
		       void (*decode)(const void *bytes, size_t len, struct rtnl_indices *ret),
		       struct rtnl_indices *ret, struct err *err)
{
	static const unsigned char families[] = {AF_INET, AF_INET6};

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		struct rtmsg header = {.rtm_family = families[i]};
		auto_nl_msg struct nl_msg *msg =
			netlink_request(RTM_GETROUTE, NLM_F_DUMP, &header, sizeof(header));
		auto_strbuf struct strbuf answer = {0};

		if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
			return err_in(err, "list routes");
		decode(answer.data, answer.len, ret);
	}
	return ret->is_by_id ? list_next_hops(netlink, ret, err) : 0;
}

int rtnl_default_routes(struct netlink *netlink, struct rtnl_indices *ret, struct err *err)
{
	return list_routes(netlink, rtnl_decode_default_routes, ret, err);
}

int rtnl_with_routes(struct netlink *netlink, struct rtnl_indices *ret, struct err *err)
{
	return list_routes(netlink, rtnl_decode_with_routes, ret, err);
}

static bool is_one_of(const json_t *addresses, const struct rtnl_ifaddr *ifaddr)
{
	json_t *address;
	size_t i;

	if (!ifaddr->address.len)
		return false;
	json_array_foreach ((json_t *)addresses, i, address) {
		const char *text = json_string_value(address);
		unsigned char octets[16];

		if (text && inet_pton(ifaddr->family, text, octets) == 1 &&
		    memcmp(octets, ifaddr->address.octets, ifaddr->address.len) == 0)
			return true;
	}
	return false;
}

void rtnl_decode_with_addresses(const void *bytes, size_t len, const json_t *addresses,
				struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	struct rtnl_ifaddr ifaddr;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at)))
		if (rtnl_decode_ifaddr(message, &ifaddr) && is_one_of(addresses, &ifaddr))
			add_index(ret, ifaddr.index);
}

static int list_addresses(struct netlink *netlink, struct strbuf *answer, struct err *err)
{
	struct ifaddrmsg header = {.ifa_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *msg =
		netlink_request(RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header));

	return netlink_ask(netlink, NETLINK_ROUTE, msg, answer, err) < 0
		       ? err_in(err, "list addresses")
		       : 0;
}

void rtnl_decode_with_any_address(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	struct rtnl_ifaddr ifaddr;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at)))
		if (rtnl_decode_ifaddr(message, &ifaddr) && ifaddr.scope <= RT_SCOPE_SITE)
			add_index(ret, ifaddr.index);
}

int rtnl_with_any_address(struct netlink *netlink, struct rtnl_indices *ret, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	if (list_addresses(netlink, &answer, err) < 0)
		return -1;
	rtnl_decode_with_any_address(answer.data, answer.len, ret);
	return 0;
}

bool rtnl_has_index(const struct rtnl_indices *list, int index)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i] == index)
			return true;
	return false;
}

int rtnl_with_addresses(struct netlink *netlink, const json_t *addresses, struct rtnl_indices *ret,
			struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	if (json_array_size(addresses) == 0)
		return 0;
	if (list_addresses(netlink, &answer, err) < 0)
		return -1;
	rtnl_decode_with_addresses(answer.data, answer.len, addresses, ret);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * rtnetlink. See the header.
 */
#include "nodeagent/host/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/vf_list.h"
#include "nodeagent/netlink/message.h"

/* All that there are, so that nothing we look for is out of range with older headers. */
#define LINK_ATTR_MAX 80

/* ---- interfaces ------------------------------------------------------------------------------ */

void rtnl_interfaces_done(struct rtnl_interfaces *interfaces)
{
	for (size_t i = 0; i < interfaces->n; i++)
		json_decref(interfaces->items[i].alt_names);
	free(interfaces->items);
	*interfaces = (struct rtnl_interfaces){0};
}

static void decode_address(const struct nlattr *attr, struct rtnl_address *ret)
{
	if (!attr || nla_len(attr) > RTNL_ADDRESS_MAX)
		return;
	ret->len = (size_t)nla_len(attr);
	memcpy(ret->octets, nla_data(attr), ret->len);
}

static json_t *decode_alt_names(const struct nlattr *list)
{
	const struct nlattr *attr;
	json_t *names = NULL;
	int left;

	if (!list)
		return NULL;
	nla_for_each_nested(attr, list, left)
	{
		char name[128]; /* ALTIFNAMSIZ */

		if (nla_type(attr) != IFLA_ALT_IFNAME || !netlink_str(attr, name, sizeof(name)))
			continue;
		if (!names)
			names = json_array();
		json_array_append_new(names, json_fmt("%s", name));
	}
	return names;
}

static void decode_parent(struct nlattr *const *attrs, struct rtnl_interface *ret)
{
	char bus[16];

	if (!netlink_str(attrs[IFLA_PARENT_DEV_BUS_NAME], bus, sizeof(bus)) || !str_eq(bus, "pci"))
		return;
	if (!netlink_str(attrs[IFLA_PARENT_DEV_NAME], ret->parent, sizeof(ret->parent)) ||
	    !pci_address_is_valid(ret->parent))
		ret->parent[0] = '\0';
}

static void decode_kind(const struct nlattr *info, struct rtnl_interface *ret)
{
	struct nlattr *attrs[IFLA_INFO_MAX + 1];

	if (!info)
		return;
	netlink_parse_nested(info, attrs, IFLA_INFO_MAX);
	(void)netlink_str(attrs[IFLA_INFO_KIND], ret->kind, sizeof(ret->kind));
}

static bool decode_has_xdp(const struct nlattr *xdp)
{
	struct nlattr *attrs[IFLA_XDP_MAX + 1];
	uint8_t mode;

	if (!xdp)
		return false;
	netlink_parse_nested(xdp, attrs, IFLA_XDP_MAX);
	return netlink_u8(attrs[IFLA_XDP_ATTACHED], &mode) && mode != XDP_ATTACHED_NONE;
}

static bool decode_interface(const struct nlmsghdr *message, struct rtnl_interface *ret)
{
	struct nlattr *attrs[LINK_ATTR_MAX + 1];
	const struct ifinfomsg *header = nlmsg_data(message);
	uint32_t number;
	uint8_t byte;

	if (message->nlmsg_type != RTM_NEWLINK ||
	    !netlink_parse(message, sizeof(*header), attrs, LINK_ATTR_MAX) ||
	    header->ifi_index <= 0 ||
	    !netlink_str(attrs[IFLA_IFNAME], ret->name, sizeof(ret->name)))
		return false;
	ret->index = header->ifi_index;
	ret->type = header->ifi_type;
	ret->up = (header->ifi_flags & IFF_UP) != 0;
	ret->oper_state = netlink_u8(attrs[IFLA_OPERSTATE], &byte) ? byte : -1;
	ret->has_carrier = netlink_u8(attrs[IFLA_CARRIER], &byte);
	ret->carrier = ret->has_carrier && byte != 0;
	(void)netlink_u32(attrs[IFLA_MTU], &ret->mtu);
	(void)netlink_u32(attrs[IFLA_MIN_MTU], &ret->min_mtu);
	(void)netlink_u32(attrs[IFLA_MAX_MTU], &ret->max_mtu);
	if (netlink_u32(attrs[IFLA_MASTER], &number))
		ret->master = (int)number;
	/* With LINK_NETNSID the index belongs to another namespace. */
	if (netlink_u32(attrs[IFLA_LINK], &number))
		*(attrs[IFLA_LINK_NETNSID] ? &ret->outer : &ret->lower) = (int)number;
	if (netlink_u32(attrs[IFLA_LINK_NETNSID], &number))
		ret->outer_nsid = (int)number;
	decode_address(attrs[IFLA_ADDRESS], &ret->address);
	decode_address(attrs[IFLA_PERM_ADDRESS], &ret->permanent);
	decode_kind(attrs[IFLA_LINKINFO], ret);
	decode_parent(attrs, ret);
	ret->has_xdp = decode_has_xdp(attrs[IFLA_XDP]);
	ret->alt_names = decode_alt_names(attrs[IFLA_PROP_LIST]);
	return true;
}

void rtnl_decode_interfaces(const void *bytes, size_t len, struct rtnl_interfaces *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	ret->items = mem_calloc(netlink_count(bytes, len) + 1, sizeof(*ret->items));
	ret->n = 0;
	while ((message = netlink_next(bytes, len, &at)))
		if (decode_interface(message, &ret->items[ret->n]))
			ret->n++;
		else
			ret->items[ret->n] = (struct rtnl_interface){0};
}

static int ask_links(struct host *host, int index, struct rtnl_interfaces *ret, struct err *err)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = index};
	auto_nl_msg struct nl_msg *msg =
		netlink_request(RTM_GETLINK, index ? 0 : NLM_F_DUMP, &header, sizeof(header));
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(host->netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return -1;
	rtnl_decode_interfaces(answer.data, answer.len, ret);
	return 0;
}

int rtnl_list(struct host *host, struct rtnl_interfaces *ret, struct err *err)
{
	if (ask_links(host, 0, ret, err) < 0)
		return err_in(err, "list network interfaces");
	return 0;
}

int rtnl_get(struct host *host, int index, struct rtnl_interfaces *ret, struct err *err)
{
	if (ask_links(host, index, ret, err) < 0)
		return err_in(err, "look at network interface %d", index);
	if (rtnl_by_index(ret, index))
		return 0;
	rtnl_interfaces_done(ret);
	return err_set(err, ERR_TRANSIENT, "InterfaceGone", "network interface %d is gone", index);
}

const struct rtnl_interface *rtnl_by_name(const struct rtnl_interfaces *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->items[i].name, name) ||
		    json_list_has(list->items[i].alt_names, name))
			return &list->items[i];
	return NULL;
}

const struct rtnl_interface *rtnl_by_index(const struct rtnl_interfaces *list, int index)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].index == index)
			return &list->items[i];
	return NULL;
}

/* ---- what a PF says of its VFs --------------------------------------------------------------- */

void rtnl_vfs_done(struct rtnl_vfs *vfs)
{
	free(vfs->items);
	*vfs = (struct rtnl_vfs){0};
}

/*
 * Every value starts with the VF's number; its place in the list means nothing
 * (net/core/rtnetlink.c, rtnl_fill_vf()).
 */
static bool vf_value(const struct nlattr *attr, void *value, size_t size, uint32_t *ret_vf)
{
	if (!attr || (size_t)nla_len(attr) < size)
		return false;
	memcpy(value, nla_data(attr), size);
	memcpy(ret_vf, value, sizeof(*ret_vf));
	return true;
}

static bool decode_vf(const struct nlattr *info, struct rtnl_vf *ret)
{
	struct nlattr *attrs[IFLA_VF_MAX + 1];
	struct ifla_vf_mac mac;
	struct ifla_vf_link_state state;
	struct ifla_vf_guid guid;

	netlink_parse_nested(info, attrs, IFLA_VF_MAX);
	if (!vf_value(attrs[IFLA_VF_MAC], &mac, sizeof(mac), &ret->index))
		return false;
	ret->has_mac = true;
	memcpy(ret->mac, mac.mac, sizeof(ret->mac));
	if (vf_value(attrs[IFLA_VF_LINK_STATE], &state, sizeof(state), &ret->index)) {
		ret->has_link_state = true;
		ret->link_state = state.link_state;
	}
	if (vf_value(attrs[IFLA_VF_IB_NODE_GUID], &guid, sizeof(guid), &ret->index)) {
		ret->has_node_guid = true;
		ret->node_guid = guid.guid;
	}
	if (vf_value(attrs[IFLA_VF_IB_PORT_GUID], &guid, sizeof(guid), &ret->index)) {
		ret->has_port_guid = true;
		ret->port_guid = guid.guid;
	}
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
	while ((info = vf_list_next(&list))) {
		ret->items[ret->n] = (struct rtnl_vf){0};
		if (decode_vf(info, &ret->items[ret->n]))
			ret->n++;
	}
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

static int ask_vfs(struct host *host, int pf_index, uint32_t filter, struct strbuf *answer,
		   struct err *err)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = pf_index};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_GETLINK, 0, &header, sizeof(header));

	netlink_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_VF | filter);
	if (netlink_ask(host->netlink, NETLINK_ROUTE, msg, answer, err) < 0)
		return err_in(err, "list the VFs of network interface %d", pf_index);
	return 0;
}

int rtnl_list_vfs(struct host *host, int pf_index, struct rtnl_vfs *ret, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	/* Statistics would make the list too long for new kernels (vf_list.h). */
	if (ask_vfs(host, pf_index, RTEXT_FILTER_SKIP_STATS, &answer, err) < 0)
		return -1;
	rtnl_decode_vfs(answer.data, answer.len, ret);
	return 0;
}

const struct rtnl_vf *rtnl_vf_by_number(const struct rtnl_vfs *list, uint32_t number)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].index == number)
			return &list->items[i];
	return NULL;
}

static json_t *decode_counters(const struct nlattr *stats)
{
	static const struct {
		const char *name;
		int type;
	} counters[] = {
		{"rx_packets", IFLA_VF_STATS_RX_PACKETS},
		{"tx_packets", IFLA_VF_STATS_TX_PACKETS},
		{"rx_bytes", IFLA_VF_STATS_RX_BYTES},
		{"tx_bytes", IFLA_VF_STATS_TX_BYTES},
		{"rx_broadcast", IFLA_VF_STATS_BROADCAST},
		{"rx_multicast", IFLA_VF_STATS_MULTICAST},
		{"rx_dropped", IFLA_VF_STATS_RX_DROPPED},
		{"tx_dropped", IFLA_VF_STATS_TX_DROPPED},
	};
	struct nlattr *attrs[IFLA_VF_STATS_MAX + 1];
	json_t *ret = json_object();
	bool has_any = false;

	netlink_parse_nested(stats, attrs, IFLA_VF_STATS_MAX);
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		uint64_t value;

		if (!netlink_u64(attrs[counters[i].type], &value))
			continue;
		counted_add(ret, counters[i].name, value);
		has_any |= value != 0;
	}
	if (has_any)
		return ret;
	json_decref(ret);
	return NULL;
}

void rtnl_decode_vf_counters(const void *bytes, size_t len, json_t *ret)
{
	const struct nlmsghdr *message;
	const struct nlattr *info;
	struct vf_list list;
	size_t at = 0;

	message = netlink_next(bytes, len, &at);
	if (!message)
		return;
	list = vf_list_of(message);
	while ((info = vf_list_next(&list))) {
		struct nlattr *values[IFLA_VF_MAX + 1];
		struct ifla_vf_mac mac;
		uint32_t number;
		char key[16];

		netlink_parse_nested(info, values, IFLA_VF_MAX);
		if (!values[IFLA_VF_STATS] ||
		    !vf_value(values[IFLA_VF_MAC], &mac, sizeof(mac), &number))
			continue;
		(void)snprintf(key, sizeof(key), "%u", number);
		json_put(ret, key, decode_counters(values[IFLA_VF_STATS]));
	}
}

json_t *rtnl_vf_counters(struct host *host, int pf_index, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};
	json_t *ret;

	if (ask_vfs(host, pf_index, 0, &answer, err) < 0)
		return NULL;
	ret = json_object();
	rtnl_decode_vf_counters(answer.data, answer.len, ret);
	return ret;
}

/* ---- routes and addresses -------------------------------------------------------------------- */

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

static void add_next_hops(const struct nlattr *multipath, struct rtnl_indices *ret)
{
	const char *at = nla_data(multipath);
	size_t left = (size_t)nla_len(multipath);
	struct rtnexthop hop;

	while (left >= sizeof(hop)) {
		memcpy(&hop, at, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left)
			return;
		add_index(ret, hop.rtnh_ifindex);
		if ((size_t)RTNH_ALIGN(hop.rtnh_len) >= left)
			return;
		left -= RTNH_ALIGN(hop.rtnh_len);
		at += RTNH_ALIGN(hop.rtnh_len);
	}
}

static void add_way(struct nlattr *const *attrs, struct rtnl_indices *ret)
{
	uint32_t number;

	if (netlink_u32(attrs[RTA_OIF], &number))
		add_index(ret, (int)number);
	if (attrs[RTA_MULTIPATH])
		add_next_hops(attrs[RTA_MULTIPATH], ret);
	if (!attrs[RTA_OIF] && !attrs[RTA_MULTIPATH] && attrs[RTA_NH_ID])
		ret->is_by_id = true;
}

void rtnl_decode_default_routes(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[RTA_MAX + 1];
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		const struct rtmsg *header = nlmsg_data(message);
		uint32_t table;

		if (message->nlmsg_type != RTM_NEWROUTE ||
		    !netlink_parse(message, sizeof(*header), attrs, RTA_MAX) ||
		    header->rtm_dst_len != 0 || header->rtm_type != RTN_UNICAST)
			continue;
		table = header->rtm_table;
		(void)netlink_u32(attrs[RTA_TABLE], &table);
		if (table == RT_TABLE_MAIN)
			add_way(attrs, ret);
	}
}

void rtnl_decode_with_routes(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[RTA_MAX + 1];
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		const struct rtmsg *header = nlmsg_data(message);

		if (message->nlmsg_type != RTM_NEWROUTE ||
		    !netlink_parse(message, sizeof(*header), attrs, RTA_MAX) ||
		    header->rtm_protocol == RTPROT_KERNEL || header->rtm_type != RTN_UNICAST)
			continue;
		add_way(attrs, ret);
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

static int list_next_hops(struct host *host, struct rtnl_indices *ret, struct err *err)
{
	struct nhmsg header = {.nh_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *msg =
		netlink_request(RTM_GETNEXTHOP, NLM_F_DUMP, &header, sizeof(header));
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(host->netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return err_in(err, "list next hops");
	rtnl_decode_next_hops(answer.data, answer.len, ret);
	return 0;
}

/* Both families, each by a decoder of its answer. */
static int list_routes(struct host *host,
		       void (*decode)(const void *bytes, size_t len, struct rtnl_indices *ret),
		       struct rtnl_indices *ret, struct err *err)
{
	static const unsigned char families[] = {AF_INET, AF_INET6};

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		struct rtmsg header = {.rtm_family = families[i]};
		auto_nl_msg struct nl_msg *msg =
			netlink_request(RTM_GETROUTE, NLM_F_DUMP, &header, sizeof(header));
		auto_strbuf struct strbuf answer = {0};

		if (netlink_ask(host->netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
			return err_in(err, "list routes");
		decode(answer.data, answer.len, ret);
	}
	return ret->is_by_id ? list_next_hops(host, ret, err) : 0;
}

int rtnl_default_routes(struct host *host, struct rtnl_indices *ret, struct err *err)
{
	return list_routes(host, rtnl_decode_default_routes, ret, err);
}

int rtnl_with_routes(struct host *host, struct rtnl_indices *ret, struct err *err)
{
	return list_routes(host, rtnl_decode_with_routes, ret, err);
}

static bool is_one_of(const json_t *addresses, int family, const struct nlattr *attr)
{
	json_t *address;
	size_t i, size = family == AF_INET ? 4 : 16;

	if (!attr || (size_t)nla_len(attr) != size || (family != AF_INET && family != AF_INET6))
		return false;
	json_array_foreach ((json_t *)addresses, i, address) {
		unsigned char octets[16];
		const char *text = json_string_value(address);

		if (text && inet_pton(family, text, octets) == 1 &&
		    memcmp(octets, nla_data(attr), size) == 0)
			return true;
	}
	return false;
}

void rtnl_decode_with_addresses(const void *bytes, size_t len, const json_t *addresses,
				struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[IFA_MAX + 1];
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		const struct ifaddrmsg *header = nlmsg_data(message);

		if (message->nlmsg_type != RTM_NEWADDR ||
		    !netlink_parse(message, sizeof(*header), attrs, IFA_MAX))
			continue;
		/* On point-to-point interfaces ADDRESS is the peer's and LOCAL ours. */
		if (is_one_of(addresses, header->ifa_family,
			      attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS]))
			add_index(ret, (int)header->ifa_index);
	}
}

static int list_addresses(struct host *host, struct strbuf *answer, struct err *err)
{
	struct ifaddrmsg header = {.ifa_family = AF_UNSPEC};
	auto_nl_msg struct nl_msg *msg =
		netlink_request(RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header));

	return netlink_ask(host->netlink, NETLINK_ROUTE, msg, answer, err) < 0
		       ? err_in(err, "list addresses")
		       : 0;
}

void rtnl_decode_with_any_address(const void *bytes, size_t len, struct rtnl_indices *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		const struct ifaddrmsg *header = nlmsg_data(message);

		if (message->nlmsg_type == RTM_NEWADDR &&
		    nlmsg_datalen(message) >= (int)sizeof(*header) &&
		    header->ifa_scope <= RT_SCOPE_SITE)
			add_index(ret, (int)header->ifa_index);
	}
}

int rtnl_with_any_address(struct host *host, struct rtnl_indices *ret, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	if (list_addresses(host, &answer, err) < 0)
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

int rtnl_with_addresses(struct host *host, const json_t *addresses, struct rtnl_indices *ret,
			struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	if (json_array_size(addresses) == 0)
		return 0;
	if (list_addresses(host, &answer, err) < 0)
		return -1;
	rtnl_decode_with_addresses(answer.data, answer.len, addresses, ret);
	return 0;
}

/* ---- setting --------------------------------------------------------------------------------- */

static int send_change(struct host *host, struct nl_msg *msg, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	return netlink_ask(host->netlink, NETLINK_ROUTE, msg, &answer, err);
}

int rtnl_set_mtu(struct host *host, int index, uint32_t mtu, struct err *err)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = index};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_SETLINK, 0, &header, sizeof(header));

	netlink_put_u32(msg, IFLA_MTU, mtu);
	return send_change(host, msg, err);
}

int rtnl_set_up(struct host *host, int index, struct err *err)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC,
				   .ifi_index = index,
				   .ifi_flags = IFF_UP,
				   .ifi_change = IFF_UP};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_SETLINK, 0, &header, sizeof(header));

	return send_change(host, msg, err);
}

static int set_vf(struct host *host, int pf_index, int attribute, const void *value, size_t size,
		  struct err *err)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = pf_index};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_SETLINK, 0, &header, sizeof(header));
	struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST | NLA_F_NESTED);
	struct nlattr *info = nla_nest_start(msg, IFLA_VF_INFO | NLA_F_NESTED);

	netlink_put(msg, attribute, value, size);
	nla_nest_end(msg, info);
	nla_nest_end(msg, list);
	return send_change(host, msg, err);
}

int rtnl_set_vf_mac(struct host *host, int pf_index, uint32_t vf, const unsigned char mac[6],
		    struct err *err)
{
	struct ifla_vf_mac value = {.vf = vf};

	memcpy(value.mac, mac, 6);
	return set_vf(host, pf_index, IFLA_VF_MAC, &value, sizeof(value), err);
}

int rtnl_set_vf_guid(struct host *host, int pf_index, uint32_t vf, int attribute, uint64_t guid,
		     struct err *err)
{
	struct ifla_vf_guid value = {.vf = vf, .guid = guid};

	return set_vf(host, pf_index, attribute, &value, sizeof(value), err);
}

int rtnl_set_vf_link_state(struct host *host, int pf_index, uint32_t vf, uint32_t state,
			   struct err *err)
{
	struct ifla_vf_link_state value = {.vf = vf, .link_state = state};

	return set_vf(host, pf_index, IFLA_VF_LINK_STATE, &value, sizeof(value), err);
}

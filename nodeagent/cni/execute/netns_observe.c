// SPDX-License-Identifier: Apache-2.0
/*
 * What a network namespace looks like: values of nodeagent/netlink as the members that planners
 * read, and the questions to the kernel.
 */
#include "nodeagent/cni/execute/netns_observe.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/message.h"
#include "nodeagent/netlink/rtnl_route.h"
#include "nodeagent/netlink/rtnl_vf.h"

json_t *netns_look_new(void)
{
	static const char *const lists[] = {"links", "addresses", "routes", "rules", "neighbours"};
	json_t *look = json_object();

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		json_put(look, lists[i], json_array());
	json_put(look, "sources", json_object());
	return look;
}

/* ---- values as JSON -------------------------------------------------------------------------- */

static void put_number(json_t *object, const char *key, int64_t value)
{
	if (value)
		json_put_int(object, key, value);
}

/* With its prefix length; nothing for an empty address or a length beyond it. */
static void put_prefix(json_t *object, const char *key, const struct rtnl_address *address,
		       unsigned int prefix)
{
	struct addr value = {.family = address->len == 4 ? 4 : 6, .prefix = (uint8_t)prefix};
	char text[ADDR_TEXT_SIZE];

	if (!address->len || prefix > address->len * 8)
		return;
	memcpy(value.octets, address->octets, address->len);
	addr_print_prefix(&value, text);
	json_put_str(object, key, text);
}

static void put_address(json_t *object, const char *key, const struct rtnl_address *address)
{
	struct addr value = {.family = address->len == 4 ? 4 : 6};
	char text[ADDR_TEXT_SIZE];

	if (!address->len)
		return;
	memcpy(value.octets, address->octets, address->len);
	addr_print(&value, text);
	json_put_str(object, key, text);
}

static void put_mac(json_t *object, const char *key, const struct rtnl_address *address)
{
	char text[3 * RTNL_ADDRESS_MAX];

	if (!address->len)
		return;
	text_from_octets(address->octets, address->len, text);
	json_put_str(object, key, text);
}

/* Names the link by index where it is known; else nothing. */
static void put_dev(json_t *object, const json_t *look, int64_t index)
{
	json_put_str(object, "dev", json_str_at(look_link_by_index(look, index), "name"));
}

static void put_of_kind(json_t *object, const char *key, int64_t value)
{
	if (value >= 0)
		json_put_int(object, key, value);
}

static void put_link(const struct rtnl_interface *value, json_t *look)
{
	json_t *link = json_object();

	json_array_append_new(json_at(look, "links"), link);
	json_put_int(link, "index", value->index);
	put_number(link, "xdp", value->xdp);
	if (value->alias[0])
		json_put(link, "alias", json_fmt("%s", value->alias));
	json_put_str(link, "name", value->name);
	json_put_int(link, "type", value->type);
	json_put_int(link, "flags", value->flags);
	put_mac(link, "mac", &value->address);
	put_number(link, "mtu", value->mtu);
	put_number(link, "txqlen", value->txqlen);
	put_number(link, "lower", value->lower ? value->lower : value->outer);
	put_number(link, "master", value->master);
	if (value->kind[0])
		json_put_str(link, "kind", value->kind);
	put_of_kind(link, "pkey", value->of_kind.pkey);
	put_of_kind(link, "mode", value->of_kind.mode);
	put_of_kind(link, "vlan", value->of_kind.vlan);
	put_of_kind(link, "filtering", value->of_kind.filtering);
	put_of_kind(link, "pvid", value->of_kind.pvid);
	if (value->parent[0])
		json_put_str(link, "parent", value->parent);
	json_put(link, "altNames", json_incref(value->alt_names));
}

static void put_ifaddr(const struct rtnl_ifaddr *value, json_t *look)
{
	json_auto_t *address = json_object();

	put_prefix(address, "address", &value->address, value->prefix);
	put_dev(address, look, value->index);
	json_put_int(address, "index", value->index);
	put_number(address, "scope", value->scope);
	if (json_at(address, "address"))
		json_array_append(json_at(look, "addresses"), address);
}

static json_t *hops_of(const struct rtnl_route *route, const json_t *look)
{
	json_t *hops = json_array();

	for (size_t i = 0; i < route->n_hops; i++) {
		json_t *hop = json_object();

		put_dev(hop, look, route->hops[i].index);
		put_number(hop, "flags", route->hops[i].flags & RTNH_F_ONLINK);
		put_address(hop, "gw", &route->hops[i].gateway);
		json_array_append_new(hops, hop);
	}
	return hops;
}

static void put_route(const struct rtnl_route *value, json_t *look)
{
	json_t *route = json_object();

	json_array_append_new(json_at(look, "routes"), route);
	json_put_int(route, "family", value->family == AF_INET ? 4 : 6);
	json_put_int(route, "table", value->table);
	put_prefix(route, "dst", &value->dst, value->prefix);
	put_address(route, "gw", &value->gateway);
	/* How IPv4 goes by gateways of IPv6. */
	if (value->has_via)
		json_put_bool(route, "via", true);
	put_address(route, "src", &value->src);
	put_dev(route, look, value->index);
	put_number(route, "scope", value->scope);
	put_number(route, "protocol", value->protocol);
	put_number(route, "type", value->type);
	put_number(route, "flags", value->flags & RTNH_F_ONLINK);
	put_number(route, "metric", value->metric);
	put_number(route, "mtu", value->mtu);
	if (value->hops)
		json_put(route, "nexthops", hops_of(value, look));
}

static void put_rule(const struct rtnl_rule *value, json_t *look)
{
	json_t *rule = json_object();

	json_array_append_new(json_at(look, "rules"), rule);
	json_put_int(rule, "family", value->family == AF_INET ? 4 : 6);
	json_put_int(rule, "table", value->table);
	put_number(rule, "priority", value->priority);
	put_number(rule, "mark", value->mark);
	put_prefix(rule, "from", &value->from, value->from_prefix);
	put_prefix(rule, "to", &value->to, value->to_prefix);
}

static void put_neighbour(const struct rtnl_neighbour *value, json_t *look)
{
	json_t *neighbour = json_object();

	json_array_append_new(json_at(look, "neighbours"), neighbour);
	put_address(neighbour, "address", &value->address);
	put_mac(neighbour, "mac", &value->mac);
	put_dev(neighbour, look, value->index);
	json_put_int(neighbour, "index", value->index);
	json_put_bool(neighbour, "permanent", (value->state & NUD_PERMANENT) != 0);
}

static void decode_message(const struct nlmsghdr *message, json_t *look)
{
	struct rtnl_interface link;
	struct rtnl_ifaddr ifaddr;
	struct rtnl_route route;
	struct rtnl_rule rule;
	struct rtnl_neighbour neighbour;

	if (rtnl_decode_interface(message, &link)) {
		put_link(&link, look);
		rtnl_interface_done(&link);
	} else if (rtnl_decode_ifaddr(message, &ifaddr)) {
		put_ifaddr(&ifaddr, look);
	} else if (rtnl_decode_route(message, &route)) {
		/* Those that the kernel makes of routes for one address do not count. */
		if (!(route.flags & RTM_F_CLONED))
			put_route(&route, look);
		rtnl_route_done(&route);
	} else if (rtnl_decode_rule(message, &rule) && rule.action == FR_ACT_TO_TBL) {
		put_rule(&rule, look);
	} else if (rtnl_decode_neighbour(message, &neighbour)) {
		put_neighbour(&neighbour, look);
	}
}

void netns_decode(const void *bytes, size_t len, json_t *look)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at)))
		decode_message(message, look);
}

static void put_guid(json_t *object, const char *key, uint64_t guid)
{
	char text[TEXT_GUID_SIZE];

	text_from_guid(guid, text);
	json_put_str(object, key, text);
}

static json_t *vf_as_json(const struct rtnl_vf *vf)
{
	json_t *ret = json_object();
	char text[TEXT_MAC_SIZE];

	text_from_octets(vf->mac, sizeof(vf->mac), text);
	json_put_str(ret, "mac", text);
	if (vf->has_vlan) {
		json_put_int(ret, "vlan", vf->vlan);
		json_put_int(ret, "qos", vf->qos);
	}
	if (vf->has_proto)
		json_put_int(ret, "proto", vf->proto);
	if (vf->has_rate) {
		json_put_int(ret, "minRate", vf->min_rate);
		json_put_int(ret, "maxRate", vf->max_rate);
	}
	if (vf->has_spoofchk)
		json_put_bool(ret, "spoofchk", vf->spoofchk);
	if (vf->has_trust)
		json_put_bool(ret, "trust", vf->trust);
	if (vf->has_link_state)
		json_put_int(ret, "linkState", vf->link_state);
	if (vf->has_node_guid)
		put_guid(ret, "nodeGuid", vf->node_guid);
	if (vf->has_port_guid)
		put_guid(ret, "portGuid", vf->port_guid);
	return ret;
}

json_t *netns_decode_vf(const void *bytes, size_t len, int64_t vf)
{
	auto_vfs struct rtnl_vfs list = {0};
	const struct rtnl_vf *found;

	rtnl_decode_vfs(bytes, len, &list);
	found = vf < 0 ? NULL : rtnl_vf_by_number(&list, (uint32_t)vf);
	return found ? vf_as_json(found) : NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask_kernel(struct netns *ns, struct nl_msg *request, json_t *look, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = request;
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netns_netlink(ns), NETLINK_ROUTE, msg, &answer, err))
		return -1;
	netns_decode(answer.data, answer.len, look);
	return 0;
}

static struct nl_msg *dump_request(uint16_t type, const void *header, size_t len)
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
	json_auto_t *look = netns_look_new();

	assert(parts && ret);
	for (size_t i = 0; i < ARRAY_LEN(dumps); i++)
		if (parts & dumps[i].part &&
		    ask_kernel(ns, dump_request(dumps[i].type, dumps[i].header, dumps[i].len), look,
			       err))
			return err_in(err, "list %s of the namespace", dumps[i].name);
	*ret = take_ptr(look);
	return 0;
}

int netns_observe_link(struct netns *ns, const char *name, int index, json_t *look,
		       const json_t **ret, struct err *err)
{
	struct nl_msg *msg;
	struct err problem = {0};
	const json_t *known = name ? look_link(look, name) : look_link_by_index(look, index);

	assert(ret && json_is_array(json_at(look, "links")));
	if (known) {
		*ret = known;
		return 0;
	}
	msg = rtnl_link_request(RTM_GETLINK, 0, name ? 0 : index);
	if (name)
		netlink_put_str(msg, strlen(name) < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME, name);
	if (ask_kernel(ns, msg, look, &problem) && problem.sys != ENODEV) {
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
	auto_route struct rtnl_route route = {0};
	const struct nlmsghdr *message;
	json_auto_t *look = netns_look_new();
	struct rtmsg header = {.rtm_flags = flags};
	struct err problem = {0};
	size_t at = 0;

	header.rtm_family = address->family == 4 ? AF_INET : AF_INET6;
	header.rtm_dst_len = (unsigned char)(addr_len(address) * 8);
	msg = netlink_request(RTM_GETROUTE, 0, &header, sizeof(header));
	netlink_put(msg, RTA_DST, address->octets, addr_len(address));
	if (netlink_ask(netns_netlink(ns), NETLINK_ROUTE, msg, &answer, &problem) == 0) {
		message = netlink_next(answer.data, answer.len, &at);
		if (message && rtnl_decode_route(message, &route))
			put_route(&route, look);
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
	json_auto_t *look = NULL, *all = NULL;
	json_t *address, *ways, *gateways, *routes, *route, *hop;
	size_t i, k;

	if (netns_observe(ns, NETNS_ADDRESSES | NETNS_ROUTES | NETNS_RULES | NETNS_NEIGHBOURS,
			  &look, err))
		return -1;
	all = json_incref(json_at(look, "routes"));
	routes = json_array();
	json_put(look, "routes", routes);
	gateways = json_array();
	json_put(look, "gateways", gateways);
	ways = json_need_object(look, "ways");
	keep_neighbours(look, addresses);
	drop_link_local(look);
	json_array_foreach (all, i, route) {
		if (look_number(route, "table") == table)
			json_array_append(routes, route);
		add_gateway(gateways, route);
		json_array_foreach (json_at(route, "nexthops"), k, hop)
			add_gateway(gateways, hop);
	}
	json_array_foreach (addresses, i, address)
		if (ask_way(ns, json_string_value(address), json_at(look, "sources"), ways, err))
			return -1;
	if (name_devices(ns, look, "addresses", err) || name_devices(ns, look, "neighbours", err))
		return -1;
	*ret = take_ptr(look);
	return 0;
}

int netns_observe_vf(struct netns *ns, const char *pf, int64_t vf, json_t **ret, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = rtnl_link_request(RTM_GETLINK, 0, 0);
	auto_strbuf struct strbuf answer = {0};
	json_t *found;

	assert(pf && vf >= 0);
	netlink_put_str(msg, IFLA_IFNAME, pf);
	/* Statistics would make the list too long for new kernels (netlink/rtnl_vf.h). */
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

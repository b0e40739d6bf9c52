// SPDX-License-Identifier: Apache-2.0
/*
 * One pass per subject over what coordinator_run.c has looked up: the NIC itself, veth0, the node's
 * side, ways from the pod to the node, then the routing table of each NIC. Order counts: what is
 * planned for the main table is copied into the NIC's own by a later pass.
 */
#include "nodeagent/cni/plan/coordinator_internal.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"

/* Numbers of linux/if.h and linux/rtnetlink.h. */
#define LINK_ETHERNET 1
#define SCOPE_LINK    253
#define TABLE_MAIN    254
#define PROTO_KERNEL  2

#define TABLE_REPLY                                                                                \
	100    /* of the pod: answers to what came by veth0, or from the first NIC's address */
#define MARK 1 /* of cni/execute/marks.h */

void coordinator_peer_name(const char *container_id, char ret[COORDINATOR_PEER_SIZE])
{
	assert(container_id);
	(void)snprintf(ret, COORDINATOR_PEER_SIZE, "veth%.11s", container_id);
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* What the functions below share. */
struct plan {
	const struct coordinator_config *config;
	const struct coordinator_role *role;
	const struct coordinator_facts *facts;
	json_t *steps;
	json_t *host_addresses; /* texts without prefix */
	char *source;           /* IPv4 address that the pod speaks to the node from; may be NULL */
	const char *via_mac, *peer_mac;
	const char *peer; /* name of the node's end */
};

static json_t *add_route(json_t *steps, const char *in, int64_t table, const char *dst,
			 const char *gw, const char *dev, const char *src)
{
	json_t *step = steps_add(steps, in, "route", dev);
	bool v4 = look_family_of(dst) == LOOK_V4;

	json_put_int(step, "family", v4 ? 4 : 6);
	json_put_int(step, "table", table);
	json_put_str(step, "dst", dst);
	json_put_str(step, "gw", gw);
	if (v4)
		json_put_str(step, "src", src);
	if (v4 && !gw)
		json_put_int(step, "scope", SCOPE_LINK);
	return step;
}

static bool has_rule(const json_t *look, const json_t *rule)
{
	json_auto_t *list = json_array();

	json_array_append(list, (json_t *)rule);
	return steps_missing(list, look, look) == NULL;
}

/* Add a rule, unless it is there: the kernel would add it once more, with another priority. */
static json_t *add_rule(struct plan *plan, const char *in, int family, const char *from,
			int64_t table)
{
	const json_t *look = str_eq(in, "pod") ? plan->facts->pod : plan->facts->host;
	json_auto_t *list = json_array();
	json_t *rule = steps_add(list, in, "rule", NULL);
	char single[ADDR_TEXT_SIZE];

	json_put_int(rule, "family", family);
	json_put_int(rule, "table", table);
	if (from) {
		coordinator_single_text(from, single);
		json_put_str(rule, "from", single);
	}
	if (has_rule(look, rule))
		return NULL;
	json_array_append(plan->steps, rule);
	return rule;
}

static void set_sysctl(struct plan *plan, const char *path, const char *value)
{
	const char *was = json_string_value(json_at(plan->facts->pod, "sysctls", path));
	json_t *step;

	if (str_eq(was, value))
		return;
	step = steps_add(plan->steps, "pod", "sysctl", NULL);
	json_put_str(step, "path", path);
	json_put_str(step, "value", value);
	json_put_str(step, "was", was);
	json_put_bool(step, "optional", true);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Its own MAC, so that a pod that comes back with its address has its old one. Ethernet only. */
static void plan_mac(struct plan *plan, const json_t *nic, json_t *step)
{
	const char *first = json_string_value(json_array_get(plan->role->nic_addresses, 0));
	const uint8_t *prefix = plan->config->mac_prefix;
	char text[18];
	const char *was = json_str_at(nic, "mac");
	struct addr address;
	const uint8_t *tail;

	if (!plan->config->has_mac_prefix || look_number(nic, "type") != LINK_ETHERNET ||
	    !addr_parse_prefix(first, &address))
		return;
	tail = address.octets + addr_len(&address) - 4;
	(void)snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", prefix[0], prefix[1],
		       tail[0], tail[1], tail[2], tail[3]);
	if (str_eq(text, was))
		return;
	json_put_str(step, "mac", text);
	json_put_str(json_need_object(step, "was"), "mac", was);
	json_put_bool(step, "announce", true);
}

static void plan_nic(struct plan *plan)
{
	const json_t *nic = look_link(plan->facts->pod, plan->facts->ifname);
	json_t *step = steps_add(plan->steps, "pod", "link", plan->facts->ifname);

	if (!(look_number(nic, "flags") & LINK_UP))
		json_put_bool(step, "up", true);
	plan_mac(plan, nic, step);
	if (plan->config->txqueuelen && plan->config->txqueuelen != look_number(nic, "txqlen")) {
		json_put_int(step, "txqlen", plan->config->txqueuelen);
		json_put_int(json_need_object(step, "was"), "txqlen", look_number(nic, "txqlen"));
	}
	/* Nothing but its name: nothing to do. */
	if (json_object_size(step) == 3)
		json_array_remove(plan->steps, json_array_size(plan->steps) - 1);
}

static void plan_veth(struct plan *plan)
{
	const struct coordinator_config *config = plan->config;
	json_t *step = steps_add(plan->steps, "pod", "veth", COORDINATOR_VETH);

	json_put_str(step, "peer", plan->peer);
	json_put_str(step, "mac", plan->via_mac);
	json_put_str(step, "peerMac", plan->peer_mac);
	if (config->veth_mtu)
		json_put_int(step, "mtu", config->veth_mtu);
	step = steps_add(plan->steps, "host", "sysctl", NULL);
	json_put(step, "path", json_fmt("net/ipv6/conf/%s/accept_ra", plan->peer));
	json_put_str(step, "value", "0");
	json_put_bool(step, "optional", true);
	json_put_bool(steps_add(plan->steps, "host", "link", plan->peer), "up", true);
	if (config->veth_address.family &&
	    !(plan->role->families == LOOK_V6 && config->veth_address.family == 4)) {
		char text[ADDR_TEXT_SIZE];

		addr_print_prefix(&config->veth_address, text);
		json_put_str(steps_add(plan->steps, "pod", "address", COORDINATOR_VETH), "address",
			     text);
	}
}

/* The two ends by which pod and node reach each other. */
static int find_ends(struct plan *plan, struct err *err, char peer_name[COORDINATOR_PEER_SIZE])
{
	const json_t *via = look_link(plan->facts->pod, plan->role->via);
	const json_t *peer = plan->facts->peer;

	if (!via && plan->role->underlay) {
		coordinator_peer_name(plan->facts->container_id, peer_name);
		plan->peer = peer_name;
		plan->via_mac = plan->facts->veth_mac;
		plan->peer_mac = plan->facts->peer_mac;
		return 0;
	}
	if (!via || !peer)
		return err_set(err, ERR_HOST, "NoPeer",
			       "coordinator: the pod's %s has no other end on the node, so nothing "
			       "leads from one to the other; set mode disable for this network",
			       plan->role->via);
	plan->peer = json_str_at(peer, "name");
	plan->via_mac = json_str_at(via, "mac");
	plan->peer_mac = json_str_at(peer, "mac");
	return 0;
}

/* ---- the node -------------------------------------------------------------------------------- */

static bool is_virtual_of_cluster(const char *dev)
{
	static const char *const patterns[] = {
		"docker*", "cbr*",     "dummy*",     "virbr*", "lxcbr*",         "veth*",  "lo",
		"cali*",   "flannel*", "kube-ipvs*", "cni*",   "vx-submariner*", "ciliu*",
	};

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		if (fnmatch(patterns[i], dev, 0) == 0)
			return true;
	return false;
}

/* First those that the node speaks to the pod from, then the others. */
static void collect_host_addresses(struct plan *plan)
{
	const json_t *host = plan->facts->host;
	size_t i;
	json_t *item;

	json_array_foreach (plan->role->pod_addresses, i, item) {
		const char *source = json_str_at(host, "sources", json_string_value(item));
		struct addr address;

		if (addr_parse(source, &address) && !json_list_has(plan->host_addresses, source))
			json_array_append_new(plan->host_addresses, json_fmt("%s", source));
	}
	json_array_foreach (json_at(host, "addresses"), i, item) {
		const char *dev = json_str_at(item, "dev");
		char bare[ADDR_TEXT_SIZE];
		struct addr address;

		if (!dev || is_virtual_of_cluster(dev) ||
		    !addr_parse_prefix(json_str_at(item, "address"), &address) ||
		    addr_is_link_local(&address) || addr_is_multicast(&address) ||
		    !(plan->role->families & look_family_bit(address.family)))
			continue;
		addr_print(&address, bare);
		if (!json_list_has(plan->host_addresses, bare))
			json_array_append_new(plan->host_addresses, json_fmt("%s", bare));
	}
}

static void plan_stale_routes(struct plan *plan, const char *single)
{
	size_t i;
	json_t *route;

	json_array_foreach (json_at(plan->facts->host, "routes"), i, route) {
		json_t *step;

		if (!str_eq(json_str_at(route, "dst"), single) ||
		    look_number(route, "table") != plan->config->host_table)
			continue;
		step = steps_add(plan->steps, "host", "unroute", NULL);
		json_put_int(step, "table", plan->config->host_table);
		json_put_str(step, "dst", single);
		json_put_int(step, "scope", look_number(route, "scope"));
	}
}

static void plan_node(struct plan *plan)
{
	const json_t *addresses = plan->role->nic_addresses;
	size_t i;
	json_t *item;

	/* Forget who had the pod's addresses before, on any link. */
	json_array_foreach (json_at(plan->facts->host, "neighbours"), i, item) {
		const char *dev = json_str_at(item, "dev");

		if (dev && !str_eq(dev, plan->peer))
			json_put_str(steps_add(plan->steps, "host", "unneighbour", dev), "address",
				     json_str_at(item, "address"));
	}
	for (int family = 4; family <= 6; family += 2) {
		json_t *rule;

		if (!(plan->role->families & look_family_bit(family)))
			continue;
		rule = add_rule(plan, "host", family, NULL, plan->config->host_table);
		if (!rule)
			continue;
		json_put_int(rule, "priority", RULE_PRIORITY);
		json_put_bool(rule, "shared", true); /* all pods of the node need it */
	}
	json_array_foreach (addresses, i, item) {
		char single[ADDR_TEXT_SIZE], bare[ADDR_TEXT_SIZE];
		json_t *step;

		coordinator_single_text(json_string_value(item), single);
		coordinator_bare_text(single, bare);
		plan_stale_routes(plan, single);
		step = steps_add(plan->steps, "host", "neighbour", plan->peer);
		json_put_str(step, "address", bare);
		json_put_str(step, "mac", plan->via_mac);
		add_route(plan->steps, "host", plan->config->host_table, single, NULL, plan->peer,
			  NULL);
	}
}

/* ---- the pod --------------------------------------------------------------------------------- */

static const char *gateway_of(const struct plan *plan, unsigned int family)
{
	size_t i;
	json_t *item;

	json_array_foreach (plan->host_addresses, i, item)
		if (look_family_of(json_string_value(item)) == family)
			return json_string_value(item);
	return NULL;
}

/* Ways to the node's addresses, and by them to the networks that are the cluster's own. */
static void plan_ways_to_node(struct plan *plan)
{
	const struct coordinator_role *role = plan->role;
	const char *via = role->via;
	size_t i;
	json_t *item;

	json_array_foreach (plan->host_addresses, i, item) {
		const char *address = json_string_value(item);
		char single[ADDR_TEXT_SIZE];
		json_t *step;

		if (role->first) {
			step = steps_add(plan->steps, "pod", "neighbour", via);
			json_put_str(step, "address", address);
			json_put_str(step, "mac", plan->peer_mac);
		}
		coordinator_single_text(address, single);
		add_route(plan->steps, "pod", role->table, single, NULL, via, plan->source);
		if (role->first)
			add_route(plan->steps, "pod", TABLE_MAIN, single, NULL, via, plan->source);
	}
	json_array_foreach (plan->config->cidrs, i, item) {
		const char *network = json_string_value(item);
		const char *gateway = gateway_of(plan, look_family_of(network));

		if (gateway && role->families & look_family_of(network))
			add_route(plan->steps, "pod", role->first ? TABLE_MAIN : role->table,
				  network, gateway, via, plan->source);
	}
}

/* What came in by veth0 is answered by veth0. */
static void plan_replies(struct plan *plan)
{
	steps_add(plan->steps, "pod", "marks", COORDINATOR_VETH);
	for (int family = 4; family <= 6; family += 2) {
		unsigned int bit = look_family_bit(family);
		const char *gateway = gateway_of(plan, bit);
		json_t *rule;

		if (!(plan->role->families & bit) || !gateway)
			continue;
		rule = steps_add(plan->steps, "pod", "rule", NULL);
		json_put_int(rule, "family", family);
		json_put_int(rule, "table", TABLE_REPLY);
		json_put_int(rule, "mark", MARK);
		json_put_int(rule, "priority", RULE_PRIORITY);
		add_route(plan->steps, "pod", TABLE_REPLY, bit == LOOK_V4 ? "0.0.0.0/0" : "::/0",
			  gateway, COORDINATOR_VETH, plan->source);
	}
}

static bool is_default(const json_t *route)
{
	return str_eq(json_str_at(route, "dst"), "0.0.0.0/0") ||
	       str_eq(json_str_at(route, "dst"), "::/0");
}

/* The device's own part of a route of main: the route, or its next hop of several. NULL: none. */
static const json_t *part_of(const json_t *route, const char *dev)
{
	size_t i;
	json_t *hop;

	if (look_number(route, "table") != TABLE_MAIN)
		return NULL;
	if (str_eq(json_str_at(route, "dev"), dev))
		return route;
	json_array_foreach (json_at(route, "nexthops"), i, hop)
		if (str_eq(json_str_at(hop, "dev"), dev))
			return hop;
	return NULL;
}

static bool has_default_route(const json_t *pod, const char *dev, unsigned int families)
{
	size_t i;
	json_t *route;

	json_array_foreach (json_at(pod, "routes"), i, route)
		if (is_default(route) && part_of(route, dev) &&
		    families & look_family_bit(look_number(route, "family")))
			return true;
	return false;
}

/* The first link but this NIC that has a default route. Borrowed from the pod; NULL: none. */
static const char *default_nic(const struct plan *plan)
{
	auto_free const json_t **links = NULL;
	size_t n = 0;

	links = coordinator_links(plan->facts->pod, &n);
	for (size_t i = 0; i < n; i++) {
		const char *name = json_str_at(links[i], "name");

		if (!str_eq(name, "lo") && !str_eq(name, plan->facts->ifname) &&
		    has_default_route(plan->facts->pod, name, plan->role->families))
			return name;
	}
	return NULL;
}

/*
 * The same way in another table. Metrics of the kernel's own routes are its defaults, not anybody's
 * wish.
 */
static void copy_route(struct plan *plan, const json_t *route, const json_t *part, const char *dev,
		       int64_t table)
{
	static const char *const numbers[] = {"scope", "flags", "mtu", "metric"};
	json_t *step = steps_add(plan->steps, "pod", "route", dev);

	json_put_int(step, "family", look_number(route, "family"));
	json_put_int(step, "table", table);
	json_put_str(step, "dst", json_str_at(route, "dst"));
	json_put_str(step, "gw", json_str_at(part, "gw"));
	json_put_str(step, "src", json_str_at(route, "src"));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const json_t *from = str_eq(numbers[i], "flags") ? part : route;
		int64_t value = look_number(from, numbers[i]);

		if (value && !(i == 3 && look_number(route, "protocol") == PROTO_KERNEL))
			json_put_int(step, numbers[i], value);
	}
}

/* A device's ways into a table. Its default routes move there, or stay in main alone. */
static void give_routes(struct plan *plan, const char *dev, int64_t table, bool defaults_stay)
{
	size_t i, planned = json_array_size(plan->steps);
	json_t *route;

	json_array_foreach (json_at(plan->facts->pod, "routes"), i, route) {
		const json_t *part = part_of(route, dev);

		if (!part || look_number(route, "type") != TYPE_UNICAST ||
		    str_eq(json_str_at(route, "dst"), "fe80::/64") ||
		    (is_default(route) && defaults_stay) ||
		    !(plan->role->families & look_family_bit(look_number(route, "family"))))
			continue;
		copy_route(plan, route, part, dev, table);
		if (is_default(route)) {
			json_t *step;

			copy_route(plan, route, part, dev, TABLE_MAIN);
			step = json_array_get(plan->steps, json_array_size(plan->steps) - 1);
			json_put_str(step, "do", "unroute");
		}
	}
	/* What this plan puts into main belongs to the device's ways, too. */
	for (i = 0; i < planned; i++) {
		route = json_array_get(plan->steps, i);
		if (str_eq(json_str_at(route, "do"), "route") &&
		    str_eq(json_str_at(route, "in"), "pod") && part_of(route, dev))
			copy_route(plan, route, route, dev, table);
	}
}

static void add_rules_from(struct plan *plan, const char *dev, int64_t table)
{
	json_auto_t *addresses = json_array();
	size_t i;
	json_t *item;

	look_addresses(plan->facts->pod, dev, plan->role->families, addresses);
	json_array_foreach (addresses, i, item) {
		const char *text = json_string_value(item);

		(void)add_rule(plan, "pod", look_family_of(text) == LOOK_V4 ? 4 : 6, text, table);
	}
}

/*
 * Do subnets of this NIC and of another one of the pod overlap? Main then has equal routes to them,
 * of which the kernel takes the oldest, whichever address a packet is from.
 */
static bool shares_subnet(const struct plan *plan)
{
	const char *ifname = plan->facts->ifname;
	size_t i, k;
	json_t *own, *item;

	json_array_foreach (plan->role->nic_addresses, i, own) {
		struct addr mine, other;

		if (!addr_parse_prefix(json_string_value(own), &mine))
			continue;
		json_array_foreach (json_at(plan->facts->pod, "addresses"), k, item) {
			if (str_eq(json_str_at(item, "dev"), ifname) ||
			    !addr_parse_prefix(json_str_at(item, "address"), &other))
				continue;
			if (addr_contains(&mine, &other) || addr_contains(&other, &mine))
				return true;
		}
	}
	return false;
}

/*
 * A table with its subnet for a NIC that main is for otherwise: main may name another NIC for it.
 * What the table does not have, main has.
 */
static void plan_own_table(struct plan *plan, int64_t table)
{
	const char *ifname = plan->facts->ifname;

	while (coordinator_table_is_taken(plan->facts->pod, table, ifname, plan->config->first_nic))
		table++;
	add_rules_from(plan, ifname, table);
	give_routes(plan, ifname, table, true);
}

/*
 * One NIC keeps the default route in main; the other's ways go to a table that its addresses
 * select. Where NICs share a subnet, each has such a table.
 */
static int plan_tables(struct plan *plan, struct err *err)
{
	const struct coordinator_role *role = plan->role;
	const char *ifname = plan->facts->ifname, *wanted = plan->config->default_route_nic;
	const char *keeper = default_nic(plan);

	if (!keeper) {
		if (shares_subnet(plan))
			plan_own_table(plan, role->table);
		return 0;
	}
	/* What comes next takes main itself, when it is its turn. */
	if (!str_empty(wanted) && !look_link(plan->facts->pod, wanted) &&
	    !json_list_has(plan->facts->later, wanted))
		return err_set(
			err, ERR_INVALID, "NicMissing",
			"coordinator: %s: podDefaultRouteNic %s is no interface of the pod; name "
			"one of its networks'",
			ifname, wanted);
	if (str_eq(wanted, ifname)) {
		add_rules_from(plan, keeper, role->table);
		give_routes(plan, keeper, role->table, false);
		if (shares_subnet(plan))
			plan_own_table(plan, role->table + 1);
		return 0;
	}
	add_rules_from(plan, ifname, role->table);
	if (!role->underlay && role->first) {
		size_t i;
		json_t *route;

		add_rules_from(plan, keeper, TABLE_REPLY);
		json_array_foreach (json_at(plan->facts->pod, "routes"), i, route) {
			const json_t *part = part_of(route, plan->config->first_nic);

			if (part && is_default(route) &&
			    plan->role->families & look_family_bit(look_number(route, "family")))
				copy_route(plan, route, part, plan->config->first_nic, TABLE_REPLY);
		}
	}
	give_routes(plan, ifname, role->table, false);
	return 0;
}

static void plan_policy_routes(struct plan *plan)
{
	const struct coordinator_role *role = plan->role;
	size_t i;
	json_t *route;

	json_array_foreach (plan->config->routes, i, route) {
		const char *dst = json_str_at(route, "dst");

		if (role->families & look_family_of(dst))
			add_route(plan->steps, "pod",
				  role->underlay && role->first ? TABLE_MAIN : role->table, dst,
				  json_str_at(route, "gw"), plan->facts->ifname, NULL);
	}
}

/*
 * By default Linux answers ARP for any of its addresses on any NIC. Two NICs of a pod in one
 * broadcast domain, of one subnet or of several, would then speak for each other, and what is meant
 * for one comes in by the other; RDMA, which is bound to a device, does not come in at all.
 * Each NIC, not only those of one subnet: a NIC that is added later may be the one that
 * answers, and whether two NICs are in one broadcast domain is not to be seen from here. A
 * stricter value (of the plugin tuning, of the node) stays. IPv6 answers for a NIC's own
 * addresses only.
 */
static void plan_arp(struct plan *plan)
{
	static const struct {
		const char *name, *value;
	} rules[] = {{"arp_ignore", "1"}, {"arp_announce", "2"}};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		auto_free char *path =
			str_printf("net/ipv4/conf/%s/%s", plan->facts->ifname, rules[i].name);
		const char *was = json_string_value(json_at(plan->facts->pod, "sysctls", path));

		if (!was || strcmp(was, rules[i].value) < 0)
			set_sysctl(plan, path, rules[i].value);
	}
}

static void plan_sysctls(struct plan *plan)
{
	char number[24];

	if (plan->role->families & LOOK_V4)
		plan_arp(plan);
	if (plan->role->families & LOOK_V6)
		set_sysctl(plan, "net/ipv6/conf/all/disable_ipv6", "0");
	if (plan->config->rp_filter < 0)
		return;
	(void)snprintf(number, sizeof(number), "%lld", (long long)plan->config->rp_filter);
	set_sysctl(plan, "net/ipv4/conf/all/rp_filter", number);
}

int coordinator_plan(const struct coordinator_config *config, const struct coordinator_role *role,
		     const struct coordinator_facts *facts, json_t *steps, struct err *err)
{
	json_auto_t *list = json_array(), *host_addresses = json_array();
	auto_free char *source = look_first_address(facts->pod, "eth0", 4);
	char peer_name[COORDINATOR_PEER_SIZE];
	struct plan plan = {
		.config = config,
		.role = role,
		.facts = facts,
		.steps = list,
		.host_addresses = host_addresses,
	};

	assert(config->mode != COORDINATOR_DISABLED);
	assert(role->families && role->via && role->table >= TABLE_FIRST);
	assert(facts->pod && facts->host && json_is_array(steps));
	if (!source)
		source = look_first_address(facts->pod, config->first_nic, 4);
	plan.source = source;
	if (find_ends(&plan, err, peer_name) || coordinator_check_table(config, facts, err) ||
	    coordinator_check_addresses(config, role, facts, err))
		return -1;
	collect_host_addresses(&plan);
	plan_nic(&plan);
	plan_sysctls(&plan);
	if (role->underlay && !role->has_veth)
		plan_veth(&plan);
	plan_node(&plan);
	plan_ways_to_node(&plan);
	if (role->underlay && role->first)
		plan_replies(&plan);
	if (config->tune_pod_routes && !(role->underlay && role->first) && plan_tables(&plan, err))
		return -1;
	plan_policy_routes(&plan);
	json_array_extend(steps, list);
	return 0;
}

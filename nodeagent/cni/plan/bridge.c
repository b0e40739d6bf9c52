// SPDX-License-Identifier: Apache-2.0
/*
 * A port of a bridge: read what is asked for, list the steps, compare what is there.
 * nodeagent/cni/execute/bridge_run.c looks and acts.
 */
#include "nodeagent/cni/plan/bridge.h"

#include <assert.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"

#define DEFAULT_NAME "cni0"
#define DEFAULT_VLAN 1 /* of a port of a new bridge, and without a VLAN that of a trunk */

void bridge_config_done(struct bridge_config *config)
{
	json_decref(config->folded);
	json_decref(config->trunk);
	*config = (struct bridge_config){0};
}

static bool is_on(const struct bridge_config *config, const char *key)
{
	return json_is_true(json_at(config->folded, key));
}

/* ---- configuration --------------------------------------------------------------------------- */

/* One entry of vlanTrunk into the set of VLANs. */
static int add_to_trunk(const json_t *item, size_t i, bool *vlans, struct err *err)
{
	static const char *const keys[] = {"minID", "maxID", "id"};
	json_auto_t *folded = NULL;
	int64_t ids[3] = {0};

	if (config_keys_read(item, "bridge.trunk", &folded, err))
		return err_in(err, "bridge: vlanTrunk[%zu]", i);
	for (size_t k = 0; k < ARRAY_LEN(keys); k++)
		if (config_keys_number(folded, "bridge", keys[k], CONFIG_VLAN_MAX, &ids[k], err) ||
		    (json_at(folded, keys[k]) && ids[k] == 0 &&
		     err_set(err, ERR_INVALID, "BadField", "bridge: %s is 0, it must be a VLAN",
			     keys[k])))
			return err_in(err, "bridge: vlanTrunk[%zu]", i);
	if (!ids[0] != !ids[1] || ids[0] > ids[1])
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: vlanTrunk[%zu] must have minID and maxID, which is not the "
			       "smaller one, or neither",
			       i);
	for (int64_t id = ids[0]; id && id <= ids[1]; id++)
		vlans[id] = true;
	vlans[ids[2]] |= ids[2] != 0;
	return 0;
}

static int read_trunk(struct bridge_config *ret, struct err *err)
{
	const json_t *list = json_at(ret->folded, "vlanTrunk");
	bool vlans[CONFIG_VLAN_MAX + 2] = {false};
	size_t i;
	json_t *item;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > BRIDGE_TRUNK_MAX)
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: vlanTrunk must be a list of at most %d entries",
			       BRIDGE_TRUNK_MAX);
	json_array_foreach (list, i, item)
		if (!json_is_object(item))
			return err_set(err, ERR_INVALID, "BadField",
				       "bridge: vlanTrunk[%zu] must be an object", i);
		else if (add_to_trunk(item, i, vlans, err))
			return -1;
	ret->trunk = json_array();
	for (int first = 1, last; first <= CONFIG_VLAN_MAX; first = last + 1) {
		for (last = first; vlans[first] && vlans[last + 1]; last++)
			;
		if (vlans[first])
			json_array_append_new(ret->trunk, json_pack("[i, i]", first, last));
	}
	return 0;
}

static int check_config(const struct bridge_config *config, struct err *err)
{
	static const char *const refused[] = {"ipMasq", "macspoofchk"};

	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (is_on(config, refused[i]))
			return err_set(
				err, ERR_INVALID, "NotSupported",
				"bridge: %s is true, and this plugin forwards frames only, "
				"it has no packet filter; remove it, or install the bridge of "
				"containernetworking-plugins",
				refused[i]);
	if (!config_keys_is_ifname(config->bridge))
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: bridge \"%.64s\" must be the name of an interface",
			       config->bridge);
	if (is_on(config, "hairpinMode") && is_on(config, "promiscMode"))
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: hairpinMode and promiscMode must not both be true");
	if (config->has_ipam && is_on(config, "disableContainerInterface"))
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: disableContainerInterface is true, and ipam is given: an "
			       "interface that is down has no addresses; remove one");
	return 0;
}

int bridge_config_read(const json_t *config, const char *args, struct bridge_config *ret,
		       struct err *err)
{
	auto_bridge_config struct bridge_config read = {.bridge = DEFAULT_NAME};
	auto_free char *of_args = cni_args_value(args, "MAC");
	auto_free char *gateway = NULL;

	if (config_keys_read(config, "bridge", &read.folded, err))
		return -1;
	config = read.folded;
	if (!str_empty(json_str_at(config, "bridge")))
		read.bridge = json_str_at(config, "bridge");
	read.has_ipam = !str_empty(json_str_at(config, "ipam", "type"));
	read.is_gateway =
		read.has_ipam && (is_on(&read, "isGateway") || is_on(&read, "isDefaultGateway"));
	const char *const macs[] = {of_args, json_str_at(config, "args", "cni", "mac"),
				    json_str_at(config, "runtimeConfig", "mac")};

	if (config_keys_number(config, "bridge", "mtu", INT32_MAX, &read.mtu, err) ||
	    config_keys_number(config, "bridge", "vlan", CONFIG_VLAN_MAX, &read.vlan, err) ||
	    read_trunk(&read, err) ||
	    wanted_mac_last("bridge", macs, ARRAY_LEN(macs), read.mac, err) ||
	    check_config(&read, err))
		return -1;
	gateway = bridge_gateway_dev(&read);
	if (read.is_gateway && !config_keys_is_ifname(gateway))
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: isGateway of a VLAN is for an interface %.64s, whose name "
			       "is too long; name the bridge with fewer letters",
			       gateway);
	*ret = read;
	read = (struct bridge_config){0};
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

int bridge_plan(const struct bridge_config *config, const json_t *link, json_t *steps,
		struct err *err)
{
	const char *name = config->bridge;
	bool filters = config->vlan || config->trunk;
	json_t *step;

	if (link && !str_eq(json_str_at(link, "kind"), "bridge"))
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: bridge \"%s\" is an interface of the node that is not a "
			       "bridge; name another",
			       name);
	if (link && filters && json_at(link, "filtering") && look_number(link, "filtering") == 0)
		return err_set(err, ERR_INVALID, "BadField",
			       "bridge: %s is given, and the bridge %s does not filter VLANs; "
			       "\"ip link set %s type bridge vlan_filtering 1\" on the node",
			       config->vlan ? "vlan" : "vlanTrunk", name, name);
	if (!link) {
		step = steps_add_shared(steps, "bridge", name);
		json_put_bool(step, "filtering", filters);
		if (config->mtu)
			json_put_int(step, "mtu", config->mtu);
		/* Routes of this interface are the plugins'. */
		json_put_bool(steps_add_sysctl(steps, "host",
					       json_fmt("net/ipv6/conf/%s/accept_ra", name), "0"),
			      "shared", true);
	}
	if (is_on(config, "promiscMode") && !(look_number(link, "flags") & LOOK_PROMISC))
		json_put_bool(steps_add_shared(steps, "link", name), "promisc", true);
	if (!(look_number(link, "flags") & LOOK_UP))
		json_put_bool(steps_add_shared(steps, "link", name), "up", true);
	return 0;
}

/* The VLANs of a port: [[first, last]]; pvid: the one of frames without a tag, both ways. */
static void add_vlans(json_t *steps, const char *what, const char *dev, json_t *ids, bool pvid)
{
	json_t *step = steps_add(steps, "host", what, dev);

	json_put(step, "ids", ids);
	if (pvid)
		json_put_bool(step, "pvid", true);
}

static void plan_vlans(const struct bridge_config *config, const json_t *link, const char *peer,
		       json_t *steps)
{
	int64_t own = json_at(link, "pvid") ? look_number(link, "pvid") : DEFAULT_VLAN;
	int64_t untagged = config->vlan ? config->vlan : DEFAULT_VLAN;

	if (!config->vlan && json_array_size(config->trunk) == 0)
		return;
	/* What each new port of this bridge is in. */
	if (!is_on(config, "preserveDefaultVlan") && own)
		add_vlans(steps, "unvlans", peer, json_pack("[[I, I]]", own, own), false);
	/* One after the other: of two that name the same VLAN the last counts. */
	if (config->vlan)
		add_vlans(steps, "vlans", peer, json_pack("[[I, I]]", untagged, untagged), true);
	if (json_array_size(config->trunk))
		add_vlans(steps, "vlans", peer, json_incref(config->trunk), false);
	if (!config->vlan)
		add_vlans(steps, "vlans", peer, json_pack("[[I, I]]", untagged, untagged), true);
}

void bridge_plan_port(const struct bridge_config *config, const json_t *link, const char *peer,
		      const char *ifname, json_t *steps)
{
	bool detects = is_on(config, "enabledad");
	json_t *step = steps_add(steps, "pod", "veth", ifname);

	assert(peer && ifname);
	json_put_str(step, "peer", peer);
	json_put_bool(step, "exclusive", true);
	if (config->mtu)
		json_put_int(step, "mtu", config->mtu);
	if (config->mac[0])
		json_put_str(step, "mac", config->mac);
	if (is_on(config, "disableContainerInterface"))
		json_put_bool(step, "up", false);
	if (config->has_ipam) {
		/* Before it has a carrier, with which the kernel looks for duplicates. */
		if (detects)
			steps_add_sysctl(steps, "pod",
					 json_fmt("net/ipv6/conf/%s/enhanced_dad", ifname), "1");
		steps_add_sysctl(steps, "pod", json_fmt("net/ipv6/conf/%s/accept_dad", ifname),
				 detects ? "1" : "0");
		steps_add_sysctl(steps, "pod", json_fmt("net/ipv4/conf/%s/arp_notify", ifname),
				 "1");
	}
	json_put_int(steps_add(steps, "host", "link", peer), "master", look_number(link, "index"));
	step = steps_add(steps, "host", "port", peer);
	json_put_bool(step, "hairpin", is_on(config, "hairpinMode"));
	if (is_on(config, "portIsolation"))
		json_put_bool(step, "isolated", true);
	plan_vlans(config, link, peer, steps);
	json_put_bool(steps_add(steps, "host", "link", peer), "up", true);
}

static bool has_default_route(const json_t *routes, const char *network)
{
	size_t i;
	json_t *route;

	json_array_foreach (routes, i, route)
		if (json_at(route, "gw") && str_eq(json_str_at(route, "dst"), network))
			return true;
	return false;
}

/* The first address behind that of the network. */
static char *first_address(const char *address)
{
	char text[ADDR_TEXT_SIZE];
	struct addr first;
	unsigned int at;

	if (!addr_parse_prefix(address, &first))
		return NULL;
	first = addr_network(&first);
	for (at = addr_len(&first); at-- > 0 && ++first.octets[at] == 0;)
		;
	addr_print(&first, text);
	return str_dup(text);
}

void bridge_put_gateways(const struct bridge_config *config, json_t *result)
{
	size_t i;
	json_t *ip;

	if (!config->is_gateway)
		return;
	json_array_foreach (json_at(result, "ips"), i, ip) {
		const char *address = json_str_or(json_at(ip, "address"), "");
		const char *network = look_family_of(address) == LOOK_V4 ? "0.0.0.0/0" : "::/0";
		auto_free char *first = first_address(address);

		if (!json_at(ip, "gateway"))
			json_put_str(ip, "gateway", first);
		if (is_on(config, "isDefaultGateway") &&
		    !has_default_route(json_at(result, "routes"), network))
			json_array_append_new(json_at(result, "routes"),
					      json_pack("{s:s, s:O}", "dst", network, "gw",
							json_at(ip, "gateway")));
	}
}

char *bridge_gateway_dev(const struct bridge_config *config)
{
	return config->vlan ? str_printf("%s.%lld", config->bridge, (long long)config->vlan)
			    : str_dup(config->bridge);
}

/* The addresses that are in the way of a gateway's go, where the configuration says so. */
static int plan_address(const struct bridge_config *config, const struct bridge_node *node,
			const char *dev, const char *text, json_t *steps, struct err *err)
{
	const json_t *link = config->vlan ? node->vlan : node->link;
	struct addr wanted, is;
	size_t i;
	json_t *item, *step;

	if (!addr_parse_prefix(text, &wanted))
		return 0;
	json_array_foreach (node->addresses, i, item) {
		const char *other = json_str_or(json_at(item, "address"), "");

		if (!link || look_number(item, "index") != look_number(link, "index") ||
		    !addr_parse_prefix(other, &is) || is.family != wanted.family)
			continue;
		if (is.prefix == wanted.prefix && addr_same(&is, &wanted))
			return 0;
		/* IPv6 has several, of networks that do not overlap. */
		if (wanted.family == 6 && !addr_contains(&is, &wanted) &&
		    !addr_contains(&wanted, &is))
			continue;
		if (!is_on(config, "forceAddress"))
			return err_set(
				err, ERR_INVALID, "BadField",
				"bridge: %s has the address %s, the gateway of this network "
				"is %s; set forceAddress to replace it, or name another bridge",
				dev, other, text);
		if (bridge_leads_out(node->routes, dev))
			return err_set(
				err, ERR_INVALID, "AddressOfNode",
				"bridge: forceAddress would take the address %s off %s, by which "
				"the node's routes lead; name another bridge",
				other, dev);
		json_put_str(steps_add_shared(steps, "unaddress", dev), "address", other);
	}
	step = steps_add_shared(steps, "address", dev);
	json_put_str(step, "address", text);
	json_put_bool(step, "broadcast", true);
	return 0;
}

static void plan_gateway_dev(const struct bridge_config *config, const struct bridge_node *node,
			     const char *dev, json_t *steps)
{
	json_t *step;

	/* Its own for good: else it is that of the port with the smallest. */
	json_put_str(steps_add_shared(steps, "link", config->bridge), "mac",
		     json_str_at(node->link, "mac"));
	if (!config->vlan)
		return;
	/* The node itself is a port of the bridge, for which it has to be in the VLAN. */
	step = steps_add_shared(steps, "vlans", config->bridge);
	json_put(step, "ids", json_pack("[[I, I]]", config->vlan, config->vlan));
	json_put_bool(step, "self", true);
	if (!node->vlan) {
		step = steps_add_shared(steps, "upper", dev);
		json_put_str(step, "kind", "vlan");
		json_put_int(step, "lower", look_number(node->link, "index"));
		json_put_int(step, "vlan", config->vlan);
	}
	if (!(look_number(node->vlan, "flags") & LOOK_UP))
		json_put_bool(steps_add_shared(steps, "link", dev), "up", true);
}

int bridge_plan_gateways(const struct bridge_config *config, const struct bridge_node *node,
			 const json_t *result, json_t *steps, struct err *err)
{
	auto_free char *dev = bridge_gateway_dev(config);
	bool has_v4 = false, has_v6 = false;
	size_t i;
	json_t *ip;

	assert(config->is_gateway && node->link);
	plan_gateway_dev(config, node, dev, steps);
	json_array_foreach (json_at(result, "ips"), i, ip) {
		const char *address = json_str_or(json_at(ip, "address"), ""),
			   *prefix = strchr(address, '/');
		auto_free char *gateway = str_printf(
			"%s%s", json_str_or(json_at(ip, "gateway"), ""), prefix ? prefix : "");

		*(look_family_of(address) == LOOK_V4 ? &has_v4 : &has_v6) = true;
		if (plan_address(config, node, dev, gateway, steps, err))
			return -1;
	}
	if (has_v4 && !node->forwards_v4)
		json_put_bool(steps_add_sysctl(steps, "host", json_fmt("net/ipv4/ip_forward"), "1"),
			      "shared", true);
	if (has_v6 && !node->forwards_v6)
		json_put_bool(steps_add_sysctl(steps, "host",
					       json_fmt("net/ipv6/conf/all/forwarding"), "1"),
			      "shared", true);
	return 0;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

int bridge_check(const struct bridge_config *config, const struct interface_facts *facts,
		 const json_t *host, struct err *err)
{
	const json_t *bridge = look_link(host, config->bridge), *link, *peer, *before;
	const char *mac;

	if (interface_check(facts, "veth", &link, err))
		return -1;
	if (!str_eq(json_str_at(bridge, "kind"), "bridge"))
		return interface_not_as_added(err, "bridge: the node has no bridge %s any more",
					      config->bridge);
	before = json_find(json_at(facts->previous, "interfaces"), "name", config->bridge);
	mac = json_str_at(before, "mac");
	if (!str_empty(mac) && !str_eq(mac, json_str_at(bridge, "mac")))
		return interface_not_as_added(err, "bridge: %s has MAC %s, prevResult says %s",
					      config->bridge,
					      json_str_or(json_at(bridge, "mac"), "none"), mac);
	if (is_on(config, "promiscMode") && !(look_number(bridge, "flags") & LOOK_PROMISC))
		return interface_not_as_added(err, "bridge: %s is not promiscuous any more",
					      config->bridge);
	peer = look_link_by_index(host, look_number(link, "lower"));
	if (!peer || look_number(peer, "master") != look_number(bridge, "index"))
		return interface_not_as_added(err,
					      "bridge: the node's end of %s is not a port of %s "
					      "any more",
					      facts->ifname, config->bridge);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What the gateways of a bridge must not take from the node: a network of the node's own, its
 * gateways, machines that it talks to. bridge.c plans the addresses once this has let them pass.
 */
#include "nodeagent/cni/plan/bridge.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"
#include "nodeagent/cni/plan/look.h"

static int64_t index_of_gateways(const struct bridge_config *config, const struct bridge_node *node)
{
	const json_t *link = config->vlan ? node->vlan : node->link;

	return link ? look_number(link, "index") : 0;
}

/* An address as the kernel or a configuration has it, with prefix length or without. */
static bool read_address(const char *text, struct addr *ret)
{
	return text && (addr_parse_prefix(text, ret) || addr_parse(text, ret));
}

static bool is_on_gateways_link(const struct bridge_config *config, const struct bridge_node *node,
				const json_t *address)
{
	int64_t index = index_of_gateways(config, node);

	return index && look_number(address, "index") == index;
}

json_t *bridge_new_networks(const struct bridge_config *config, const struct bridge_node *node,
			    const json_t *result)
{
	json_t *networks = json_array(), *ip, *item;
	size_t i, k;

	json_array_foreach (json_at(result, "ips"), i, ip) {
		const char *prefix = strchr(json_str_or(json_at(ip, "address"), ""), '/');
		auto_free char *text = str_printf("%s%s", json_str_or(json_at(ip, "gateway"), ""),
						  prefix ? prefix : "");
		bool is_there = false;
		struct addr wanted, is;

		if (!addr_parse_prefix(text, &wanted))
			continue;
		json_array_foreach (node->addresses, k, item)
			is_there |= is_on_gateways_link(config, node, item) &&
				    read_address(json_str_at(item, "address"), &is) &&
				    is.prefix == wanted.prefix && addr_same(&is, &wanted);
		if (!is_there)
			json_array_append_new(networks, json_string(text));
	}
	return networks;
}

bool bridge_networks_have(const json_t *networks, const char *address)
{
	struct addr network, single;
	json_t *item;
	size_t i;

	if (!read_address(address, &single))
		return false;
	json_array_foreach ((json_t *)networks, i, item)
		if (read_address(json_string_value(item), &network) &&
		    addr_contains(&network, &single))
			return true;
	return false;
}

/* Would the node look for the address behind the bridge, where it does not now? */
static bool is_taken(const struct bridge_config *config, const struct bridge_node *node,
		     const struct addr *network, const struct addr *address)
{
	size_t i;
	json_t *item;

	if (!addr_contains(network, address))
		return false;
	if (addr_same(network, address))
		return true;
	json_array_foreach (node->addresses, i, item) {
		struct addr own;

		if (read_address(json_str_at(item, "address"), &own) &&
		    addr_contains(&own, address) &&
		    (own.prefix > network->prefix || is_on_gateways_link(config, node, item)))
			return false;
	}
	return true;
}

static int refuse_gateway(struct err *err, const char *gateway, const char *what, const char *whose)
{
	return err_set(err, ERR_INVALID, "AddressOfNode",
		       "bridge: the gateway %s would take %s %s from the node; give the network "
		       "another subnet",
		       gateway, what, whose);
}

static int check_own_addresses(const struct bridge_config *config, const struct bridge_node *node,
			       const char *gateway, const struct addr *network, struct err *err)
{
	size_t i;
	json_t *item;

	json_array_foreach (node->addresses, i, item) {
		const char *text = json_str_at(item, "address");
		struct addr own;

		if (is_on_gateways_link(config, node, item) || !read_address(text, &own) ||
		    addr_is_link_local(&own))
			continue;
		if (addr_same(&own, network) ||
		    (own.prefix <= network->prefix && addr_contains(network, &own)))
			return refuse_gateway(err, gateway, "the network of its own address", text);
	}
	return 0;
}

static int check_gateway_of(const struct bridge_config *config, const struct bridge_node *node,
			    const json_t *hop, const char *gateway, const struct addr *network,
			    struct err *err)
{
	const char *text = json_str_at(hop, "gw");
	struct addr other;

	return read_address(text, &other) && is_taken(config, node, network, &other)
		       ? refuse_gateway(err, gateway, "its way by", text)
		       : 0;
}

static int check_ways(const struct bridge_config *config, const struct bridge_node *node,
		      const char *gateway, const struct addr *network, struct err *err)
{
	size_t i, k;
	json_t *item, *hop;

	json_array_foreach (node->routes, i, item) {
		if (check_gateway_of(config, node, item, gateway, network, err))
			return -1;
		json_array_foreach (json_at(item, "nexthops"), k, hop)
			if (check_gateway_of(config, node, hop, gateway, network, err))
				return -1;
	}
	return 0;
}

/*
 * Programs of the node may have been connected to pods of this very network, until the bridge lost
 * its address: the kernel keeps such connections for minutes, and nothing tells them from others.
 */
static int check_peers(const struct bridge_config *config, const struct bridge_node *node,
		       const char *gateway, const struct addr *network, struct err *err)
{
	size_t i;
	json_t *item;

	json_array_foreach (node->peers, i, item) {
		const char *text = json_string_value(item);
		struct addr peer;

		if (read_address(text, &peer) && is_taken(config, node, network, &peer))
			return err_set(err, ERR_TRANSIENT, "AddressOfNode",
				       "bridge: the gateway %s would take the node's connection to "
				       "%s; see ss -tnp dst %s on the node: one to an earlier pod "
				       "ends by itself, else give the network another subnet",
				       gateway, text, text);
	}
	return 0;
}

int bridge_check_gateways(const struct bridge_config *config, const struct bridge_node *node,
			  const json_t *networks, struct err *err)
{
	size_t i;
	json_t *item;

	json_array_foreach ((json_t *)networks, i, item) {
		const char *text = json_string_value(item);
		struct addr network;

		if (read_address(text, &network) &&
		    (check_own_addresses(config, node, text, &network, err) ||
		     check_ways(config, node, text, &network, err)))
			return -1;
	}
	/* Last, since that passes and the others do not. */
	json_array_foreach ((json_t *)networks, i, item) {
		const char *text = json_string_value(item);
		struct addr network;

		if (read_address(text, &network) && check_peers(config, node, text, &network, err))
			return -1;
	}
	return 0;
}

bool bridge_leads_out(const json_t *routes, const char *dev)
{
	size_t i, k;
	json_t *route, *hop;

	json_array_foreach ((json_t *)routes, i, route) {
		if (str_eq(json_str_at(route, "dev"), dev) &&
		    (json_at(route, "gw") || json_at(route, "via")))
			return true;
		json_array_foreach (json_at(route, "nexthops"), k, hop)
			if (str_eq(json_str_at(hop, "dev"), dev))
				return true;
	}
	return false;
}

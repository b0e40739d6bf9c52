// SPDX-License-Identifier: Apache-2.0
/*
 * What a pod must not be given, because the node's own traffic would go there: an address that the
 * node has or reaches otherwise, a table that others route by. coordinator.c asks before it plans
 * the first step.
 */
#include "nodeagent/cni/plan/coordinator_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"

void coordinator_single_text(const char *text, char ret[ADDR_TEXT_SIZE])
{
	struct addr address = {0};

	if (!addr_parse_prefix(text, &address) && !addr_parse(text, &address))
		abort(); /* texts of the kernel */
	address = addr_single(&address);
	addr_print_prefix(&address, ret);
}

void coordinator_bare_text(const char *text, char ret[ADDR_TEXT_SIZE])
{
	char *slash;

	coordinator_single_text(text, ret);
	slash = strchr(ret, '/');
	assert(slash);
	*slash = '\0';
}

static int refuse_address(struct err *err, enum err_class class, const char *ifname,
			  const char *address, const char *why)
{
	return err_set(err, class, "AddressOfNode",
		       "coordinator: %s has the address %s, %s: a route to the pod would take the "
		       "node's own traffic; give the pod another address",
		       ifname, address, why);
}

/* A network that is on the link of the node's, or of the master's, needs no gateway. */
static bool is_behind_gateway(const json_t *way)
{
	return json_at(way, "gw") || json_at(way, "via") ||
	       json_array_size(json_at(way, "nexthops")) > 0;
}

/* Are both the same address, whatever the prefix of the text? */
static bool is_address(const char *text, const char *bare)
{
	char other[ADDR_TEXT_SIZE];
	struct addr address;

	if (!addr_parse_prefix(text, &address) && !addr_parse(text, &address))
		return false;
	addr_print(&address, other);
	return str_eq(other, bare);
}

static bool is_granted(const json_t *granted, const char *address)
{
	const json_t *item;
	size_t i;

	json_array_foreach ((json_t *)granted, i, item)
		if (is_address(json_string_value(item), address))
			return true;
	return false;
}

static bool is_within(const json_t *networks, const char *bare)
{
	struct addr address, network;
	const json_t *item;
	size_t i;

	json_array_foreach ((json_t *)networks, i, item)
		if (addr_parse(bare, &address) &&
		    addr_parse_prefix(json_string_value(item), &network) &&
		    addr_contains(&network, &address))
			return true;
	return false;
}

static bool node_has(const json_t *host, const char *address)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_at(host, "addresses"), i, item)
		if (is_address(json_str_at(item, "address"), address))
			return true;
	return false;
}

int coordinator_check_addresses(const struct coordinator_config *config,
				const struct coordinator_role *role,
				const struct coordinator_facts *facts, struct err *err)
{
	const json_t *host = facts->host, *item;
	const char *ifname = facts->ifname;
	size_t i;

	json_array_foreach (role->nic_addresses, i, item) {
		const char *text = json_string_value(item);
		const json_t *way = json_at(host, "ways", text);
		int64_t type = look_number(way, "type");
		char bare[ADDR_TEXT_SIZE];

		coordinator_bare_text(text, bare);
		if (node_has(host, bare) || (type && type != TYPE_UNICAST))
			return refuse_address(err, ERR_INVALID, ifname, bare,
					      "which is the node's");
		if (json_list_has(json_at(host, "gateways"), bare))
			return refuse_address(err, ERR_INVALID, ifname, bare,
					      "which is a gateway of the node");
		if (is_within(config->services, bare))
			return refuse_address(err, ERR_INVALID, ifname, bare,
					      "which is in the cluster's network of Services");
		/* Or it probed the pod that had the address before, a moment ago. */
		if (json_list_has(json_at(host, "reached"), bare))
			return refuse_address(err, ERR_TRANSIENT, ifname, bare,
					      "to which the kubelet is connected, as it is to the "
					      "API server");
		if (is_behind_gateway(way) && !is_granted(facts->granted, bare))
			return refuse_address(
				err, ERR_INVALID, ifname, bare,
				"which no IP pool gave it and which the node reaches through a "
				"gateway");
	}
	return 0;
}

/* As plan_node() (coordinator.c) makes them. */
static bool is_own_rule(const json_t *rule)
{
	return look_number(rule, "priority") == RULE_PRIORITY && !json_at(rule, "from") &&
	       !json_at(rule, "to") && !json_at(rule, "mark");
}

static bool is_own_route(const json_t *route)
{
	const char *dst = json_str_or(json_at(route, "dst"), "");

	return !is_behind_gateway(route) && (str_ends(dst, "/32") || str_ends(dst, "/128"));
}

int coordinator_check_table(const struct coordinator_config *config,
			    const struct coordinator_facts *facts, struct err *err)
{
	const json_t *host = facts->host, *item;
	int64_t table = config->host_table;
	bool is_used = false;
	size_t i;

	if (table == COORDINATOR_HOST_TABLE)
		return 0;
	json_array_foreach (json_at(host, "rules"), i, item)
		is_used = is_used || (look_number(item, "table") == table && !is_own_rule(item));
	json_array_foreach (json_at(host, "routes"), i, item)
		is_used = is_used || (look_number(item, "table") == table && !is_own_route(item));
	return is_used ? err_set(err, ERR_INVALID, "BadField",
				 "coordinator: hostRuleTable: %lld is a table that others use on "
				 "this node: take another one, or leave it out (%d)",
				 (long long)table, COORDINATOR_HOST_TABLE)
		       : 0;
}

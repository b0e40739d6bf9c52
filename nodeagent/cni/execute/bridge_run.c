// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin bridge: look, have it decided (nodeagent/cni/plan/bridge.h), act. Kept for DEL:
 * {"peer": name of the node's end, with which the pod's ends, too, "ipam"}. The bridge, its
 * addresses and forwarding stay, as with containernetworking-plugins.
 */
#include <fcntl.h>
#include <stdio.h>

#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/random.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/interface_run.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/bridge.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/host/connections.h"

/* Of the node, into a look of their own: they change from step to step. */
static int look_at_bridge(const struct plugin_call *call, const struct bridge_config *config,
			  json_t **ret_look, const json_t **ret, struct err *err)
{
	json_decref(*ret_look);
	*ret_look = netns_look_new();
	return netns_observe_link(call->pair.host, config->bridge, 0, *ret_look, ret, err);
}

/* ---- ADD ------------------------------------------------------------------------------------- */

static int make_bridge(const struct plugin_call *call, const struct bridge_config *config,
		       json_t **ret_look, const json_t **ret, struct err *err)
{
	json_auto_t *steps = json_array();

	if (look_at_bridge(call, config, ret_look, ret, err) ||
	    bridge_plan(config, *ret, steps, err))
		return -1;
	if (json_array_size(steps) == 0)
		return 0;
	if (netns_execute(&call->pair, steps, NULL, err) ||
	    look_at_bridge(call, config, ret_look, ret, err))
		return -1;
	/* Another call may have made something of this name at the same time. */
	json_array_clear(steps);
	return bridge_plan(config, *ret, steps, err);
}

static bool is_forwarding(const struct plugin_call *call, const char *path)
{
	char text[8] = "";

	(void)netns_read_sysctl(call->pair.host, path, text, sizeof(text), NULL);
	return str_eq(text, "1");
}

static bool is_of_networks(const void *networks, const char *address)
{
	return bridge_networks_have(networks, address);
}

struct peers {
	const json_t *networks;
	json_t *list; /* new */
};

/* Within the node's namespace, which the proc of this thread shows. */
static int look_at_peers(void *context, struct err *err)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct peers *peers = context;

	peers->list = connections_peers(root, is_of_networks, peers->networks, err);
	return peers->list ? 0 : -1;
}

/* The node's end of the network gets its addresses; *ret_look has the interface that does. */
static int make_gateways(const struct plugin_call *call, const struct bridge_config *config,
			 const json_t *bridge, json_t *result, struct err *err)
{
	auto_free char *dev = bridge_gateway_dev(config);
	json_auto_t *steps = json_array(), *addresses = NULL, *look = netns_look_new();
	json_auto_t *networks = NULL, *ways = NULL, *connected = NULL;
	struct peers peers = {0};
	struct bridge_node node = {
		.link = bridge,
		.forwards_v4 = is_forwarding(call, "net/ipv4/ip_forward"),
		.forwards_v6 = is_forwarding(call, "net/ipv6/conf/all/forwarding"),
	};

	if (netns_observe(call->pair.host, NETNS_ADDRESSES, &addresses, err) ||
	    (config->vlan && netns_observe_link(call->pair.host, dev, 0, look, &node.vlan, err)))
		return -1;
	node.addresses = json_at(addresses, "addresses");
	networks = bridge_new_networks(config, &node, result);
	peers.networks = networks;
	/* What a new gateway could take from the node. */
	if (json_array_size(networks) > 0 &&
	    (netns_observe(call->pair.host, NETNS_LINKS | NETNS_ROUTES, &ways, err) ||
	     netns_within(call->pair.host, look_at_peers, &peers, err)))
		return -1;
	node.routes = json_at(ways, "routes");
	node.peers = connected = peers.list;
	if (bridge_check_gateways(config, &node, networks, err) ||
	    bridge_plan_gateways(config, &node, result, steps, err) ||
	    netns_execute(&call->pair, steps, NULL, err))
		return -1;
	if (!config->vlan)
		return 0;
	if (!node.vlan && netns_observe_link(call->pair.host, dev, 0, look, &node.vlan, err))
		return -1;
	result_add_interface(result, dev, json_str_at(node.vlan, "mac"), NULL, 0, NULL);
	return 0;
}

static int put_interfaces(const struct plugin_call *call, const struct bridge_config *config,
			  const char *peer, json_t *result, struct err *err)
{
	json_auto_t *host = netns_look_new(), *pod = netns_look_new();
	const json_t *bridge = NULL, *end = NULL, *link = NULL;

	if (netns_observe_link(call->pair.host, config->bridge, 0, host, &bridge, err) ||
	    netns_observe_link(call->pair.host, peer, 0, host, &end, err) ||
	    interface_find(call, call->call->ifname, pod, &link, err))
		return -1;
	result_add_interface(result, config->bridge, json_str_at(bridge, "mac"), NULL, 0, NULL);
	result_add_interface(result, peer, json_str_at(end, "mac"), NULL, 0, NULL);
	result_add_interface(result, call->call->ifname, json_str_at(link, "mac"),
			     call->call->netns_path, 0, NULL);
	return 0;
}

/* Addresses for the interface that is made. The bridge has its own MAC once it has an address. */
static int put_addresses(const struct plugin_call *call, const struct bridge_config *config,
			 const json_t *bridge, json_t *result, struct err *err)
{
	const json_t *dns = json_at(config->folded, "dns");

	if (!config->has_ipam)
		return 0;
	if (ipam_add(call, false, result, NULL, err))
		return -1;
	bridge_put_gateways(config, result);
	if (ipam_configure(call, result, NULL, err) ||
	    (config->is_gateway && make_gateways(call, config, bridge, result, err))) {
		(void)ipam_del(call, NULL);
		return -1;
	}
	/* The network's before what IPAM said. */
	if (json_object_size(dns) > 0)
		json_put(result, "dns", json_deep_copy(dns));
	return 0;
}

static int make_port(const struct plugin_call *call, const struct bridge_config *config,
		     const char *peer, json_t *result, struct err *err)
{
	json_auto_t *look = NULL, *steps = json_array();
	const json_t *bridge = NULL;

	if (make_bridge(call, config, &look, &bridge, err))
		return -1;
	bridge_plan_port(config, bridge, peer, call->call->ifname, steps);
	/* The bridge may have taken the address of its new port. */
	return netns_execute(&call->pair, steps, NULL, err) ||
			       look_at_bridge(call, config, &look, &bridge, err) ||
			       put_interfaces(call, config, peer, result, err) ||
			       put_addresses(call, config, bridge, result, err)
		       ? -1
		       : 0;
}

static int bridge_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_bridge_config struct bridge_config config = {0};
	json_auto_t *state = json_object(), *result = result_new(), *undo = json_array();
	char peer[16];
	uint32_t number;

	if (bridge_config_read(call->call->config, call->call->args, &config, err) ||
	    interface_refuse_taken(call, err))
		return -1;
	random_bytes(&number, sizeof(number));
	(void)snprintf(peer, sizeof(peer), "veth%08x", number);
	json_put_str(state, "peer", peer);
	json_put_bool(state, "ipam", config.has_ipam);
	if (services->save(services->context, state, err))
		return -1;
	if (make_port(call, &config, peer, result, err) == 0) {
		*ret_result = take_ptr(result);
		return 0;
	}
	/* What cannot be taken back now, DEL takes back. */
	steps_add(undo, "host", "unlink", peer);
	if (netns_execute_all(&call->pair, undo, NULL) == 0)
		(void)services->save(services->context, NULL, NULL);
	return -1;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

/* The node's end of the pod's interface, into host's links; *ret NULL: there is none. */
static int find_peer(const struct plugin_call *call, const json_t *link, json_t *host,
		     const json_t **ret, struct err *err)
{
	int64_t index = look_number(link, "lower");

	return index && str_eq(json_str_at(link, "kind"), "veth")
		       ? netns_observe_link(call->pair.host, NULL, (int)index, host, ret, err)
		       : 0;
}

static int bridge_check_run(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_bridge_config struct bridge_config config = {0};
	json_auto_t *host = NULL, *pod = NULL, *none = NULL;
	const json_t *bridge = NULL, *peer = NULL;
	struct interface_facts facts = {
		.type = call->call->type,
		.ifname = call->call->ifname,
		.netns_path = call->call->netns_path,
		.previous = call->previous,
	};

	if (bridge_config_read(call->call->config, call->call->args, &config, err) ||
	    (config.has_ipam &&
	     services->ipam(services->context, "CHECK", call->call->config, &none, err)) ||
	    look_at_bridge(call, &config, &host, &bridge, err) || interface_look(call, &pod, err) ||
	    find_peer(call, look_link(pod, facts.ifname), host, &peer, err))
		return -1;
	facts.pod = pod;
	return bridge_check(&config, &facts, host, err);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/*
 * Without a record: of containernetworking-plugins, whose place we have now. Its other end is a
 * port of a bridge; a pair of links that the pod made itself is not.
 */
static bool add_unlink(const struct plugin_call *call, json_t *steps)
{
	const char *name = call->call->ifname;
	json_auto_t *pod = netns_look_new(), *host = netns_look_new();
	const json_t *link = NULL, *peer = NULL;

	if (!call->pair.pod)
		return true;
	if (interface_find(call, name, pod, &link, NULL) ||
	    find_peer(call, link, host, &peer, NULL))
		return false;
	if (look_number(peer, "master"))
		steps_add(steps, "pod", "unlink", name);
	return true;
}

static int bridge_del(const struct plugin_call *call, struct err *err)
{
	const char *peer = json_str_at(call->call->saved, "peer");
	json_auto_t *steps = json_array();
	bool done = true;

	if (peer)
		steps_add(steps, "host", "unlink", peer);
	else
		done = add_unlink(call, steps);
	done = done && netns_execute_all(&call->pair, steps, NULL) == 0;
	return ipam_finish_del(call, done, "peer", peer, err);
}

const struct plugin plugin_bridge = {
	.type = "bridge",
	.is_common = true,
	.add = bridge_add,
	.check = bridge_check_run,
	.del = bridge_del,
};

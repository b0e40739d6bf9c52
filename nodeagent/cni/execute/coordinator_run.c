// SPDX-License-Identifier: Apache-2.0
/*
 * The coordinator plugin: looks, has it decided (nodeagent/cni/plan/coordinator.h), acts.
 *
 * Kept for DEL: {"peer": the node's end when we made it, "addresses": of the NIC, "undo": steps for
 * the node, "done": all steps, for CHECK}.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/random.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/coordinator_detect.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/coordinator.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/host/connections.h"

/* Of the node, hostRuleTable of those versions. */
#define OLD_TABLE 500

static void random_mac(char ret[18])
{
	unsigned char o[6];

	random_bytes(o, sizeof(o));
	/* Locally administered, of one station. */
	o[0] = (unsigned char)((o[0] & 0xfc) | 0x02);
	(void)snprintf(ret, 18, "%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3], o[4],
		       o[5]);
}

struct sysctls {
	struct netns *pod;
	const char *const *paths; /* ends with NULL */
	json_t *values;           /* those that there are */
};

/* Inside of the namespace, which is entered once for all. */
static int read_sysctls(void *context, struct err *err)
{
	const struct sysctls *sysctls = context;
	char value[32];

	for (size_t i = 0; sysctls->paths[i]; i++)
		if (netns_read_sysctl(sysctls->pod, sysctls->paths[i], value, sizeof(value),
				      NULL) == 0)
			json_put_str(sysctls->values, sysctls->paths[i], value);
	return 0;
}

static int look_at_pod(const struct plugin_call *call, unsigned int more, json_t **ret,
		       struct err *err)
{
	struct netns *pod = call->pair.pod;
	const char *ifname = call->call->ifname;
	auto_free char *ignore = str_printf("net/ipv4/conf/%s/arp_ignore", ifname);
	auto_free char *announce = str_printf("net/ipv4/conf/%s/arp_announce", ifname);
	const char *const paths[] = {
		"net/ipv4/conf/all/rp_filter",
		"net/ipv6/conf/all/disable_ipv6",
		ignore,
		announce,
		NULL,
	};
	struct sysctls sysctls = {.pod = pod, .paths = paths};

	if (netns_observe(pod, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES | NETNS_RULES | more,
			  ret, err))
		return -1;
	look_leave_out(*ret, call->call->later);
	sysctls.values = json_need_object(*ret, "sysctls");
	(void)netns_within(pod, read_sysctls, &sysctls, NULL);
	return 0;
}

/* An interface that is down has no routes yet. */
static int set_up(const struct plugin_call *call, json_t **look, struct err *err)
{
	const json_t *nic = look_link(*look, call->call->ifname);
	json_auto_t *steps = json_array();

	if (!nic || look_number(nic, "flags") & IFF_UP)
		return 0;
	json_put_bool(steps_add(steps, "pod", "link", call->call->ifname), "up", true);
	if (netns_execute(&call->pair, steps, NULL, err))
		return -1;
	json_decref(*look);
	*look = NULL;
	return look_at_pod(call, 0, look, err);
}

/* The node's end of the link: it and the pod's name each other as lower. */
static int find_peer(struct netns *host, const json_t *via, json_t *host_look,
		     const json_t **ret_peer, struct err *err)
{
	const json_t *peer = NULL;
	int lower = (int)look_number(via, "lower");

	if (lower && netns_observe_link(host, NULL, lower, host_look, &peer, err))
		return -1;
	if (peer && str_eq(json_str_at(via, "kind"), "veth") &&
	    look_number(peer, "lower") != look_number(via, "index"))
		peer = NULL;
	*ret_peer = peer;
	return 0;
}

static json_t *state_of(const char *peer, const json_t *steps, const json_t *addresses)
{
	json_auto_t *host = steps_in(steps, "host");
	json_t *state = json_object();

	json_put_str(state, "peer", peer);
	json_put(state, "addresses", json_deep_copy(addresses));
	json_put(state, "undo", steps_undo(host));
	json_put(state, "done", json_deep_copy(steps));
	return state;
}

/* Somebody else's address, or a gateway that is not there: before anything is changed. */
static int detect_on_network(const struct coordinator_config *config,
			     const struct plugin_call *call, const json_t *pod, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *finding = json_incref((json_t *)call->call->finding);

	if (!finding)
		finding = coordinator_detect_one(call->pair.pod, call->call->ifname, config, pod);
	if (json_at(finding, "conflicts"))
		services->report(services->context, json_at(finding, "conflicts"));
	if (!json_at(finding, "error"))
		return 0;
	(void)ask_error_read(json_at(finding, "error"), err);
	return -1;
}

static bool has_announcement(const json_t *done)
{
	size_t i;
	json_t *step;

	json_array_foreach (done, i, step)
		if (json_is_true(json_at(step, "announce")))
			return true;
	return false;
}

/* Keeps what is about to be done, does it, keeps what was; or takes it back. */
static int carry_out(const struct plugin_call *call, const char *peer, const json_t *steps,
		     const json_t *addresses, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *done = json_array(), *state = state_of(peer, steps, addresses), *undo = NULL;

	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, steps, done, err) == 0) {
		json_auto_t *final = state_of(peer, done, addresses);

		if (has_announcement(done))
			ipam_announce(call, addresses);
		services->keep(services->context, final);
		return 0;
	}
	undo = steps_undo(done);
	(void)netns_execute_all(&call->pair, undo, NULL);
	(void)services->save(services->context, NULL, NULL);
	return -1;
}

static bool is_among(const void *addresses, const char *address)
{
	size_t len = strlen(address), i;
	const json_t *item;

	json_array_foreach ((json_t *)addresses, i, item) {
		const char *text = json_str_or(item, "");

		if (strncmp(text, address, len) == 0 && (text[len] == '/' || text[len] == '\0'))
			return true;
	}
	return false;
}

/* Of the NIC's addresses those that the kubelet is connected to. Returns new. */
static json_t *find_reached(const struct attach_call *call, const json_t *addresses)
{
	const char *dir = call->kubelet_dir;
	auto_free char *socket = dir ? str_printf("%s/pod-resources/kubelet.sock", dir) : NULL;
	pid_t kubelet = socket ? connections_listener(socket) : 0;

	return kubelet > 0 ? connections_reached(call->root, kubelet, is_among, addresses) : NULL;
}

static int plan_and_act(const struct plugin_call *call, const struct coordinator_config *config,
			struct err *err)
{
	const struct attach_call *outer = call->call;
	auto_coordinator_role struct coordinator_role role = {0};
	json_auto_t *pod = NULL, *host = NULL, *steps = json_array();
	char veth_mac[18], peer_mac[18], peer_name[COORDINATOR_PEER_SIZE];
	struct coordinator_facts facts = {
		.ifname = outer->ifname,
		.container_id = outer->container_id,
		.granted = outer->granted,
		.later = outer->later,
		.veth_mac = veth_mac,
		.peer_mac = peer_mac,
	};
	bool makes_veth;

	if (look_at_pod(call, 0, &pod, err) || set_up(call, &pod, err) ||
	    coordinator_role_of(config, outer->ifname, pod, &role, err) ||
	    netns_observe_host(call->pair.host, role.pod_addresses, (unsigned)config->host_table,
			       &host, err) ||
	    find_peer(call->pair.host, look_link(pod, role.via), host, &facts.peer, err))
		return -1;
	json_put(host, "reached", find_reached(outer, role.nic_addresses));
	facts.pod = pod;
	facts.host = host;
	random_mac(veth_mac);
	random_mac(peer_mac);
	coordinator_peer_name(outer->container_id, peer_name);
	makes_veth = role.underlay && role.first;
	if (coordinator_plan(config, &role, &facts, steps, err) ||
	    detect_on_network(config, call, pod, err))
		return -1;
	return carry_out(call, makes_veth ? peer_name : NULL, steps, role.nic_addresses, err);
}

static int coordinator_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_coordinator_config struct coordinator_config config = {0};

	if (coordinator_config_read(call->call->config, call->call->settings, &config, err))
		return -1;
	if (config.mode != COORDINATOR_DISABLED && plan_and_act(call, &config, err))
		return -1;
	*ret_result = json_deep_copy(call->previous);
	return 0;
}

static int coordinator_check(const struct plugin_call *call, struct err *err)
{
	const json_t *done = json_at(call->call->saved, "done"), *missing;
	json_auto_t *pod = NULL, *host = NULL;
	auto_free char *text = NULL;

	if (json_array_size(done) == 0)
		return 0;
	if (look_at_pod(call, NETNS_NEIGHBOURS, &pod, err) ||
	    netns_observe(call->pair.host,
			  NETNS_LINKS | NETNS_ROUTES | NETNS_RULES | NETNS_NEIGHBOURS, &host, err))
		return -1;
	missing = steps_missing(done, pod, host);
	if (!missing)
		return 0;
	text = step_text(missing);
	return err_set(err, ERR_HOST, "NotAsAdded", "coordinator: %s: missing is %s",
		       call->call->ifname, text);
}

/* Rules "to ADDRESS" that Spiderpool's coordinator made before 0.8.2. */
static void plan_old_rules(const json_t *addresses, json_t *steps)
{
	size_t i;
	json_t *item;

	json_array_foreach (addresses, i, item) {
		struct addr address;
		char to[ADDR_TEXT_SIZE];
		json_t *step;

		if (!addr_parse_prefix(json_string_value(item), &address))
			continue;
		address = addr_single(&address);
		addr_print_prefix(&address, to);
		step = steps_add(steps, "host", "unrule", NULL);
		json_put_int(step, "family", address.family);
		json_put_int(step, "table", OLD_TABLE);
		json_put_str(step, "to", to);
	}
}

/* A pod of Spiderpool's coordinator, of which nothing is kept here. */
static int plan_unknown(const struct plugin_call *call, json_t *steps, struct err *err)
{
	const struct attach_call *outer = call->call;
	const char *first = json_str_at(outer->config, "podDefaultCniNic");
	char peer[COORDINATOR_PEER_SIZE];
	json_auto_t *pod = NULL, *addresses = json_array();

	coordinator_peer_name(outer->container_id, peer);
	/* The other NICs' calls leave alone what the first still needs. */
	if (!call->pair.pod || str_eq(outer->ifname, str_empty(first) ? "eth0" : first))
		steps_add(steps, "host", "unlink", peer);
	if (!call->pair.pod)
		return 0;
	if (netns_observe(call->pair.pod, NETNS_LINKS | NETNS_ADDRESSES, &pod, err))
		return -1;
	look_addresses(pod, outer->ifname, LOOK_V4 | LOOK_V6, addresses);
	plan_old_rules(addresses, steps);
	return 0;
}

/* The pod's side ends with its namespace, or with the interface. */
static int coordinator_del(const struct plugin_call *call, struct err *err)
{
	const json_t *saved = call->call->saved, *undo = json_at(saved, "undo");
	const char *peer = json_str_at(saved, "peer");
	json_auto_t *steps = json_array();

	if (peer)
		steps_add(steps, "host", "unlink", peer);
	if (json_is_array(undo)) {
		json_array_extend(steps, (json_t *)undo);
		plan_old_rules(json_at(saved, "addresses"), steps);
	} else if (plan_unknown(call, steps, err)) {
		return -1;
	}
	/* Nothing of this holds a device; what is left ends with its link. */
	(void)netns_execute_all(&call->pair, steps, NULL);
	(void)call->call->services->save(call->call->services->context, NULL, NULL);
	return 0;
}

const struct plugin plugin_coordinator = {
	.type = "coordinator",
	.chained = true,
	.add = coordinator_add,
	.check = coordinator_check,
	.del = coordinator_del,
};

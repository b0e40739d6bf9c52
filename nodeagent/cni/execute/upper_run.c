// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins macvlan, ipvlan, vlan and dummy: look, have it decided (nodeagent/cni/plan/upper.h),
 * act. Kept for DEL: {"spare": the name before the interface has its own, "ipam"}. The interface
 * ends with the pod's namespace.
 */
#include <stdio.h>

#include "lib/base/own.h"
#include "lib/base/random.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/interface_run.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/upper.h"

/* udev gives NICs alternative names, by which the kernel finds them, too. */
static const json_t *link_called(const json_t *look, const char *name)
{
	size_t i;
	json_t *link;

	json_array_foreach (json_at(look, "links"), i, link)
		if (json_list_has(json_at(link, "altNames"), name))
			return link;
	return NULL;
}

/* The master's link, of *ret_look, which is new; NULL without an error: there is none. */
static int find_master(const struct plugin_call *call, const struct upper_config *config,
		       json_t **ret_look, const json_t **ret, struct err *err)
{
	struct netns *ns = config->is_in_pod ? call->pair.pod : call->pair.host;
	const char *name = config->master;

	if (name || config->is_alone)
		*ret_look = netns_look_new();
	else if (netns_observe(ns, NETNS_LINKS | NETNS_ROUTES, ret_look, err))
		return -1;
	if (!name && !config->is_alone)
		name = upper_default_master(*ret_look);
	if (name && netns_observe_link(ns, name, 0, *ret_look, ret, err))
		return -1;
	if (name && !*ret)
		*ret = link_called(*ret_look, name);
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

/* The interface that is made has addresses, is up, and stands in the result. */
static int finish_interface(const struct plugin_call *call, const struct upper_config *config,
			    json_t *result, json_t *done, struct err *err)
{
	json_auto_t *look = netns_look_new(), *up = json_array();
	const char *ifname = call->call->ifname;
	const json_t *link = NULL;

	if (interface_find(call, ifname, look, &link, err))
		return -1;
	result_add_interface(result, ifname, json_str_at(link, "mac"), call->call->netns_path, 0,
			     NULL);
	if (config->has_ipam && ipam_add(call, true, result, done, err))
		return -1;
	if (config->inherited && ipam_inherit(call, config->inherited, result, done, err))
		return -1;
	/* dummy leaves what IPAM said. */
	if (!config->is_alone)
		interface_put_dns(result, config->folded);
	if (config->has_ipam || config->inherited)
		return 0;
	json_put_bool(steps_add(up, "pod", "link", ifname), "up", true);
	return netns_execute(&call->pair, up, done, err);
}

/* What was done before a failure. False: not all could be taken back. */
static bool take_back(const struct plugin_call *call, const char *spare, const json_t *done)
{
	json_auto_t *undo = json_array();

	steps_add(undo, "pod", "unlink", spare);
	if (json_find(done, "do", "rename"))
		steps_add(undo, "pod", "unlink", call->call->ifname);
	return netns_execute_all(&call->pair, undo, NULL) == 0;
}

static int upper_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_upper_config struct upper_config config = {0};
	json_auto_t *steps = json_array(), *done = json_array(), *look = NULL;
	json_auto_t *state = json_object(), *result = result_new();
	const json_t *master = NULL;
	char spare[16];
	uint32_t number;

	random_bytes(&number, sizeof(number));
	(void)snprintf(spare, sizeof(spare), "ow%08x", number);
	if (upper_config_read(call->call->type, call->call->config, call->call->args,
			      call->previous, &config, err) ||
	    find_master(call, &config, &look, &master, err) ||
	    upper_plan(&config, master, spare, call->call->ifname, steps, err) ||
	    interface_refuse_taken(call, err))
		return -1;
	json_put_str(state, "spare", spare);
	json_put_bool(state, "ipam", config.has_ipam);
	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, steps, done, err) == 0 &&
	    finish_interface(call, &config, result, done, err) == 0) {
		*ret_result = take_ptr(result);
		return 0;
	}
	/* What cannot be taken back now, DEL takes back. */
	if (take_back(call, spare, done))
		(void)services->save(services->context, NULL, NULL);
	return -1;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static int upper_check_run(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_upper_config struct upper_config config = {0};
	json_auto_t *look = NULL, *pod = NULL, *none = NULL;
	const json_t *master = NULL;
	struct interface_facts facts = {
		.type = call->call->type,
		.ifname = call->call->ifname,
		.netns_path = call->call->netns_path,
		.previous = call->previous,
	};

	/* What ipvlan's ADD was given was another result. */
	if (upper_config_read(call->call->type, call->call->config, call->call->args, NULL, &config,
			      err))
		return -1;
	if (config.has_ipam &&
	    services->ipam(services->context, "CHECK", call->call->config, &none, err))
		return -1;
	if (config.master && find_master(call, &config, &look, &master, err))
		return -1;
	if (interface_look(call, &pod, err))
		return -1;
	facts.pod = pod;
	return upper_check(&config, &facts, master, err);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/*
 * Append the step that removes the pod's link of this name and kind; nothing for another kind, and
 * a name that is NULL. False: it cannot be seen now.
 */
static bool add_unlink(const struct plugin_call *call, const char *name, const char *kind,
		       json_t *steps)
{
	json_auto_t *look = netns_look_new();
	const json_t *link = NULL;

	if (!name)
		return true;
	if (interface_find(call, name, look, &link, NULL))
		return false;
	if (str_eq(json_str_at(link, "kind"), kind))
		steps_add(steps, "pod", "unlink", name);
	return true;
}

static int upper_del(const struct plugin_call *call, struct err *err)
{
	const char *spare = json_str_at(call->call->saved, "spare"), *type = call->call->type;
	json_auto_t *steps = json_array();
	bool done = true;

	/*
	 * By kind and name: of this plugin, or of one of containernetworking-plugins whose place we
	 * have now. Another kind is the pod's own.
	 */
	if (call->pair.pod)
		done = add_unlink(call, call->call->ifname, type, steps) &&
		       add_unlink(call, spare, type, steps) &&
		       netns_execute_all(&call->pair, steps, NULL) == 0;
	return ipam_finish_del(call, done, "spare", spare, err);
}

const struct plugin plugin_macvlan = {
	.type = "macvlan",
	.is_common = true,
	.add = upper_add,
	.check = upper_check_run,
	.del = upper_del,
};

const struct plugin plugin_ipvlan = {
	.type = "ipvlan",
	.is_common = true,
	.add = upper_add,
	.check = upper_check_run,
	.del = upper_del,
};

const struct plugin plugin_vlan = {
	.type = "vlan",
	.is_common = true,
	.add = upper_add,
	.check = upper_check_run,
	.del = upper_del,
};

const struct plugin plugin_dummy = {
	.type = "dummy",
	.is_common = true,
	.add = upper_add,
	.check = upper_check_run,
	.del = upper_del,
};

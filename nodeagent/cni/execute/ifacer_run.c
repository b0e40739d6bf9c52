// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin ifacer: look, have it decided (nodeagent/cni/plan/ifacer.h), act, until nothing is
 * missing. Nothing is kept for DEL: what it makes is the node's, for the network's other pods, too.
 */
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device_use.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/ifacer.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"

/* The bond, its ports, the VLAN; once more for a call at the same time that was in between. */
#define ROUNDS 4

static int plan(const struct plugin_call *call, const struct ifacer_config *config,
		json_t **ret_host, json_t *steps, struct err *err)
{
	return netns_observe(call->pair.host, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES,
			     ret_host, err) ||
			       ifacer_plan(config, *ret_host, steps, err)
		       ? -1
		       : 0;
}

/* Pods have interfaces on the ports, or VFs of them, which the node's own view does not show. */
static int check_ports(const struct plugin_call *call, const struct ifacer_config *config,
		       const json_t *host, struct err *err)
{
	json_t *name;
	size_t i;

	json_array_foreach (config->interfaces, i, name) {
		const json_t *port = look_link(host, json_string_value(name));

		if (config->bond && port && !look_number(port, "master") &&
		    device_use_check_link(call, "ifacer", port, err))
			return -1;
	}
	return 0;
}

/* Until nothing is missing. *ret_before: the node as the first round found it. */
static int make_all(const struct plugin_call *call, const struct ifacer_config *config,
		    json_t **ret_before, struct err *err)
{
	for (int i = 0;; i++) {
		json_auto_t *steps = json_array(), *host = NULL;
		auto_free char *text = NULL;

		if (plan(call, config, &host, steps, err))
			return -1;
		if (json_array_size(steps) == 0)
			return 0;
		if (i == ROUNDS) {
			text = step_text(json_array_get(steps, 0));
			return err_set(err, ERR_TRANSIENT, "NotAsAdded",
				       "ifacer: this is missing still: %s; the runtime tries "
				       "again",
				       text);
		}
		if (!*ret_before)
			*ret_before = json_incref(host);
		if (check_ports(call, config, host, err) ||
		    netns_execute(&call->pair, steps, NULL, err))
			return -1;
	}
}

static int ifacer_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_ifacer_config struct ifacer_config config = {0};
	json_auto_t *before = NULL;

	if (ifacer_config_read(call->call->config, &config, err))
		return -1;
	if (make_all(call, &config, &before, err)) {
		if (before) {
			/*
			 * Ports that the failed call has set down may be what pods without a bond
			 * live on.
			 */
			json_auto_t *now = NULL, *steps = json_array();

			if (!netns_observe(call->pair.host, NETNS_LINKS, &now, NULL)) {
				ifacer_plan_back(&config, before, now, steps);
				(void)netns_execute_all(&call->pair, steps, NULL);
			}
		}
		return -1;
	}
	*ret_result = result_new();
	return 0;
}

static int ifacer_check(const struct plugin_call *call, struct err *err)
{
	auto_ifacer_config struct ifacer_config config = {0};
	json_auto_t *steps = json_array(), *host = NULL;
	auto_free char *text = NULL;

	if (ifacer_config_read(call->call->config, &config, err) ||
	    plan(call, &config, &host, steps, err))
		return -1;
	if (json_array_size(steps) == 0)
		return 0;
	text = step_text(json_array_get(steps, 0));
	return interface_not_as_added(err, "ifacer: this is missing: %s", text);
}

static int ifacer_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;

	return services->save(services->context, NULL, err);
}

const struct plugin plugin_ifacer = {
	.type = "ifacer",
	.add = ifacer_add,
	.check = ifacer_check,
	.del = ifacer_del,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin ifacer: look, have it decided (nodeagent/cni/plan/ifacer.h), act, until nothing is
 * missing. Nothing is kept for DEL: what it makes is the node's, for the network's other pods, too.
 */
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/ifacer.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"

/* The bond, its ports, the VLAN; once more for a call at the same time that was in between. */
#define ROUNDS 4

static int plan(const struct plugin_call *call, const struct ifacer_config *config, json_t *steps,
		struct err *err)
{
	json_auto_t *host = NULL;

	return netns_observe(call->pair.host, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES, &host,
			     err) ||
			       ifacer_plan(config, host, steps, err)
		       ? -1
		       : 0;
}

static int ifacer_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_ifacer_config struct ifacer_config config = {0};

	if (ifacer_config_read(call->call->config, &config, err))
		return -1;
	for (int i = 0;; i++) {
		json_auto_t *steps = json_array();
		auto_free char *text = NULL;

		if (plan(call, &config, steps, err))
			return -1;
		if (json_array_size(steps) == 0)
			break;
		if (i == ROUNDS) {
			text = step_text(json_array_get(steps, 0));
			return err_set(err, ERR_TRANSIENT, "NotAsAdded",
				       "ifacer: this is missing still: %s; the runtime tries "
				       "again",
				       text);
		}
		if (netns_execute(&call->pair, steps, NULL, err))
			return -1;
	}
	*ret_result = result_new();
	return 0;
}

static int ifacer_check(const struct plugin_call *call, struct err *err)
{
	auto_ifacer_config struct ifacer_config config = {0};
	json_auto_t *steps = json_array();
	auto_free char *text = NULL;

	if (ifacer_config_read(call->call->config, &config, err) || plan(call, &config, steps, err))
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

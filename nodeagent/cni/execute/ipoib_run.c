// SPDX-License-Identifier: Apache-2.0
/*
 * The ipoib plugin: looks, has it decided (nodeagent/cni/plan/ipoib.h), acts. Kept for DEL:
 * {"spare": the child's name before it moves, "index": its number then, "ipam"}.
 *
 * udev renames new interfaces of PCI functions, children too. So the child has a number that we
 * choose, far from those of the kernel, and is found by it.
 */
#include <stdio.h>

#include "lib/base/own.h"
#include "lib/base/random.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/interface_run.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/ipoib.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"

#define INDEX_BASE (1 << 20)

static int finish_interface(const struct plugin_call *call, json_t *result, json_t *done,
			    struct err *err)
{
	json_auto_t *look = netns_look_new(), *up = json_array();
	const json_t *link = NULL;

	if (interface_find(call, call->call->ifname, look, &link, err))
		return -1;
	result_add_interface(result, call->call->ifname, json_str_at(link, "mac"),
			     call->call->netns_path, json_integer_value(json_at(link, "mtu")),
			     NULL);
	if (ipam_is_wanted(call))
		return ipam_add(call, true, result, done, err);
	json_put_bool(steps_add(up, "pod", "link", call->call->ifname), "up", true);
	return netns_execute(&call->pair, up, done, err);
}

static int ipoib_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	const char *name = json_str_at(call->call->config, "master");
	json_auto_t *look = netns_look_new(), *steps = json_array(), *done = json_array();
	json_auto_t *state = json_object(), *result = result_new(), *undo = NULL;
	json_auto_t *child = json_object();
	const json_t *master = NULL;
	char spare[16];
	uint32_t number;

	if ((name && netns_observe_link(call->pair.host, name, 0, look, &master, err)) ||
	    interface_refuse_taken(call, err))
		return -1;
	random_bytes(&number, sizeof(number));
	(void)snprintf(spare, sizeof(spare), "ipoib%08x", number);
	json_put_str(child, "name", spare);
	json_put_int(child, "index", INDEX_BASE | (number & (INDEX_BASE - 1)));
	json_put_str(state, "spare", spare);
	json_put(state, "index", json_incref(json_at(child, "index")));
	json_put_bool(state, "ipam", ipam_is_wanted(call));
	if (ipoib_plan(call->call->config, master, spare, call->call->ifname, steps, err))
		return -1;
	steps_number(steps, "host", child);
	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, steps, done, err) == 0 &&
	    finish_interface(call, result, done, err) == 0) {
		const json_t *dns = json_at(call->call->config, "dns");

		if (json_is_object(dns))
			json_put(result, "dns", json_deep_copy(dns));
		*ret_result = take_ptr(result);
		return 0;
	}
	undo = steps_undo(done);
	if (netns_execute_all(&call->pair, undo, NULL) == 0)
		(void)services->save(services->context, NULL, NULL);
	return -1;
}

static int ipoib_check(const struct plugin_call *call, struct err *err)
{
	json_auto_t *look = netns_look_new();
	const json_t *link = NULL;

	if (interface_find(call, call->call->ifname, look, &link, err))
		return -1;
	if (!link || !str_eq(json_str_at(link, "kind"), "ipoib"))
		return err_set(err, ERR_HOST, "NotAsAdded",
			       "ipoib: the pod has no IPoIB interface %s", call->call->ifname);
	return 0;
}

/* What an ADD that was cut off has left on the node, under whatever name. False: not to be seen. */
static bool plan_spare(const struct plugin_call *call, const json_t *saved, json_t *steps)
{
	int index = (int)json_integer_value(json_at(saved, "index"));
	json_auto_t *look = netns_look_new();
	const json_t *link = NULL;

	if (!index) {
		steps_add(steps, "host", "unlink", json_str_at(saved, "spare"));
		return true;
	}
	if (netns_observe_link(call->pair.host, NULL, index, look, &link, NULL))
		return false;
	if (str_eq(json_str_at(link, "kind"), "ipoib")) {
		steps_add(steps, "host", "unlink", json_str_at(link, "name"));
		steps_number(steps, "host", link);
	}
	return true;
}

static int ipoib_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	const json_t *saved = call->call->saved;
	json_auto_t *steps = json_array(), *look = netns_look_new(), *rest = NULL;
	bool done = true, is_owed = ipam_is_owed(call);
	const json_t *link = NULL;

	if (json_str_at(saved, "spare"))
		done = plan_spare(call, saved, steps);
	if (call->pair.pod)
		done &= interface_find(call, call->call->ifname, look, &link, NULL) == 0;
	if (str_eq(json_str_at(link, "kind"), "ipoib"))
		steps_add(steps, "pod", "unlink", call->call->ifname);
	done &= netns_execute_all(&call->pair, steps, NULL) == 0;
	if (done && !saved)
		return ipam_del_unrecorded(call, err);
	/* Not before the interface has gone: the next pod may have its addresses at once. */
	if (done && is_owed && ipam_del(call, NULL) == 0)
		is_owed = false;
	if (!done || is_owed) {
		rest = saved ? json_deep_copy(saved) : json_object();
		json_put_bool(rest, "ipam", is_owed);
	}
	return services->save(services->context, rest, rest ? err : NULL);
}

const struct plugin plugin_ipoib = {
	.type = "ipoib",
	.add = ipoib_add,
	.check = ipoib_check,
	.del = ipoib_del,
};

// SPDX-License-Identifier: Apache-2.0
/* The call's interface in the pod, by its name: the plugins' own files say what it is made of. */
#include "nodeagent/cni/execute/interface_run.h"

#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"

int interface_find(const struct plugin_call *call, const char *name, json_t *look,
		   const json_t **ret, struct err *err)
{
	return netns_observe_link(call->pair.pod, name, 0, look, ret, err);
}

int interface_refuse_taken(const struct plugin_call *call, struct err *err)
{
	json_auto_t *look = netns_look_new();
	const json_t *taken = NULL;

	if (interface_find(call, call->call->ifname, look, &taken, err))
		return -1;
	return taken ? err_set(err, ERR_INVALID, "InterfaceExists",
			       "%s: the pod has an interface %s already; name another for this "
			       "network",
			       call->call->type, call->call->ifname)
		     : 0;
}

int interface_look(const struct plugin_call *call, json_t **ret, struct err *err)
{
	return netns_observe(call->pair.pod, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES, ret,
			     err);
}

// SPDX-License-Identifier: Apache-2.0
/* One CNI call: what all plugins have in common, around the one that it is for. */

#include "lib/base/own.h"

#include <assert.h>

#include "lib/json/json.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/plan/result.h"

static const struct plugin *const plugins[] = {
	&plugin_coordinator, &plugin_sriov,      &plugin_ib_sriov, &plugin_rdma,
	&plugin_ipoib,       &plugin_macvlan,    &plugin_ipvlan,   &plugin_vlan,
	&plugin_static,      &plugin_host_local, &plugin_bridge,   &plugin_tuning,
	&plugin_host_device, &plugin_dummy,      &plugin_ifacer,
};

static const struct plugin *plugin_of(const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
		if (str_eq(type, plugins[i]->type))
			return plugins[i];
	return NULL;
}

bool attach_knows(const char *type)
{
	return plugin_of(type) != NULL;
}

bool attach_is_common(const char *type)
{
	const struct plugin *plugin = plugin_of(type);

	return plugin && plugin->is_common;
}

static int check_version(const char *version, const char *command, struct err *err)
{
	if (!result_version_is_known(version))
		return err_set(
			err, ERR_INVALID, "BadCniVersion",
			"cniVersion \"%.32s\" is not supported: write one from 0.1.0 to 1.1.0",
			version);
	if (str_eq(command, "CHECK") && !result_version_is_at_least(version, "0.4.0"))
		return err_set(err, ERR_INVALID, "BadCniVersion",
			       "CHECK needs a cniVersion of 0.4.0 or newer, the network says %s",
			       version);
	return 0;
}

static int read_previous(const struct plugin *plugin, const struct attach_call *call,
			 const char *version, json_t **ret, struct err *err)
{
	const json_t *previous = json_at(call->config, "prevResult");

	if (!previous && call->command == ATTACH_ADD && plugin->chained)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s has no prevResult: it goes behind the plugin that makes the "
			       "interface, in the same list",
			       plugin->type);
	if (previous && result_read(previous, version, ret, err))
		return err_in(err, "prevResult");
	return 0;
}

static int64_t kernel_us(const struct netns_pair *pair)
{
	return netlink_kernel_us(netns_netlink(pair->pod)) +
	       netlink_kernel_us(netns_netlink(pair->host));
}

static int plugin_add(const struct plugin *plugin, const struct plugin_call *call,
		      const char *version, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	int64_t before_us = kernel_us(&call->pair);
	json_auto_t *result = NULL;

	if (plugin->add(call, &result, err))
		return -1;
	services->took(services->context, kernel_us(&call->pair) - before_us);
	*ret_result = result_write(result, version);
	return 0;
}

int attach_run(const struct attach_call *call, json_t **ret_result, struct err *err)
{
	static const char *const names[] = {
		[ATTACH_ADD] = "ADD",
		[ATTACH_CHECK] = "CHECK",
		[ATTACH_DEL] = "DEL",
		[ATTACH_BEGIN] = "ADD",
	};
	const struct plugin *plugin = plugin_of(call->type);
	const char *version = result_version_of(call->config);
	auto_netns struct netns *own = NULL;
	struct netns **namespaces = call->worker ? &call->worker->namespaces : &own;
	struct netns *pod = NULL, *host;
	json_auto_t *previous = NULL;
	struct plugin_call inner = {.call = call};
	struct err why = {0};

	assert(call->services && call->services->save && call->services->keep &&
	       call->services->ipam);
	assert(call->services->owns && call->services->is_given);
	assert(call->services->report && call->services->took);
	if (!plugin)
		return err_set(err, ERR_INVALID, "UnsupportedField", "no plugin of type \"%.64s\"",
			       call->type);
	/* What was made has to go, whatever the configuration says by now. */
	if (call->command != ATTACH_DEL && (check_version(version, names[call->command], err) ||
					    read_previous(plugin, call, version, &previous, err)))
		return -1;
	host = netns_keep(namespaces, call->host_netns, err);
	if (!host)
		return -1;
	if (call->netns >= 0) {
		pod = netns_keep(namespaces, call->netns, &why);
		/* DEL: what is no namespace any more is a namespace that is gone. */
		if (!pod && (call->command != ATTACH_DEL || why.class != ERR_INVALID)) {
			if (err)
				*err = why;
			return -1;
		}
	} else if (call->command != ATTACH_DEL) {
		return err_set(err, ERR_INVALID, "BadEnvironment", "%s needs CNI_NETNS",
			       names[call->command]);
	}
	/* By the number of a process that has ended: the pod's is gone. */
	if (pod && netns_is_same(pod, host) && call->command == ATTACH_DEL)
		pod = NULL;
	if (pod && netns_is_same(pod, host))
		return err_set(err, ERR_INVALID, "BadNetns",
			       "CNI_NETNS is the node's own network namespace");
	inner.pair = (struct netns_pair){.pod = pod, .host = host};
	inner.previous = previous;
	inner.has_late_link = plugin->has_late_link;
	switch (call->command) {
	case ATTACH_ADD:
		return plugin_add(plugin, &inner, version, ret_result, err);
	case ATTACH_BEGIN:
		return plugin->begin ? plugin->begin(&inner, err) : 0;
	case ATTACH_CHECK:
		return plugin->check(&inner, err);
	case ATTACH_DEL:
		return plugin->del(&inner, err);
	}
	return err_set(err, ERR_BUG, "Bug", "no such command");
}

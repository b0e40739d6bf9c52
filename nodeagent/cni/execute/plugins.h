// SPDX-License-Identifier: Apache-2.0
/* What each plugin does with a call; attach_run() has looked at what all have in common. */
#pragma once

#include "nodeagent/cni/execute/netns_execute.h"
#include <stdbool.h>

#include "nodeagent/cni/plan/attach.h"

/* A call with its namespaces open. pair.pod is NULL when the pod's is gone (DEL). */
struct plugin_call {
	const struct attach_call *call;
	struct netns_pair pair;
	const json_t *previous; /* the result of the plugin before, in our shape; NULL: none */
	bool has_late_link;     /* of struct plugin */
};

struct plugin {
	const char *type;
	bool chained;       /* ADD needs prevResult */
	bool is_common;     /* attach_is_common() */
	bool has_late_link; /* its interface may have no carrier yet when it is set up */
	/* ATTACH_BEGIN; NULL: nothing. */
	int (*begin)(const struct plugin_call *call, struct err *err);
	/* *ret_result is new, in our shape. */
	int (*add)(const struct plugin_call *call, json_t **ret_result, struct err *err);
	int (*check)(const struct plugin_call *call, struct err *err);
	int (*del)(const struct plugin_call *call, struct err *err);
};

extern const struct plugin plugin_coordinator, plugin_sriov, plugin_ib_sriov, plugin_rdma,
	plugin_ipoib, plugin_macvlan, plugin_ipvlan, plugin_vlan, plugin_static, plugin_host_local,
	plugin_bridge, plugin_tuning, plugin_host_device, plugin_dummy, plugin_ifacer;

// SPDX-License-Identifier: Apache-2.0
/* The plugin static, which has no state: nodeagent/cni/plan/static_ipam.h is all of it. */
#include "lib/json/json.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/static_ipam.h"

static int static_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	return static_ipam_result(call->call->config, call->call->args, ret_result, err);
}

static int static_check(const struct plugin_call *call, struct err *err)
{
	json_auto_t *wanted = NULL;

	if (static_ipam_result(call->call->config, call->call->args, &wanted, err))
		return -1;
	return static_ipam_check(wanted, call->previous, err);
}

static int static_del(const struct plugin_call *call, struct err *err)
{
	return 0;
}

const struct plugin plugin_static = {
	.type = "static",
	.is_common = true,
	.add = static_add,
	.check = static_check,
	.del = static_del,
};

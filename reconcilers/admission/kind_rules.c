// SPDX-License-Identifier: Apache-2.0
/* The table, and what bends the checks of reconcilers into its shape. */
#include "reconcilers/admission/kind_rules.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/admission/defaults.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/reserved_ip.h"
#include "reconcilers/spider/coordinator.h"
#include "reconcilers/spider/coordinator_settings.h"
#include "reconcilers/spider/multus_config_check.h"
#include "reconcilers/spider/multus_config_warn.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_network.h"
#include "reconcilers/sriov/sriov_policy.h"

static void check_reserved_ip(const json_t *world, const json_t *object, struct problems *problems)
{
	reserved_ip_check(object, problems);
}

static void check_coordinator(const json_t *world, const json_t *object, struct problems *problems)
{
	coordinator_spec_check(json_at(object, "spec"), "spec", problems);
}

static void warn_of_coordinator(const json_t *world, const json_t *object,
				struct problems *warnings)
{
	if (!str_eq(json_name(object), COORDINATOR_DEFAULT))
		problem_add(warnings, "NotUsed", "metadata.name",
			    "is %s: pods use the SpiderCoordinator named " COORDINATOR_DEFAULT
			    " only, put these settings there",
			    json_name(object));
}

static void warn_of_config(const json_t *world, const json_t *object, struct problems *warnings)
{
	auto_multus_rendering struct multus_rendering rendering = {0};
	auto_problems struct problems none = {0};

	multus_config_render(world, object, &rendering, &none);
	multus_config_warn(object, &rendering, warnings);
	multus_config_warn_missing(world, object, warnings);
}

static void warn_of_pool(const json_t *world, const json_t *object, struct problems *warnings)
{
	ip_pool_warn(object, warnings);
}

/* Of a policy that upstream takes too, and that does less than its author meant. */
static bool is_mild(const json_t *problem)
{
	static const char *const mild[] = {"NameReserved", "BridgeNotManaged", "RangesOverlap",
					   "NumVfsZero"};

	for (size_t i = 0; i < ARRAY_LEN(mild); i++)
		if (str_eq(json_str_at(problem, "reason"), mild[i]))
			return true;
	return false;
}

static void policy_problems(const json_t *object, bool mild, struct problems *ret)
{
	auto_problems struct problems all = {0};
	json_t *problem;
	size_t i;

	sriov_policy_check(object, &all);
	json_array_foreach (all.list, i, problem)
		if (is_mild(problem) == mild)
			problem_copy(ret, problem);
}

static void check_policy(const json_t *world, const json_t *object, struct problems *problems)
{
	policy_problems(object, false, problems);
}

static void warn_of_policy(const json_t *world, const json_t *object, struct problems *warnings)
{
	trust_check(world, object, warnings);
	policy_problems(object, true, warnings);
}

static void check_pool_config(const json_t *world, const json_t *object, struct problems *problems)
{
	pool_config_check(object, problems);
}

static void warn_of_pool_config(const json_t *world, const json_t *object,
				struct problems *warnings)
{
	trust_check(world, object, warnings);
}

static void check_sriov_network(const json_t *world, const json_t *object,
				struct problems *problems)
{
	sriov_network_check(world, KIND_SRIOV_NETWORK, object, problems);
}

static void check_sriov_ib_network(const json_t *world, const json_t *object,
				   struct problems *problems)
{
	sriov_network_check(world, KIND_SRIOV_IB_NETWORK, object, problems);
}

static void check_ovs_network(const json_t *world, const json_t *object, struct problems *problems)
{
	sriov_network_check(world, KIND_OVS_NETWORK, object, problems);
}

static const struct kind_rules table[] = {
	{
		.kind = KIND_MULTUS_CONFIG,
		.check = multus_config_check,
		.warn = warn_of_config,
		.fill = defaults_multus_config,
	},
	{
		.kind = KIND_IP_POOL,
		.check = ip_pool_check,
		.warn = warn_of_pool,
		.check_change = ip_pool_check_change,
		.judged_by_change = "AddressOverlap",
		.fill = defaults_ip_pool,
	},
	{
		.kind = KIND_RESERVED_IP,
		.check = check_reserved_ip,
		.fill = defaults_reserved_ip,
	},
	{
		.kind = KIND_COORDINATOR,
		.check = check_coordinator,
		.warn = warn_of_coordinator,
		.fill = defaults_coordinator,
	},
	{
		.kind = KIND_POLICY,
		.check = check_policy,
		.warn = warn_of_policy,
		.fill = defaults_policy,
	},
	{
		.kind = KIND_POOL_CONFIG,
		.check = check_pool_config,
		.warn = warn_of_pool_config,
	},
	{
		.kind = KIND_SRIOV_NETWORK,
		.check = check_sriov_network,
	},
	{
		.kind = KIND_SRIOV_IB_NETWORK,
		.check = check_sriov_ib_network,
	},
	{
		.kind = KIND_OVS_NETWORK,
		.check = check_ovs_network,
	},
	{0},
};

const struct kind_rules *kind_rules_find(const char *kind)
{
	for (const struct kind_rules *rules = table; rules->kind; rules++)
		if (str_eq(rules->kind, kind))
			return rules;
	return NULL;
}

const struct kind_rules *kind_rules_all(void)
{
	return table;
}

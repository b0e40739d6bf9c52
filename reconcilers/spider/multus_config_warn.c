// SPDX-License-Identifier: Apache-2.0
/*
 * Called for a config without problems: multus_config.c turns the list into the condition
 * Degraded, admission into the warnings of its answer. Nothing here keeps a config from being
 * rendered.
 */
#include "reconcilers/spider/multus_config_warn.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_rules.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/multus_config_names.h"

#define DEFAULT_RULE_TABLE 500 /* what defaulting stores when no user asked */

static void warn_of_twin_masters(const json_t *spec, const struct cni_type *type,
				 struct problems *warnings)
{
	auto_free char *field = str_printf("spec.%s.master", type->block);
	const json_t *masters = json_at(spec, type->block, "master");
	json_auto_t *seen = json_object();
	json_t *master;
	size_t i;

	json_array_foreach (masters, i, master) {
		const char *name = json_string_value(master);

		/* What a cniType does not read is not checked either. */
		if (!name)
			continue;
		if (json_object_get(seen, name))
			problem_add(warnings, "TwinMaster", field,
				    "names %s twice: a port can be in a bond once", name);
		json_put_bool(seen, name, true);
	}
}

/* The plugin takes these from the SpiderCoordinator whatever stands here. */
static void warn_of_coordinator(const json_t *coordinator, struct problems *warnings)
{
	const json_t *table = json_at(coordinator, "hostRuleTable");

	if (json_integer_value(json_at(coordinator, "podRPFilter")) != 0 &&
	    !json_at(coordinator, "podCIDRType"))
		problem_add(warnings, "NoEffect", "spec.coordinator.podRPFilter",
			    "has no effect without podCIDRType next to it: set that too, or set "
			    "podRPFilter in the SpiderCoordinator");
	if (table && json_integer_value(table) != DEFAULT_RULE_TABLE)
		problem_add(warnings, "NoEffect", "spec.coordinator.hostRuleTable",
			    "has no effect here: set it in the SpiderCoordinator");
}

/* Misplaced settings are read when the right place is empty, and only then. */
static void warn_of_misplaced(const json_t *spec, const struct cni_type *type,
			      struct problems *warnings)
{
	const json_t *block = json_at(spec, type->block);
	const char *resource = json_str_or(json_at(spec, "rdmaResourceName"), "");
	const char *used = json_str_or(json_at(block, "rdmaResourceName"), "");
	bool shares = str_eq(type->resource, "rdmaResourceName");

	if (cni_block_has_pools(spec) && cni_block_has_pools(block))
		problem_add(warnings, "NoEffect", "spec.ippools",
			    "has no effect, spec.%s.ippools counts: remove one of them",
			    type->block);
	if (*resource && !shares)
		problem_add(warnings, "NoEffect", "spec.rdmaResourceName",
			    "%.64s has no effect with cniType %s: remove it", resource, type->name);
	else if (*resource && *used && !str_eq(used, resource))
		problem_add(warnings, "NoEffect", "spec.rdmaResourceName",
			    "%.64s has no effect, spec.%s.rdmaResourceName %.64s counts: remove "
			    "one of them",
			    resource, type->block, used);
}

/* Of the configuration that the object is rendered to: what our plugins cannot do, or pass over. */
static void warn_of_plugins(const struct multus_rendering *rendering, const struct cni_type *type,
			    struct problems *warnings)
{
	json_auto_t *ignored = plugin_rules_ignored(rendering->config);
	auto_free char *bond = str_printf("spec.%s.bond.options", type->block);
	json_t *option;
	size_t i;

	if (*rendering->unsupported.reason)
		problem_add(warnings, "NotSupported",
			    str_eq(type->name, "custom") ? "spec.customCNI"
							 : "spec.chainCNIJsonData",
			    "would be refused for each pod where the node agent serves the plugin: "
			    "%s",
			    rendering->unsupported.text);
	json_array_foreach (ignored, i, option)
		problem_add(warnings, "NoEffect",
			    str_eq(type->name, "custom") ? "spec.customCNI" : bond,
			    "\"%.64s\" has no effect on a bond: correct or remove it",
			    json_string_value(option));
}

void multus_config_warn(const json_t *object, const struct multus_rendering *rendering,
			struct problems *warnings)
{
	const json_t *spec = json_at(object, "spec");
	const struct cni_type *type = cni_type_of(object);

	assert(type);
	if (str_eq(type->name, "custom")) {
		const json_t *config = rendering->config;

		if (config && str_empty(json_str_at(config, "type")) &&
		    json_array_size(json_at(config, "plugins")) == 0)
			problem_add(warnings, "NoPlugin", "spec.customCNI",
				    "has neither type nor plugins: no pod can use this network");
	} else {
		warn_of_twin_masters(spec, type, warnings);
	}
	if (json_is_true(json_at(spec, type->block, "ippools", "matchMasterSubnet")) &&
	    !str_eq(type->name, "sriov")) {
		auto_free char *field =
			str_printf("spec.%s.ippools.matchMasterSubnet", type->block);

		problem_add(warnings, "NoEffect", field, "has no effect with cniType %s: remove it",
			    type->name);
	}
	warn_of_misplaced(spec, type, warnings);
	warn_of_plugins(rendering, type, warnings);
	if (!str_eq(type->name, "custom"))
		warn_of_coordinator(json_at(spec, "coordinator"), warnings);
}

struct missing {
	const json_t *world;
	const char *field;  /* in front of what is named */
	const char *family; /* "ipv4" or "ipv6": the list that names the pool */
	struct problems *warnings;
};

static void warn_of_pool(void *arg, const char *pool)
{
	const struct missing *missing = arg;
	const json_t *object = world_get(missing->world, KIND_IP_POOL, pool);
	const char *subnet = json_str_at(object, "spec", "subnet");
	const char *family = strchr(subnet ? subnet : "", ':') ? "ipv6" : "ipv4";

	if (subnet && !str_eq(family, missing->family))
		problem_add(missing->warnings, "PoolOfOtherFamily", missing->field,
			    "lists SpiderIPPool %.253s under %s, and its subnet is %.64s: list it "
			    "under %s, pods get no address from it here",
			    pool, missing->family, subnet, family);
	if (!object)
		problem_add(missing->warnings, "PoolMissing", missing->field,
			    "names SpiderIPPool %.253s, which does not exist: create it or correct "
			    "the name, pods get no address from it",
			    pool);
}

/* "ens1f0v3", "ens1f0np0v3": VFs have such names, and are in pods as often as not. */
static bool names_vf(const char *link)
{
	size_t len = strlen(link), digits = 0;

	while (digits < len && isdigit((unsigned char)link[len - digits - 1]))
		digits++;
	return digits > 0 && digits + 1 < len && link[len - digits - 1] == 'v';
}

static void warn_of_master(void *arg, const char *field, const char *link)
{
	const struct missing *missing = arg;
	auto_free char *where = str_printf("%s.%s", missing->field, field);

	if (!world_get(missing->world, KIND_NODE_LINK, link) && !names_vf(link))
		problem_add(missing->warnings, "MasterMissing", where,
			    "names %.15s, which no node has: correct the name, pods get no "
			    "interface over it; status.links of SriovNetworkNodeStates names those "
			    "there are",
			    link);
}

/* Interfaces of these cniTypes lie over a NIC of this sort; devices of them are of one. */
static const struct {
	const char *type, *link, *remedy;
} link_types[] = {
	{"macvlan", "ETH", "use cniType ipoib or ib-sriov"},
	{"ipvlan", "ETH", "use cniType ipoib or ib-sriov"},
	{"vlan", "ETH", "use cniType ipoib or ib-sriov, and partitions in place of VLANs"},
	{"sriov", "ETH", "use cniType ib-sriov"},
	{"ib-sriov", "IB", "use cniType sriov"},
	{"ipoib", "IB", "use cniType macvlan or ipvlan"},
};

static const char *link_words(const char *type)
{
	return str_eq(type, "IB") ? "InfiniBand" : "Ethernet";
}

/* what: of KIND_LINK_TYPE; name: as users call it. */
static void warn_of_link_type(const json_t *world, const char *cni_type, const char *where,
			      const char *what, const char *name, struct problems *warnings)
{
	const char *is = json_str_at(world, KIND_LINK_TYPE, what);

	for (size_t i = 0; is && i < ARRAY_LEN(link_types); i++)
		if (str_eq(cni_type, link_types[i].type) && !str_eq(is, link_types[i].link))
			problem_add(warnings, "WrongLinkType", where,
				    "%.253s is %s on every node that has it, and %s needs %s: no "
				    "pod gets the interface; %s, or name another one",
				    name, link_words(is), cni_type, link_words(link_types[i].link),
				    link_types[i].remedy);
}

struct typed {
	const json_t *world;
	const struct cni_type *type;
	struct problems *warnings;
};

static void warn_of_master_type(void *arg, const char *field, const char *link)
{
	const struct typed *typed = arg;
	auto_free char *where = str_printf("spec.%s.%s", typed->type->block, field);

	warn_of_link_type(typed->world, typed->type->name, where, link, link, typed->warnings);
}

/* The kernel, or the plugin, would refuse each pod. */
static void warn_of_link_types(const json_t *world, const json_t *object,
			       const struct cni_type *type, struct problems *warnings)
{
	struct typed typed = {world, type, warnings};
	auto_free char *resource = multus_config_resource(object);
	const char *slash = strrchr(resource, '/');
	auto_free char *what = str_printf("%s/", slash ? slash + 1 : resource);
	auto_free char *where = NULL;

	multus_config_masters(object, warn_of_master_type, &typed);
	if (!*resource || !type->resource)
		return;
	where = str_printf("spec.%s.%s", type->block, type->resource);
	warn_of_link_type(world, type->name, where, what, resource, warnings);
}

void multus_config_warn_missing(const json_t *world, const json_t *object,
				struct problems *warnings)
{
	const struct cni_type *type = cni_type_of(object);
	auto_free char *field = str_printf("spec.%s.ippools", type->block);
	auto_free char *resource = multus_config_resource(object);
	json_auto_t *block = cni_block(object, type);
	bool has_ipam = !json_is_true(json_at(object, "spec", "disableIPAM"));
	static const char *const families[] = {"ipv4", "ipv6"};

	assert(type && warnings);
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		struct missing missing = {world, field, families[i], warnings};

		if (has_ipam && world_kind(world, KIND_IP_POOL))
			multus_config_visit_pools(json_at(block, "ippools"), families[i],
						  warn_of_pool, &missing);
	}
	warn_of_link_types(world, object, type, warnings);
	if (world_kind(world, KIND_NODE_LINK)) {
		auto_free char *parent = str_printf("spec.%s", type->block);
		struct missing missing = {world, parent, NULL, warnings};

		multus_config_masters(object, warn_of_master, &missing);
	}
	if (*resource && world_kind(world, KIND_NODE_RESOURCE) &&
	    !world_get(world, KIND_NODE_RESOURCE, resource)) {
		auto_free char *where = str_printf("spec.%s.%s", type->block, type->resource);

		problem_add(warnings, "ResourceMissing", where,
			    "%.253s is offered by no node: pods that request it stay Pending until "
			    "a SriovNetworkNodePolicy or a device plugin makes it, or the name is "
			    "corrected",
			    resource);
	}
}

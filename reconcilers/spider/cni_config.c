// SPDX-License-Identifier: Apache-2.0
/* Rendering of CNI configurations; see cni_config.h. Each main plugin has one short function. */
#include "reconcilers/spider/cni_config.h"

#include <assert.h>
#include <string.h>

#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"

#define DEFAULT_CNI_VERSION "0.3.1"

const struct cni_type cni_types[] = {
	{"macvlan", "macvlan", "rdmaResourceName"},
	{"ipvlan", "ipvlan", "rdmaResourceName"},
	{"vlan", "vlan", "rdmaResourceName"},
	{"sriov", "sriov", "resourceName"},
	{"ib-sriov", "ibsriov", "resourceName"},
	{"ipoib", "ipoib", "master"},
	{"ovs", "ovs", NULL},
	{"custom", "customCNI", NULL},
	{NULL, NULL, NULL},
};

const struct cni_type *cni_type_of(const json_t *smc)
{
	const json_t *value = json_at(smc, "spec", "cniType");
	const char *name = value ? json_string_value(value) : "custom";

	for (const struct cni_type *type = cni_types; type->name; type++)
		if (str_eq(type->name, name))
			return type;
	return NULL;
}

const char *cni_annotation(const json_t *smc, const char *name)
{
	assert(name);
	return json_str_at(smc, "metadata", "annotations", name);
}

uint32_t cni_rail(const json_t *smc)
{
	const char *text = cni_annotation(smc, CNI_ANNOTATION_RAIL);
	uint32_t rails = text ? rail_list_parse(text) : 0;

	return rails & (rails - 1) ? 0 : rails;
}

const char *cni_nad_name(const json_t *smc)
{
	const char *name = cni_annotation(smc, CNI_ANNOTATION_NAD_NAME);

	return name ? name : json_name(smc);
}

/* Fields of a block with their defaults. */

static const char *str_of(const json_t *block, const char *key, const char *otherwise)
{
	return json_str_or(json_at(block, key), otherwise);
}

static int64_t int_of(const json_t *block, const char *key, int64_t otherwise)
{
	const json_t *value = json_at(block, key);

	return value ? json_integer_value(value) : otherwise;
}

static bool bool_of(const json_t *block, const char *key, bool otherwise)
{
	const json_t *value = json_at(block, key);

	return value ? json_is_true(value) : otherwise;
}

const char *cni_block_resource(const struct cni_type *type, const json_t *block)
{
	/* The master of ipoib is a device, no resource. */
	if (!type->resource || str_eq(type->name, "ipoib"))
		return "";
	return json_str_or(json_at(block, type->resource), "");
}

bool cni_type_has_vfs(const struct cni_type *type)
{
	return str_eq(type->resource, "resourceName");
}

bool cni_block_has_pools(const json_t *block)
{
	const json_t *pools = json_at(block, "ippools");

	return json_array_size(json_at(pools, "ipv4")) || json_array_size(json_at(pools, "ipv6"));
}

/*
 * Into ippools, but not into the user's own object; what is not an object there is the checks'
 * business.
 */
static void place_in_pools(json_t *block, const json_t *members)
{
	const json_t *old = json_at(block, "ippools");
	json_t *pools;

	if (!json_is_object(members) || (old && !json_is_object(old)))
		return;
	pools = old ? json_copy((json_t *)old) : json_object();
	json_object_update(pools, (json_t *)members);
	json_put(block, "ippools", pools);
}

json_t *cni_block(const json_t *smc, const struct cni_type *type)
{
	const json_t *spec = json_at(smc, "spec");
	const json_t *written = json_at(spec, type->block);
	json_t *block;

	assert(type && type->block);
	if (!json_is_object(written))
		return json_incref((json_t *)written);
	block = json_copy((json_t *)written);
	if (!cni_block_has_pools(block))
		place_in_pools(block, json_at(spec, "ippools"));
	if (str_eq(type->resource, "rdmaResourceName") &&
	    str_empty(json_str_at(block, "rdmaResourceName")))
		json_put_str(block, "rdmaResourceName", json_str_at(spec, "rdmaResourceName"));
	if (str_eq(type->name, "sriov") && json_is_true(json_at(block, "matchMasterSubnet"))) {
		json_auto_t *match = json_pack("{s:b}", "matchMasterSubnet", 1);

		place_in_pools(block, match);
	}
	if (str_eq(type->name, "ib-sriov") && json_is_integer(json_at(block, "pkey")))
		json_put(block, "pkey",
			 json_fmt("%" JSON_INTEGER_FORMAT,
				  json_integer_value(json_at(block, "pkey"))));
	return block;
}

static const char *base_device(const json_t *block)
{
	const json_t *master = json_at(block, "master");

	if (json_array_size(master) > 1)
		return str_of(json_at(block, "bond"), "name", "");
	return json_str_or(json_array_get(master, 0), "");
}

char *cni_parent_device(const json_t *block)
{
	int64_t vlan = int_of(block, "vlanID", 0);

	if (vlan == 0)
		return str_dup(base_device(block));
	return str_printf("%s.%" JSON_INTEGER_FORMAT, base_device(block), (json_int_t)vlan);
}

static void put_ipam(json_t *plugin, const json_t *spec, const json_t *block)
{
	const json_t *pools = json_at(block, "ippools");
	json_t *ipam;

	if (bool_of(spec, "disableIPAM", false))
		return;
	ipam = json_object();
	json_put_str(ipam, "type", "spiderpool");
	if (json_array_size(json_at(pools, "ipv4")))
		json_put(ipam, "default_ipv4_ippool", json_incref(json_at(pools, "ipv4")));
	if (json_array_size(json_at(pools, "ipv6")))
		json_put(ipam, "default_ipv6_ippool", json_incref(json_at(pools, "ipv6")));
	/* Only sriov-cni's chain understands it. */
	if (str_eq(json_str_at(plugin, "type"), "sriov") &&
	    bool_of(pools, "matchMasterSubnet", false))
		json_put_bool(ipam, "match_master_subnet", true);
	json_put(plugin, "ipam", ipam);
}

static json_t *plugin_new(const char *type)
{
	json_t *plugin = json_object();

	json_put_str(plugin, "type", type);
	return plugin;
}

/* ifacer makes the bond and the VLAN device on the host before the main plugin needs them. */
static json_t *ifacer_new(const json_t *block, int64_t vlan)
{
	const json_t *bond = json_at(block, "bond");
	json_t *plugin = plugin_new("ifacer");
	json_t *copy;

	json_put(plugin, "interfaces", json_incref(json_at(block, "master")));
	if (vlan)
		json_put_int(plugin, "vlanID", vlan);
	if (!bond)
		return plugin;
	copy = json_object();
	json_put_str(copy, "name", str_of(bond, "name", ""));
	json_put_int(copy, "mode", int_of(bond, "mode", 0));
	json_put_str(copy, "options", str_of(bond, "options", ""));
	json_put(plugin, "bond", copy);
	return plugin;
}

static void add_macvlan_or_ipvlan(json_t *plugins, const char *type, const json_t *spec,
				  const json_t *block)
{
	auto_free char *parent = cni_parent_device(block);
	int64_t vlan = int_of(block, "vlanID", 0);
	json_t *plugin = plugin_new(type);

	if (vlan || json_array_size(json_at(block, "master")) > 1)
		json_array_append_new(plugins, ifacer_new(block, vlan));
	json_put_str(plugin, "master", parent);
	if (str_eq(type, "macvlan"))
		json_put_str(plugin, "mode", "bridge");
	json_put_int(plugin, "mtu", int_of(block, "mtu", 0));
	put_ipam(plugin, spec, block);
	json_array_append_new(plugins, plugin);
}

static void add_sriov(json_t *plugins, const json_t *spec, const json_t *block)
{
	json_t *plugin = plugin_new("sriov");

	json_put_int(plugin, "vlan", int_of(block, "vlanID", 0));
	json_put_int(plugin, "min_tx_rate", int_of(block, "minTxRateMbps", 0));
	json_put_int(plugin, "max_tx_rate", int_of(block, "maxTxRateMbps", 0));
	put_ipam(plugin, spec, block);
	json_array_append_new(plugins, plugin);

	/*
	 * The schema stores rdmaIsolation: false where no user wrote it, so a false one cannot
	 * overrule the old name.
	 */
	if (bool_of(block, "rdmaIsolation", false) || bool_of(block, "enableRdma", false))
		json_array_append_new(plugins, plugin_new("rdma"));
}

static void add_ib_sriov(json_t *plugins, const json_t *spec, const json_t *block)
{
	json_t *plugin = plugin_new("ib-sriov");

	json_put_str(plugin, "pkey", str_of(block, "pkey", ""));
	json_put_str(plugin, "link_state", str_of(block, "linkState", "enable"));
	json_put_bool(plugin, "rdmaIsolation", bool_of(block, "rdmaIsolation", true));
	/* ibKubernetesEnabled is the name of this field before Spiderpool 1.0. */
	json_put_bool(plugin, "ibKubernetesEnabled",
		      bool_of(block, "enableIbKubernetes", false) ||
			      bool_of(block, "ibKubernetesEnabled", false));
	put_ipam(plugin, spec, block);
	json_array_append_new(plugins, plugin);
}

static void add_ipoib(json_t *plugins, const json_t *spec, const json_t *block)
{
	json_t *plugin = plugin_new("ipoib");

	json_put_str(plugin, "master", str_of(block, "master", ""));
	put_ipam(plugin, spec, block);
	json_array_append_new(plugins, plugin);
}

static void add_ovs(json_t *plugins, const json_t *spec, const json_t *block)
{
	const json_t *trunk = json_at(block, "trunk");
	const char *device = str_of(block, "deviceID", "");
	json_t *plugin = plugin_new("ovs");
	json_t *item, *list;
	size_t i;

	json_put_str(plugin, "bridge", str_of(block, "bridge", ""));
	json_put_int(plugin, "vlan", int_of(block, "vlan", 0));
	if (*device)
		json_put_str(plugin, "deviceID", device);
	if (json_array_size(trunk)) {
		list = json_array();
		json_array_foreach (trunk, i, item)
			json_array_append_new(
				list, json_pick(item, (const char *const[]){"minID", "maxID", "id",
									    NULL}));
		json_put(plugin, "trunk", list);
	}
	put_ipam(plugin, spec, block);
	json_array_append_new(plugins, plugin);
}

static void add_main_plugin(json_t *plugins, const struct cni_type *type, const json_t *smc)
{
	const json_t *spec = json_at(smc, "spec");
	json_auto_t *block = cni_block(smc, type);

	if (str_eq(type->name, "macvlan") || str_eq(type->name, "ipvlan")) {
		add_macvlan_or_ipvlan(plugins, type->name, spec, block);
	} else if (str_eq(type->name, "vlan")) {
		const char *mode = str_of(block, "vlanMode", "manual");
		json_t *plugin = plugin_new("vlan");

		/* The vlan plugin makes the VLAN itself; ifacer only builds the bond. */
		if (json_array_size(json_at(block, "master")) > 1)
			json_array_append_new(plugins, ifacer_new(block, 0));
		json_put_str(plugin, "master", base_device(block));
		json_put_str(plugin, "vlanMode", mode);
		if (str_eq(mode, "manual"))
			json_put_int(plugin, "vlanId", int_of(block, "vlanID", 0));
		json_put_int(plugin, "mtu", int_of(block, "mtu", 0));
		put_ipam(plugin, spec, block);
		json_array_append_new(plugins, plugin);
	} else if (str_eq(type->name, "sriov")) {
		add_sriov(plugins, spec, block);
	} else if (str_eq(type->name, "ib-sriov")) {
		add_ib_sriov(plugins, spec, block);
	} else if (str_eq(type->name, "ipoib")) {
		add_ipoib(plugins, spec, block);
	} else {
		add_ovs(plugins, spec, block);
	}
}

static void put_unless_empty(json_t *plugin, const char *key, const char *value)
{
	if (*value)
		json_put_str(plugin, key, value);
}

static json_t *coordinator_new(const json_t *coordinator)
{
	json_t *plugin = plugin_new("coordinator");
	const char *mode = str_of(coordinator, "mode", "auto");

	/* The plugin's own word for it differs from the API's, and it refuses the API's. */
	json_put_str(plugin, "mode", str_eq(mode, "disabled") ? "disable" : mode);
	json_put_bool(plugin, "tunePodRoutes", bool_of(coordinator, "tunePodRoutes", true));
	json_put_int(plugin, "txQueueLen", int_of(coordinator, "txQueueLen", 0));
	put_unless_empty(plugin, "vethLinkAddress", str_of(coordinator, "vethLinkAddress", ""));
	put_unless_empty(plugin, "podMACPrefix", str_of(coordinator, "podMACPrefix", ""));
	put_unless_empty(plugin, "podDefaultRouteNic",
			 str_of(coordinator, "podDefaultRouteNIC", ""));
	json_put(plugin, "vethMTU", json_incref(json_at(coordinator, "vethMTU")));
	/*
	 * 0 is also what defaulting stores when no user asked, and would hide the
	 * SpiderCoordinator's value; podCIDRType next to it says that a user did ask.
	 */
	if (json_at(coordinator, "podCIDRType"))
		json_put_int(plugin, "podRPFilter", int_of(coordinator, "podRPFilter", 0));
	if (json_array_size(json_at(coordinator, "hijackCIDR")))
		json_put(plugin, "hijackCIDR", json_incref(json_at(coordinator, "hijackCIDR")));
	if (json_array_size(json_at(coordinator, "policyRoutes"))) {
		json_t *list = json_array();
		json_t *route;
		size_t i;

		json_array_foreach (json_at(coordinator, "policyRoutes"), i, route)
			json_array_append_new(
				list, json_pick(route, (const char *const[]){"dst", "gw", NULL}));
		json_put(plugin, "policyRoutes", list);
	}
	return plugin;
}

static json_t *config_new(const json_t *smc, const struct cni_type *type)
{
	const json_t *spec = json_at(smc, "spec");
	const char *version = cni_annotation(smc, CNI_ANNOTATION_VERSION);
	const char *name = cni_annotation(smc, CNI_ANNOTATION_CONFIG_NAME);
	int64_t mtu = int_of(json_at(spec, "sriov"), "mtu", 0);
	json_t *config = json_object();
	json_t *plugins = json_array();
	json_t *text;
	size_t i;

	add_main_plugin(plugins, type, smc);
	json_array_foreach (json_at(spec, "chainCNIJsonData"), i, text)
		json_array_append_new(plugins, json_parse(json_string_value(text),
							  json_string_length(text), NULL));
	if (bool_of(spec, "enableCoordinator", true))
		json_array_append_new(plugins, coordinator_new(json_at(spec, "coordinator")));
	/* sriov-cni sets no MTU; the tuning plugin does, after everything else. */
	if (str_eq(type->name, "sriov") && mtu > 0) {
		json_t *tuning = plugin_new("tuning");

		json_put_int(tuning, "mtu", mtu);
		json_array_append_new(plugins, tuning);
	}
	json_put_str(config, "cniVersion", version ? version : DEFAULT_CNI_VERSION);
	json_put_str(config, "name", str_empty(name) ? cni_nad_name(smc) : name);
	json_put(config, "plugins", plugins);
	return config;
}

/* NULL: of another type. */
static const char *custom_text(const json_t *smc, const struct cni_type *type)
{
	return str_eq(type->name, "custom") ? str_of(json_at(smc, "spec"), "customCNI", "") : NULL;
}

json_t *cni_config_new(const json_t *smc)
{
	const struct cni_type *type = cni_type_of(smc);
	const char *custom;

	assert(type);
	custom = custom_text(smc, type);
	return custom ? json_parse(custom, strlen(custom), NULL) : config_new(smc, type);
}

char *cni_config_text(const json_t *smc, const json_t *config, const char *present)
{
	const char *custom = custom_text(smc, cni_type_of(smc));
	json_auto_t *found = NULL;

	if (!config)
		return NULL;
	found = present ? limits_parse(present, strlen(present), LIMIT_CONFIG_BYTES, NULL) : NULL;
	if (found && json_same(found, config))
		return str_dup(present);
	return custom ? str_dup(custom) : json_text(config);
}

json_t *cni_config_resource(const json_t *smc)
{
	const char *type = cni_type_of(smc)->name;
	const json_t *spec = json_at(smc, "spec");

	if (str_eq(type, "sriov"))
		return json_incref(json_at(spec, "sriov", "resourceName"));
	if (str_eq(type, "ib-sriov"))
		return json_incref(json_at(spec, "ibsriov", "resourceName"));
	if (str_eq(type, "ovs") && *str_of(json_at(spec, "ovs"), "deviceID", ""))
		return json_fmt("ovs-cni.network.kubevirt.io/%s",
				str_of(json_at(spec, "ovs"), "bridge", ""));
	return NULL;
}

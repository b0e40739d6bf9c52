// SPDX-License-Identifier: Apache-2.0
/*
 * A table from each type to the reader of its configuration, and stand-ins for what the readers
 * expect of pod, node and cluster.
 */
#include "nodeagent/cni/plan/plugin_rules.h"

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/bridge.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/coordinator_config.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/host_local.h"
#include "nodeagent/cni/plan/ifacer.h"
#include "nodeagent/cni/plan/static_ipam.h"
#include "nodeagent/cni/plan/tuning.h"
#include "nodeagent/cni/plan/upper.h"
#include "reconcilers/core/cni_rules.h"

#define SOME_DEVICE  "0000:00:00.0"
#define SOME_IFNAME  "net1"
#define SOME_NETWORK "network"

static int check_upper(const json_t *config, bool has_previous, struct err *err)
{
	json_auto_t *previous = has_previous
					? json_pack("{s:[{s:s}], s:[{s:s}]}", "interfaces", "name",
						    SOME_IFNAME, "ips", "address", "192.0.2.1/24")
					: NULL;
	auto_upper_config struct upper_config read = {0};

	return upper_config_read(json_str_at(config, "type"), config, NULL, previous, &read, err);
}

static int check_bridge(const json_t *config, bool has_previous, struct err *err)
{
	auto_bridge_config struct bridge_config read = {0};

	return bridge_config_read(config, NULL, &read, err);
}

static int check_tuning(const json_t *config, bool has_previous, struct err *err)
{
	auto_tuning_config struct tuning_config read = {0};

	return tuning_config_read(config, NULL, SOME_IFNAME, &read, err);
}

static int check_host_device(const json_t *config, bool has_previous, struct err *err)
{
	auto_host_device_config struct host_device_config read = {0};
	json_auto_t *folded = config_keys_fold(config, "host-device");

	/* A device plugin may give it. */
	if (str_empty(json_str_at(folded, "pciBusID")))
		json_put_str(folded, "pciBusID", SOME_DEVICE);
	return host_device_config_read(folded, &read, err);
}

static int check_ifacer(const json_t *config, bool has_previous, struct err *err)
{
	auto_ifacer_config struct ifacer_config read = {0};

	return ifacer_config_read(config, &read, err);
}

static int check_coordinator(const json_t *config, bool has_previous, struct err *err)
{
	auto_coordinator_config struct coordinator_config read = {0};
	json_auto_t *settings = json_pack("{s:s, s:b, s:[], s:[]}", "mode", "auto", "tunePodRoutes",
					  1, "overlayPodCIDR", "serviceCIDR");

	return coordinator_config_read(config, settings, &read, err);
}

/* Keys and types; cni_rules_check() knows the rest. */
static int check_keys(const json_t *config, bool has_previous, struct err *err)
{
	json_auto_t *folded = NULL;

	return config_keys_read(config, json_str_at(config, "type"), &folded, err) ||
			       cni_rules_check(folded, NULL, err)
		       ? -1
		       : 0;
}

static bool has_capability(const json_t *config, const char *name)
{
	return json_is_true(json_at(config, "capabilities", name));
}

static int check_ipam(const json_t *config, struct err *err)
{
	const char *type = json_str_at(config, "ipam", "type");
	auto_host_local_config struct host_local_config ranges = {0};
	json_auto_t *result = NULL;

	if (str_eq(type, "static"))
		return static_ipam_result(config, NULL, &result, err);
	return str_eq(type, "host-local") && !has_capability(config, "ipRanges")
		       ? host_local_config_read(config, NULL, false, &ranges, err)
		       : 0;
}

static int check_plugin(const json_t *plugin, bool has_previous, struct err *err)
{
	static const struct {
		const char *type;
		int (*check)(const json_t *config, bool has_previous, struct err *err);
	} plugins[] = {
		{"sriov", check_keys},
		{"ib-sriov", check_keys},
		{"ipoib", check_keys},
		{"rdma", check_keys},
		{"macvlan", check_upper},
		{"ipvlan", check_upper},
		{"vlan", check_upper},
		{"dummy", check_upper},
		{"bridge", check_bridge},
		{"tuning", check_tuning},
		{"host-device", check_host_device},
		{"ifacer", check_ifacer},
		{"coordinator", check_coordinator},
	};
	const char *type = json_str_at(plugin, "type");
	json_auto_t *folded = config_keys_fold(plugin, type ? type : "");

	for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
		if (str_eq(type, plugins[i].type))
			return plugins[i].check(folded, has_previous, err) ||
					       check_ipam(folded, err)
				       ? -1
				       : 0;
	return 0;
}

/* A plugin as it is called: with what the list says for all. A list may have no name. */
static json_t *plugin_new(const json_t *config, const json_t *plugin)
{
	static const char *const keys[] = {"cniVersion", "name"};
	json_t *called = json_copy((json_t *)plugin);

	if (str_empty(json_str_at(called, "name")))
		json_put_str(called, "name", SOME_NETWORK);
	for (size_t i = 0; i < ARRAY_LEN(keys) && plugin != config; i++)
		if (!str_empty(json_str_at(config, keys[i])))
			json_put_str(called, keys[i], json_str_at(config, keys[i]));
	return called;
}

int plugin_rules_check(const json_t *config, size_t *ret_position, struct err *err)
{
	const json_t *plugins = json_at(config, "plugins");
	json_auto_t *list = plugins ? json_incref((json_t *)plugins) : json_pack("[O]", config);
	json_t *plugin;
	size_t i;

	json_array_foreach (list, i, plugin) {
		json_auto_t *called = plugin_new(config, plugin);

		if (check_plugin(called, i > 0, err) == 0)
			continue;
		if (ret_position)
			*ret_position = i;
		return -1;
	}
	return 0;
}

json_t *plugin_rules_ignored(const json_t *config)
{
	const json_t *plugins = json_at(config, "plugins");
	json_t *ignored = json_array(), *plugin;
	size_t i;

	json_array_foreach (plugins, i, plugin) {
		auto_ifacer_config struct ifacer_config read = {0};

		if (str_eq(json_str_at(plugin, "type"), "ifacer") &&
		    ifacer_config_read(plugin, &read, NULL) == 0 && read.ignored)
			json_array_extend(ignored, read.ignored);
	}
	return ignored;
}

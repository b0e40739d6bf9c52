// SPDX-License-Identifier: Apache-2.0
/* The list, and a walk over configurations that finds each type a plugin would run. */
#include "nodeagent/cni/plan/plugin_types.h"

#include <assert.h>
#include <fnmatch.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/network_config.h"
#include "reconcilers/core/cni_rules.h"

/*
 * Those that networks in clusters are made of. A name that no file of the node has runs nothing, so
 * that one more here costs nothing; what an administrator would not expect to be run as root with
 * any configuration stays away: plugins that call all plugins of a pod (cni_rules_type_is_meta()),
 * and those that are for tests.
 */
static const char *const listed[] = {
	/* containernetworking/plugins */
	"bandwidth",
	"bridge",
	"dhcp",
	"dummy",
	"firewall",
	"host-device",
	"host-local",
	"ipvlan",
	"loopback",
	"macvlan",
	"portmap",
	"ptp",
	"sbr",
	"static",
	"tap",
	"tuning",
	"vlan",
	"vrf",
	/* k8snetworkplumbingwg, ours among them */
	"accelerated-bridge",
	"bond",
	"ib-sriov",
	"ib-sriov-cni",
	"ipoib",
	"ipoib-cni",
	"nv-ipam",
	"ovs",
	"ovs-cni",
	"ovs-mirror-consumer",
	"ovs-mirror-producer",
	"rdma",
	"rdma-cni",
	"route-override",
	"sriov",
	"sriov-cni",
	"userspace",
	"whereabouts",
	/* Spiderpool */
	"coordinator",
	"ifacer",
	"spiderpool",
	"veth",
	/* networks of clusters, and of clouds */
	"antrea",
	"aws-cni",
	"azure-cns",
	"azure-ipam",
	"azure-vnet",
	"azure-vnet-ipam",
	"calico",
	"calico-ipam",
	"cilium-cni",
	"contrail-k8s-cni",
	"egress-cni",
	"egress-v4-cni",
	"egress-v6-cni",
	"flannel",
	"galaxy-k8s-vlan",
	"galaxy-sdn",
	"hybridnet",
	"istio-cni",
	"kube-ovn",
	"kuryr-cni",
	"linkerd-cni",
	"multi-nic",
	"multi-nic-ipam",
	"netop-cni",
	"nsx",
	"openshift-sdn",
	"opflex-agent-cni",
	"ovn-k8s-cni-overlay",
	"terway",
	"tke-bridge",
	"tke-eni-ipamc",
	"tke-route-eni",
	"vpc-branch-eni",
	"weave-ipam",
	"weave-net",
	/* others that users put beside them */
	"afxdp",
	"cnv-bridge",
	"cnv-tuning",
	"infoblox",
	"kubevirt-passt-binding",
	"macvtap",
	"network-passt-binding",
	"passt-binding",
};

static bool matches_pattern(const char *type, const char *more)
{
	auto_free char *list = str_dup(more);
	char *rest = list, *pattern;

	while ((pattern = strsep(&rest, ",")))
		if (fnmatch(str_trim(pattern), type, FNM_NOESCAPE) == 0)
			return true;
	return false;
}

bool plugin_type_is_listed(const char *type, const char *more)
{
	for (size_t i = 0; i < ARRAY_LEN(listed); i++)
		if (str_eq(listed[i], type))
			return true;
	return more && matches_pattern(type, more);
}

int plugin_types_check_list(const char *more, struct err *err)
{
	auto_free char *list = str_dup(more ? more : "*");
	char *rest = list, *name;

	while ((name = strsep(&rest, ","))) {
		name = str_trim(name);
		if (!*name || strchr(name, '/'))
			return err_set(err, ERR_INVALID, "BadFlag",
				       "--cni-plugin-types \"%s\": must be names of CNI plugins "
				       "with commas, without '/', which may have *, ? and [a-z]",
				       more);
	}
	return 0;
}

/* ---- configurations -------------------------------------------------------------------------- */

static bool leads_to_plugins(const char *key)
{
	static const char *const keys[] = {"ipam", "delegate", "delegates", "plugin", "plugins"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (network_key_is(key, keys[i]))
			return true;
	return false;
}

/* False ends the walk. */
typedef bool type_fn(void *arg, const char *type);

/* Recursive: JSON of a bounded depth. False: fn ended it. */
static bool each_type(const json_t *config, type_fn *fn, void *arg)
{
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach ((json_t *)config, i, value)
		if (!each_type(value, fn, arg))
			return false;
	if (!json_is_object(config))
		return true;
	json_each (config, key, value) {
		if (network_key_is(key, "type") && json_is_string(value) &&
		    *json_string_value(value) && !fn(arg, json_string_value(value)))
			return false;
		if (leads_to_plugins(key) && !each_type(value, fn, arg))
			return false;
	}
	return true;
}

struct search {
	const struct plugin_types *types;
	const char *type; /* looked for, or found; NULL */
};

static bool is_another(void *arg, const char *type)
{
	const struct search *search = arg;

	return !str_eq(type, search->type);
}

/* What a meta plugin would do there is not its configurations' to allow. */
static bool is_allowed(void *arg, const char *type)
{
	struct search *search = arg, own = {.type = type};

	if (!cni_rules_type_is_meta(type) && (plugin_type_is_listed(type, search->types->more) ||
					      !each_type(search->types->own, is_another, &own)))
		return true;
	search->type = type;
	return false;
}

static int refuse_type(const json_t *delegate, const char *type, struct err *err)
{
	const char *name = json_str_or(json_at(delegate, "name"), "?");
	const char *interface = json_str_or(json_at(delegate, "interface"), "?");

	if (cni_rules_type_is_meta(type))
		return err_set(
			err, ERR_INVALID, "PluginNotAllowed",
			"network %.128s (%.16s): its plugin calls \"%.64s\", which would set "
			"up all networks of the pod again: name another plugin there",
			name, interface, type);
	return err_set(
		err, ERR_INVALID, "PluginNotAllowed",
		"network %.128s (%.16s): CNI plugin \"%.64s\" is not among those that may run "
		"on this node; if it should, add it to the agent's --cni-plugin-types (the "
		"chart's cniPluginTypes)",
		name, interface, type);
}

int plugin_types_check(const json_t *delegates, const struct plugin_types *types, struct err *err)
{
	struct search search = {.types = types};
	const json_t *delegate;
	size_t i;

	assert(types);
	json_array_foreach ((json_t *)delegates, i, delegate)
		if (!each_type(json_at(delegate, "config"), is_allowed, &search))
			return refuse_type(delegate, search.type, err);
	return 0;
}

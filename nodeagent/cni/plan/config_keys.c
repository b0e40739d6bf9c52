/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which keys our plugins have, and of which type. Configurations pass through here between the CNI
 * call and the functions that read single settings, which then find each key in one spelling and
 * need not look for values of other types.
 */
#include "nodeagent/cni/plan/config_keys.h"

#include <strings.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/cni_rules.h"

enum value_type {
	VALUE_TEXT,
	VALUE_NUMBER,
	VALUE_SWITCH, /* true or false */
	VALUE_OBJECT,
	VALUE_OTHER, /* checked by its reader */
};

struct key {
	const char *name;
	enum value_type type;
};

static const struct key common_keys[] = {
	{"cniVersion", VALUE_OTHER},     {"name", VALUE_OTHER},
	{"type", VALUE_OTHER},           {"capabilities", VALUE_OBJECT},
	{"ipam", VALUE_OBJECT},          {"dns", VALUE_OTHER},
	{"runtimeConfig", VALUE_OBJECT}, {"args", VALUE_OBJECT},
	{"prevResult", VALUE_OTHER},     {NULL, VALUE_OTHER},
};

static const struct key sriov_keys[] = {
	{"deviceID", VALUE_TEXT},     {"vlan", VALUE_OTHER},      {"vlanQoS", VALUE_OTHER},
	{"vlanProto", VALUE_TEXT},    {"mac", VALUE_TEXT},        {"spoofchk", VALUE_TEXT},
	{"trust", VALUE_TEXT},        {"link_state", VALUE_TEXT}, {"min_tx_rate", VALUE_OTHER},
	{"max_tx_rate", VALUE_OTHER}, {"logLevel", VALUE_TEXT},   {"logFile", VALUE_TEXT},
	{NULL, VALUE_OTHER},
};

static const struct key ib_sriov_keys[] = {
	{"deviceID", VALUE_TEXT},
	{"pkey", VALUE_OTHER},
	{"link_state", VALUE_TEXT},
	{"rdmaIsolation", VALUE_SWITCH},
	{"ibKubernetesEnabled", VALUE_SWITCH},
	{"logLevel", VALUE_TEXT},
	{"logFile", VALUE_TEXT},
	{NULL, VALUE_OTHER},
};

static const struct key ipoib_keys[] = {
	{"master", VALUE_TEXT},
	{"mtu", VALUE_NUMBER},
	{NULL, VALUE_OTHER},
};

static const struct key macvlan_keys[] = {
	{"master", VALUE_TEXT}, {"mode", VALUE_TEXT},         {"mtu", VALUE_NUMBER},
	{"mac", VALUE_TEXT},    {"bcqueuelen", VALUE_NUMBER}, {"linkInContainer", VALUE_SWITCH},
	{NULL, VALUE_OTHER},
};

static const struct key ipvlan_keys[] = {
	{"master", VALUE_TEXT}, {"mode", VALUE_TEXT},
	{"mtu", VALUE_NUMBER},  {"linkInContainer", VALUE_SWITCH},
	{NULL, VALUE_OTHER},
};

static const struct key vlan_keys[] = {
	{"master", VALUE_TEXT}, {"vlanId", VALUE_NUMBER},
	{"mtu", VALUE_NUMBER},  {"linkInContainer", VALUE_SWITCH},
	{NULL, VALUE_OTHER},
};

/* Of "ipam", and of what is in its lists. */
static const struct key static_ipam_keys[] = {
	{"addresses", VALUE_OTHER},
	{"routes", VALUE_OTHER},
	{NULL, VALUE_OTHER},
};

static const struct key static_address_keys[] = {
	{"address", VALUE_TEXT},
	{"gateway", VALUE_TEXT},
	{NULL, VALUE_OTHER},
};

static const struct key host_local_ipam_keys[] = {
	{"dataDir", VALUE_TEXT},  {"resolvConf", VALUE_TEXT}, {"ranges", VALUE_OTHER},
	{"routes", VALUE_OTHER},  {"subnet", VALUE_TEXT},     {"rangeStart", VALUE_TEXT},
	{"rangeEnd", VALUE_TEXT}, {"gateway", VALUE_TEXT},    {NULL, VALUE_OTHER},
};

static const struct key host_local_range_keys[] = {
	{"subnet", VALUE_TEXT},  {"rangeStart", VALUE_TEXT}, {"rangeEnd", VALUE_TEXT},
	{"gateway", VALUE_TEXT}, {NULL, VALUE_OTHER},
};

static const struct key rdma_keys[] = {
	{"deviceID", VALUE_TEXT},
	{NULL, VALUE_OTHER},
};

/* Types are checked by coordinator_config.c, which lays the cluster's settings below. */
static const struct key coordinator_keys[] = {
	{"mode", VALUE_OTHER},
	{"tunePodRoutes", VALUE_OTHER},
	{"detectIPConflict", VALUE_OTHER},
	{"detectGateway", VALUE_OTHER},
	{"detectOptions", VALUE_OTHER},
	{"podDefaultCniNic", VALUE_OTHER},
	{"podDefaultRouteNic", VALUE_OTHER},
	{"podMACPrefix", VALUE_OTHER},
	{"vethLinkAddress", VALUE_OTHER},
	{"vethMTU", VALUE_OTHER},
	{"hostRuleTable", VALUE_OTHER},
	{"podRPFilter", VALUE_OTHER},
	{"txQueueLen", VALUE_OTHER},
	{"policyRoutes", VALUE_OTHER},
	{"overlayPodCIDR", VALUE_OTHER},
	{"serviceCIDR", VALUE_OTHER},
	{"hijackCIDR", VALUE_OTHER},
	{"logOptions", VALUE_OTHER},
	{NULL, VALUE_OTHER},
};

static const struct {
	const char *type;
	const struct key *keys;
} plugins[] = {
	{"sriov", sriov_keys},
	{"ib-sriov", ib_sriov_keys},
	{"ipoib", ipoib_keys},
	{"rdma", rdma_keys},
	{"coordinator", coordinator_keys},
	{"macvlan", macvlan_keys},
	{"ipvlan", ipvlan_keys},
	{"vlan", vlan_keys},
	{"static.ipam", static_ipam_keys},
	{"static.address", static_address_keys},
	{"host-local.ipam", host_local_ipam_keys},
	{"host-local.range", host_local_range_keys},
};

static const struct key *find(const struct key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (strcasecmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

static const struct key *key_of(const char *type, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
		if (str_eq(plugins[i].type, type)) {
			const struct key *key = find(plugins[i].keys, name);

			if (key)
				return key;
		}
	return find(common_keys, name);
}

/* "ipam" with the one key that all plugins read of it; the others are for the plugin it names. */
static json_t *fold_ipam(const json_t *ipam)
{
	json_t *folded = json_object(), *value;
	const char *name;

	json_each (ipam, name, value)
		json_put(folded, strcasecmp(name, "type") == 0 ? "type" : name, json_incref(value));
	return folded;
}

json_t *config_keys_fold(const json_t *config, const char *type)
{
	json_t *folded, *value;
	const char *name;

	if (!json_is_object(config))
		return json_incref((json_t *)config);
	folded = json_object();
	json_each (config, name, value) {
		const struct key *key = key_of(type, name);

		if (key && json_is_null(value))
			continue;
		if (key && str_eq(key->name, "ipam") && json_is_object(value))
			json_put(folded, "ipam", fold_ipam(value));
		else
			json_put(folded, key ? key->name : name, json_incref(value));
	}
	return folded;
}

static bool is_of_type(const json_t *value, enum value_type type)
{
	switch (type) {
	case VALUE_TEXT:
		return json_is_string(value);
	case VALUE_NUMBER:
		return json_is_number(value);
	case VALUE_SWITCH:
		return json_is_boolean(value);
	case VALUE_OBJECT:
		return json_is_object(value);
	case VALUE_OTHER:
		return true;
	}
	return false;
}

int config_keys_read(const json_t *config, const char *type, json_t **ret, struct err *err)
{
	static const char *const words[] = {
		[VALUE_TEXT] = "a string, in quotes",
		[VALUE_NUMBER] = "a number",
		[VALUE_SWITCH] = "true or false",
		[VALUE_OBJECT] = "an object",
		[VALUE_OTHER] = "",
	};
	json_auto_t *folded = config_keys_fold(config, type);
	const char *name;
	json_t *value;

	json_each (folded, name, value) {
		const struct key *key = key_of(type, name);
		auto_free char *text = NULL;

		if (!key || is_of_type(value, key->type))
			continue;
		text = json_text(value);
		return err_set(err, ERR_INVALID, "BadField", "%s: %s is %.64s, it must be %s", type,
			       name, text, words[key->type]);
	}
	if (cni_rules_ipam(type, folded, NULL, err) < 0)
		return -1;
	*ret = take_ptr(folded);
	return 0;
}

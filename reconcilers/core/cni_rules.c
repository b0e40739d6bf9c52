/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of our CNI plugins that hold on every node. The reconcilers of networks ask them about what
 * they render; the plugins ask them again about what they are called with.
 */
#include "reconcilers/core/cni_rules.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define RATE_MAX 10000000 /* Mbit/s */

/* One configuration: its plugin's type, and where the key of a wrong value goes. */
struct reading {
	const char *type;
	const json_t *config;
	const char **ret_key;
	struct err *err;
};

static int bad(const struct reading *r, const char *key, const char *must)
{
	if (r->ret_key)
		*r->ret_key = key;
	return err_set(r->err, ERR_INVALID, "BadField", "%s: %s must be %s", r->type, key, must);
}

/* 1: there is one; 0: absent; -1 with err. Whole, also as 1.0. */
static int get_number(const struct reading *r, const char *key, int64_t max, int64_t *ret)
{
	const json_t *value = json_at(r->config, key);
	double real = json_number_value(value);
	auto_free char *must = NULL;

	if (!value)
		return 0;
	if (!json_is_number(value) || real != floor(real) || real < 0 || real > (double)max) {
		must = str_printf("a whole number from 0 to %lld", (long long)max);
		return bad(r, key, must);
	}
	*ret = (int64_t)real;
	return 1;
}

static int read_vlan(const struct reading *r, json_t *wanted)
{
	int64_t vlan = 0, qos = 0, proto = CNI_PROTO_8021Q;
	int has_vlan = get_number(r, "vlan", 4094, &vlan);
	int has_qos = has_vlan < 0 ? -1 : get_number(r, "vlanQoS", 7, &qos);
	const char *name = json_str_at(r->config, "vlanProto");

	if (has_vlan < 0 || has_qos < 0)
		return -1;
	if (!str_empty(name) && strcasecmp(name, "802.1q") != 0) {
		if (strcasecmp(name, "802.1ad") != 0)
			return bad(r, "vlanProto", "802.1q or 802.1ad");
		proto = CNI_PROTO_8021AD;
	}
	if (!has_vlan && (has_qos || !str_empty(name)))
		return bad(r, "vlan", "there when vlanQoS or vlanProto is");
	if (!vlan && (qos || proto == CNI_PROTO_8021AD))
		return bad(r, "vlan", "from 1 to 4094 with this vlanQoS or vlanProto");
	if (!has_vlan)
		return 0;
	json_put_int(wanted, "vlan", vlan);
	json_put_int(wanted, "qos", qos);
	json_put_int(wanted, "proto", proto);
	return 0;
}

static int read_rates(const struct reading *r, json_t *wanted)
{
	int64_t min = 0, max = 0;
	int has_min = get_number(r, "min_tx_rate", RATE_MAX, &min);
	int has_max = has_min < 0 ? -1 : get_number(r, "max_tx_rate", RATE_MAX, &max);

	if (has_min < 0 || has_max < 0)
		return -1;
	if (max && min > max)
		return bad(r, "min_tx_rate", "at most max_tx_rate");
	if (has_min || has_max) {
		json_put_int(wanted, "minRate", min);
		json_put_int(wanted, "maxRate", max);
	}
	return 0;
}

/* Only "on" is on; every other text is off. */
static void read_switch(const struct reading *r, const char *key, json_t *wanted)
{
	const char *text = json_str_at(r->config, key);

	if (!str_empty(text))
		json_put_bool(wanted, key, str_eq(text, "on"));
}

int cni_rules_vf_settings(const char *type, const json_t *config, json_t *wanted,
			  const char **ret_key, struct err *err)
{
	struct reading r = {type, config, ret_key, err};
	static const char *const names[] = {"auto", "enable", "disable"};
	const char *text;

	assert(type && json_is_object(wanted));
	if (str_eq(type, "sriov")) {
		if (read_vlan(&r, wanted) || read_rates(&r, wanted))
			return -1;
		read_switch(&r, "spoofchk", wanted);
		read_switch(&r, "trust", wanted);
	}

	text = json_str_at(r.config, "link_state");
	if (str_empty(text))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(text, names[i])) {
			json_put_int(wanted, "linkState", (int64_t)i);
			return 0;
		}
	return bad(&r, "link_state", "auto, enable or disable");
}

int cni_rules_no_dhcp(const char *type, const json_t *config, const char **ret_key, struct err *err)
{
	struct reading r = {type, config, ret_key, err};

	if (str_eq(json_str_at(config, "ipam", "type"), "dhcp"))
		return bad(&r, "ipam.type", "another than dhcp, which needs Ethernet");
	return 0;
}

/* A runtime looks for a file of this name, so it must not lead anywhere else. */
static bool is_file_name(const char *type)
{
	return !strchr(type, '/') && !str_eq(type, ".") && !str_eq(type, "..");
}

int cni_rules_ipam(const char *type, const json_t *config, const char **ret_key, struct err *err)
{
	struct reading r = {type, config, ret_key, err};
	const char *key;
	json_t *value;

	json_each (json_at(config, "ipam"), key, value)
		if (strcasecmp(key, "type") == 0 && !json_is_null(value) &&
		    (!json_is_string(value) || !is_file_name(json_string_value(value))))
			return bad(&r, "ipam.type", "the name of an IPAM plugin, in quotes");
	return 0;
}

int cni_rules_check(const json_t *plugin, const char **ret_key, struct err *err)
{
	const char *type = json_str_at(plugin, "type");
	bool is_ib = str_eq(type, "ib-sriov"), is_ipoib = str_eq(type, "ipoib");
	bool is_vf = is_ib || str_eq(type, "sriov");
	json_auto_t *wanted = json_object();

	if ((is_vf || is_ipoib) && cni_rules_ipam(type, plugin, ret_key, err) < 0)
		return -1;
	if ((is_ib || is_ipoib) && cni_rules_no_dhcp(type, plugin, ret_key, err) < 0)
		return -1;
	return is_vf ? cni_rules_vf_settings(type, plugin, wanted, ret_key, err) : 0;
}

json_t *cni_rules_spiderpool(const json_t *ipam)
{
	static const char *const keys[] = {"default_ipv4_ippool", "default_ipv6_ippool",
					   "clean_gateway", "match_master_subnet"};
	json_t *said = json_object(), *value;
	const char *key;

	json_each (ipam, key, value)
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			if (strcasecmp(key, keys[i]) == 0 && !json_is_null(value))
				json_put(said, keys[i], json_incref(value));
	return said;
}

bool cni_rules_type_is_meta(const char *type)
{
	static const char *const metas[] = {"orbweaver", "multus", "multus-shim"};

	for (size_t i = 0; i < ARRAY_LEN(metas); i++)
		if (str_eq(type, metas[i]))
			return true;
	return false;
}

static int refuse_network(struct err *err, const char *text)
{
	return err_set(err, ERR_INVALID, "BadNetworkConfig", "%s", text);
}

static int check_plugin(const json_t *plugin, size_t position, struct err *err)
{
	const char *type = json_str_or(json_at(plugin, "type"), "");
	auto_free char *text = NULL;

	if (!json_is_object(plugin) || !*type)
		text = str_printf("plugin %zu has no type; name the plugin there", position);
	else if (!is_file_name(type))
		text = str_printf("type \"%.64s\" must be the name of a file in the folder of CNI "
				  "plugins, without '/'",
				  type);
	else if (cni_rules_type_is_meta(type))
		text = str_printf("it is of type %s, which would set up all networks of the pod "
				  "again: name the network's own plugin",
				  type);
	return text ? refuse_network(err, text) : 0;
}

int cni_rules_network(const json_t *config, struct err *err)
{
	static const char *const words[] = {"cniVersion", "name"};
	const json_t *plugins = json_at(config, "plugins");
	json_t *plugin;
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		const json_t *value = json_at(config, words[i]);

		if (value && !json_is_null(value) && !json_is_string(value))
			return err_set(err, ERR_INVALID, "BadNetworkConfig",
				       "%s is %s, must be a string", words[i],
				       json_type_words(value));
	}
	if (!plugins)
		return check_plugin(config, 1, err);
	if (!json_is_array(plugins) || json_array_size(plugins) == 0)
		return refuse_network(err, "it has no plugin: write at least one into plugins");
	if (json_array_size(plugins) > CNI_PLUGINS_MAX)
		return err_set(err, ERR_INVALID, "BadNetworkConfig", "it has more than %d plugins",
			       CNI_PLUGINS_MAX);
	json_array_foreach (plugins, i, plugin)
		if (check_plugin(plugin, i + 1, err) < 0)
			return -1;
	return 0;
}

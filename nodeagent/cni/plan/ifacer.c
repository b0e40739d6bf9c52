// SPDX-License-Identifier: Apache-2.0
/*
 * A bond and a VLAN of the node: read what is asked for, list what is missing. Each pod of the
 * network asks again, so that what a call that was killed has left is completed by the next one.
 * nodeagent/cni/execute/ifacer_run.c looks and acts.
 */
#include "nodeagent/cni/plan/ifacer.h"

#include <assert.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"

#define DEFAULT_BOND "sp_bond0"
#define MODE_MAX     6
#define MODE_NUMBER  1 /* IFLA_BOND_MODE */

/* IFLA_BOND_… (linux/if_link.h), of numbers. */
static const struct {
	const char *name;
	int number, bits;
} options[] = {
	{"miimon", 3, 32},
	{"updelay", 4, 32},
	{"up_delay", 4, 32},
	{"downdelay", 5, 32},
	{"use_carrier", 6, 8},
	{"arp_interval", 7, 32},
	{"arp_validate", 9, 32},
	{"arp_all_targets", 10, 32},
	{"primary_reselect", 12, 8},
	{"fail_over_mac", 13, 8},
	{"xmit_hash_policy", 14, 8},
	{"resend_igmp", 15, 32},
	{"peer_notif_delay", 16, 8},
	{"all_slaves_active", 17, 8},
	{"min_links", 18, 32},
	{"lp_interval", 19, 32},
	{"packets_per_slave", 20, 32},
	{"lacp_rate", 21, 8},
	{"ad_select", 22, 8},
	{"ad_actor_sys_prio", 24, 16},
	{"ad_user_port_key", 25, 16},
	{"tlb_dynamic_lb", 27, 8},
};

void ifacer_config_done(struct ifacer_config *config)
{
	json_decref(config->folded);
	json_decref(config->options);
	*config = (struct ifacer_config){0};
}

/* ---- configuration --------------------------------------------------------------------------- */

#define bad_field(err, ...) err_set(err, ERR_INVALID, "BadField", __VA_ARGS__)

static void add_option(json_t *list, int number, int bits, int64_t value)
{
	json_array_append_new(
		list, json_pack("{s:i, s:i, s:I}", "number", number, "bits", bits, "value", value));
}

/* "miimon=100;lacp_rate=1". */
static int read_options(const char *text, json_t *list, struct err *err)
{
	auto_free char *copy = str_dup(text ? text : "");
	char *rest = copy, *item;

	while ((item = strsep(&rest, ";"))) {
		char *name = str_trim(strsep(&item, "="));
		int64_t value;
		size_t i;

		if (!*name)
			continue;
		for (i = 0; i < ARRAY_LEN(options) && !str_eq(options[i].name, name); i++)
			;
		if (i == ARRAY_LEN(options))
			return bad_field(err,
					 "ifacer: bond.options has \"%.32s\", which is not known; "
					 "remove it, or make the bond on the node",
					 name);
		if (!item || !str_to_int(str_trim(item), 0, (1LL << options[i].bits) - 1, &value))
			return bad_field(err,
					 "ifacer: bond.options: %.32s must be a number, as in "
					 "\"miimon=100;lacp_rate=1\"",
					 name);
		add_option(list, options[i].number, options[i].bits, value);
	}
	return 0;
}

static int read_bond(struct ifacer_config *ret, struct err *err)
{
	const json_t *bond = json_at(ret->folded, "bond");
	json_auto_t *folded = NULL;
	int64_t mode = 0;

	if (json_array_size(ret->interfaces) < 2 || !bond)
		return 0;
	if (config_keys_read(bond, "ifacer.bond", &folded, err) ||
	    config_keys_number(folded, "ifacer: bond", "mode", MODE_MAX, &mode, err))
		return -1;
	ret->options = json_array();
	add_option(ret->options, MODE_NUMBER, 8, mode);
	ret->bond = json_str_at(folded, "name");
	if (str_empty(ret->bond))
		ret->bond = DEFAULT_BOND;
	return read_options(json_str_at(folded, "options"), ret->options, err);
}

/* The interface that a VLAN is upon. */
static const char *base_of(const struct ifacer_config *config)
{
	return config->bond ? config->bond
			    : json_string_value(json_array_get(config->interfaces, 0));
}

static char *vlan_name(const struct ifacer_config *config)
{
	return str_printf("%s.%lld", base_of(config), (long long)config->vlan);
}

static int check_names(const struct ifacer_config *config, struct err *err)
{
	auto_free char *vlan = NULL;
	size_t n = json_array_size(config->interfaces), i;
	json_t *name;

	if (n == 0 || n > IFACER_PORTS_MAX)
		return bad_field(err, "ifacer: interfaces must be a list of 1 to %d names",
				 IFACER_PORTS_MAX);
	json_array_foreach (config->interfaces, i, name)
		if (!json_is_string(name) || !config_keys_is_ifname(json_string_value(name)))
			return bad_field(
				err, "ifacer: interfaces[%zu] must be the name of an interface", i);
	if (config->bond && !config_keys_is_ifname(config->bond))
		return bad_field(err,
				 "ifacer: bond.name \"%.64s\" must be the name of an interface",
				 config->bond);
	vlan = vlan_name(config);
	if (config->vlan && !config_keys_is_ifname(vlan))
		return bad_field(err,
				 "ifacer: vlanID is for an interface %.64s, whose name is too long",
				 vlan);
	return 0;
}

int ifacer_config_read(const json_t *config, struct ifacer_config *ret, struct err *err)
{
	auto_ifacer_config struct ifacer_config read = {0};

	if (config_keys_read(config, "ifacer", &read.folded, err))
		return -1;
	read.interfaces = json_at(read.folded, "interfaces");
	if (config_keys_number(read.folded, "ifacer", "vlanID", CONFIG_VLAN_MAX, &read.vlan, err) ||
	    read_bond(&read, err) || check_names(&read, err))
		return -1;
	/* Of several without a bond nothing is made, as upstream has it. */
	if (json_array_size(read.interfaces) > 1 && !read.bond)
		read.vlan = 0;
	*ret = read;
	read = (struct ifacer_config){0};
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

static void add_up(const json_t *link, json_t *steps)
{
	if (!(look_number(link, "flags") & LOOK_UP))
		json_put_bool(steps_add_shared(steps, "link", json_str_at(link, "name")), "up",
			      true);
}

/* One port: down, into the bond, which sets it up. */
static int plan_port(const json_t *port, const json_t *bond, const json_t *host, json_t *steps,
		     struct err *err)
{
	const char *name = json_str_at(port, "name");

	if (bond && look_number(port, "master") == look_number(bond, "index")) {
		add_up(port, steps);
		return 0;
	}
	if (host_device_check("ifacer", port, host, err))
		return -1;
	if (!bond)
		return 0;
	json_put_bool(steps_add_shared(steps, "link", name), "up", false);
	json_put_int(steps_add_shared(steps, "link", name), "master", look_number(bond, "index"));
	return 0;
}

static int plan_bond(const struct ifacer_config *config, const json_t *host, json_t *steps,
		     struct err *err)
{
	const json_t *bond = look_link(host, config->bond);
	json_t *name, *step;
	size_t i;

	if (bond && !str_eq(json_str_at(bond, "kind"), "bond"))
		return bad_field(err,
				 "ifacer: bond.name \"%s\" is an interface of the node that is not "
				 "a bond; name another",
				 config->bond);
	json_array_foreach (config->interfaces, i, name) {
		const json_t *port = look_link(host, json_string_value(name));

		if (!port)
			return bad_field(err, "ifacer: interfaces has %s, which the node lacks",
					 json_string_value(name));
		if (plan_port(port, bond, host, steps, err))
			return -1;
	}
	if (bond) {
		add_up(bond, steps);
		return 0;
	}
	step = steps_add_shared(steps, "bond", config->bond);
	json_put(step, "options", json_incref(config->options));
	return 0;
}

static int plan_vlan(const struct ifacer_config *config, const json_t *host, json_t *steps,
		     struct err *err)
{
	auto_free char *name = vlan_name(config);
	const json_t *base = look_link(host, base_of(config)), *vlan = look_link(host, name);
	json_t *step;

	/* Of a bond that is made first. */
	if (!base && config->bond)
		return 0;
	if (!base)
		return bad_field(err, "ifacer: interfaces has %s, which the node lacks",
				 base_of(config));
	if (vlan && (!str_eq(json_str_at(vlan, "kind"), "vlan") ||
		     look_number(vlan, "vlan") != config->vlan ||
		     look_number(vlan, "lower") != look_number(base, "index")))
		return bad_field(err,
				 "ifacer: %s is an interface of the node that is not VLAN %lld of "
				 "%s; rename it",
				 name, (long long)config->vlan, base_of(config));
	if (!config->bond)
		add_up(base, steps);
	if (vlan) {
		add_up(vlan, steps);
		return 0;
	}
	step = steps_add_shared(steps, "upper", name);
	json_put_str(step, "kind", "vlan");
	json_put_int(step, "lower", look_number(base, "index"));
	json_put_int(step, "vlan", config->vlan);
	json_put_bool(steps_add_shared(steps, "link", name), "up", true);
	return 0;
}

int ifacer_plan(const struct ifacer_config *config, const json_t *host, json_t *steps,
		struct err *err)
{
	json_auto_t *planned = json_array();

	assert(json_array_size(config->interfaces) > 0);
	if ((config->bond && plan_bond(config, host, planned, err)) ||
	    (config->vlan && plan_vlan(config, host, planned, err)))
		return -1;
	json_array_extend(steps, planned);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A bond and a VLAN of the node: read what is asked for, list what is missing. Each pod of the
 * network asks again, so that what a call that was killed has left is completed by the next one.
 * nodeagent/cni/execute/ifacer_run.c looks and acts.
 */
#include "nodeagent/cni/plan/ifacer.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/bond_options.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"

#define DEFAULT_BOND "sp_bond0"
#define MODE_MAX     6
#define MODE_NUMBER  1 /* IFLA_BOND_MODE */

void ifacer_config_done(struct ifacer_config *config)
{
	json_decref(config->folded);
	json_decref(config->options);
	json_decref(config->ignored);
	*config = (struct ifacer_config){0};
}

/* ---- configuration --------------------------------------------------------------------------- */

#define bad_field(err, ...) err_set(err, ERR_INVALID, "BadField", __VA_ARGS__)

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
	ret->ignored = json_array();
	ret->options =
		json_pack("[{s:i, s:i, s:I}]", "number", MODE_NUMBER, "bits", 8, "value", mode);
	ret->bond = json_str_at(folded, "name");
	if (str_empty(ret->bond))
		ret->bond = DEFAULT_BOND;
	return bond_options_read(json_str_at(folded, "options"), mode, ret->options, ret->ignored,
				 err);
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

/* The kernel keeps the name of the primary, and knows the port by it when it comes. */
static int plan_new_bond(const struct ifacer_config *config, const json_t *host, json_t *steps,
			 struct err *err)
{
	json_auto_t *options = json_deep_copy(config->options);
	json_t *option;
	size_t i;

	json_array_foreach (options, i, option) {
		const char *device = json_str_at(option, "device");
		const json_t *link = device ? look_link(host, device) : NULL;

		if (!device)
			continue;
		if (!link)
			return bad_field(err, "ifacer: bond.options has %s, which the node lacks",
					 device);
		json_put_int(option, "bits", 32);
		json_put_int(option, "value", look_number(link, "index"));
		(void)json_object_del(option, "device");
	}
	json_put(steps_add_shared(steps, "bond", config->bond), "options", json_incref(options));
	return 0;
}

static int plan_bond(const struct ifacer_config *config, const json_t *host, json_t *steps,
		     struct err *err)
{
	const json_t *bond = look_link(host, config->bond);
	json_t *name;
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
	return plan_new_bond(config, host, steps, err);
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

void ifacer_plan_back(const struct ifacer_config *config, const json_t *before, const json_t *now,
		      json_t *steps)
{
	json_t *name;
	size_t i;

	json_array_foreach (config->interfaces, i, name) {
		const json_t *was = look_link(before, json_string_value(name));
		const json_t *is = look_link_by_index(now, look_number(was, "index"));

		if (was && is && (look_number(was, "flags") & LOOK_UP) &&
		    !look_number(is, "master")) {
			add_up(is, steps);
			steps_number(steps, "host", is);
		}
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * An interface upon another one, or by itself: read what is asked for, list the steps, compare what
 * is there. nodeagent/cni/execute/upper_run.c looks and acts.
 */
#include "nodeagent/cni/plan/upper.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"

#define TABLE_MAIN  254 /* linux/rtnetlink.h */
#define RTN_UNICAST 1

/* Numbers are the kernel's (linux/if_link.h). The first of each kind is the default. */
static const struct {
	const char *type, *word;
	int64_t mode;
} modes[] = {
	{"macvlan", "bridge", 4},   {"macvlan", "private", 1}, {"macvlan", "vepa", 2},
	{"macvlan", "passthru", 8}, {"ipvlan", "l2", 0},       {"ipvlan", "l3", 1},
	{"ipvlan", "l3s", 2},
};

void upper_config_done(struct upper_config *config)
{
	json_decref(config->folded);
	*config = (struct upper_config){0};
}

/* ---- configuration --------------------------------------------------------------------------- */

static int read_mode(const json_t *config, struct upper_config *ret, struct err *err)
{
	const char *word = json_str_at(config, "mode");
	auto_strbuf struct strbuf must = {0};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		if (!str_eq(modes[i].type, ret->type))
			continue;
		if (str_empty(word) || str_eq(word, modes[i].word)) {
			ret->mode = modes[i].mode;
			return 0;
		}
		strbuf_addf(&must, "%s%s", must.len ? ", " : "", modes[i].word);
	}
	/* vlan and dummy have no modes. */
	return must.len ? err_set(err, ERR_INVALID, "BadField",
				  "%s: mode \"%.32s\" must be one of %s", ret->type, word,
				  strbuf_str(&must))
			: 0;
}

/*
 * ipvlan can go behind a plugin that has addresses, or an interface, for it: both are taken from
 * that where the configuration names none.
 */
static int read_previous(const json_t *previous, struct upper_config *ret, struct err *err)
{
	const json_t *interfaces = json_at(previous, "interfaces");
	const char *name = json_str_at(json_array_get(interfaces, 0), "name");

	if (!previous || !str_eq(ret->type, "ipvlan"))
		return 0;
	if (!ret->has_ipam && json_array_size(json_at(previous, "ips")) > 0)
		ret->inherited = previous;
	if (ret->master)
		return 0;
	if (json_array_size(interfaces) != 1 || str_empty(name))
		return err_set(err, ERR_INVALID, "BadField",
			       "ipvlan: master must name an interface; the plugin before has %zu, "
			       "of one it would be taken",
			       json_array_size(interfaces));
	ret->master = name;
	return 0;
}

int upper_config_read(const char *type, const json_t *config, const char *args,
		      const json_t *previous, struct upper_config *ret, struct err *err)
{
	auto_upper_config struct upper_config read = {.type = type,
						      .is_alone = str_eq(type, "dummy")};
	json_auto_t *nothing = json_object();

	assert(str_eq(type, "macvlan") || str_eq(type, "ipvlan") || str_eq(type, "vlan") ||
	       read.is_alone);
	if (config_keys_read(config, type, &read.folded, err) < 0)
		return -1;
	/* Keys of the others mean nothing to one that has no master. */
	config = read.is_alone ? nothing : read.folded;
	if (!str_empty(json_str_at(config, "master")))
		read.master = json_str_at(config, "master");
	read.is_in_pod = read.is_alone || json_is_true(json_at(config, "linkInContainer"));
	read.has_ipam = !str_empty(json_str_at(read.folded, "ipam", "type"));
	if (read_mode(config, &read, err) ||
	    config_keys_number(config, type, "mtu", INT32_MAX, &read.mtu, err) ||
	    config_keys_number(config, type, "vlanId", CONFIG_VLAN_MAX, &read.vlan, err) ||
	    config_keys_number(config, type, "bcqueuelen", UINT32_MAX, &read.queue, err) ||
	    (str_eq(type, "macvlan") && wanted_mac_read(type, config, args, read.mac, err)) ||
	    read_previous(previous, &read, err))
		return -1;
	if (str_eq(read.type, "vlan") && !read.master)
		return err_set(err, ERR_INVALID, "BadField",
			       "vlan: master is missing: name the interface that the VLAN is on");
	if (!str_eq(read.type, "macvlan") && !read.has_ipam && !read.inherited)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: ipam.type is missing: name an IPAM plugin", read.type);
	*ret = read;
	read = (struct upper_config){0};
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

const char *upper_default_master(const json_t *look)
{
	size_t i;
	json_t *route;

	json_array_foreach (json_at(look, "routes"), i, route) {
		const char *dev = json_str_at(route, "dev");

		if (!str_ends(json_str_or(json_at(route, "dst"), ""), "/0") ||
		    look_number(route, "table") != TABLE_MAIN ||
		    look_number(route, "type") != RTN_UNICAST)
			continue;
		if (!dev)
			dev = json_str_at(json_array_get(json_at(route, "nexthops"), 0), "dev");
		if (dev)
			return dev;
	}
	return NULL;
}

static int check_master(const struct upper_config *config, const json_t *master, struct err *err)
{
	const char *where = config->is_in_pod ? "pod" : "node";

	if (config->is_alone)
		return 0;
	if (!master && !config->master)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: master is missing, and the %s has no default route whose "
			       "interface it could be: name one",
			       config->type, where);
	if (!master)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: master \"%.32s\" must be an interface of the %s, which has "
			       "none of this name",
			       config->type, config->master, where);
	if (config->mtu > look_number(master, "mtu"))
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: mtu is %lld, it must be from 0 to %lld, which %s has",
			       config->type, (long long)config->mtu,
			       (long long)look_number(master, "mtu"), json_str_at(master, "name"));
	return 0;
}

int upper_plan(const struct upper_config *config, const json_t *master, const char *spare,
	       const char *ifname, json_t *steps, struct err *err)
{
	json_t *step;

	assert(config->type && spare[0] && ifname && json_is_array(steps));
	if (check_master(config, master, err))
		return -1;
	step = steps_add(steps, config->is_in_pod ? "pod" : "host", "upper", spare);
	json_put_str(step, "kind", config->type);
	if (!config->is_alone)
		json_put_int(step, "lower", look_number(master, "index"));
	if (!config->is_in_pod)
		json_put_str(step, "to", "pod");
	if (str_eq(config->type, "vlan"))
		json_put_int(step, "vlan", config->vlan);
	else if (!config->is_alone)
		json_put_int(step, "mode", config->mode);
	if (config->mtu)
		json_put_int(step, "mtu", config->mtu);
	if (config->queue)
		json_put_int(step, "queue", config->queue);
	if (config->mac[0])
		json_put_str(step, "mac", config->mac);
	json_put_str(steps_add(steps, "pod", "rename", spare), "as", ifname);
	if (!str_eq(config->type, "vlan") && !config->is_alone &&
	    (config->has_ipam || config->inherited)) {
		static const char *const names[][2] = {{"ipv4", "arp_notify"},
						       {"ipv6", "ndisc_notify"}};

		/* A new address is made known as soon as it is there. */
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			step = steps_add(steps, "pod", "sysctl", NULL);
			json_put(step, "path",
				 json_fmt("net/%s/conf/%s/%s", names[i][0], ifname, names[i][1]));
			json_put_str(step, "value", "1");
			json_put_bool(step, "optional", true);
		}
	}
	return 0;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static const char *word_of_mode(const char *type, int64_t mode)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (str_eq(modes[i].type, type) && modes[i].mode == mode)
			return modes[i].word;
	return "unknown";
}

int upper_check(const struct upper_config *config, const struct interface_facts *facts,
		const json_t *master, struct err *err)
{
	const char *type = config->type, *ifname = facts->ifname;
	const json_t *link;

	if (interface_check(facts, type, &link, err))
		return -1;
	if (config->master && !master)
		return interface_not_as_added(err, "%s: master %.32s is gone", type,
					      config->master);
	if (str_eq(type, "vlan") && look_number(link, "vlan") != config->vlan)
		return interface_not_as_added(err, "vlan: %s has VLAN %lld, the network says %lld",
					      ifname, (long long)look_number(link, "vlan"),
					      (long long)config->vlan);
	if (str_eq(type, "vlan") && config->mtu && look_number(link, "mtu") != config->mtu)
		return interface_not_as_added(err, "vlan: %s has MTU %lld, the network says %lld",
					      ifname, (long long)look_number(link, "mtu"),
					      (long long)config->mtu);
	if (config->is_alone && !(look_number(link, "flags") & LOOK_UP))
		return interface_not_as_added(err, "%s: %s is down", type, ifname);
	if (!str_eq(type, "vlan") && !config->is_alone && look_number(link, "mode") != config->mode)
		return interface_not_as_added(err, "%s: %s has mode %s, the network says %s", type,
					      ifname, word_of_mode(type, look_number(link, "mode")),
					      word_of_mode(type, config->mode));
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * An interface upon another one: read what is asked for, list the steps, compare what is there.
 * nodeagent/cni/execute/upper_run.c looks and acts.
 */
#include "nodeagent/cni/plan/upper.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"

#define VLAN_MAX    4094
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
	/* vlan has no modes. */
	return must.len ? err_set(err, ERR_INVALID, "BadField",
				  "%s: mode \"%.32s\" must be one of %s", ret->type, word,
				  strbuf_str(&must))
			: 0;
}

static int read_number(const json_t *config, const char *type, const char *key, int64_t max,
		       int64_t *ret, struct err *err)
{
	const json_t *value = json_at(config, key);
	double number = json_number_value(value);

	if (number < 0 || number > (double)max || number != floor(number)) {
		auto_free char *text = json_text(value);

		return err_set(err, ERR_INVALID, "BadField",
			       "%s: %s is %.64s, it must be a whole number from 0 to %lld", type,
			       key, text, (long long)max);
	}
	*ret = (int64_t)number;
	return 0;
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
	auto_upper_config struct upper_config read = {.type = type};

	assert(str_eq(type, "macvlan") || str_eq(type, "ipvlan") || str_eq(type, "vlan"));
	if (config_keys_read(config, type, &read.folded, err) < 0)
		return -1;
	config = read.folded;
	if (!str_empty(json_str_at(config, "master")))
		read.master = json_str_at(config, "master");
	read.is_in_pod = json_is_true(json_at(config, "linkInContainer"));
	read.has_ipam = !str_empty(json_str_at(config, "ipam", "type"));
	if (read_mode(config, &read, err) ||
	    read_number(config, type, "mtu", INT32_MAX, &read.mtu, err) ||
	    read_number(config, type, "vlanId", VLAN_MAX, &read.vlan, err) ||
	    read_number(config, type, "bcqueuelen", UINT32_MAX, &read.queue, err) ||
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
	json_put_int(step, "lower", look_number(master, "index"));
	if (!config->is_in_pod)
		json_put_str(step, "to", "pod");
	if (str_eq(config->type, "vlan"))
		json_put_int(step, "vlan", config->vlan);
	else
		json_put_int(step, "mode", config->mode);
	if (config->mtu)
		json_put_int(step, "mtu", config->mtu);
	if (config->queue)
		json_put_int(step, "queue", config->queue);
	if (config->mac[0])
		json_put_str(step, "mac", config->mac);
	json_put_str(steps_add(steps, "pod", "rename", spare), "as", ifname);
	if (!str_eq(config->type, "vlan") && (config->has_ipam || config->inherited)) {
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

/* The position of the interface in the result; -1: it is not in it. */
static int position_of(const struct upper_facts *facts)
{
	size_t i;
	json_t *interface;

	json_array_foreach (json_at(facts->previous, "interfaces"), i, interface)
		if (str_eq(json_str_at(interface, "name"), facts->ifname) &&
		    str_eq(json_str_at(interface, "sandbox"), facts->netns_path))
			return (int)i;
	return -1;
}

#define not_as_added(err, ...) err_set(err, ERR_HOST, "NotAsAdded", __VA_ARGS__)

static int check_link(const struct upper_config *config, const struct upper_facts *facts,
		      const json_t *before, struct err *err)
{
	const json_t *link = look_link(facts->pod, facts->ifname);
	const char *kind = json_str_at(link, "kind"), *mac = json_str_at(before, "mac");

	if (!link)
		return not_as_added(err, "%s: the pod has no interface %s any more", config->type,
				    facts->ifname);
	if (!str_eq(kind, config->type))
		return not_as_added(err, "%s: the pod's interface %s is of kind %s", config->type,
				    facts->ifname, kind ? kind : "none");
	if (str_eq(config->type, "vlan") && look_number(link, "vlan") != config->vlan)
		return not_as_added(err, "vlan: %s has VLAN %lld, the network says %lld",
				    facts->ifname, (long long)look_number(link, "vlan"),
				    (long long)config->vlan);
	if (str_eq(config->type, "vlan") && config->mtu && look_number(link, "mtu") != config->mtu)
		return not_as_added(err, "vlan: %s has MTU %lld, the network says %lld",
				    facts->ifname, (long long)look_number(link, "mtu"),
				    (long long)config->mtu);
	if (!str_eq(config->type, "vlan") && look_number(link, "mode") != config->mode)
		return not_as_added(err, "%s: %s has mode %s, the network says %s", config->type,
				    facts->ifname,
				    word_of_mode(config->type, look_number(link, "mode")),
				    word_of_mode(config->type, config->mode));
	if (!str_empty(mac) && !str_eq(mac, json_str_at(link, "mac")))
		return not_as_added(err, "%s: %s has MAC %s, prevResult says %s", config->type,
				    facts->ifname, json_str_or(json_at(link, "mac"), "none"), mac);
	return 0;
}

static bool has_entry(const json_t *list, const char *const *keys, const char *const *values)
{
	size_t i, k;
	json_t *item;

	json_array_foreach (list, i, item) {
		for (k = 0; k < 2; k++)
			if (values[k] && !str_eq(json_str_at(item, keys[k]), values[k]))
				break;
		if (k == 2)
			return true;
	}
	return false;
}

static int check_addresses(const struct upper_config *config, const struct upper_facts *facts,
			   int position, struct err *err)
{
	static const char *const address_keys[] = {"address", "dev"}, *const route_keys[] = {"dst",
											     "gw"};
	size_t i;
	json_t *item;

	json_array_foreach (json_at(facts->previous, "ips"), i, item) {
		const char *values[] = {json_str_at(item, "address"), facts->ifname};
		const json_t *of = json_at(item, "interface");

		if ((!of || json_integer_value(of) == position) &&
		    !has_entry(json_at(facts->pod, "addresses"), address_keys, values))
			return not_as_added(err, "%s: %s has no address %s any more", config->type,
					    facts->ifname, values[0]);
	}
	json_array_foreach (json_at(facts->previous, "routes"), i, item) {
		const char *values[] = {json_str_at(item, "dst"), json_str_at(item, "gw")};

		if (!has_entry(json_at(facts->pod, "routes"), route_keys, values))
			return not_as_added(err, "%s: the pod has no route to %s%s%s any more",
					    config->type, values[0], values[1] ? " via " : "",
					    values[1] ? values[1] : "");
	}
	return 0;
}

int upper_check(const struct upper_config *config, const struct upper_facts *facts, struct err *err)
{
	int position = position_of(facts);

	assert(config->type && facts->ifname);
	if (!facts->previous)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: prevResult is missing: CHECK compares with it", config->type);
	if (position < 0)
		return not_as_added(err, "%s: prevResult has no interface %s in %s", config->type,
				    facts->ifname, facts->netns_path);
	if (config->master && !facts->master)
		return not_as_added(err, "%s: master %.32s is gone", config->type, config->master);
	if (check_link(config, facts,
		       json_array_get(json_at(facts->previous, "interfaces"), (size_t)position),
		       err))
		return -1;
	return check_addresses(config, facts, position, err);
}

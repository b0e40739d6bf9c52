// SPDX-License-Identifier: Apache-2.0
/*
 * An interface of the node for a pod: which one is asked for, whether the node can do without, and
 * the steps. nodeagent/cni/execute/host_device_run.c looks and acts.
 */
#include "nodeagent/cni/plan/host_device.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"

#define SYS_DEVICES "/sys/devices/"
/* linux/rtnetlink.h */
#define SCOPE_SITE    200
#define PROTO_KERNEL  2
#define ROUTE_UNICAST 1

void host_device_config_done(struct host_device_config *config)
{
	json_decref(config->folded);
	*config = (struct host_device_config){0};
}

/* ---- configuration --------------------------------------------------------------------------- */

/* The value of a key; NULL for "". */
static const char *text_of(const json_t *config, const char *key)
{
	const char *text = json_str_at(config, key);

	return str_empty(text) ? NULL : text;
}

static int check_config(const struct host_device_config *config, struct err *err)
{
	if (config->path && (!str_starts(config->path, SYS_DEVICES) || strstr(config->path, "/..")))
		return err_set(err, ERR_INVALID, "BadField",
			       "host-device: kernelpath \"%.128s\" must be one below " SYS_DEVICES,
			       config->path);
	if (config->id && (strchr(config->id, '/') || str_starts(config->id, ".")))
		return err_set(err, ERR_INVALID, "BadField",
			       "host-device: deviceID \"%.64s\" must be a PCI address, or the name "
			       "of an auxiliary device",
			       config->id);
	if (!config->device && !config->mac[0] && !config->path && !config->id)
		return err_set(err, ERR_INVALID, "BadField",
			       "host-device: one of device, hwaddr, kernelpath and pciBusID must "
			       "name an interface of the node");
	return 0;
}

int host_device_config_read(const json_t *config, struct host_device_config *ret, struct err *err)
{
	auto_host_device_config struct host_device_config read = {0};
	const char *mac, *given;

	if (config_keys_read(config, "host-device", &read.folded, err))
		return -1;
	config = read.folded;
	given = json_str_at(config, "runtimeConfig", "deviceID");
	mac = text_of(config, "hwaddr");
	read.has_ipam = !str_empty(json_str_at(config, "ipam", "type"));
	/* The first that is given counts. */
	read.device = text_of(config, "device");
	if (!read.device && mac && !wanted_mac_parse(mac, read.mac))
		return err_set(err, ERR_INVALID, "BadField",
			       "host-device: hwaddr \"%.64s\" must be six octets of one station's "
			       "address",
			       mac);
	if (!read.device && !read.mac[0])
		read.path = text_of(config, "kernelpath");
	if (!read.device && !read.mac[0] && !read.path)
		read.id = str_empty(given) ? text_of(config, "pciBusID") : given;
	if (check_config(&read, err))
		return -1;
	*ret = read;
	read = (struct host_device_config){0};
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

#define is_the_nodes(err, ...) err_set(err, ERR_INVALID, "NodeInterface", __VA_ARGS__)

static bool goes_by(const json_t *route, const char *name)
{
	return str_eq(json_str_at(route, "dev"), name) ||
	       json_find(json_at(route, "nexthops"), "dev", name);
}

/* Those that the kernel gives each interface, or each address, say nothing. */
static bool is_made_by_someone(const json_t *route)
{
	return look_number(route, "protocol") != PROTO_KERNEL &&
	       look_number(route, "type") == ROUTE_UNICAST;
}

/* Not an end of a pair, whose number below may be of another namespace. */
static bool lies_on_another(const json_t *link)
{
	static const char *const kinds[] = {"vlan",   "macvlan", "macvtap", "ipvlan",
					    "ipvtap", "macsec",  "ipoib"};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(json_str_at(link, "kind"), kinds[i]))
			return true;
	return false;
}

/* The rules of evidence_node_user() (nodeagent/host/evidence.h), by which the kubelet is told. */
int host_device_check(const char *type, const json_t *link, const json_t *host, struct err *err)
{
	const char *name = json_str_at(link, "name"), *text;
	size_t i;
	json_t *item;

	if (look_number(link, "flags") & LOOK_LOOPBACK)
		return is_the_nodes(err, "%s: %s is the node's loopback; name another", type, name);
	if (look_number(link, "master"))
		return is_the_nodes(err,
				    "%s: %s is a port of a bridge or bond of the node; "
				    "take it out, or name another",
				    type, name);
	if (look_number(link, "xdp"))
		return is_the_nodes(err,
				    "%s: an XDP program is attached to %s; detach it, or name "
				    "another interface",
				    type, name);
	json_array_foreach (json_at(host, "addresses"), i, item) {
		text = json_str_or(json_at(item, "address"), "");
		if (str_eq(json_str_at(item, "dev"), name) &&
		    look_number(item, "scope") <= SCOPE_SITE)
			return is_the_nodes(err,
					    "%s: %s has the node's address %s; remove it, "
					    "or name another interface",
					    type, name, text);
	}
	json_array_foreach (json_at(host, "routes"), i, item) {
		text = json_str_or(json_at(item, "dst"), "");
		if (is_made_by_someone(item) && goes_by(item, name))
			return is_the_nodes(err,
					    "%s: the node's route to %s goes by %s; remove "
					    "it, or name another interface",
					    type, text, name);
	}
	json_array_foreach (json_at(host, "links"), i, item)
		if (look_number(item, "lower") == look_number(link, "index") &&
		    lies_on_another(item))
			return is_the_nodes(err,
					    "%s: the node's interface %s is upon %s; remove "
					    "it, or name another",
					    type, json_str_at(item, "name"), name);
	return 0;
}

void host_device_plan(const json_t *link, const char *ifname, json_t *steps)
{
	const char *name = json_str_at(link, "name");
	json_t *step = steps_add(steps, "host", "link", name);

	assert(ifname);
	json_put_bool(step, "up", false);
	if (look_number(link, "flags") & LOOK_UP)
		json_put_bool(json_need_object(step, "was"), "up", true);
	/* A device cannot take a name that it has as an alternative one. */
	if (json_list_has(json_at(link, "altNames"), ifname))
		json_put_str(steps_add(steps, "host", "unalt", name), "name", ifname);
	/* As containernetworking-plugins keep the name; DEL of both finds it. */
	json_put_str(steps_add(steps, "host", "alias", name), "as", name);
	json_put_str(steps_add(steps, "host", "move", name), "as", ifname);
	json_put_bool(steps_add(steps, "pod", "link", ifname), "up", true);
}

/* How many interfaces the device has there: ports of one PCI function, representors. */
static size_t count_of(const json_t *look, const char *device)
{
	size_t n = 0, i;
	json_t *link;

	json_array_foreach (json_at(look, "links"), i, link)
		n += device && str_eq(json_str_at(link, "parent"), device);
	return n;
}

json_t *host_device_state(const json_t *link, const json_t *host, bool ipam)
{
	const json_t *altnames = json_at(link, "altNames");
	const char *device = json_str_at(link, "parent");
	json_t *state = json_object();

	json_put_str(state, "name", json_str_at(link, "name"));
	json_put_str(state, "device", device);
	if (count_of(host, device) > 1)
		json_put_bool(state, "shares", true);
	json_put_str(state, "alias", json_str_at(link, "alias"));
	json_put_str(state, "mac", json_str_at(link, "mac"));
	json_put_int(state, "mtu", look_number(link, "mtu"));
	json_put_int(state, "txqlen", look_number(link, "txqlen"));
	json_put(state, "altNames", altnames ? json_deep_copy(altnames) : json_array());
	json_put_bool(state, "aliased", true);
	json_put_bool(state, "ipam", ipam);
	return state;
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/* The link with this value; of a device, where one is given. NULL: none. */
static const json_t *link_with(const json_t *look, const char *device, const char *key,
			       const json_t *value)
{
	size_t i;
	json_t *link;

	json_array_foreach (json_at(look, "links"), i, link)
		if (value && json_equal(json_at(link, key), value) &&
		    (!device || str_eq(json_str_at(link, "parent"), device)))
			return link;
	return NULL;
}

/* The only one of its device, unless that has several, of which another may be left. */
static const json_t *only_one(const json_t *look, const json_t *saved)
{
	const char *device = json_str_at(saved, "device");

	return count_of(look, device) == 1 && !json_is_true(json_at(saved, "shares"))
		       ? link_with(look, NULL, "parent", json_at(saved, "device"))
		       : NULL;
}

const json_t *host_device_in_pod(const json_t *pod, const json_t *saved)
{
	const char *device = json_str_at(saved, "device");
	const json_t *marked = json_at(saved, "index")
				       ? link_with(pod, device, "index", json_at(saved, "index"))
				       : link_with(pod, device, "alias", json_at(saved, "name"));

	return marked ? marked : only_one(pod, saved);
}

const json_t *host_device_on_node(const json_t *host, const json_t *saved, bool has_moved)
{
	const char *device = json_str_at(saved, "device");
	const json_t *name = json_at(saved, "name"), *found = only_one(host, saved);

	if (!found)
		found = link_with(host, device, "alias", name);
	/* Without a device the name may be another interface's by now. */
	if (!found && (has_moved || count_of(host, device) > 0))
		found = link_with(host, device, "name", name);
	return found;
}

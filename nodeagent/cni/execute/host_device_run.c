// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin host-device: look, have it decided (nodeagent/cni/plan/host_device.h), act.
 *
 * Kept for DEL: {"name", "device": its parent where it has one, "shares": that has other
 * interfaces, too, "alias", "mac", "mtu", "txqlen", "altNames", "aliased": its name is its alias in
 * the pod, "index": in the pod, once that is known, "ipam"}.
 */
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/device_use.h"
#include "nodeagent/cni/execute/interface_run.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/vf_return.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/sysfs.h"

/* ---- which one ------------------------------------------------------------------------------- */

/* The first interface in a folder of /sys, into ret; "" where there is none. */
static void first_in(const struct host *host, const char *folder, char ret[IFNAMSIZ])
{
	auto_free char *path = str_printf("%s/net", folder + strspn(folder, "/"));
	json_auto_t *names = sysfs_list(host, path);

	(void)snprintf(ret, IFNAMSIZ, "%.*s", IFNAMSIZ - 1,
		       json_str_or(json_array_get(names, 0), ""));
}

/* The name of the interface of a device; "" for one that a driver of user space has. */
static int name_by_id(const struct plugin_call *call, const struct host *host, const char *id,
		      char ret[IFNAMSIZ], struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_free char *auxiliary = str_printf("sys/bus/auxiliary/devices/%s", id);
	struct device device = {.netdev = ""};
	int owned;

	if (!pci_address_is_valid(id)) {
		first_in(host, auxiliary, ret);
		return 0;
	}
	if (device_look(host, id, &device, err))
		return -1;
	owned = services->owns(services->context, id, err);
	if (owned < 0)
		return -1;
	if (!owned)
		return err_set(err, ERR_CONFLICT, "DeviceBusy",
			       "host-device: another pod has the device %s still; it is free when "
			       "that pod has gone",
			       id);
	memcpy(ret, device.netdev, IFNAMSIZ);
	if (!ret[0]) {
		/* virtio's interface is one folder below its PCI function. */
		json_auto_t *names = sysfs_list(host, pci_path(id, NULL).text);
		json_t *name;
		size_t i;

		json_array_foreach (names, i, name)
			if (!ret[0] && str_starts(json_string_value(name), "virtio"))
				first_in(host, pci_path(id, json_string_value(name)).text, ret);
	}
	return ret[0] || device_is_for_user_space(&device)
		       ? 0
		       : err_set(err, ERR_TRANSIENT, "InterfaceGone",
				 "host-device: %s has no interface on the node: a pod that ends "
				 "has it still, or its driver %s is starting",
				 id, device.driver[0] ? device.driver : "(none)");
}

/*
 * The node's links, addresses and routes, and in them the interface; NULL: a device of user space.
 */
static int find_link(const struct plugin_call *call, const struct host_device_config *config,
		     json_t **ret_host, const json_t **ret, struct err *err)
{
	auto_host struct host *host = device_host(call->call->root, err);
	char name[IFNAMSIZ] = "";
	size_t i;
	json_t *link;

	if (!host ||
	    (config->id && (name_by_id(call, host, config->id, name, err) ||
			    vf_check_node(call, "host-device", host, config->id, NULL, err))))
		return -1;
	if (config->id && !name[0] && pci_address_is_valid(config->id))
		return 0;
	if (config->path)
		first_in(host, config->path, name);
	if (netns_observe(call->pair.host, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES, ret_host,
			  err))
		return -1;
	json_array_foreach (json_at(*ret_host, "links"), i, link) {
		const char *own = json_str_at(link, "name");
		bool is_it = config->device ? str_eq(own, config->device) ||
						      json_list_has(json_at(link, "altNames"),
								    config->device)
			     : config->mac[0] ? str_eq(json_str_at(link, "mac"), config->mac)
					      : str_eq(own, name);

		if (is_it && !*ret)
			*ret = link;
	}
	if (!*ret)
		return err_set(err, ERR_HOST, "InterfaceGone",
			       "host-device: the node has no interface for %s",
			       config->device   ? config->device
			       : config->mac[0] ? config->mac
			       : config->path   ? config->path
						: config->id);
	return host_device_check("host-device", *ret, *ret_host, err) ||
			       device_use_check_link(call, "host-device", *ret, err)
		       ? -1
		       : 0;
}

/* ---- the way back ---------------------------------------------------------------------------- */

/* Is it there, with an interface that is not: of a driver that starts, a namespace that ends? */
static bool is_on_bus(const struct host *host, const char *device)
{
	json_auto_t *buses = sysfs_list(host, "sys/bus");
	size_t i;
	json_t *bus;

	json_array_foreach (buses, i, bus) {
		auto_free char *path =
			str_printf("sys/bus/%s/devices/%s", json_string_value(bus), device);

		if (sysfs_exists(host, path))
			return true;
	}
	return false;
}

/*
 * May the interface still come back to the node? The kernel moves it there a moment after the last
 * process of the pod; a virtual one ends with the namespace, and user space has none.
 */
static bool may_come(const struct plugin_call *call, const char *device)
{
	auto_host struct host *host = device_host(call->call->root, NULL);
	struct device now;

	if (!device)
		return false;
	if (!host)
		return true;
	if (pci_address_is_valid(device) && device_look(host, device, &now, NULL) == 0)
		return !device_is_for_user_space(&now);
	return is_on_bus(host, device);
}

/*
 * From the pod, or from where the kernel left it when the namespace ended, to what it was. False:
 * not all could be done; err is an interface that the pod keeps. A virtual one ended there.
 */
static bool take_back(const struct plugin_call *call, const json_t *saved, struct err *err)
{
	const char *name = json_str_at(saved, "name");
	const char *alias = json_str_or(json_at(saved, "alias"), "");
	json_auto_t *look = NULL, *steps = json_array(), *marked = json_copy((json_t *)saved);
	struct sriov_return facts = {.saved = marked, .vf = -1};
	int64_t index;

	if (!name)
		return true;
	if (vf_bring_back(call, saved, err) ||
	    netns_observe(call->pair.host, NETNS_LINKS, &look, NULL))
		return false;
	facts.link = host_device_on_node(look, saved, call->pair.pod != NULL);
	if (!facts.link)
		return !may_come(call, json_str_at(saved, "device"));
	index = look_number(facts.link, "index");
	facts.name_is_free = vf_name_is_free(call->pair.host, name, index);
	/* Its mark goes last: a next try finds it by that. */
	json_put_str(marked, "alias", name);
	sriov_plan_return(&facts, steps);
	steps_number(steps, "host", facts.link);
	if (netns_execute_all(&call->pair, steps, NULL))
		return false;
	json_array_clear(steps);
	json_put_str(steps_add(steps, "host", "alias", name), "as", alias);
	json_put_int(json_array_get(steps, 0), "index", index);
	return str_eq(alias, name) || netns_execute_all(&call->pair, steps, NULL) == 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

static int move_in(const struct plugin_call *call, const json_t *link, json_t *state,
		   json_t *result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *steps = json_array(), *look = netns_look_new();
	const json_t *moved = NULL;

	if (!link) {
		result_add_interface(result, call->call->ifname, NULL, call->call->netns_path, 0,
				     NULL);
		return 0;
	}
	host_device_plan(link, call->call->ifname, steps);
	steps_number(steps, "host", link);
	if (netns_execute(&call->pair, steps, NULL, err) ||
	    interface_find(call, call->call->ifname, look, &moved, err))
		return -1;
	json_put_int(state, "index", look_number(moved, "index"));
	services->keep(services->context, state);
	result_add_interface(result, call->call->ifname, json_str_at(moved, "mac"),
			     call->call->netns_path, 0, NULL);
	return 0;
}

static int host_device_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_host_device_config struct host_device_config config = {0};
	json_auto_t *host = NULL, *state = NULL, *result = result_new();
	const json_t *link = NULL;

	if (host_device_config_read(call->call->config, &config, err) ||
	    interface_refuse_taken(call, err) || find_link(call, &config, &host, &link, err))
		return -1;
	state = link ? host_device_state(link, host, config.has_ipam)
		     : json_pack("{s:b}", "ipam", config.has_ipam);
	if (services->save(services->context, state, err))
		return -1;
	if (move_in(call, link, state, result, err) == 0 &&
	    (!config.has_ipam || ipam_add(call, link != NULL, result, NULL, err) == 0)) {
		interface_put_dns(result, config.folded);
		*ret_result = take_ptr(result);
		return 0;
	}
	/* What cannot be taken back now, DEL takes back. */
	if (take_back(call, state, NULL))
		(void)services->save(services->context, NULL, NULL);
	return -1;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static int host_device_check_run(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_host_device_config struct host_device_config config = {0};
	json_auto_t *pod = NULL, *none = NULL;
	const json_t *link;
	struct interface_facts facts = {
		.type = call->call->type,
		.ifname = call->call->ifname,
		.netns_path = call->call->netns_path,
		.previous = call->previous,
	};

	if (host_device_config_read(call->call->config, &config, err) ||
	    (config.has_ipam &&
	     services->ipam(services->context, "CHECK", call->call->config, &none, err)) ||
	    interface_look(call, &pod, err))
		return -1;
	/* A device of user space has no interface to look at. */
	if (call->call->saved && !json_at(call->call->saved, "name"))
		return 0;
	facts.pod = pod;
	return interface_check(&facts, NULL, &link, err);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/*
 * What containernetworking-plugins, whose place we have now, keep: an alias. New, NULL: nothing, or
 * err says why it cannot be seen.
 */
static json_t *state_by_alias(const struct plugin_call *call, struct err *err)
{
	json_auto_t *look = netns_look_new();
	const json_t *link = NULL;
	const char *alias;

	if (!call->pair.pod || interface_find(call, call->call->ifname, look, &link, err))
		return NULL;
	alias = json_str_at(link, "alias");
	return str_empty(alias)
		       ? NULL
		       : json_pack("{s:s, s:s*, s:I, s:b, s:b}", "name", alias, "device",
				   json_str_at(link, "parent"), "index", look_number(link, "index"),
				   "aliased", true, "ipam", ipam_is_wanted(call));
}

static int host_device_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	struct err stuck = {0};
	json_auto_t *rest = call->call->saved ? json_deep_copy(call->call->saved)
					      : state_by_alias(call, &stuck);
	const char *device = json_str_at(rest, "device");
	bool has_ipam = rest ? json_is_true(json_at(rest, "ipam")) : ipam_is_wanted(call);
	int owned = stuck.class ? -1
		    : device    ? services->owns(services->context, device, &stuck)
				: 1;
	bool done = true;

	if (owned < 0) {
		if (err)
			*err = stuck;
		return -1;
	}
	if (rest && owned)
		done = take_back(call, rest, &stuck);
	/* Not before the interface has gone: the next pod may have its addresses at once. */
	if (done && has_ipam && ipam_del(call, NULL) == 0)
		has_ipam = false;
	if (!rest)
		rest = json_object();
	json_put_bool(rest, "ipam", has_ipam);
	if (done)
		(void)json_object_del(rest, "name");
	(void)services->save(services->context, done && !has_ipam ? NULL : rest, NULL);
	if (!stuck.class)
		return 0;
	if (err)
		*err = stuck;
	return err_in(err, "host-device: move %s from the pod back to the node",
		      json_str_or(json_at(rest, "name"), "the interface"));
}

const struct plugin plugin_host_device = {
	.type = "host-device",
	.is_common = true,
	.add = host_device_add,
	.check = host_device_check_run,
	.del = host_device_del,
};

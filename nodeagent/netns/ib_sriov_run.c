// SPDX-License-Identifier: Apache-2.0
/*
 * The ib-sriov plugin: an InfiniBand VF with its GUID, and its RDMA device where it is isolated,
 * goes into the pod and comes back.
 *
 * A new GUID takes effect when the VF's driver starts anew: interface and RDMA device are others
 * then, so both are looked up by the PCI address. The RDMA device moves before the interface, since
 * moving it makes IPoIB interfaces anew. Kept for DEL: {"device", "name", "index", "settings",
 * "rebind", "rdma", "rdmaIndex", "ipam"}, and for the ledger "guid", the pod's.
 */
#include <stdio.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/attach/ib_sriov.h"
#include "nodeagent/attach/look.h"
#include "nodeagent/attach/result.h"
#include "nodeagent/attach/sriov.h"
#include "nodeagent/attach/steps.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/netns/device.h"
#include "nodeagent/netns/ipam_run.h"
#include "nodeagent/netns/observe.h"
#include "nodeagent/netns/plugins.h"
#include "nodeagent/netns/rdma_files.h"
#include "nodeagent/netns/rdma_move.h"
#include "nodeagent/netns/vf_return.h"

#define REBIND_MS 10000
#define LOOK_MS   10
#define NO_GUID   "ff:ff:ff:ff:ff:ff:ff:ff"

static json_t *new_look(void)
{
	json_t *look = json_object();

	json_put(look, "links", json_array());
	return look;
}

/* Start the VF's driver anew, and wait for the interface, whatever its name is. */
static int rebind(struct host *host, const char *address, struct device *device, struct err *err)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	auto_free char *unbind = str_printf("sys/bus/pci/drivers/%s/unbind", device->driver);
	auto_free char *bind = str_printf("sys/bus/pci/drivers/%s/bind", device->driver);
	int64_t end = clock_ms() + REBIND_MS;

	if (sysfs_write(host, unbind, address, err) || sysfs_write(host, bind, address, err))
		return err_in(err, "ib-sriov: start the driver of %s anew", address);
	while (device_look(host, address, device, NULL) || !device->netdev[0]) {
		if (clock_ms() > end)
			return err_set(
				err, ERR_TRANSIENT, "InterfaceGone",
				"ib-sriov: %s has no interface after its driver started anew",
				address);
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int check(const struct plugin_call *call, const struct ib_sriov_config *config,
		 const struct device *device, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *pod = new_look();
	const json_t *taken = NULL;
	bool exclusive = true;

	if (!services->owns(services->context, config->device))
		return err_set(err, ERR_CONFLICT, "DeviceBusy",
			       "ib-sriov: another pod has the device %s still", config->device);
	if (device->vf < 0 || !device->pf[0])
		return err_set(err, ERR_INVALID, "NotAVf",
			       "ib-sriov: %s is no VF, or its PF has no interface on the node",
			       config->device);
	if (!device->netdev[0] && !device_is_for_user_space(device))
		return err_set(
			err, ERR_CONFLICT, "DeviceBusy",
			"ib-sriov: the interface of %s is not on the node: a pod that ends has "
			"it still, or no driver is bound",
			config->device);
	if (config->isolated && rdma_is_exclusive(call->pair.host, &exclusive, err))
		return -1;
	if (!exclusive)
		return err_set(
			err, ERR_HOST, "RdmaUnavailable",
			"ib-sriov: rdmaIsolation needs the RDMA subsystem in exclusive mode; set "
			"rdmaMode exclusive and reboot the node");
	if (netns_observe_link(call->pair.pod, call->call->ifname, 0, pod, &taken, err))
		return -1;
	return taken ? err_set(err, ERR_INVALID, "InterfaceExists",
			       "ib-sriov: the pod has an interface %s already", call->call->ifname)
		     : 0;
}

/* Where the PF does not tell a VF's GUID, its interface does. */
static int look_at_settings(const struct plugin_call *call, const struct ib_sriov_config *config,
			    const struct device *device, const json_t *link, json_t **ret,
			    struct err *err)
{
	char own[TEXT_GUID_SIZE] = NO_GUID;

	if (netns_observe_vf(call->pair.host, device->pf, device->vf, ret, err))
		return -1;
	(void)ib_sriov_guid_of(json_str_at(link, "mac"), own);
	if (!json_at(*ret, "nodeGuid"))
		json_put_str(*ret, "nodeGuid", own);
	if (!json_at(*ret, "portGuid"))
		json_put_str(*ret, "portGuid", own);
	if (!config->guid[0] && link && !ib_sriov_guid_is_set(own))
		return err_set(
			err, ERR_INVALID, "BadField",
			"ib-sriov: %s has no GUID; give the network one (infinibandGUID), or let "
			"the policy set them",
			config->device);
	return 0;
}

/* Zeros are put back as all ones: NICs take no zeros. */
static void mend_zeros(json_t *settings)
{
	static const char *const keys[] = {"nodeGuid", "portGuid"};
	size_t i;
	json_t *step;

	json_array_foreach (settings, i, step)
		for (size_t k = 0; k < ARRAY_LEN(keys); k++)
			if (json_at(step, keys[k]) &&
			    !ib_sriov_guid_is_set(json_str_at(step, keys[k])))
				json_put_str(step, keys[k], NO_GUID);
}

static bool changes_guid(const json_t *steps)
{
	size_t i;
	json_t *step;

	json_array_foreach (steps, i, step)
		if (json_at(step, "portGuid") || json_at(step, "nodeGuid"))
			return true;
	return false;
}

/*
 * All but addresses, as it was. False: not all could be done; err is a device that the pod keeps.
 */
static bool take_back(const struct plugin_call *call, struct host *host, const json_t *saved,
		      struct err *err)
{
	const char *address = json_str_or(json_at(saved, "device"), "");
	const char *name = json_str_at(saved, "name");
	json_auto_t *rename = json_array(), *links = new_look();
	const json_t *link = NULL;
	struct device device;
	bool done;

	if (rdma_bring_back(call->pair.pod, call->pair.host, saved, err))
		return false;
	if (vf_bring_back(call, saved, err) || device_look(host, address, &device, NULL))
		return false;
	done = netns_execute_all(&call->pair, json_at(saved, "settings"), NULL) == 0;
	if (json_is_true(json_at(saved, "rebind")))
		done &= rebind(host, address, &device, NULL) == 0;
	if (name && device.netdev[0] && !str_eq(name, device.netdev) &&
	    netns_observe_link(call->pair.host, device.netdev, 0, links, &link, NULL) == 0 &&
	    vf_name_is_free(call->pair.host, name, look_number(link, "index"))) {
		json_put_bool(steps_add(rename, "host", "link", device.netdev), "up", false);
		(void)sriov_plan_name(link, name, rename);
		done &= netns_execute_all(&call->pair, rename, NULL) == 0;
	}
	return done && (!name || device.netdev[0]);
}

/* With its GUID set: RDMA device, interface, addresses. state: more of it is known on the way. */
static int move_in(const struct plugin_call *call, const struct ib_sriov_config *config,
		   struct host *host, const struct device *device, json_t *state, json_t *result,
		   struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *steps = json_array();

	if (config->isolated) {
		json_auto_t *names = device_rdma(host, config->device);
		const char *name = json_string_value(json_array_get(names, 0));
		struct rdma_place place = {0};

		if (json_array_size(names) != 1)
			return err_set(
				err, ERR_HOST, "NoRdmaDevice",
				"ib-sriov: %s has %zu RDMA devices on the node, one is needed",
				config->device, json_array_size(names));
		if (rdma_find(call->pair.host, name, &place, err))
			return -1;
		json_put_str(state, "rdma", name);
		json_put_int(state, "rdmaIndex", place.index);
		if (services->save(services->context, state, err) ||
		    rdma_move(call->pair.host, call->pair.pod, &place, name, err) ||
		    rdma_files_keep(host, config->device, err))
			return -1;
	}
	if (device->netdev[0]) {
		json_put_bool(steps_add(steps, "host", "link", device->netdev), "up", false);
		json_put_str(steps_add(steps, "host", "move", device->netdev), "as",
			     call->call->ifname);
		json_put_bool(steps_add(steps, "pod", "link", call->call->ifname), "up", true);
	}
	if (netns_execute(&call->pair, steps, NULL, err))
		return -1;
	result_add_interface(result, call->call->ifname, NULL, call->call->netns_path, 0, NULL);
	return ipam_is_wanted(call) ? ipam_add(call, device->netdev[0] != '\0', result, NULL, err)
				    : 0;
}

static int ib_sriov_act(const struct plugin_call *call, const struct ib_sriov_config *config,
			struct host *host, struct device *device, const json_t *settings,
			json_t *state, json_t *result, struct err *err)
{
	const struct attach_services *services = call->call->services;

	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, settings, NULL, err) == 0 &&
	    (!json_is_true(json_at(state, "rebind")) ||
	     rebind(host, config->device, device, err) == 0) &&
	    move_in(call, config, host, device, state, result, err) == 0)
		return 0;
	/* What cannot be taken back now, DEL takes back. */
	if (take_back(call, host, state, NULL))
		(void)services->save(services->context, NULL, NULL);
	return -1;
}

static int ib_sriov_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_ib_sriov_config struct ib_sriov_config config = {0};
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *links = new_look(), *now = NULL, *settings = json_array(), *undo = NULL;
	json_auto_t *state = json_object(), *result = result_new();
	const json_t *link = NULL;
	struct device device;
	bool has_driver;

	if (!host || ib_sriov_config_read(call->call->config, &config, err) ||
	    device_look(host, config.device, &device, err) || check(call, &config, &device, err) ||
	    (device.netdev[0] &&
	     netns_observe_link(call->pair.host, device.netdev, 0, links, &link, err)) ||
	    look_at_settings(call, &config, &device, link, &now, err))
		return -1;
	sriov_plan_settings(device.pf, device.vf, now, config.wanted, settings);
	undo = steps_undo(settings);
	mend_zeros(undo);
	has_driver = device.netdev[0] != '\0';
	json_put_str(state, "device", config.device);
	json_put_str(state, "name", json_str_at(link, "name"));
	json_put_int(state, "index", look_number(link, "index"));
	json_put_str(state, "guid", config.guid[0] ? config.guid : json_str_at(now, "nodeGuid"));
	json_put(state, "settings", json_deep_copy(undo));
	json_put_bool(state, "rebind", has_driver && changes_guid(settings));
	json_put_bool(state, "ipam", ipam_is_wanted(call));
	if (ib_sriov_act(call, &config, host, &device, settings, state, result, err))
		return -1;
	*ret_result = take_ptr(result);
	return 0;
}

static int ib_sriov_check(const struct plugin_call *call, struct err *err)
{
	const json_t *saved = call->call->saved, *link = NULL;
	json_auto_t *look = NULL;

	if (!json_at(saved, "name"))
		return 0;
	if (vf_find_in_pod(call, saved, &look, &link, err))
		return -1;
	return link ? 0
		    : err_set(err, ERR_HOST, "NotAsAdded",
			      "ib-sriov: the interface of %s is not in the pod",
			      json_str_or(json_at(saved, "device"), "the VF"));
}

static int ib_sriov_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *rest = json_deep_copy(call->call->saved);
	const char *device = json_str_at(rest, "device");
	struct err stuck = {0};
	bool done = true;

	if (!host)
		return -1;
	if (json_is_true(json_at(rest, "ipam")) || (!rest && ipam_is_wanted(call)))
		done = ipam_del(call, NULL) == 0;
	if (!rest)
		return 0;
	json_put_bool(rest, "ipam", !done);
	if (device && services->owns(services->context, device))
		done &= take_back(call, host, rest, &stuck);
	(void)services->save(services->context, done ? NULL : rest, NULL);
	if (!stuck.class)
		return 0;
	if (err)
		*err = stuck;
	return err_in(err, "ib-sriov: bring %s back to the node", device);
}

const struct plugin plugin_ib_sriov = {
	.type = "ib-sriov",
	.add = ib_sriov_add,
	.check = ib_sriov_check,
	.del = ib_sriov_del,
};

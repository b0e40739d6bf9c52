// SPDX-License-Identifier: Apache-2.0
/*
 * The rdma plugin: the RDMA device of the function that the network's interface is on goes into the
 * pod, and back. Compatible with rdma-cni (github.com/k8snetworkplumbingwg/rdma-cni).
 *
 * Chained behind sriov: the device goes after the interface, and comes back before it, so that its
 * GIDs are made anew when the interface is there. Kept for DEL: {"rdma": name,
 * "rdmaIndex", "device"}.
 */
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/device_use.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/execute/rdma_files.h"
#include "nodeagent/cni/execute/rdma_move.h"

static int the_device(const struct host *host, const char *id, json_t **ret_names, struct err *err)
{
	json_auto_t *names = device_rdma(host, id);

	if (json_array_size(names) != 1)
		return err_set(
			err, json_array_size(names) ? ERR_INVALID : ERR_CONFLICT, "NoRdmaDevice",
			"rdma: %s has %zu RDMA devices on the node, one is needed; a pod that "
			"ends may have it still, or its driver has none",
			id, json_array_size(names));
	*ret_names = take_ptr(names);
	return 0;
}

/*
 * Without deviceID: the function that the interface of the previous result is on, as the kernel
 * says (IFLA_PARENT_DEV_NAME, since 5.14). rdma-cni looks for its MAC address among the VFs of all
 * PFs, which finds none that took its own, and the wrong one of two that are alike. Borrowed from
 * *ret_look, which is new.
 */
static const char *id_of_interface(const struct plugin_call *call, json_t **ret_look)
{
	const json_t *interfaces = json_at(call->previous, "interfaces"), *interface, *link = NULL;
	const char *name = NULL;
	size_t i, n = 0;

	json_array_foreach ((json_t *)interfaces, i, interface) {
		if (str_empty(json_str_at(interface, "sandbox")))
			continue;
		name = json_str_at(interface, "name");
		n++;
	}
	*ret_look = netns_look_new();
	if (n != 1 || !name || netns_observe_link(call->pair.pod, name, 0, *ret_look, &link, NULL))
		return NULL;
	return json_str_at(link, "parent");
}

static int rdma_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_host struct host *host = device_host(call->call->root, err);
	const char *id = json_str_at(call->call->config, "deviceID"), *name;
	json_auto_t *names = NULL, *look = NULL, *state = json_object();
	struct rdma_place place = {0};
	bool exclusive = false;
	int owned;

	if (!host || rdma_is_exclusive(call->pair.host, &exclusive, err))
		return -1;
	if (!exclusive)
		return err_set(
			err, ERR_HOST, "RdmaUnavailable",
			"rdma: the node's RDMA subsystem is in shared mode, this network needs "
			"exclusive: set spec.rdmaMode exclusive in the SriovNetworkPoolConfig "
			"and reboot, or take rdma out of the network");
	if (str_empty(id))
		id = id_of_interface(call, &look);
	if (str_empty(id))
		return err_set(
			err, ERR_INVALID, "BadField",
			"rdma: deviceID must be the device of the network's interface, whose own "
			"the kernel does not tell; the NAD needs the annotation "
			"k8s.v1.cni.cncf.io/resourceName");
	owned = services->owns(services->context, id, err);
	if (owned < 0)
		return -1;
	if (!owned)
		return err_set(err, ERR_CONFLICT, "DeviceBusy",
			       "rdma: another pod has the device %s still", id);
	if (device_use_check_rdma(call, "rdma", host, id, err) || the_device(host, id, &names, err))
		return -1;
	name = json_string_value(json_array_get(names, 0));
	if (rdma_find(call->pair.host, name, &place, err))
		return -1;
	json_put_str(state, "rdma", name);
	json_put_int(state, "rdmaIndex", place.index);
	json_put_str(state, "device", id);
	if (services->save(services->context, state, err))
		return -1;
	if (rdma_move(call->pair.host, call->pair.pod, &place, name, err)) {
		(void)services->save(services->context, NULL, NULL);
		return -1;
	}
	if (rdma_files_keep(host, id, err)) {
		if (rdma_bring_back(call->pair.pod, call->pair.host, host, state, NULL) == 0)
			(void)services->save(services->context, NULL, NULL);
		return -1;
	}
	*ret_result = json_deep_copy(call->previous);
	return 0;
}

static int rdma_check(const struct plugin_call *call, struct err *err)
{
	const json_t *saved = call->call->saved;
	struct rdma_place place = {.index = json_integer_value(json_at(saved, "rdmaIndex"))};
	const char *name = json_str_at(saved, "rdma");

	if (!name)
		return 0;
	if (rdma_find(call->pair.pod, json_at(saved, "rdmaIndex") ? NULL : name, &place, err))
		return -1;
	if (place.index < 0)
		return err_set(err, ERR_HOST, "NotAsAdded",
			       "rdma: the RDMA device %s is not in the pod", name);
	return 0;
}

static int rdma_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_host struct host *host = device_host(call->call->root, err);
	const json_t *saved = call->call->saved;
	const char *device = json_str_at(saved, "device");
	int owned = device ? services->owns(services->context, device, err) : 1;

	if (!host || owned < 0)
		return -1;
	if (owned && rdma_bring_back(call->pair.pod, call->pair.host, host, saved, err))
		return err_in(err, "rdma: bring %s back to the node", json_str_at(saved, "rdma"));
	if (owned && device)
		(void)rdma_files_keep(host, device, NULL);
	(void)services->save(services->context, NULL, NULL);
	return 0;
}

const struct plugin plugin_rdma = {
	.type = "rdma",
	.chained = true,
	.add = rdma_add,
	.check = rdma_check,
	.del = rdma_del,
};

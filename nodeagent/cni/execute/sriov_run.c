// SPDX-License-Identifier: Apache-2.0
/*
 * The sriov plugin: looks, has it decided (nodeagent/cni/plan/sriov.h), acts.
 *
 * Kept for DEL: {"device", "pf", "name", "mac", "mtu", "txqlen", "altNames", "alias", "index": of
 * the VF's interface before, "settings": steps that put the VF's settings back, "ipam": there are
 * addresses to be given back}.
 */
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/device_use.h"
#include "nodeagent/cni/execute/interface_run.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/execute/vf_return.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"

/* ---- ADD ------------------------------------------------------------------------------------- */

static int check_device(const struct plugin_call *call, const struct sriov_config *config,
			struct host *host, const struct device *device, struct err *err)
{
	const struct attach_services *services = call->call->services;
	int owned = services->owns(services->context, config->device, err);

	if (owned < 0)
		return -1;
	if (!owned)
		return err_set(
			err, ERR_CONFLICT, "DeviceBusy",
			"sriov: another pod has the device %s still; it is free when that pod "
			"has gone",
			config->device);
	if (device->vf < 0 || !device->pf[0])
		return err_set(err, ERR_INVALID, "NotAVf",
			       "sriov: %s is no VF, or its PF has no interface on the node",
			       config->device);
	if (!device->netdev[0] && !device->driver[0])
		return err_set(
			err, ERR_CONFLICT, "DeviceBusy",
			"sriov: no driver is bound to %s; bind one, or name its resource to a "
			"policy with a deviceType",
			config->device);
	if (device_is_for_user_space(device) &&
	    device_use_check_vfio(call, "sriov", host, config->device, device->driver, err))
		return -1;
	if (!device->netdev[0] && !device_is_for_user_space(device))
		return err_set(
			err, ERR_CONFLICT, "DeviceBusy",
			"sriov: the interface of %s is not on the node: a pod that ends has it "
			"still, or its driver %s is starting",
			config->device, device->driver);
	return interface_refuse_taken(call, err);
}

static json_t *state_of(const struct sriov_config *config, const struct sriov_facts *facts,
			const json_t *steps, bool ipam)
{
	json_auto_t *undo = steps_undo(steps), *settings = json_array();
	json_t *state = json_object(), *step;
	size_t i;

	json_array_foreach (undo, i, step)
		if (str_eq(json_str_at(step, "do"), "vf"))
			json_array_append(settings, step);
	json_put_str(state, "device", config->device);
	json_put_str(state, "pf", facts->pf);
	json_put_str(state, "name", facts->netdev);
	json_put_str(state, "mac", json_str_at(facts->link, "mac"));
	if (facts->link)
		json_put(state, "altNames",
			 json_at(facts->link, "altNames")
				 ? json_incref(json_at(facts->link, "altNames"))
				 : json_array());
	json_put_str(state, "alias", json_str_at(facts->link, "alias"));
	if (facts->link) {
		json_put_int(state, "mtu", look_number(facts->link, "mtu"));
		json_put_int(state, "txqlen", look_number(facts->link, "txqlen"));
		json_put_int(state, "index", look_number(facts->link, "index"));
	}
	json_put(state, "settings", json_deep_copy(settings));
	json_put_bool(state, "ipam", ipam);
	return state;
}

static json_t *result_of(const struct plugin_call *call, const struct sriov_config *config,
			 const struct sriov_facts *facts, const json_t *pf_link)
{
	const char *admin = json_str_at(facts->state, "mac");
	const char *mac = config->mac[0] ? config->mac : json_str_at(facts->link, "mac");
	json_t *result = result_new();

	if (!mac && !str_eq(admin, "00:00:00:00:00:00"))
		mac = admin;
	result_add_interface(result, call->call->ifname, mac, call->call->netns_path,
			     look_number(facts->link ? facts->link : pf_link, "mtu"), NULL);
	return result;
}

static int sriov_act(const struct plugin_call *call, const struct sriov_config *config,
		     const struct sriov_facts *facts, const json_t *pf_link, json_t *result,
		     struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *steps = json_array(), *done = json_array(), *undo = NULL, *state = NULL;

	sriov_plan(config, facts, steps);
	steps_number(steps, "host", facts->link);
	steps_number(steps, "host", pf_link);
	state = state_of(config, facts, steps, ipam_is_wanted(call));
	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, steps, done, err) == 0 &&
	    (!ipam_is_wanted(call) ||
	     ipam_add(call, facts->netdev != NULL, result, done, err) == 0))
		return 0;
	(void)err_in(err, "sriov: %s", config->device);
	undo = steps_undo(done);
	/* What cannot be taken back now, DEL takes back. */
	if (netns_execute_all(&call->pair, undo, NULL) == 0)
		(void)services->save(services->context, NULL, NULL);
	return -1;
}

static int sriov_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_sriov_config struct sriov_config config = {0};
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *links = netns_look_new(), *state = NULL, *result = NULL;
	const json_t *pf_link = NULL;
	struct sriov_facts facts = {.ifname = call->call->ifname};
	struct device device;

	if (!host || sriov_config_read(call->call->config, call->call->args, &config, err) ||
	    device_look(host, config.device, &device, err) ||
	    check_device(call, &config, host, &device, err) ||
	    vf_settings(call, &device, config.wanted, &state, err) ||
	    device_link(call->pair.host, device.pf, device.pf_index, links, &pf_link, err))
		return -1;
	facts.pf = device.pf;
	facts.vf = device.vf;
	facts.state = state;
	if (device.netdev[0]) {
		if (device_link(call->pair.host, device.netdev, device.netdev_index, links,
				&facts.link, err))
			return -1;
		if (!facts.link)
			return err_set(
				err, ERR_TRANSIENT, "InterfaceGone",
				"sriov: the interface of %s has just gone; the runtime tries "
				"again",
				config.device);
		facts.netdev = json_str_at(facts.link, "name");
	}
	if (vf_check_node(call, "sriov", host, config.device, facts.link, err))
		return -1;
	result = result_of(call, &config, &facts, pf_link);
	if (sriov_act(call, &config, &facts, pf_link, result, err))
		return -1;
	*ret_result = take_ptr(result);
	return 0;
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/*
 * The interface, back on the node by us or by the kernel, as it was; the VF's settings as they
 * were. False: not all could be done.
 */
static bool restore_vf(const struct plugin_call *call, const struct host *host, const json_t *saved)
{
	const char *name = json_str_at(saved, "name");
	json_auto_t *steps = json_array(), *links = netns_look_new();
	struct sriov_return facts = {.saved = saved};
	const json_t *pf_link = NULL;
	struct device device;

	if (device_look(host, json_str_or(json_at(saved, "device"), ""), &device, NULL) ||
	    !device.pf[0] ||
	    device_link(call->pair.host, device.pf, device.pf_index, links, &pf_link, NULL))
		return false;
	facts.pf = device.pf;
	facts.vf = device.vf;
	if (name && device.netdev[0]) {
		if (device_link(call->pair.host, device.netdev, device.netdev_index, links,
				&facts.link, NULL))
			return false;
		facts.name_is_free =
			vf_name_is_free(call->pair.host, name, look_number(facts.link, "index"));
	}
	sriov_plan_return(&facts, steps);
	steps_number(steps, "host", facts.link);
	steps_number(steps, "host", pf_link);
	return netns_execute_all(&call->pair, steps, NULL) == 0 && (!name || facts.link);
}

static int sriov_del(const struct plugin_call *call, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *rest = json_deep_copy(call->call->saved);
	const char *device = json_str_at(rest, "device");
	int owned = device ? services->owns(services->context, device, err) : 0;
	bool done = true;

	if (!host || owned < 0)
		return -1;
	if (!rest)
		return ipam_del_unrecorded(call, err);
	if (owned) {
		if (vf_bring_back(call, rest, err)) {
			(void)services->save(services->context, rest, NULL);
			return err_in(err, "sriov: move %s from the pod back to the node", device);
		}
		done = restore_vf(call, host, rest);
	}
	/* Not before the interface has left: the next pod may have its addresses at once. */
	if (json_is_true(json_at(rest, "ipam"))) {
		if (ipam_del(call, NULL) == 0)
			json_put_bool(rest, "ipam", false);
		else
			done = false;
	}
	/* What waits for the PF, for the interface or for IPAM is kept: the call comes again. */
	(void)services->save(services->context, done ? NULL : rest, NULL);
	return 0;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static int check_settings(const struct plugin_call *call, struct err *err)
{
	auto_sriov_config struct sriov_config config = {0};
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *state = NULL;
	struct device device;

	if (!host || sriov_config_read(call->call->config, call->call->args, &config, err))
		return -1;
	/* A PF that is away says nothing against the pod. */
	if (device_look(host, config.device, &device, NULL) || !device.pf[0] || device.vf < 0 ||
	    netns_observe_vf(call->pair.host, device.pf, device.vf, &state, NULL))
		return 0;
	return sriov_check_settings(&config, state, err);
}

static int sriov_check(const struct plugin_call *call, struct err *err)
{
	const json_t *saved = call->call->saved;
	json_auto_t *look = NULL;
	const json_t *link = NULL;

	if (check_settings(call, err))
		return -1;
	if (!json_at(saved, "name"))
		return 0;
	if (vf_find_in_pod(call, saved, &look, &link, err))
		return -1;
	if (!link)
		return err_set(err, ERR_HOST, "NotAsAdded",
			       "sriov: the interface of %s is not in the pod",
			       json_str_or(json_at(saved, "device"), "the VF"));
	return 0;
}

const struct plugin plugin_sriov = {
	.type = "sriov",
	.has_late_link = true,
	.add = sriov_add,
	.check = sriov_check,
	.del = sriov_del,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * What sriov_run.c and ib_sriov_run.c do alike on DEL and CHECK: find the interface by its device,
 * clean it in the pod, move it. Settings on the node's side are put back by each of them, after
 * this.
 */
#include "nodeagent/cni/execute/vf_return.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/host/evidence.h"

/* A name that the kernel makes unique, for when the old one is somebody else's by now. */
#define SPARE_NAME "vf%d"

/*
 * The VF's interface in the pod: by its device; on kernels that do not name it (before 5.14), by
 * its name. A virtual interface that the pod made in its place has another number. That of
 * host-device has a mark: its device may have several.
 */
int vf_find_in_pod(const struct plugin_call *call, const json_t *saved, json_t **ret_look,
		   const json_t **ret, struct err *err)
{
	const char *address = json_str_or(json_at(saved, "device"), "");
	size_t i;
	json_t *link;

	assert(call->pair.pod);
	if (netns_observe(call->pair.pod, NETNS_LINKS, ret_look, err))
		return -1;
	if (json_at(saved, "aliased")) {
		*ret = host_device_in_pod(*ret_look, saved);
		return 0;
	}
	json_array_foreach (json_at(*ret_look, "links"), i, link)
		if (str_eq(json_str_at(link, "parent"), address)) {
			*ret = link;
			return 0;
		}
	link = (json_t *)look_link(*ret_look, call->call->ifname);
	if (link && !json_at(link, "parent") &&
	    (!json_at(link, "kind") || look_number(link, "index") == look_number(saved, "index")))
		*ret = link;
	return 0;
}

int vf_check_node(const struct plugin_call *call, const char *type, struct host *host,
		  const char *address, const json_t *link, struct err *err)
{
	json_auto_t *look = NULL;
	struct sysfs_text driver;

	assert(type && address);
	if (evidence_vdpa_driver(host, address, &driver))
		return err_set(
			err, ERR_INVALID, "NodeInterface",
			"%s: %s is a vDPA device of the node (driver %s); remove it, or name "
			"another device",
			type, address, driver.text);
	if (!link)
		return 0;
	return netns_observe(call->pair.host, NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES, &look,
			     err) ||
			       host_device_check(type, link, look, err)
		       ? -1
		       : 0;
}

int vf_settings(const struct plugin_call *call, const struct device *device, const json_t *wanted,
		json_t **ret, struct err *err)
{
	json_auto_t *nothing = json_object(), *steps = json_array();

	assert(device->vf >= 0 && device->pf[0]);
	if (netns_observe_vf(call->pair.host, device->pf, device->vf, ret, err) == 0)
		return 0;
	sriov_plan_settings(device->pf, device->vf, nothing, wanted, steps);
	if (json_array_size(steps) > 0)
		return -1;
	*ret = take_ptr(nothing);
	return 0;
}

bool vf_name_is_free(struct netns *ns, const char *name, int64_t but)
{
	json_auto_t *look = netns_look_new();
	const json_t *links = json_at(look, "links"), *link = NULL;

	/* The kernel looks at alternative names, too; it answers with the name that counts. */
	if (netns_observe_link(ns, name, 0, look, &link, NULL))
		return false;
	return json_array_size(links) == 0 || look_number(json_array_get(links, 0), "index") == but;
}

int vf_bring_back(const struct plugin_call *call, const json_t *saved, struct err *err)
{
	const char *name = json_str_at(saved, "name");
	json_auto_t *look = NULL, *steps = json_array(), *traces = json_array(), *kept = NULL;
	const json_t *link = NULL, *altname;
	const char *now;
	bool is_free;
	size_t i;

	if (!call->pair.pod || !name)
		return 0;
	if (vf_find_in_pod(call, saved, &look, &link, err))
		return -1;
	if (!link)
		return 0;
	now = json_str_at(link, "name");
	/* As far as it goes: the rest is tried on the node, before the device is free. */
	kept = json_copy((json_t *)saved);
	/* By its mark it is found on the node, whatever name is free there. */
	if (json_at(saved, "aliased"))
		json_put_str(kept, "alias", name);
	sriov_plan_fresh("pod", link, kept, traces);
	steps_number(traces, "pod", link);
	(void)netns_execute_all(&call->pair, traces, NULL);
	json_put_bool(steps_add(steps, "pod", "link", now), "up", false);
	is_free = vf_name_is_free(call->pair.host, name, -1);
	/* With an alternative name that somebody has on the node it could not move there at all. */
	json_array_foreach (json_at(link, "altNames"), i, altname) {
		const char *text = json_string_value(altname);

		if (str_eq(text, name) || !vf_name_is_free(call->pair.host, text, -1))
			json_put_str(steps_add(steps, "pod", "unalt", now), "name", text);
	}
	json_put_str(steps_add(steps, "pod", "move", now), "as", is_free ? name : SPARE_NAME);
	/* The pod may rename it at any moment. */
	steps_number(steps, "pod", link);
	return netns_execute(&call->pair, steps, NULL, err);
}

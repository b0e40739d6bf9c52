// SPDX-License-Identifier: Apache-2.0
/*
 * The ib-sriov plugin: an InfiniBand VF with its GUID, and its RDMA device where it is isolated,
 * goes into the pod and comes back.
 *
 * A new GUID takes effect when the VF's driver starts again: interface and RDMA device are others
 * then, so both are looked up by the PCI address. The RDMA device moves before the interface: with
 * it IPoIB interfaces end, and others begin (drivers/infiniband/core/device.c,
 * rdma_dev_change_netns()): in the pod, or on the node with kernels that put them there.
 *
 * Kept for DEL: {"device", "name", "index", "mtu", "txqlen", "altNames", "alias", "settings",
 * "rebind", "driver", "rdma", "rdmaIndex", "ipam"}, and for the ledger "guid", the pod's.
 */
#include <linux/if_arp.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/clock.h"
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/device_use.h"
#include "nodeagent/cni/execute/ipam_run.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/execute/rdma_files.h"
#include "nodeagent/cni/execute/rdma_move.h"
#include "nodeagent/cni/execute/rebind.h"
#include "nodeagent/cni/execute/vf_return.h"
#include "nodeagent/cni/plan/ib_sriov.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"

#define MOVED_MS 5000
#define BACK_MS  1000
#define LOOK_MS  10
#define NO_GUID  "ff:ff:ff:ff:ff:ff:ff:ff"

static int check_device(const struct plugin_call *call, const struct ib_sriov_config *config,
			struct host *host, const struct device *device, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *pod = netns_look_new();
	const json_t *taken = NULL;
	int owned = services->owns(services->context, config->device, err);
	bool exclusive = true;

	if (owned < 0)
		return -1;
	if (!owned)
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
	if (device_is_for_user_space(device) &&
	    device_use_check_vfio(call, "ib-sriov", host, config->device, device->driver, err))
		return -1;
	if (config->isolated && rdma_is_exclusive(call->pair.host, &exclusive, err))
		return -1;
	if (!exclusive)
		return err_set(
			err, ERR_HOST, "RdmaUnavailable",
			"ib-sriov: rdmaIsolation needs the RDMA subsystem in exclusive mode; set "
			"rdmaMode exclusive and reboot the node");
	if ((config->isolated &&
	     device_use_check_rdma(call, "ib-sriov", host, config->device, err)) ||
	    netns_observe_link(call->pair.pod, call->call->ifname, 0, pod, &taken, err))
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

	if (vf_settings(call, device, config->wanted, ret, err))
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

/* ---- the way back ---------------------------------------------------------------------------- */

/* What its PF was told, by the PF's name of now. */
static bool settings_back(const struct plugin_call *call, const json_t *saved,
			  const struct device *device)
{
	json_auto_t *steps = json_deep_copy(json_at(saved, "settings")), *links = netns_look_new();
	const json_t *pf = NULL;
	size_t i;
	json_t *step;

	if (json_array_size(steps) == 0)
		return true;
	if (!device->pf[0] ||
	    device_link(call->pair.host, device->pf, device->pf_index, links, &pf, NULL))
		return false;
	json_array_foreach (steps, i, step)
		json_put_str(step, "dev", device->pf);
	steps_number(steps, "host", pf);
	return netns_execute_all(&call->pair, steps, NULL) == 0;
}

/*
 * The interface as it was. One that is new, with its driver or its RDMA device, has nothing of
 * the pod's, and may refuse what the former one had: it gets its name alone.
 */
static bool interface_back(const struct plugin_call *call, const json_t *saved,
			   const struct device *device)
{
	bool is_new = json_is_true(json_at(saved, "rebind")) || json_at(saved, "rdma");
	const char *name = json_str_at(saved, "name");
	json_auto_t *steps = json_array(), *links = netns_look_new(), *was = json_object();
	struct sriov_return facts = {.saved = was};

	if (device_link(call->pair.host, device->netdev, device->netdev_index, links, &facts.link,
			NULL) ||
	    !facts.link)
		return false;
	facts.name_is_free =
		vf_name_is_free(call->pair.host, name, look_number(facts.link, "index"));
	if (!is_new)
		json_object_update(was, (json_t *)saved);
	(void)json_object_del(was, "settings");
	json_put_str(was, "name", name);
	sriov_plan_return(&facts, steps);
	steps_number(steps, "host", facts.link);
	return netns_execute_all(&call->pair, steps, NULL) == 0;
}

/*
 * All but addresses, as it was. False: not all could be done; err is a device that the pod keeps.
 */
static bool take_back(const struct plugin_call *call, struct host *host, const json_t *saved,
		      struct err *err)
{
	const char *address = json_str_or(json_at(saved, "device"), "");
	const char *name = json_str_at(saved, "name");
	struct device device;
	bool done;

	if (rdma_bring_back(call->pair.pod, call->pair.host, host, saved, err))
		return false;
	if (vf_bring_back(call, saved, err) || device_look(host, address, &device, NULL))
		return false;
	done = settings_back(call, saved, &device);
	if (json_is_true(json_at(saved, "rebind")))
		done &= device_rebind(host, address, json_str_at(saved, "driver"), &device, NULL) ==
			0;
	else if (name)
		/* It came back, or began, a moment ago. */
		done &= device_wait(host, address, BACK_MS, &device, NULL) == 0;
	if (name && device.netdev[0])
		done &= interface_back(call, saved, &device);
	return done && (!name || device.netdev[0]);
}

/* ---- ADD ------------------------------------------------------------------------------------- */

/*
 * The interface that the VF has in the pod by now, borrowed from *ret_look; NULL: none. before:
 * what the pod had, for kernels that do not name a link's device (before 5.14).
 */
static int find_in_pod(const struct plugin_call *call, const char *address, const json_t *before,
		       json_t **ret_look, const json_t **ret, struct err *err)
{
	size_t i;
	json_t *link;

	if (netns_observe(call->pair.pod, NETNS_LINKS, ret_look, err))
		return -1;
	json_array_foreach (json_at(*ret_look, "links"), i, link) {
		const char *parent = json_str_at(link, "parent");

		if (parent ? str_eq(parent, address)
			   : look_number(link, "type") == ARPHRD_INFINIBAND &&
				     !look_link_by_index(before, look_number(link, "index"))) {
			*ret = link;
			return 0;
		}
	}
	return 0;
}

/* Steps that make an interface of the pod, or of the node, that of the network. */
static void plan_interface(const char *in, const json_t *link, const char *ifname, json_t *steps)
{
	const char *name = json_str_at(link, "name");

	json_put_bool(steps_add(steps, in, "link", name), "up", false);
	if (str_eq(in, "host"))
		json_put_str(steps_add(steps, in, "move", name), "as", ifname);
	else if (!str_eq(name, ifname))
		json_put_str(steps_add(steps, in, "rename", name), "as", ifname);
	steps_number(steps, in, link);
	json_put_bool(steps_add(steps, "pod", "link", ifname), "up", true);
}

static int move_rdma(const struct plugin_call *call, const struct ib_sriov_config *config,
		     struct host *host, json_t *state, struct err *err)
{
	const struct attach_services *services = call->call->services;
	json_auto_t *names = device_rdma(host, config->device);
	const char *name = json_string_value(json_array_get(names, 0));
	struct rdma_place place = {0};

	if (json_array_size(names) != 1)
		return err_set(err, ERR_HOST, "NoRdmaDevice",
			       "ib-sriov: %s has %zu RDMA devices on the node, one is needed",
			       config->device, json_array_size(names));
	if (rdma_find(call->pair.host, name, &place, err))
		return -1;
	json_put_str(state, "rdma", name);
	json_put_int(state, "rdmaIndex", place.index);
	return services->save(services->context, state, err) ||
			       rdma_move(call->pair.host, call->pair.pod, &place, name, err) ||
			       rdma_files_keep(host, config->device, err)
		       ? -1
		       : 0;
}

/* Wherever it is, it becomes the pod's. before: links of the pod without it. */
static int move_interface(const struct plugin_call *call, const struct ib_sriov_config *config,
			  struct host *host, const json_t *before, struct err *err)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t end = clock_ms() + MOVED_MS;

	for (;;) {
		json_auto_t *pod = NULL, *node = netns_look_new(), *steps = json_array();
		const json_t *link = NULL;
		const char *in = "pod";
		struct device device;

		if (find_in_pod(call, config->device, before, &pod, &link, err))
			return -1;
		if (!link && device_look(host, config->device, &device, NULL) == 0 &&
		    device.netdev[0]) {
			in = "host";
			if (device_link(call->pair.host, device.netdev, device.netdev_index, node,
					&link, err))
				return -1;
		}
		if (link) {
			plan_interface(in, link, call->call->ifname, steps);
			return netns_execute(&call->pair, steps, NULL, err);
		}
		if (clock_ms() > end)
			return err_set(err, ERR_TRANSIENT, "InterfaceGone",
				       "ib-sriov: %s has no interface, neither on the node nor in "
				       "the pod, since its RDMA device moved",
				       config->device);
		(void)nanosleep(&pause, NULL);
	}
}

/* With its GUID set: RDMA device, interface, addresses. state: more of it is known on the way. */
static int move_in(const struct plugin_call *call, const struct ib_sriov_config *config,
		   struct host *host, const struct device *device, json_t *state, json_t *result,
		   struct err *err)
{
	bool has_interface = device->netdev[0] != '\0';
	json_auto_t *before = NULL;

	if (netns_observe(call->pair.pod, NETNS_LINKS, &before, err) ||
	    (config->isolated && move_rdma(call, config, host, state, err)) ||
	    (has_interface && move_interface(call, config, host, before, err)))
		return -1;
	result_add_interface(result, call->call->ifname, NULL, call->call->netns_path, 0, NULL);
	return ipam_is_wanted(call) ? ipam_add(call, has_interface, result, NULL, err) : 0;
}

static void undo_add(const struct plugin_call *call, struct host *host, const json_t *state)
{
	const struct attach_services *services = call->call->services;

	/* What cannot be taken back now, DEL takes back. */
	if (take_back(call, host, state, NULL))
		(void)services->save(services->context, NULL, NULL);
}

/* Look and decide: `state` is what will be saved, `settings` what the PF is to be told. */
static int decide(const struct plugin_call *call, const struct ib_sriov_config *config,
		  struct host *host, struct device *device, json_t *settings, json_t *state,
		  struct err *err)
{
	json_auto_t *links = netns_look_new(), *now = NULL, *undo = NULL;
	const json_t *link = NULL, *pf_link = NULL;
	bool has_driver;

	if (device_look(host, config->device, device, err) ||
	    check_device(call, config, host, device, err) ||
	    (device->netdev[0] && device_link(call->pair.host, device->netdev, device->netdev_index,
					      links, &link, err)) ||
	    vf_check_node(call, "ib-sriov", host, config->device, link, err) ||
	    device_link(call->pair.host, device->pf, device->pf_index, links, &pf_link, err) ||
	    look_at_settings(call, config, device, link, &now, err))
		return -1;
	sriov_plan_settings(device->pf, device->vf, now, config->wanted, settings);
	steps_number(settings, "host", pf_link);
	undo = steps_undo(settings);
	mend_zeros(undo);
	has_driver = device->netdev[0] != '\0';
	json_put_str(state, "device", config->device);
	json_put_str(state, "name", json_str_at(link, "name"));
	if (link) {
		json_put_int(state, "index", look_number(link, "index"));
		json_put_int(state, "mtu", look_number(link, "mtu"));
		json_put_int(state, "txqlen", look_number(link, "txqlen"));
		json_put_str(state, "alias", json_str_at(link, "alias"));
		json_put(state, "altNames",
			 json_at(link, "altNames") ? json_deep_copy(json_at(link, "altNames"))
						   : json_array());
	}
	json_put_str(state, "guid", config->guid[0] ? config->guid : json_str_at(now, "nodeGuid"));
	json_put(state, "settings", json_deep_copy(undo));
	json_put_str(state, "driver", device->driver[0] ? device->driver : NULL);
	json_put_bool(state, "rebind", has_driver && changes_guid(settings));
	json_put_bool(state, "ipam", ipam_is_wanted(call));
	return 0;
}

/* Keep what is about to be changed, and tell the PF. After a failure that is undone. */
static int change_settings(const struct plugin_call *call, struct host *host,
			   const json_t *settings, const json_t *state, struct err *err)
{
	const struct attach_services *services = call->call->services;

	if (services->save(services->context, state, err))
		return -1;
	if (netns_execute(&call->pair, settings, NULL, err) == 0)
		return 0;
	undo_add(call, host, state);
	return -1;
}

/*
 * The driver starts again in a process of its own: firmware takes seconds for each VF, and those of
 * eight rails one after the other would take longer than ADD may.
 */
static int ib_sriov_begin(const struct plugin_call *call, struct err *err)
{
	const int kept[] = {call->call->root, call->call->lock};
	auto_ib_sriov_config struct ib_sriov_config config = {0};
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *settings = json_array(), *state = json_object();
	struct device device;
	pid_t pid;

	if (!host || ib_sriov_config_read(call->call->config, &config, err) ||
	    decide(call, &config, host, &device, settings, state, err))
		return -1;
	if (!json_is_true(json_at(state, "rebind")))
		return 0;
	if (change_settings(call, host, settings, state, err))
		return -1;
	pid = child_fork(&(struct child_config){.dies_by = SIGKILL,
						.skips_handlers = true,
						.keep = kept,
						.n_keep = ARRAY_LEN(kept)});
	if (pid == 0) {
		struct host *here = device_host(call->call->root, NULL);

		_exit(here && device_restart(here, config.device, NULL, &device, NULL) == 0 ? 0
											    : 1);
	}
	*call->call->beside = pid;
	return 0;
}

/* The driver starts again, or has. What went wrong in a process of its own is tried once more. */
static int restart(const struct plugin_call *call, struct host *host, const json_t *state,
		   struct device *device, struct err *err)
{
	const char *address = json_str_at(state, "device");
	pid_t beside = call->call->beside ? *call->call->beside : 0;
	int status = -1;

	if (!json_is_true(json_at(state, "rebind")))
		return 0;
	if (beside > 0 && waitpid(beside, &status, 0) == beside && status == 0)
		return device_wait(host, address, REBIND_MS, device, err);
	if (beside && device_look(host, address, device, err))
		return -1;
	return device_rebind(host, address, json_str_at(state, "driver"), device, err);
}

static int ib_sriov_add(const struct plugin_call *call, json_t **ret_result, struct err *err)
{
	auto_ib_sriov_config struct ib_sriov_config config = {0};
	auto_host struct host *host = device_host(call->call->root, err);
	json_auto_t *settings = json_array(), *state = json_object(), *result = result_new();
	bool has_begun = call->call->beside && *call->call->beside;
	struct device device = {.vf = -1};

	if (!host || ib_sriov_config_read(call->call->config, &config, err))
		return -1;
	if (has_begun)
		json_object_update(state, (json_t *)call->call->saved);
	else if (decide(call, &config, host, &device, settings, state, err) ||
		 change_settings(call, host, settings, state, err))
		return -1;
	if (restart(call, host, state, &device, err) ||
	    move_in(call, &config, host, &device, state, result, err)) {
		undo_add(call, host, state);
		return -1;
	}
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
	int owned = device ? services->owns(services->context, device, err) : 0;
	bool has_ipam = json_is_true(json_at(rest, "ipam")), done = true;
	struct err stuck = {0};

	if (!host || owned < 0)
		return -1;
	if (!rest)
		return ipam_del_unrecorded(call, err);
	if (owned)
		done = take_back(call, host, rest, &stuck);
	/* Not before the interface has left: the next pod may have its addresses at once. */
	if (has_ipam && !stuck.class && ipam_del(call, NULL) == 0)
		has_ipam = false;
	json_put_bool(rest, "ipam", has_ipam);
	done = done && !has_ipam;
	(void)services->save(services->context, done ? NULL : rest, NULL);
	if (!stuck.class)
		return 0;
	if (err)
		*err = stuck;
	return err_in(err, "ib-sriov: bring %s back to the node", device);
}

const struct plugin plugin_ib_sriov = {
	.type = "ib-sriov",
	.begin = ib_sriov_begin,
	.add = ib_sriov_add,
	.check = ib_sriov_check,
	.del = ib_sriov_del,
};

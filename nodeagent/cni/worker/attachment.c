// SPDX-License-Identifier: Apache-2.0
/*
 * The record on the disk comes before each change and goes after the last one; between them the
 * planner of the plugin runs (attach_run()). Below cni_worker.c; what planners may ask for is
 * served here.
 */
#include "nodeagent/cni/worker/attachment.h"

#include "lib/base/clock.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/coordinator_detect.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plugin/deadlines.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/cni/state/install.h"
#include "nodeagent/cni/state/legacy_state.h"
#include "nodeagent/cni/worker/allocated.h"
#include "nodeagent/cni/worker/allowed_types.h"
#include "nodeagent/cni/worker/attachment_record.h"
#include "nodeagent/cni/worker/external_ipam.h"
#include "nodeagent/cni/worker/meta_call.h"
#include "nodeagent/cni/worker/pod_addresses.h"
#include "nodeagent/cni/worker/spiderpool.h"

/* ---- spiderpool ------------------------------------------------------------------------------ */

/*
 * Nothing is changed on the node, so nothing is written before; afterwards, since whoever has a
 * record here has the addresses. What failed may have been asked for, and is given back.
 */
static int spiderpool_add(struct attachment *a, json_t **ret_result, struct err *err)
{
	bool has_asked = false;
	json_auto_t *result = pod_addresses_ask(a, &has_asked, err);

	if (!result && !has_asked)
		return -1;
	if (!result) {
		(void)attachment_record_put(a, (struct record_change){.phase = "deleting"}, true,
					    NULL);
		return -1;
	}
	if (attachment_record_put(a, (struct record_change){.phase = "added", .result = result},
				  false, err) < 0)
		return -1;
	*ret_result = take_ptr(result);
	return 0;
}

/*
 * The agent is away, or cannot say now: that is worked off later, also when there was no record,
 * for addresses may have been asked for. What it refuses for good it refuses again.
 */
static void spiderpool_delete(struct attachment *a)
{
	struct err err = {0};
	json_auto_t *answer = worker_channel_ask_for(
		a, "release", worker_channel_request_new(a, "release"), &err);

	if (answer)
		(void)attachment_record_put(a, (struct record_change){.is_gone = true}, true, NULL);
	else
		(void)attachment_record_put(
			a,
			(struct record_change){.phase = "deleting",
					       .must_exist = err.class != ERR_TRANSIENT},
			true, NULL);
}

/* ---- services for the planners --------------------------------------------------------------- */

static bool takes_device(const char *plugin)
{
	return !str_eq(plugin, "coordinator") && !str_eq(plugin, SPIDERPOOL) &&
	       !str_eq(plugin, META_PLUGIN) &&
	       (!attach_is_common(plugin) || str_eq(plugin, "host-device"));
}

static int save(void *context, const json_t *state, struct err *err)
{
	const struct attachment *a = context;

	/*
	 * A DEL without a record has one as soon as something has to wait. Who has no device to
	 * give up is done once nothing is saved.
	 */
	return attachment_record_put(
		a,
		(struct record_change){.phase = a->is_going ? "deleting" : "adding",
				       .saved = state,
				       .has_saved = true,
				       .is_gone = !state && a->is_going &&
						  !takes_device(a->key.plugin),
				       .must_exist = !state},
		true, err);
}

static int save_more(void *context, const json_t *state, struct err *err)
{
	return attachment_record_put(
		context, (struct record_change){.saved = state, .has_saved = true}, false, err);
}

static void keep(void *context, const json_t *state)
{
	struct attachment *a = context;

	json_decref(a->kept);
	a->kept = json_deep_copy(state);
}

/* It is there now: what is known of it, and what it printed. */
static int put_added(struct attachment *a, const json_t *result, struct err *err)
{
	json_auto_t *kept = take_ptr(a->kept);

	return attachment_record_put(a,
				     (struct record_change){.phase = "added",
							    .saved = kept,
							    .has_saved = kept != NULL,
							    .result = result},
				     false, err);
}

static int owns(void *context, const char *address, struct err *err)
{
	const struct attachment *a = context;

	return device_is_owned(a->state, address, a->container, err);
}

static int is_given(void *context, const char *address, struct err *err)
{
	const struct attachment *a = context;

	return allocated_is_given(a->kubelet_dir, address, json_str_at(a->pod, "uid"), err);
}

/* The call fails whether the agent hears it or not. */
static void report(void *context, const json_t *conflicts)
{
	struct attachment *a = context;
	json_t *question = worker_channel_request_new(a, "conflict");

	json_put(question, "conflicts", json_incref((json_t *)conflicts));
	json_decref(worker_channel_ask_for(a, "conflict", question, NULL));
}

static void took(void *context, int64_t kernel_us)
{
	worker_channel_note_step(context, "kernel", kernel_us, true);
}

/*
 * Is the call for us? Under the names of containernetworking-plugins a program of theirs that is on
 * the node goes before ours, but for what ours has attached.
 */
static bool is_ours(const struct attachment *a)
{
	json_auto_t *record = NULL;
	auto_free char *path = NULL;

	if (!attachment_knows(a->key.plugin))
		return false;
	if (!attach_is_common(a->key.plugin) || attachment_record_load(a, &record, NULL) < 0 ||
	    record)
		return true;
	path = a->has_plugin ? str_dup(json_str_or(json_at(a->env, "CNI_PATH"), ""))
			     : external_ipam_path(a, a->key.plugin);
	return !install_is_other(a->root, path, a->key.plugin);
}

/* IPAM that is an attachment of ours, as its own record and files have it. */
static bool is_own_ipam(const struct attachment *a)
{
	return (str_eq(a->key.plugin, "static") || str_eq(a->key.plugin, "host-local")) &&
	       is_ours(a);
}

/* The program that a plugin of ours is would ask us, and wait for the call that it is part of. */
static bool is_own_without_addresses(const struct attachment *a)
{
	return !str_eq(a->key.plugin, SPIDERPOOL) && !is_own_ipam(a) && is_ours(a);
}

static int ipam(void *context, const char *command, const json_t *config, json_t **ret_result,
		struct err *err)
{
	struct attachment *a = context;
	const char *type = json_str_at(config, "ipam", "type");
	struct attachment inner = *a; /* as its IPAM plugin sees it: the same call */
	int64_t begun = clock_us();
	int rc;

	if (a->is_handed_over || (a->has_no_ipam && str_eq(command, "DEL")))
		return 0;
	if (!type)
		return err_set(err, ERR_INVALID, "NoIpam", "ipam has no type");
	inner.key.plugin = type;
	inner.config = config;
	inner.kept = NULL;
	if (is_own_without_addresses(&inner))
		return str_eq(command, "DEL")
			       ? 0
			       : err_set(err, ERR_INVALID, "BadNetworkConfig",
					 "ipam.type \"%s\" gives no addresses; name an IPAM plugin",
					 type);
	if (!str_eq(type, SPIDERPOOL) && !is_own_ipam(&inner)) {
		rc = external_ipam_run(a, type, command, config, ret_result, err);
		worker_channel_note_step(a, "ipam", clock_us() - begun, rc == 0);
		return rc;
	}
	if (str_eq(command, "ADD"))
		return attachment_add(&inner, ret_result, err);
	if (str_eq(command, "DEL"))
		return attachment_delete(&inner, err);
	return str_eq(type, SPIDERPOOL) ? 0 : attachment_check(&inner, err);
}

/* Of meta_services: one of ours is an attachment like any. */
static int call_plugin(struct attachment *a, const char *command, json_t **ret_result,
		       struct err *err)
{
	if (str_eq(command, "ADD"))
		return attachment_add(a, ret_result, err);
	if (str_eq(command, "CHECK"))
		return attachment_check(a, err);
	/* GC is for records, of whatever plugin; STATUS is the server's. */
	return str_eq(command, "DEL") ? attachment_delete(a, err) : 0;
}

static void add_text(json_t *list, const json_t *address)
{
	if (json_is_string(address))
		json_array_append(list, (json_t *)address);
}

/* Addresses that the sandbox has from IP pools, of whatever interface; new. */
static json_t *granted_addresses(const struct attachment *a)
{
	json_auto_t *sandbox = sandbox_read(a->state, a->container, NULL);
	json_t *list = json_array();
	const json_t *record, *ip;
	size_t i, k;

	json_array_foreach (json_at(sandbox, "attachments"), i, record) {
		const json_t *result = json_at(record, "result");

		if (!str_eq(json_str_at(record, "plugin"), SPIDERPOOL))
			continue;
		json_array_foreach (json_at(result, "ips"), k, ip)
			add_text(list, json_at(ip, "address"));
		/* CNI 0.2.0. */
		add_text(list, json_at(result, "ip4", "ip"));
		add_text(list, json_at(result, "ip6", "ip"));
	}
	return list;
}

static int run(struct attachment *a, enum attach_command command, const json_t *saved,
	       const json_t *settings, json_t **ret_result, struct err *err)
{
	const struct meta_services meta = {
		.context = a,
		.save = save,
		.save_more = save_more,
		.own = {.is_ours = is_ours,
			.begins = attachment_begins,
			.begin = attachment_begin,
			.call = call_plugin},
	};
	const struct attach_services services = {
		.context = a,
		.save = save,
		.keep = keep,
		.ipam = ipam,
		.owns = owns,
		.is_given = is_given,
		.report = report,
		.took = took,
	};
	json_auto_t *granted = granted_addresses(a);
	const struct attach_call call = {
		.granted = granted,
		.later = a->later,
		.finding = a->shared ? json_at(a->shared->findings, a->key.ifname) : NULL,
		.command = command,
		.type = a->key.plugin,
		.container_id = a->container,
		.ifname = a->key.ifname,
		.netns_path = json_str_at(a->env, "CNI_NETNS"),
		.args = json_str_at(a->env, "CNI_ARGS"),
		.pod_namespace = json_str_at(a->pod, "namespace"),
		.pod_name = json_str_at(a->pod, "name"),
		.pod_uid = json_str_at(a->pod, "uid"),
		.netns = a->netns,
		.host_netns = -1,
		.worker = a->worker,
		.root = a->root,
		.kubelet_dir = a->kubelet_dir,
		.beside = &a->beside,
		.lock = a->lock,
		.config = a->config,
		.settings = settings,
		.saved = saved,
		.services = &services,
	};
	int64_t begun = clock_us();
	int rc = str_eq(a->key.plugin, META_PLUGIN)
			 ? meta_call_run(a, command, saved, &meta, ret_result, err)
			 : attach_run(&call, ret_result, err);

	worker_channel_note_step(a, "attach", clock_us() - begun, rc == 0);
	return rc;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

bool attachment_knows(const char *plugin)
{
	return str_eq(plugin, SPIDERPOOL) || str_eq(plugin, META_PLUGIN) || attach_knows(plugin);
}

bool attachment_stacks(const char *plugin)
{
	return str_eq(plugin, "tuning");
}

bool attachment_begins(const char *plugin)
{
	return str_eq(plugin, "ib-sriov");
}

/*
 * What the cluster says of coordinators; *ret is new, or NULL: nothing is asked for this plugin. It
 * is the pod's, whatever its interface.
 */
static int get_settings(struct attachment *a, json_t **ret, struct err *err)
{
	if (!str_eq(a->key.plugin, "coordinator"))
		return 0;
	*ret = a->shared ? json_incref(a->shared->settings) : NULL;
	if (*ret)
		return 0;
	*ret = worker_channel_ask_for(a, "settings", worker_channel_request_new(a, "coordinator"),
				      err);
	if (*ret && a->shared)
		a->shared->settings = json_incref(*ret);
	return *ret ? 0 : -1;
}

/* The first coordinator looks for conflicts of all NICs whose coordinators come next. */
static void detect_for_pod(struct attachment *a, const json_t *settings)
{
	struct attachment_shared *shared = a->shared;

	if (shared && !shared->findings && str_eq(a->key.plugin, "coordinator"))
		shared->findings = coordinator_detect(&a->worker->namespaces, a->netns,
						      shared->nics, settings);
}

/*
 * Give the device up, unless another plugin of the sandbox has something to put back on it: sriov
 * comes after rdma, and a pod that came in between would take the VF as it is for its normal state.
 */
static void give_up_device(const struct attachment *a, const char *device)
{
	json_auto_t *sandbox = NULL;
	const json_t *own, *record;
	size_t i;

	/* One that is kept is free once its sandbox is gone. */
	if (sandbox_load(a->state, a->container, &sandbox, NULL) < 0)
		return;
	own = sandbox_find(sandbox, &a->key);
	json_array_foreach (json_at(sandbox, "attachments"), i, record)
		if (record != own && takes_device(json_str_or(json_at(record, "plugin"), "")) &&
		    str_eq(device_of(json_at(record, "config")), device))
			return;
	device_release(a->state, device, a->container);
}

/*
 * Undo what a sandbox that is gone has changed on the device. Its addresses wait for its own DEL.
 * The device is locked.
 */
static int undo_on_device(const struct attachment *a, const json_t *sandbox, const json_t *record,
			  struct err *err)
{
	struct attachment last = *a;
	json_auto_t *left = NULL, *saved = NULL;

	last.container = json_str_at(sandbox, "container");
	last.key =
		(struct sandbox_key){json_str_at(record, "plugin"), json_str_at(record, "network"),
				     json_str_at(record, "ifname")};
	last.config = json_at(record, "config");
	last.env = json_at(record, "env");
	last.pod = json_at(sandbox, "pod");
	last.netns = -1;
	last.is_going = last.is_handed_over = true;
	if (run(&last, ATTACH_DEL, json_at(record, "saved"), NULL, NULL, err) < 0)
		return -1;
	if (attachment_record_load(&last, &left, err) < 0)
		return -1;
	if (!json_at(left, "saved"))
		return 0;
	/* Its own DEL finds that its addresses are still to be given back. */
	saved = json_deep_copy(json_at(left, "saved"));
	json_put(saved, "ipam", json_incref(json_at(record, "saved", "ipam")));
	(void)attachment_record_put(
		&last, (struct record_change){.saved = saved, .has_saved = true}, true, NULL);
	return err_set(err, ERR_TRANSIENT, "DeviceBusy", "its PF does not answer");
}

/* The same for a sandbox that sriov-cni set up before we came. */
static int take_over_from_upstream(const struct attachment *a, const char *device, struct err *err)
{
	struct err why = {0};
	json_auto_t *holder = legacy_state_holder(a->root, device, &why);
	struct sandbox_key key;

	if (why.class) {
		if (err)
			*err = why;
		return -1;
	}
	if (!holder)
		return 0;
	if (json_is_true(json_at(holder, "lives")))
		return err_set(err, ERR_CONFLICT, "DeviceBusy",
			       "%s: a pod that sriov-cni set up has the device %s still; it is "
			       "free when that pod has gone",
			       a->key.plugin, device);
	if (!json_at(holder, "saved"))
		return 0;
	if (undo_on_device(a, holder, holder, err) < 0)
		return err_in(err, "%s: put %s back as it was before sriov-cni attached it",
			      a->key.plugin, device);
	key = (struct sandbox_key){"sriov", json_str_at(holder, "network"),
				   json_str_at(holder, "ifname")};
	legacy_state_forget(a->root, json_str_at(holder, "container"), &key, device);
	return 0;
}

/*
 * The kubelet may give a device away before its last pod's DEL has come. Never from a sandbox that
 * lives; of one that is gone, what it changed is undone first, or the next pod would take that for
 * the device's normal state.
 */
static int take_over(const struct attachment *a, const char *device, struct err *err)
{
	auto_free char *owner = NULL;
	json_auto_t *sandbox = NULL;
	const json_t *records, *record;
	const char *ns, *name;

	if (device_owner(a->state, device, &owner, err) < 0)
		return -1;
	if (!owner)
		return take_over_from_upstream(a, device, err);
	if (str_eq(owner, a->container))
		return 0;
	if (sandbox_load(a->state, owner, &sandbox, err) < 0)
		return -1;
	ns = json_str_or(json_at(sandbox, "pod", "namespace"), "?");
	name = json_str_or(json_at(sandbox, "pod", "name"), "?");
	records = json_at(sandbox, "attachments");
	for (size_t i = json_array_size(records); i > 0; i--) {
		record = json_array_get(records, i - 1);
		if (!takes_device(json_str_or(json_at(record, "plugin"), "")) ||
		    !str_eq(device_of(json_at(record, "config")), device))
			continue;
		if (sandbox_life(sandbox, a->root, NULL) != NETNS_GONE)
			return err_set(err, ERR_CONFLICT, "DeviceBusy",
				       "%s: pod %s/%s has the device %s still; it is free when "
				       "that pod has gone",
				       a->key.plugin, ns, name, device);
		if (undo_on_device(a, sandbox, record, err) < 0)
			return err_in(err, "%s: put %s back as it was before pod %s/%s",
				      a->key.plugin, device, ns, name);
	}
	return 0;
}

/* What could not be undone is in `saved`, and waits. */
static void clean_up(struct attachment *a, const char *device)
{
	json_auto_t *record = NULL;

	/* What there is to undo may be in it. */
	if (attachment_record_load(a, &record, NULL) < 0 || json_at(record, "saved")) {
		(void)attachment_record_put(a, (struct record_change){.phase = "deleting"}, true,
					    NULL);
		return;
	}
	if (device)
		give_up_device(a, device);
	(void)attachment_record_put(a, (struct record_change){.is_gone = true}, true, NULL);
}

/* command: ADD or BEGIN. */
static int add_with_device(struct attachment *a, enum attach_command command, json_t **ret_result,
			   struct err *err)
{
	const char *device = takes_device(a->key.plugin) ? device_of(a->config) : NULL;
	json_auto_t *settings = NULL, *result = NULL, *record = NULL;
	auto_close int lock = device ? device_lock(a->state, device, WORKER_ADD_LOCK_MS, err) : -1;
	int rc;

	if (device && lock < 0)
		return -1;
	if (allocated_check(a->kubelet_dir, a->root, a->config, a->pod, err) < 0)
		return err_in(err, "%s", a->key.plugin);
	if (get_settings(a, &settings, err) < 0 ||
	    ((attachment_stacks(a->key.plugin) || a->beside) &&
	     attachment_record_load(a, &record, err) < 0))
		return -1;
	detect_for_pod(a, settings);
	if (device && take_over(a, device, err) < 0)
		return -1;
	/* Whoever has no device has changed nothing before the first save(). */
	if (device &&
	    attachment_record_put(a, (struct record_change){.phase = "adding"}, true, err) < 0)
		return -1;
	a->lock = lock;
	rc = device ? device_claim(a->state, device, a->container, a->key.ifname, err) : 0;
	if (rc == 0)
		rc = run(a, command, json_at(record, "saved"), settings, &result, err);
	if (rc == 0 && command == ATTACH_ADD)
		rc = put_added(a, result, err);
	if (rc == 0)
		*ret_result = take_ptr(result);
	else
		clean_up(a, device);
	json_decref(take_ptr(a->kept));
	return rc;
}

/* May the pod have the programs that the plugin would call? */
static int check_programs(const struct attachment *a, struct err *err)
{
	json_auto_t *calls = json_copy((json_t *)a->config);

	/* Itself is ours, and an IPAM plugin of ours is not a program. */
	(void)json_object_del(calls, "type");
	if (attachment_knows(json_str_or(json_at(calls, "ipam", "type"), "")))
		(void)json_object_del(calls, "ipam");
	return allowed_types_check_config(a, calls, err);
}

int attachment_begin(struct attachment *a, struct err *err)
{
	json_t *none = NULL;

	return check_programs(a, err) < 0 ? -1 : add_with_device(a, ATTACH_BEGIN, &none, err);
}

int attachment_add(struct attachment *a, json_t **ret_result, struct err *err)
{
	if (check_programs(a, err) < 0)
		return -1;
	return str_eq(a->key.plugin, SPIDERPOOL) ? spiderpool_add(a, ret_result, err)
						 : add_with_device(a, ATTACH_ADD, ret_result, err);
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

int attachment_check(struct attachment *a, struct err *err)
{
	json_auto_t *record = NULL, *settings = NULL;

	if (attachment_record_load(a, &record, err) < 0)
		return -1;
	/* What containernetworking-plugins made is compared with prevResult, as they do. */
	if (!record && !attach_is_common(a->key.plugin))
		return err_set(err, ERR_INVALID, "NotAttached",
			       "%s has not attached %s to network %s in this sandbox: make the pod "
			       "anew",
			       a->key.plugin, a->key.ifname, a->key.network);
	if (str_eq(a->key.plugin, SPIDERPOOL))
		return 0;
	if (get_settings(a, &settings, err) < 0)
		return -1;
	return run(a, ATTACH_CHECK, json_at(record, "saved"), settings, NULL, err);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

static int delete_with_device(struct attachment *a, const json_t *record, struct err *err)
{
	const char *device = takes_device(a->key.plugin) ? device_of(a->config) : NULL;
	auto_close int lock = device ? device_lock(a->state, device, WORKER_DEL_LOCK_MS, NULL) : -1;
	json_auto_t *left = NULL;
	int rc;

	/* Without the lock its owner cannot be known: later. */
	if (device && lock < 0)
		return 0;
	rc = run(a, ATTACH_DEL, json_at(record, "saved"), NULL, NULL, err);
	if (rc < 0 || attachment_record_load(a, &left, err) < 0)
		return -1;
	if (json_at(left, "saved"))
		return 0;
	if (device)
		give_up_device(a, device);
	return left ? attachment_record_put(a, (struct record_change){.is_gone = true}, true, err)
		    : 0;
}

/*
 * What another plugin, whose name we have now, kept of this attachment becomes our record, once.
 * New; NULL: nothing is known, or err says why it cannot be.
 */
static json_t *adopt_record(const struct attachment *a, struct err *err)
{
	json_auto_t *saved = legacy_state_read(a->root, a->container, &a->key, err);
	json_auto_t *config = NULL;
	struct attachment then = *a;

	if (!saved)
		return NULL;
	config = json_copy((json_t *)a->config);
	json_put(config, "deviceID", json_incref(json_at(saved, "device")));
	then.config = config;
	/* Without a disk it is done all the same, and done again. */
	if (attachment_record_put(
		    &then,
		    (struct record_change){.phase = "deleting", .saved = saved, .has_saved = true},
		    true, NULL) == 0)
		legacy_state_forget(a->root, a->container, &a->key, json_str_at(saved, "device"));
	return json_pack("{s:s, s:O, s:O}", "phase", "deleting", "config", config, "saved", saved);
}

int attachment_delete(struct attachment *a, struct err *err)
{
	json_auto_t *record = NULL;
	struct attachment then = *a;
	struct err why = {0};
	int rc = 0;

	then.is_going = true;
	if (attachment_record_load(a, &record, err) < 0)
		return -1;
	/* What the disk cannot take now is tried all the same. */
	if (!record)
		record = adopt_record(&then, &why);
	if (why.class) {
		if (err)
			*err = why;
		return -1;
	}
	/* That all of the pod go, the meta plugin's record says already. */
	if (record && !str_eq(json_str_at(record, "phase"), "deleting") &&
	    (!a->shared || takes_device(a->key.plugin)))
		(void)attachment_record_put(
			&then, (struct record_change){.phase = "deleting", .must_exist = true},
			true, NULL);
	if (json_at(record, "config"))
		then.config = json_at(record, "config");
	if (!a->has_plugin && json_at(record, "env"))
		then.env = json_at(record, "env");
	if (str_eq(a->key.plugin, SPIDERPOOL))
		spiderpool_delete(&then);
	else
		rc = delete_with_device(&then, record, err);
	return rc;
}

/* ---- the cluster's network ------------------------------------------------------------------- */

int attachment_pass(struct attachment *a, const char *command, struct err *err)
{
	const struct meta_services meta = {
		.context = a,
		.own = {.is_ours = is_ours, .call = call_plugin},
	};

	return meta_call_pass(a, command, &meta, err);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One call: ask the agent, decide (nodeagent/cni/plan), record, call plugin after plugin, record
 * again. Above plugin_calls.c, below attachment.c.
 */
#include "nodeagent/cni/worker/meta_call.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/pci_address.h"
#include "lib/base/random.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_visit.h"
#include "nodeagent/cni/plan/default_route.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/meta_run.h"
#include "nodeagent/cni/plan/multus_state.h"
#include "nodeagent/cni/plan/network_status.h"
#include "nodeagent/cni/plan/plugin_order.h"
#include "nodeagent/cni/plugin/deadlines.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/allocated.h"
#include "nodeagent/cni/worker/allowed_types.h"
#include "nodeagent/cni/worker/conf.h"
#include "nodeagent/cni/worker/plugin_calls.h"
#include "nodeagent/cni/worker/pod_addresses.h"
#include "nodeagent/cni/worker/worker_channel.h"

#define DEVICE_INFO_MAX 65536

struct meta_call {
	struct attachment *a;
	const struct meta_services *services;
	json_t *delegates;
	char *pod_uid; /* as the API server has it; a static pod has another one on its node */
};

/* ---- what is known of the pod ---------------------------------------------------------------- */

/* {"pod", "nads", "devices"}, new. */
static json_t *ask_networks(struct attachment *a, struct err *err)
{
	json_t *question = worker_channel_request_new(a, "networks");

	json_put(question, "config", json_deep_copy(a->config));
	return worker_channel_ask(a->line, question, err);
}

/* Where a Multus before us looked, first. New; NULL with err of conf_files(). */
static json_t *read_confs(const struct attachment *a, struct err *err)
{
	const char *multus = json_str_at(a->config, "multusConfDir");
	const char *folder = json_str_or(json_at(a->config, "confDir"), META_CONF_DIR);
	json_auto_t *confs = json_array();

	if ((multus && conf_read_all(a->root, multus, confs, err) < 0) ||
	    conf_read_all(a->root, folder, confs, err) < 0)
		return NULL;
	return take_ptr(confs);
}

/* For definitions that leave their configuration to the node, and names that may be files'. */
static bool needs_confs(const json_t *config, const json_t *nads)
{
	const char *key;
	json_t *nad;

	if (json_array_size(json_at(config, "defaultNetworks")))
		return true;

	json_each (nads, key, nad)
		if (str_empty(json_str_at(nad, "spec", "config")))
			return true;
	return false;
}

static json_t *names_of(const json_t *look)
{
	json_t *names = json_array(), *link;
	size_t i;

	json_array_foreach (json_at(look, "links"), i, link)
		json_array_append(names, json_at(link, "name"));
	return names;
}

/* Has the sandbox of another pod this device still, or may it have? -1 with err: unknown. */
static int is_of_other(const struct attachment *a, const char *device, struct err *err)
{
	auto_free char *owner = NULL;
	json_auto_t *sandbox = NULL;

	if (!pci_address_is_valid(device))
		return 0;
	if (device_owner(a->state, device, &owner, err) < 0)
		return -1;
	if (!owner || str_eq(owner, a->container))
		return 0;
	if (sandbox_load(a->state, owner, &sandbox, err) < 0)
		return -1;
	return sandbox && sandbox_is_of_other_pod(sandbox, json_str_at(a->pod, "uid")) &&
	       sandbox_life(sandbox, a->root, NULL) != NETNS_GONE;
}

/*
 * The kubelet names pods by namespace and name: beside a pod of a StatefulSet that was made anew
 * the one before it, deleted by force and ending still, has devices of the same name. By UID they
 * are told apart here. New; NULL with err: they cannot be told apart now.
 */
static json_t *own_devices(const struct attachment *a, const json_t *devices, struct err *err)
{
	json_auto_t *own = devices ? json_deep_copy(devices) : json_array();
	json_t *entry;
	size_t i;

	json_array_foreach (own, i, entry) {
		json_t *ids = json_at(entry, "ids");

		for (size_t k = json_array_size(ids); k-- > 0;) {
			int is_other = is_of_other(a, json_str_or(json_array_get(ids, k), ""), err);

			if (is_other < 0)
				return NULL;
			if (is_other)
				json_array_remove(ids, k);
		}
	}
	return take_ptr(own);
}

/* The delegates, new. */
static json_t *decide(const struct attachment *a, const json_t *known, struct err *err)
{
	json_t *delegates;
	json_auto_t *look = NULL, *links = NULL, *files = NULL;
	json_auto_t *devices = own_devices(a, json_at(known, "devices"), err);
	struct meta_input in = {
		.container_id = a->container,
		.ifname = a->key.ifname,
		.args = json_str_at(a->env, "CNI_ARGS"),
		.config = a->config,
		.pod = json_at(known, "pod"),
		.nads = json_at(known, "nads"),
		.devices = devices,
		.served = json_at(known, "served"),
	};

	if (!devices || netns_visit(&a->worker->namespaces, a->netns, NETNS_LINKS, &look, err) < 0)
		return NULL;
	links = names_of(look);
	in.links = links;
	if (needs_confs(a->config, in.nads)) {
		in.files = files = read_confs(a, err);
		if (!files)
			return NULL;
	}
	delegates = meta_delegates(&in, err);
	if (delegates &&
	    (allowed_types_check(a, delegates, err) < 0 ||
	     allocated_check_delegates(a->kubelet_dir, a->root, delegates, a->pod, err) < 0)) {
		json_decref(delegates);
		return NULL;
	}
	return delegates;
}

/* ---- device-info files ----------------------------------------------------------------------- */

/*
 * A file of the host with JSON, new; NULL: there is none, or err says why it cannot be read. Its
 * text is appended to ret_text.
 */
static json_t *read_json(const struct attachment *a, const char *path, size_t max,
			 struct strbuf *ret_text, struct err *err)
{
	auto_free char *folder = str_ndup(path, (size_t)(strrchr(path, '/') - path));
	auto_close int dir = root_open(a->root, folder, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		(void)err_sys(err, "FileUnreadable", "open %s", folder);
	else if (fs_read(dir, strrchr(path, '/') + 1, max, ret_text, err) == 0)
		return json_parse(strbuf_str(ret_text), ret_text->len, NULL);
	return NULL;
}

/*
 * Give the attachment a copy of what the device plugin says of the device, if it says something
 * (Device Information Specification 1.1.0). Its plugins may write the file instead, or over it.
 */
static void copy_device_info(const struct attachment *a, const json_t *delegate)
{
	const char *resource = json_str_at(delegate, "resourceName");
	const char *device = json_str_at(delegate, "deviceID");
	const char *to = json_str_at(delegate, "deviceInfo");
	auto_free char *from = NULL, *folder = NULL;
	auto_strbuf struct strbuf text = {0};
	json_auto_t *info = NULL;
	struct err err = {0};

	if (!to)
		return;
	folder = str_ndup(to, (size_t)(strrchr(to, '/') - to));
	if (resource && device) {
		from = meta_device_info_source(resource, device);
		info = read_json(a, from, DEVICE_INFO_MAX, &text, NULL);
	}
	if (root_make_dirs(a->root, folder, 0755) < 0 ||
	    (info && root_write_atomic(a->root, to, text.data, text.len, 0444, &err) < 0))
		log_warn("the device-info file of an attachment is not written", F_STR("file", to),
			 F_ERR(&err));
}

static void copy_device_infos(const struct meta_call *m)
{
	json_t *delegate;
	size_t i;

	json_array_foreach (m->delegates, i, delegate)
		copy_device_info(m->a, delegate);
}

/*
 * What the files have once the plugins have run: new, one for each delegate; null where there is no
 * file: network-status goes without then.
 */
static json_t *read_device_infos(const struct meta_call *m)
{
	json_t *infos = json_array(), *delegate;
	size_t i;

	json_array_foreach (m->delegates, i, delegate) {
		const char *path = json_str_at(delegate, "deviceInfo");
		auto_strbuf struct strbuf text = {0};
		json_t *info = path ? read_json(m->a, path, DEVICE_INFO_MAX, &text, NULL) : NULL;

		json_array_append_new(infos, info ? info : json_null());
	}
	return infos;
}

static void remove_device_infos(const struct meta_call *m)
{
	json_t *delegate;
	size_t i;

	json_array_foreach (m->delegates, i, delegate)
		if (json_str_at(delegate, "deviceInfo"))
			(void)root_remove(m->a->root, json_str_at(delegate, "deviceInfo"));
}

/* ---- a Multus beside us ---------------------------------------------------------------------- */

static char *multus_file(const struct attachment *a)
{
	return str_printf("%s/%s", MULTUS_STATE_DIR, a->container);
}

/* Where libcni keeps a network's result for Multus. */
static char *multus_result_file(const struct attachment *a, const json_t *delegate)
{
	return str_printf("%s/results/%s-%s-%s", MULTUS_STATE_DIR,
			  json_str_at(delegate, "config", "name"), a->container,
			  json_str_at(delegate, "interface"));
}

static json_t *read_state(const struct attachment *a, const char *path, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	return read_json(a, path, MULTUS_STATE_MAX, &text, err);
}

/* Is a Multus installed, which may be asked to take this sandbox down? */
static bool has_multus(const struct attachment *a)
{
	static const char *const names[] = {"multus", "multus-shim"};
	auto_free char *path = str_dup(json_str_or(json_at(a->env, "CNI_PATH"), ""));
	char *rest = path, *folder;
	struct stat st;

	while ((folder = strsep(&rest, ":")))
		for (size_t i = 0; *folder && i < ARRAY_LEN(names); i++) {
			auto_free char *file = str_below(folder, names[i]);

			if (root_stat(a->root, file, &st) == 0)
				return true;
		}
	return false;
}

static void leave_for_multus(const struct meta_call *m)
{
	auto_free char *file = multus_file(m->a), *text = NULL;
	json_auto_t *state = NULL;
	struct err err = {0};

	if (!has_multus(m->a))
		return;
	state = multus_state_write(m->delegates);
	text = json_text(state);
	if (root_make_dirs(m->a->root, MULTUS_STATE_DIR, 0700) < 0 ||
	    root_write_atomic(m->a->root, file, text, strlen(text), 0600, &err) < 0)
		log_warn("what a Multus would need to take a sandbox down is not written",
			 F_STR("file", file), F_ERR(&err));
}

/* -1 with err: it cannot be known now whether there is something. */
static int find_what_multus_left(struct meta_call *m, json_t **results, struct err *err)
{
	const struct attachment *a = m->a;
	auto_free char *file = multus_file(a);
	struct err why = {0};
	json_auto_t *state = read_state(a, file, &why);
	json_t *delegate;
	size_t i;

	if (!state && err_is_unknown(why.sys))
		return err_set(err, ERR_TRANSIENT, "ConfUnreadable", "%s", why.text);
	if (!state)
		return 0;
	m->delegates = multus_state_read(state, a->container, a->key.ifname,
					 json_str_at(a->env, "CNI_ARGS"), a->pod, &why);
	if (!m->delegates) {
		log_error("a sandbox that Multus set up cannot be taken down", F_ERR(&why));
		return 0;
	}
	*results = json_array();
	json_array_foreach (m->delegates, i, delegate) {
		auto_free char *kept = multus_result_file(a, delegate);
		json_auto_t *cache = read_state(a, kept, NULL);
		json_t *result = json_at(cache, "result");

		json_array_append_new(*results, result ? json_incref(result) : json_null());
	}
	return 0;
}

static void remove_what_multus_has(const struct meta_call *m)
{
	auto_free char *file = multus_file(m->a);
	json_t *delegate;
	size_t i;

	(void)root_remove(m->a->root, file);
	json_array_foreach (m->delegates, i, delegate) {
		auto_free char *kept = multus_result_file(m->a, delegate);

		(void)root_remove(m->a->root, kept);
	}
}

/*
 * Multus is configured here, so it calls us for the cluster's network, or will do so soon. The
 * pod's other networks, its network-status and its file below MULTUS_STATE_DIR are Multus' work.
 * -1 with err: it cannot be known now, and both might set up all networks.
 */
static int is_multus_configured(const struct attachment *a, struct err *err)
{
	json_auto_t *files =
		conf_files(a->root, json_str_or(json_at(a->config, "confDir"), META_CONF_DIR), err);

	return files ? meta_conf_multus(files) != NULL : -1;
}

/* The cluster's network as the runtime would call it; its result is what the runtime kept. */
static json_t *of_the_cluster(const struct meta_call *m, json_t **results, struct err *err)
{
	json_auto_t *pod = json_pack("{s:O?}", "metadata", m->a->pod);
	const json_t *result = json_at(m->a->config, "prevResult");
	const struct meta_input in = {
		.container_id = m->a->container,
		.ifname = m->a->key.ifname,
		.args = json_str_at(m->a->env, "CNI_ARGS"),
		.config = m->a->config,
		.pod = pod,
	};

	if (result)
		*results = json_pack("[O]", result);
	return meta_delegates(&in, err);
}

/* ---- ADD ------------------------------------------------------------------------------------- */

static int save_delegates(const struct meta_call *m, struct err *err)
{
	json_auto_t *state = json_pack("{s:O}", "delegates", m->delegates);

	return m->services->save(m->services->context, state, err);
}

/* Where the power was cut there is no namespace that a result is about. */
static int save_results(const struct meta_call *m, const json_t *results, struct err *err)
{
	json_auto_t *state = json_pack("{s:O, s:O}", "delegates", m->delegates, "results", results);

	return m->services->save_more(m->services->context, state, err);
}

/* Give the pod the default route that its annotation asks for; the results say it afterwards. */
static int move_default_route(const struct meta_call *m, json_t *results, struct err *err)
{
	json_auto_t *changes = default_route_apply(m->delegates, results), *look = NULL;
	json_auto_t *steps = NULL;

	if (json_array_size(changes) == 0)
		return 0;
	if (netns_visit(&m->a->worker->namespaces, m->a->netns, NETNS_LINKS | NETNS_ROUTES, &look,
			err) < 0)
		return -1;
	steps = default_route_steps(changes, look);
	return netns_visit_execute(&m->a->worker->namespaces, m->a->netns, steps, err);
}

/* The agent writes the annotation and the events; ADD goes on when that takes long. */
static void report(const struct meta_call *m, const json_t *results, const json_t *infos)
{
	auto_free char *text = network_status_text(m->delegates, results, infos);
	json_t *question = worker_channel_request_new(m->a, "status"), *added = json_array(),
	       *delegate;
	json_auto_t *answer = NULL;
	struct err err = {0};
	size_t i;

	json_array_foreach (m->delegates, i, delegate) {
		auto_free char *line = network_added_text(delegate, json_array_get(results, i));

		if (line)
			json_array_append_new(added, json_string(line));
	}
	json_put_str(json_need_object(question, "pod"), "uid", m->pod_uid);
	json_put_str(question, "text", text);
	json_put(question, "added", added);
	answer = worker_channel_ask_within(m->a->line, question, WORKER_NETWORK_STATUS_MS, &err);
	if (!answer)
		log_warn("network-status of a pod is not written yet",
			 F_STR("namespace", json_str_or(json_at(m->a->pod, "namespace"), "")),
			 F_STR("pod", json_str_or(json_at(m->a->pod, "name"), "")), F_ERR(&err));
}

/* Undo networks that are set up already, of which something else failed. */
static int give_up(const struct meta_call *m, const json_t *results, const struct err *why,
		   struct err *err)
{
	struct meta_run *run = meta_run_new("DEL", m->delegates, results);
	struct err ignored = {0};
	int rc;

	plugin_calls_run(m->a, m->delegates, run, &m->services->own);
	rc = meta_run_outcome(run, NULL, &ignored);
	meta_run_free(run);
	remove_device_infos(m);
	if (rc == 0)
		(void)m->services->save(m->services->context, NULL, NULL);
	*err = *why;
	return -1;
}

static int add_networks(const struct meta_call *m, json_t **ret_result, struct err *err)
{
	struct meta_run *run = meta_run_new("ADD", m->delegates, NULL);
	json_auto_t *infos = NULL, *results = NULL;
	struct err why = {0};
	bool left = false;
	int rc;

	copy_device_infos(m);
	m->a->shared->wishes = pod_addresses_wishes(m->a, m->delegates);
	plugin_calls_run(m->a, m->delegates, run, &m->services->own);
	results = json_incref(meta_run_results(run));
	rc = meta_run_outcome(run, &left, err);
	meta_run_free(run);
	if (rc < 0) {
		remove_device_infos(m);
		if (!left)
			(void)m->services->save(m->services->context, NULL, NULL);
		return -1;
	}
	if (move_default_route(m, results, &why) < 0 || save_results(m, results, &why) < 0)
		return give_up(m, results, &why, err);
	infos = read_device_infos(m);
	report(m, results, infos);
	*ret_result = json_deep_copy(json_array_get(results, 0));
	return 0;
}

static int add_for_multus(struct meta_call *m, json_t **ret_result, struct err *err)
{
	struct meta_run *run;
	json_auto_t *none = NULL, *results = NULL;
	bool left = false;
	int rc;

	m->delegates = of_the_cluster(m, &none, err);
	if (!m->delegates || save_delegates(m, err) < 0)
		return -1;
	run = meta_run_new("ADD", m->delegates, NULL);
	plugin_calls_run(m->a, m->delegates, run, &m->services->own);
	results = json_incref(meta_run_results(run));
	rc = meta_run_outcome(run, &left, err);
	meta_run_free(run);
	if (rc == 0)
		rc = save_results(m, results, err);
	else if (!left)
		(void)m->services->save(m->services->context, NULL, NULL);
	if (rc < 0)
		return -1;
	*ret_result = json_deep_copy(json_array_get(results, 0));
	return 0;
}

static int add(struct meta_call *m, json_t **ret_result, struct err *err)
{
	const struct attachment *a = m->a;
	json_auto_t *known = NULL;
	int has_multus_conf = is_multus_configured(a, err);

	if (has_multus_conf < 0)
		return -1;
	if (has_multus_conf)
		return add_for_multus(m, ret_result, err);
	known = ask_networks(m->a, err);
	if (!known)
		return -1;
	if (!json_at(known, "pod")) {
		/* DEL has nothing to take down then. */
		m->delegates = json_array();
		if (save_delegates(m, err) < 0)
			return -1;
		*ret_result =
			network_gone_result(json_str_at(a->config, "cniVersion"), a->key.ifname,
					    json_str_or(json_at(a->env, "CNI_NETNS"), ""));
		return 0;
	}
	m->pod_uid = str_dup(json_uid(json_at(known, "pod")));
	m->delegates = decide(a, known, err);
	if (!m->delegates || save_delegates(m, err) < 0)
		return -1;
	leave_for_multus(m);
	return add_networks(m, ret_result, err);
}

/* ---- CHECK and DEL --------------------------------------------------------------------------- */

static int repeat(const struct meta_call *m, const char *command, const json_t *results,
		  struct err *err)
{
	struct meta_run *run = meta_run_new(command, m->delegates, results);
	int rc;

	plugin_calls_run(m->a, m->delegates, run, &m->services->own);
	rc = meta_run_outcome(run, NULL, err);
	meta_run_free(run);
	return rc;
}

/*
 * Best effort: what stays, and all else of the networks, is left to the DELs of their plugins. The
 * record on the disk says already that all of them go.
 */
static void unlink_together(const struct meta_call *m)
{
	const struct attachment *a = m->a;
	json_auto_t *sandbox = NULL, *look = NULL, *steps = NULL;
	uint32_t group;

	if (a->netns < 0 || json_array_size(m->delegates) < 2 ||
	    sandbox_load(a->state, a->container, &sandbox, NULL) < 0 ||
	    netns_visit(&a->worker->namespaces, a->netns, NETNS_LINKS, &look, NULL) < 0)
		return;
	random_bytes(&group, sizeof(group));
	steps = plugin_order_unlink(m->delegates, json_at(sandbox, "attachments"), look,
				    group >> 1 | 1U << 30);
	if (json_array_size(steps) > 0)
		(void)netns_visit_execute(&a->worker->namespaces, a->netns, steps, NULL);
}

/*
 * What is on the disk says what there was. Without it the sandbox is of before us: a Multus set it
 * up, or the runtime called the cluster's network itself.
 */
static int delete (struct meta_call *m, const json_t *results, struct err *err)
{
	json_auto_t *found = json_incref((json_t *)results);

	if (!m->delegates && find_what_multus_left(m, &found, err) < 0)
		return -1;
	if (!m->delegates && !(m->delegates = of_the_cluster(m, &found, err)))
		return -1;
	unlink_together(m);
	if (repeat(m, "DEL", found, err) < 0)
		return -1;
	remove_device_infos(m);
	remove_what_multus_has(m);
	return m->services->save(m->services->context, NULL, err);
}

static void shared_done(struct attachment_shared *shared)
{
	json_decref(shared->wishes);
	json_decref(shared->addresses);
	json_decref(shared->settings);
	json_decref(shared->nics);
	json_decref(shared->findings);
}

int meta_call_run(struct attachment *attachment, enum attach_command command, const json_t *saved,
		  const struct meta_services *services, json_t **ret_result, struct err *err)
{
	struct meta_call m = {.a = attachment, .services = services};
	struct attachment_shared shared = {0};
	const json_t *results = json_at(saved, "results");
	int rc;

	attachment->shared = &shared;
	if (command != ATTACH_ADD)
		m.delegates = json_incref(json_at(saved, "delegates"));
	if (command == ATTACH_ADD)
		rc = add(&m, ret_result, err);
	else if (command == ATTACH_CHECK)
		rc = repeat(&m, "CHECK", results, err);
	else
		rc = delete (&m, results, err);
	attachment->shared = NULL;
	shared_done(&shared);
	json_decref(m.delegates);
	free(m.pod_uid);
	return rc;
}

/* ---- GC and STATUS --------------------------------------------------------------------------- */

/* The lists of valid attachments, which the runtime gives GC, for each plugin. */
static void put_valid_attachments(const json_t *config, json_t *delegates)
{
	json_t *plugins = json_at(json_array_get(delegates, 0), "config", "plugins");
	json_t *plugin, *value;
	const char *key;
	size_t i;

	json_array_foreach (plugins, i, plugin)
		json_each (config, key, value)
			if (str_starts(key, "cni.dev/"))
				json_put(plugin, key, json_incref(value));
}

int meta_call_pass(struct attachment *attachment, const char *command,
		   const struct meta_services *services, struct err *err)
{
	struct meta_call m = {.a = attachment, .services = services};
	json_auto_t *none = NULL, *delegates = of_the_cluster(&m, &none, err);
	int rc;

	if (!delegates)
		return -1;
	m.delegates = json_deep_copy(delegates);
	/* Of no pod. */
	json_put_str(json_array_get(m.delegates, 0), "args", "");
	if (str_eq(command, "GC"))
		put_valid_attachments(attachment->config, m.delegates);
	rc = repeat(&m, command, NULL, err);
	json_decref(m.delegates);
	return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The recorded cases of the meta plugin (tests/conformance/multus.json) replayed by the pure part:
 * a plugin of the recorder is a function here that gives the result which its configuration tells
 * it to. Compared are verdict, plugins in the order of their calls with stdin and environment, the
 * result, and the text of network-status; not the texts of errors.
 *
 * Cases that differ on purpose: tests/conformance/multus-differences.txt. CASE in the environment
 * names one case.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/default_route.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/meta_run.h"
#include "nodeagent/cni/plan/multus_state.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/network_status.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "tests/unit/reconcilers/recordings.h"

/* One case: the cluster as it changes between steps, and what the node keeps. */
struct replay {
	const char *id;
	const json_t *recorded;
	bool is_quiet;
	json_t *pod, *nads, *devices, *files, *links, *infos;
	json_t *delegates, *results; /* NULL: the node has none */
	size_t step, wrong;
	json_t *called; /* plugins of this step */
};

static void expect(struct replay *r, const char *what, const json_t *ours, const json_t *theirs)
{
	auto_free char *a = ours ? json_text(ours) : NULL, *b = theirs ? json_text(theirs) : NULL;

	if (json_same(ours, theirs))
		return;
	r->wrong++;
	if (!r->is_quiet)
		print_message("%s, step %zu, %s\n  ours:     %s\n  recorded: %s\n", r->id, r->step,
			      what, a ? a : "none", b ? b : "none");
}

/* ---- the cluster of a case ------------------------------------------------------------------- */

static json_t *nads_of(const json_t *recorded)
{
	json_t *nads = json_object(), *nad;
	size_t i;

	json_array_foreach (json_at(recorded, "nads"), i, nad) {
		auto_free char *key = str_printf("%s/%s", json_str_at(nad, "namespace"),
						 json_str_at(nad, "name"));
		json_t *object = json_object(), *metadata = json_need_object(object, "metadata");

		json_put_str(metadata, "name", json_str_at(nad, "name"));
		json_put_str(metadata, "namespace", json_str_at(nad, "namespace"));
		json_put(metadata, "annotations", json_deep_copy(json_at(nad, "annotations")));
		json_put_str(json_need_object(object, "spec"), "config",
			     json_str_at(nad, "config"));
		json_object_set_new(nads, key, object);
	}
	return nads;
}

static json_t *pod_of(const json_t *recorded)
{
	const json_t *pod = json_at(recorded, "pod");

	if (!pod)
		return NULL;
	return json_pack("{s:{s:s, s:s, s:s, s:O}, s:{s:[{s:s},{s:s}]}}", "metadata", "name",
			 json_str_at(pod, "name"), "namespace", json_str_at(pod, "namespace"),
			 "uid", json_str_at(pod, "uid"), "annotations", json_at(pod, "annotations"),
			 "spec", "containers", "name", "c1", "name", "c2");
}

/* The kubelet's file sorts devices by NUMA node. */
static json_t *devices_recorded(const json_t *recorded)
{
	json_t *devices = json_deep_copy(json_at(recorded, "devices")), *entry, *ids;
	const char *node;
	size_t i;

	json_array_foreach (devices, i, entry) {
		json_t *all = json_need_object(entry, "numa");

		if (json_object_size(all) > 0)
			json_put(entry, "ids", json_array());
		json_each (all, node, ids)
			json_array_extend(json_at(entry, "ids"), ids);
	}
	return devices;
}

static json_t *files_of(const json_t *recorded)
{
	json_t *files = json_array(), *file;
	size_t i;

	json_array_foreach (json_at(recorded, "files"), i, file)
		if (json_at(file, "json"))
			json_array_append(files, json_at(file, "json"));
	return files;
}

/* "ip link add net1 type veth peer name x" */
static json_t *links_of(const json_t *recorded)
{
	json_t *links = json_array(), *command;
	size_t i;

	json_array_foreach (json_at(recorded, "pod_setup"), i, command) {
		char name[32];

		if (sscanf(json_string_value(command), "ip link add %31s", name) == 1)
			json_array_append_new(links, json_string(name));
	}
	return links;
}

static json_t *infos_of(const struct replay *r)
{
	json_t *infos = json_array(), *delegate, *file;
	size_t i, k;

	json_array_foreach (r->delegates, i, delegate) {
		const char *resource = json_str_at(delegate, "resourceName");
		auto_free char *source =
			resource ? meta_device_info_source(resource,
							   json_str_at(delegate, "deviceID"))
				 : str_dup("none");
		json_t *found = json_null();

		json_array_foreach (json_at(r->recorded, "devinfo"), k, file)
			if (str_ends(source, json_str_at(file, "file")))
				found = json_incref(json_at(file, "json"));
		json_array_append_new(infos, found);
	}
	return infos;
}

/* ---- the recorder ---------------------------------------------------------------------------- */

static json_t *plain_result(const json_t *config, const char *interface, const char *netns)
{
	const char *version = json_str_at(config, "cniVersion");
	const char *address = json_str_or(json_at(config, "recIP"), "10.9.0.5/24");
	json_t *result =
		json_pack("{s:s, s:[{s:s, s:s, s:s}], s:[{s:s, s:i}], s:{}}", "cniVersion", version,
			  "interfaces", "name", interface, "mac", "02:00:00:00:00:05", "sandbox",
			  netns, "ips", "address", address, "interface", 0, "dns");

	if (!cni_version_at_least(version, 1, 0))
		json_put_str(json_array_get(json_at(result, "ips"), 0), "version",
			     strchr(address, ':') ? "6" : "4");
	if (json_at(config, "recMore"))
		json_object_update(result, json_at(config, "recMore"));
	return result;
}

/* What to print instead: IFNAME and NETNS stand for the call's. */
static json_t *told_result(const json_t *told, const char *interface, const char *netns)
{
	json_t *result = json_deep_copy(told), *each;
	size_t i;

	json_array_foreach (json_at(result, "interfaces"), i, each) {
		const char *name = json_str_or(json_at(each, "name"), "");

		if (str_eq(name, "IFNAME"))
			json_put_str(each, "name", interface);
		else if (str_eq(name, "IFNAME-b"))
			json_put(each, "name", json_fmt("%s-b", interface));
		if (str_eq(json_str_at(each, "sandbox"), "NETNS"))
			json_put_str(each, "sandbox", netns);
	}
	return result;
}

/*
 * One plugin's call: written down, and answered as its configuration says. NULL and err: it failed.
 */
static json_t *call_plugin(struct replay *r, const json_t *env, struct meta_run *run,
			   const struct meta_step *step, struct err *err)
{
	const json_t *delegate = json_array_get(r->delegates, step->delegate);
	const char *type = delegate_plugin_type(delegate, step->plugin);
	const char *interface = json_str_at(delegate, "interface");
	const char *netns = json_str_or(json_at(env, "CNI_NETNS"), "");
	json_auto_t *input = meta_run_stdin(run, step), *result = NULL;
	auto_free char *text = NULL;
	bool is_sandbox = !str_eq(step->command, "GC") && !str_eq(step->command, "STATUS");

	json_array_append_new(r->called, json_pack("{s:s, s:s, s:O, s:s, s:s}", "plugin", type,
						   "command", step->command, "stdin", input,
						   "interface", is_sandbox ? interface : "", "args",
						   json_str_at(delegate, "args")));
	if (json_list_has(json_at(input, "recDie"), step->command)) {
		delegate_failure(delegate, step->plugin, step->command, 3, "",
				 "no word on stdout\n", err);
		return NULL;
	}
	if (json_list_has(json_at(input, "recFail"), step->command)) {
		delegate_failure(delegate, step->plugin, step->command, 1,
				 "{\"code\": 100, \"msg\": \"refused\"}", "", err);
		return NULL;
	}
	if (!str_eq(step->command, "ADD"))
		return json_object();
	if (json_at(input, "prevResult"))
		result = json_incref(json_at(input, "prevResult"));
	else if (json_at(input, "recResult"))
		result = told_result(json_at(input, "recResult"), interface, netns);
	else
		result = plain_result(input, interface, netns);
	text = json_text(result);
	return delegate_result(delegate, text, strlen(text), err);
}

static int carry_out(struct replay *r, const json_t *env, struct meta_run *run, struct err *err)
{
	struct meta_step step;

	while (meta_run_next(run, &step)) {
		struct err why = {0};
		json_auto_t *result = call_plugin(r, env, run, &step, &why);

		if (result)
			meta_run_succeeded(run, &step, str_eq(step.command, "ADD") ? result : NULL);
		else
			meta_run_failed(run, &step, &why);
	}
	assert_true(meta_run_has_ended(run));
	return meta_run_outcome(run, NULL, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void expect_called(struct replay *r, const json_t *step)
{
	json_auto_t *theirs = json_array();
	json_t *call;
	size_t i;

	json_array_foreach (json_at(step, "delegates"), i, call)
		json_array_append_new(theirs, json_pack("{s:O, s:O, s:O, s:O, s:O}", "plugin",
							json_at(call, "plugin"), "command",
							json_at(call, "command"), "stdin",
							json_at(call, "stdin"), "interface",
							json_at(call, "env", "CNI_IFNAME"), "args",
							json_at(call, "env", "CNI_ARGS")));
	expect(r, "plugins called", r->called, theirs);
}

static void expect_events(struct replay *r, const json_t *step, const json_t *results)
{
	json_auto_t *ours = json_array();
	json_t *delegate, *event;
	size_t i;

	json_array_foreach (r->delegates, i, delegate) {
		auto_free char *text = network_added_text(delegate, json_array_get(results, i));

		if (text)
			json_array_append_new(ours, json_string(text));
	}
	/* The recording may lack some. */
	json_array_foreach (json_at(step, "events_seen"), i, event) {
		const char *text = json_string_value(json_array_get(event, 2));

		if (!json_list_has(ours, text))
			expect(r, "event", ours, event);
	}
}

static int decide(struct replay *r, const json_t *env, struct err *err)
{
	const struct meta_input in = {
		.container_id = json_str_at(env, "CNI_CONTAINERID"),
		.ifname = json_str_at(env, "CNI_IFNAME"),
		.args = json_str_at(env, "CNI_ARGS"),
		.config = json_at(r->recorded, "multus"),
		.pod = json_at(env, "CNI_CONTAINERID") ? r->pod : NULL,
		.nads = r->nads,
		.devices = r->devices,
		.files = r->files,
		.links = r->links,
	};
	json_auto_t *wanted = meta_wanted(in.config, in.pod, err);

	if (!wanted)
		return -1;
	json_decref(r->delegates);
	r->delegates = meta_delegates(&in, err);
	return r->delegates ? 0 : -1;
}

static void add_gone(struct replay *r, const json_t *env, const json_t *step)
{
	json_auto_t *result =
		network_gone_result(json_str_at(r->recorded, "multus", "cniVersion"),
				    json_str_at(env, "CNI_IFNAME"), json_str_at(env, "CNI_NETNS"));

	expect(r, "result", result, json_at(step, "result"));
}

/* What Multus would find of it: Bytes are compared as the JSON that they are. */
static void expect_state(struct replay *r, const json_t *env, const json_t *step)
{
	const json_t *theirs = json_at(step, "cache", json_str_at(env, "CNI_CONTAINERID"));
	json_auto_t *ours = multus_state_write(r->delegates), *read = NULL, *pod = NULL;
	struct err err = {0};
	json_t *kept, *delegate;
	size_t i;

	pod = json_deep_copy(json_at(r->pod, "metadata"));
	read = multus_state_read(ours, json_str_at(env, "CNI_CONTAINERID"),
				 json_str_at(env, "CNI_IFNAME"), json_str_at(env, "CNI_ARGS"), pod,
				 &err);
	json_array_foreach (r->delegates, i, delegate) {
		json_t *again = json_array_get(read, i);

		expect(r, "read again", json_at(again, "config"), json_at(delegate, "config"));
		expect(r, "read again", json_at(again, "args"), json_at(delegate, "args"));
		expect(r, "read again", json_at(again, "interface"),
		       json_at(delegate, "interface"));
	}
	json_array_foreach (ours, i, kept) {
		const char *text = json_str_at(kept, "Bytes");
		auto_strbuf struct strbuf bytes = {0};

		assert_int_equal(base64_decode(text, strlen(text), &bytes, &err), 0);
		json_put(kept, "Bytes", json_parse(strbuf_str(&bytes), bytes.len, &err));
	}
	if (theirs)
		expect(r, "Multus' state", ours, theirs);
}

static int add(struct replay *r, const json_t *env, const json_t *step, struct err *err)
{
	struct meta_run *run;
	json_auto_t *steps = NULL, *infos = NULL;
	auto_free char *status = NULL;
	json_t *results;
	int rc;

	if (decide(r, env, err) < 0)
		return -1;
	run = meta_run_new("ADD", r->delegates, NULL);
	rc = carry_out(r, env, run, err);
	results = meta_run_results(run);
	if (rc == 0) {
		expect_events(r, step, results);
		expect_state(r, env, step);
		steps = default_route_apply(r->delegates, results);
		infos = infos_of(r);
		status = network_status_text(r->delegates, results, infos);
		expect(r, "result", json_array_get(results, 0), json_at(step, "result"));
		json_auto_t *text = json_string(status);
		if (json_at(step, "network_status"))
			expect(r, "network-status", text, json_at(step, "network_status"));
	}
	json_decref(r->results);
	r->results = json_incref(results);
	meta_run_free(run);
	return rc;
}

/* What GC is told to keep: all that there is. */
static json_t *attachments(const json_t *delegates)
{
	json_t *known = json_array(), *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate)
		json_array_append_new(known,
				      json_pack("{s:s, s:O}", "containerID", "cid0123456789abcdef",
						"ifname", json_at(delegate, "interface")));
	return known;
}

/* GC's list of attachments that are still there, for all plugins; both spellings are in use. */
static void put_attachments(json_t *delegates, const json_t *known)
{
	json_t *delegate, *plugin;
	size_t i, k;

	json_array_foreach (delegates, i, delegate)
		json_array_foreach (json_at(delegate, "config", "plugins"), k, plugin) {
			json_put(plugin, "cni.dev/valid-attachments", json_deep_copy(known));
			json_put(plugin, "cni.dev/attachments", json_deep_copy(known));
		}
}

/* GC and STATUS are of the configuration, the others of the sandbox. */
static int repeat(struct replay *r, const char *command, const json_t *env, struct err *err)
{
	bool is_sandbox = !str_eq(command, "GC") && !str_eq(command, "STATUS");
	json_auto_t *known = attachments(r->delegates);
	struct meta_run *run;
	int rc;

	if (!is_sandbox && decide(r, env, err) < 0)
		return -1;
	if (str_eq(command, "GC"))
		put_attachments(r->delegates, known);
	run = meta_run_new(command, r->delegates, r->results);
	rc = carry_out(r, env, run, err);
	meta_run_free(run);
	return rc;
}

static void take_step(struct replay *r, const json_t *step)
{
	const char *command = json_str_at(step, "command");
	const json_t *env = json_at(step, "env");
	struct err err = {0};
	int rc = 0;

	r->step++;
	if (str_starts(command, "delnad ")) {
		auto_free char *key = str_printf("default/%s", command + strlen("delnad "));

		json_object_del(r->nads, key);
		return;
	}
	if (str_eq(command, "delpod")) {
		json_decref(r->pod);
		r->pod = NULL;
		return;
	}
	if (str_eq(command, "rmcache")) {
		json_decref(r->delegates);
		r->delegates = NULL;
		return;
	}
	if (str_eq(command, "freedev"))
		return;
	json_array_clear(r->called);
	if (str_eq(command, "ADD") && !r->pod)
		add_gone(r, env, step);
	else if (str_eq(command, "ADD"))
		rc = add(r, env, step, &err);
	else if (r->delegates || str_eq(command, "STATUS"))
		rc = repeat(r, json_str_at(env, "CNI_COMMAND"), env, &err);
	if ((rc < 0) != (json_integer_value(json_at(step, "exit")) != 0)) {
		r->wrong++;
		if (!r->is_quiet)
			print_message("%s, step %zu: ours %s %s\n", r->id, r->step,
				      rc < 0 ? "fails:" : "succeeds", err.text);
	}
	if (rc < 0 && (!err.text[0] || !err.reason[0]))
		fail_msg("%s: an error without a word", r->id);
	expect_called(r, step);
}

/* How many things differ from what was recorded. */
static size_t replay(const json_t *recorded, bool is_quiet)
{
	struct replay r = {
		.id = json_str_at(recorded, "id"),
		.recorded = recorded,
		.is_quiet = is_quiet,
		.pod = pod_of(recorded),
		.nads = nads_of(recorded),
		.devices = devices_recorded(recorded),
		.files = files_of(recorded),
		.links = links_of(recorded),
		.called = json_array(),
	};
	json_t *step;
	size_t i;

	json_array_foreach (json_at(recorded, "steps"), i, step)
		take_step(&r, step);
	json_decref(r.pod);
	json_decref(r.nads);
	json_decref(r.devices);
	json_decref(r.files);
	json_decref(r.links);
	json_decref(r.called);
	json_decref(r.delegates);
	json_decref(r.results);
	return r.wrong;
}

TEST(decides_what_was_recorded)
{
	json_auto_t *cases = recordings_need("multus.json");
	json_auto_t *differences = recordings_differences("multus-differences.txt");
	const char *only = getenv("CASE");
	size_t i, failed = 0, replayed = 0, different = 0;
	json_t *recorded;

	json_array_foreach (cases, i, recorded) {
		const char *id = json_str_at(recorded, "id");
		bool is_different = json_at(differences, id) != NULL;
		size_t wrong;

		if (only && !str_eq(only, id))
			continue;
		replayed++;
		wrong = replay(recorded, is_different && !only);
		different += is_different;
		if (is_different && wrong == 0)
			print_message("%s is listed among the differences and does not differ\n",
				      id);
		failed += is_different == (wrong == 0);
	}
	print_message("%zu cases replayed, %zu of them differ on purpose\n", replayed, different);
	assert_int_equal(failed, 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The recorded cases of addresses (tests/conformance/ipam.json) replayed by the pure functions: a
 * cluster made of JSON, each CNI call a pass over it. What a recorded controller collects, the node
 * releases here: it takes down the sandboxes of pods that are gone. What belongs to the CNI plugin
 * itself (its environment, versions, sockets) and to detection on a real link is not replayed.
 *
 * Cases that differ on purpose: tests/conformance/ipam-differences.txt. CASE in the environment
 * names one case.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/ipam/pod_controller.h"
#include "tests/support/conformance.h"
#include "tests/support/ipam_recording.h"

#define DIFFERENCES "ipam-differences.txt"
#define ENDPOINTS   "spiderendpoints"

/* A cluster, and what belongs to one case. */
struct cluster {
	json_t *world;
	json_t *uids;      /* "ns/pod": how many pods of that name there were */
	json_t *sandboxes; /* UIDs of pods with addresses: "ns/pod" */
	struct ipam_settings settings;
	struct strbuf differences;
};

/* ---- the cluster ----------------------------------------------------------------------------- */

static const char *kind_of(const char *kind)
{
	static const struct {
		const char *kind, *id;
	} kinds[] = {
		{"SpiderIPPool", KIND_IP_POOL},
		{"SpiderReservedIP", KIND_RESERVED_IP},
		{"SpiderEndpoint", ENDPOINTS},
		{"Pod", KIND_POD},
		{"Node", KIND_NODE},
		{"Namespace", KIND_NAMESPACE},
		{"StatefulSet", KIND_STATEFUL_SET},
		{"VirtualMachineInstance", KIND_VIRTUAL_MACHINE_INSTANCE},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, kind))
			return kinds[i].id;
	return "others";
}

static json_t *objects(struct cluster *c, const char *kind)
{
	return json_need_object(c->world, kind);
}

static void create(struct cluster *c, const json_t *object)
{
	const char *kind = kind_of(json_str_at(object, "kind"));
	json_t *copy = ipam_recording_object(object);
	auto_free char *key = json_key(copy);

	if (str_eq(kind, KIND_POD)) {
		json_int_t n = json_integer_value(json_object_get(c->uids, key)) + 1;

		json_put_int(c->uids, key, n);
		json_put(json_object_get(copy, "metadata"), "uid",
			 json_fmt("{uid:%s#%" JSON_INTEGER_FORMAT "}", key, n));
	}
	json_put(objects(c, kind), key, copy);
}

static bool stays_while_going(const char *kind, const json_t *object, const json_t *step)
{
	if (json_integer_value(json_at(step, "grace")) > 0)
		return true;
	return json_array_size(json_at(object, "metadata", "finalizers")) > 0;
}

static void delete (struct cluster *c, const json_t *step)
{
	const char *kind = kind_of(json_str_at(step, "kind")), *key = json_str_at(step, "key");
	json_t *object = json_object_get(objects(c, kind), key);

	if (!object)
		return;
	if (stays_while_going(kind, object, step))
		json_put_str(json_object_get(object, "metadata"), "deletionTimestamp",
			     "2026-07-08T10:00:00Z");
	else
		json_object_del(objects(c, kind), key);
}

static void patch(struct cluster *c, const json_t *step)
{
	const char *kind = kind_of(json_str_at(step, "kind")), *key = json_str_at(step, "key");
	json_t *object = json_object_get(objects(c, kind), key);

	if (object)
		json_merge_patch(object, json_at(step, "patch"));
}

/* An endpoint goes with the pod that owns it. */
static void collect_garbage(struct cluster *c)
{
	json_auto_t *keys = json_array();
	const char *key;
	json_t *endpoint;
	size_t i;

	json_each (objects(c, ENDPOINTS), key, endpoint) {
		const json_t *owner =
			json_array_get(json_at(endpoint, "metadata", "ownerReferences"), 0);
		const json_t *pod = world_get(c->world, KIND_POD, key);

		if (owner && !(pod && str_eq(json_uid(pod), json_str_at(owner, "uid"))))
			json_array_append_new(keys, json_string(key));
	}
	json_array_foreach (keys, i, endpoint)
		json_object_del(objects(c, ENDPOINTS), json_string_value(endpoint));
}

static void carry_out(struct cluster *c, const struct books *books)
{
	auto_plan struct plan plan = {0};
	json_t *op;
	size_t i;

	books_plan(books, &plan);
	json_array_foreach (plan.ops, i, op) {
		json_t *pool = json_object_get(objects(c, KIND_IP_POOL), json_str_at(op, "key"));

		json_put(pool, "status", json_incref((json_t *)json_at(op, "status")));
	}
}

/* ---- CNI calls ------------------------------------------------------------------------------- */

static void put_endpoint(struct cluster *c, const char *key, const json_t *pod, json_t *status)
{
	json_t *endpoint = json_object(), *metadata = json_object();

	if (!pod_keeps_addresses(pod, &c->settings))
		json_put(metadata, "ownerReferences",
			 json_pack("[{s:s,s:s,s:s,s:s}]", "apiVersion", "v1", "kind", "Pod", "name",
				   json_name(pod), "uid", json_uid(pod)));
	json_put(endpoint, "metadata", metadata);
	json_put(endpoint, "status", status);
	json_put(objects(c, ENDPOINTS), key, endpoint);
}

static int add(struct cluster *c, const json_t *call, const char *key, json_t **ret,
	       struct err *err)
{
	const json_t *pod = world_get(c->world, KIND_POD, key);
	auto_books struct books *books = books_new(c->world);
	json_auto_t *asks = json_pack("[o]", ipam_recording_ask(call));
	auto_free char *name = NULL;
	json_t *status = NULL;

	if (!pod)
		return err_set(err, ERR_INVALID, "PodNotFound", "no pod %s", key);
	name = str_printf("%s/%s", json_namespace(pod), pod_endpoint_name(pod, &c->settings));
	if (ipam_allocate(books, pod, world_get(c->world, ENDPOINTS, name), asks, &c->settings,
			  &status, err) < 0)
		return -1;
	carry_out(c, books);
	json_put_str(c->sandboxes, json_uid(pod), key);
	*ret = ipam_cni_result(status, json_str_at(call, "env", "CNI_IFNAME"),
			       json_str_at(call, "stdin", "cniVersion"));
	put_endpoint(c, name, pod, status);
	return 0;
}

/* What a UID had is free, wherever it is recorded. */
static void give_back(struct cluster *c, const char *name, const char *uid)
{
	auto_books struct books *books = books_new(c->world);
	const json_t *endpoint = world_get(c->world, ENDPOINTS, name);
	const char *pool;
	json_t *object;

	if (str_eq(json_str_at(endpoint, "status", "current", "uid"), uid)) {
		(void)ipam_give_back(books, name, json_at(endpoint, "status"));
	}
	json_each (world_kind(c->world, KIND_IP_POOL), pool, object) {
		struct ledger *ledger = books_open(books, pool, NULL);
		json_auto_t *addresses = json_array();
		const char *address;
		json_t *record;
		size_t i;

		if (!ledger)
			continue;
		json_each (ledger->records, address, record)
			if (str_eq(json_str_at(record, "podUid"), uid))
				json_array_append_new(addresses, json_string(address));
		json_array_foreach (addresses, i, record)
			(void)ledger_release(ledger, json_string_value(record), NULL, uid, true);
	}
	carry_out(c, books);
}

static void end_sandbox(struct cluster *c, const char *key, const char *uid)
{
	const json_t *pod = world_get(c->world, KIND_POD, key);
	auto_free char *name =
		pod ? str_printf("%s/%s", json_namespace(pod), pod_endpoint_name(pod, &c->settings))
		    : str_dup(key);
	const json_t *endpoint = world_get(c->world, ENDPOINTS, name);

	json_object_del(c->sandboxes, uid);
	if (release_is_due(c->world, name, uid, pod, endpoint, true, &c->settings))
		give_back(c, name, uid);
}

static void del(struct cluster *c, const json_t *call, const char *key)
{
	auto_free char *asked = ipam_recording_argument(call, "K8S_POD_UID");
	auto_free char *uid = NULL;

	/*
	 * "{uid:ns/p}" is the UID of the latest pod of that name. Old runtimes say none: the pod's
	 * counts then.
	 */
	if (str_empty(asked))
		uid = str_dup(json_str_or(
			json_at(world_get(c->world, KIND_POD, key), "metadata", "uid"), ""));
	else if (strchr(asked, '#'))
		uid = str_dup(asked);
	else
		uid = str_printf("%.*s#%" JSON_INTEGER_FORMAT "}", (int)strlen(asked) - 1, asked,
				 json_integer_value(json_object_get(c->uids, key)));
	end_sandbox(c, key, uid);
}

static void end_sandboxes_of_pods_gone(struct cluster *c)
{
	json_auto_t *sandboxes = json_copy(c->sandboxes);
	const char *uid, *key;
	json_t *sandbox;

	json_each (sandboxes, uid, sandbox) {
		key = json_string_value(sandbox);
		if (!str_eq(json_uid(world_get(c->world, KIND_POD, key)), uid))
			end_sandbox(c, key, uid);
	}
}

/* ---- replay ---------------------------------------------------------------------------------- */

static void call(struct cluster *c, const json_t *step)
{
	const char *command = json_str_or(json_at(step, "env", "CNI_COMMAND"), "");
	auto_free char *ns = ipam_recording_argument(step, "K8S_POD_NAMESPACE");
	auto_free char *name = ipam_recording_argument(step, "K8S_POD_NAME");
	auto_free char *key = str_printf("%s/%s", ns ? ns : "", name ? name : "");
	json_auto_t *result = NULL;
	struct err err = {0};

	if (str_eq(command, "DEL"))
		del(c, step, key);
	else if (add(c, step, key, &result, &err) < 0)
		ipam_recording_compare_result(&c->differences, step, NULL, err.reason);
	else
		ipam_recording_compare_result(&c->differences, step, result, NULL);
}

static void take_step(struct cluster *c, const json_t *step)
{
	const char *op = json_str_at(step, "op");

	if (str_eq(op, "create"))
		create(c, json_at(step, "object"));
	else if (str_eq(op, "delete"))
		delete (c, step);
	else if (str_eq(op, "patch"))
		patch(c, step);
	else if (str_eq(op, "k8s-gc"))
		collect_garbage(c);
	else if (str_eq(op, "controller"))
		end_sandboxes_of_pods_gone(c);
	else if (str_eq(op, "cni"))
		call(c, step);
	if (json_at(step, "after"))
		ipam_recording_compare_after(
			&c->differences, json_at(step, "after"), world_kind(c->world, KIND_IP_POOL),
			world_kind(c->world, ENDPOINTS), world_kind(c->world, KIND_POD));
}

/* Is the case about what is decided, and not about the plugin, a link, or a second process? */
static bool is_ours(const json_t *recorded)
{
	static const char *const not_ours[] = {"plugin", "detection", "parallel",
					       "subnet", "check",     NULL};
	json_t *step;
	size_t i;

	if (json_at(recorded, "random") || json_at(recorded, "config", "agents") ||
	    ipam_recording_is_about(recorded, not_ours))
		return false;
	json_array_foreach (json_at(recorded, "steps"), i, step)
		if (str_eq(json_str_at(step, "op"), "cni") &&
		    str_starts(json_str_or(json_at(step, "error", "class"), ""), "cni-"))
			return false;
	return true;
}

static bool is_on(const json_t *config, const char *key)
{
	return !json_is_false(json_object_get(config, key));
}

static void set_up(struct cluster *c, const json_t *recorded)
{
	const json_t *config = json_at(recorded, "config");
	const char *places[] = {"namespaces", "nodes"};
	const char *kinds[] = {"Namespace", "Node"};
	const char *names[][3] = {{"ns1", "ns2", "spiderpool"}, {"n1", "n2", NULL}};
	json_t *object;
	size_t i, k;

	c->settings = (struct ipam_settings){
		.ipv4 = is_on(config, "enableIPv4"),
		.ipv6 = is_on(config, "enableIPv6"),
		.keeps_stateful_sets = is_on(config, "enableStatefulSet"),
		.keeps_virtual_machines = is_on(config, "enableKubevirtStaticIP"),
		.ns = "spiderpool",
		.cluster_network = json_str_or(json_object_get(config, "MULTUS_CLUSTER_NETWORK"),
					       "spiderpool/macvlan-eth0"),
	};
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 3 && names[i][k]; k++) {
			json_auto_t *metadata = json_object();
			json_auto_t *made = NULL;
			const json_t *more = json_at(recorded, "state", places[i], names[i][k]);

			if (more)
				json_object_update(metadata, (json_t *)more);
			json_put_str(metadata, "name", names[i][k]);
			made = json_pack("{s:s,s:O}", "kind", kinds[i], "metadata", metadata);
			create(c, made);
		}
	}
	json_array_foreach (json_at(recorded, "state", "objects"), i, object)
		create(c, object);
}

/* What differs from the recording; "": nothing. Returns new. */
static char *replay(const json_t *recorded)
{
	struct cluster c = {
		.world = json_object(), .uids = json_object(), .sandboxes = json_object()};
	json_t *step;
	size_t i;

	set_up(&c, recorded);
	json_array_foreach (json_at(recorded, "steps"), i, step) {
		size_t before = c.differences.len;

		take_step(&c, step);
		if (c.differences.len > before)
			strbuf_addf(&c.differences, "  at step %zu\n", i);
	}
	json_decref(c.world);
	json_decref(c.uids);
	json_decref(c.sandboxes);
	return strbuf_take(&c.differences);
}

TEST(decides_what_was_recorded)
{
	struct err err = {0};
	json_auto_t *cases = conformance_read("ipam.json", &err);
	json_auto_t *differences = conformance_differences(DIFFERENCES, &err);
	const char *only = getenv("CASE");
	size_t i, replayed = 0, different = 0;
	json_t *recorded;
	int failed = 0;

	if (!cases || !differences)
		fail_msg("%s", err.text);
	json_array_foreach (cases, i, recorded) {
		const char *id = json_str_at(recorded, "id");
		const char *reason = json_str_at(differences, id);
		auto_free char *difference = NULL;

		if ((only && !str_eq(only, id)) || !is_ours(recorded))
			continue;
		replayed++;
		difference = replay(recorded);
		different += *difference != '\0';
		if (reason && !*difference)
			print_message("%s is listed in " DIFFERENCES " and does not differ\n", id);
		else if (!reason && *difference)
			print_message("%s: %s", id, difference);
		else
			continue;
		failed++;
	}
	print_message("%zu of %zu cases replayed, %zu of them differ on purpose\n", replayed,
		      json_array_size(cases), different);
	assert_int_equal(failed, 0);
}

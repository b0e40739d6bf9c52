// SPDX-License-Identifier: Apache-2.0
/* Recorded addresses beside ours: objects as an API server has them, and comparisons. */
#include "tests/support/ipam_recording.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/owner.h"

bool ipam_recording_is_about(const json_t *recorded, const char *const *features)
{
	for (size_t i = 0; features[i]; i++)
		if (json_list_has(json_at(recorded, "features"), features[i]))
			return true;
	return false;
}

/* ---- objects --------------------------------------------------------------------------------- */

static void add_owner(json_t *object)
{
	json_t *metadata = json_object_get(object, "metadata");
	json_t *controller = json_object_get(metadata, "controller");

	if (!controller)
		return;
	json_put_bool(controller, "controller", true);
	json_put(metadata, "ownerReferences", json_pack("[O]", controller));
	json_object_del(metadata, "controller");
}

/*
 * Deployments label their pods with the hash that the ReplicaSet's name ends in. The recorded pods
 * have no labels.
 */
static void add_template_hash(json_t *pod)
{
	const json_t *owner = owner_controller(pod);
	const char *dash = strrchr(json_str_or(json_at(owner, "name"), ""), '-');

	if (str_eq(json_str_at(owner, "kind"), "ReplicaSet") && dash)
		json_put_str(json_need_object(json_object_get(pod, "metadata"), "labels"),
			     "pod-template-hash", dash + 1);
}

json_t *ipam_recording_object(const json_t *object)
{
	json_t *copy = json_deep_copy(object);

	add_owner(copy);
	add_template_hash(copy);
	return copy;
}

/* ---- calls ----------------------------------------------------------------------------------- */

char *ipam_recording_argument(const json_t *call, const char *key)
{
	auto_free char *args = str_dup(json_str_or(json_at(call, "env", "CNI_ARGS"), ""));
	char *rest = args, *pair;
	size_t len = strlen(key);

	while ((pair = strsep(&rest, ";")))
		if (strncmp(pair, key, len) == 0 && pair[len] == '=')
			return str_dup(pair + len + 1);
	return NULL;
}

json_t *ipam_recording_ask(const json_t *call)
{
	const json_t *ipam = json_at(call, "stdin", "ipam");
	json_t *ask = json_object();

	json_put_str(ask, "nic", json_str_at(call, "env", "CNI_IFNAME"));
	json_put(ask, "ipv4", json_incref(json_at(ipam, "default_ipv4_ippool")));
	json_put(ask, "ipv6", json_incref(json_at(ipam, "default_ipv6_ippool")));
	json_put_bool(ask, "cleanGateway", json_is_true(json_at(ipam, "clean_gateway")));
	if (json_is_true(json_at(ipam, "match_master_subnet")))
		json_put(ask, "masterAddresses", json_array()); /* no recorded case has a VF */
	return ask;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const char *class_of(const char *reason)
{
	static const struct {
		const char *reason, *class;
	} classes[] = {
		{"WrongAnnotation", "wrong-input"},   {"NoPool", "no-pool"},
		{"PoolNotFound", "not-found"},        {"PoolExhausted", "used-out"},
		{"NoAddressForNic", "no-allocation"}, {"PodEnded", "dead-pod"},
		{"PodNotFound", "not-found"},
	};

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (str_eq(classes[i].reason, reason))
			return classes[i].class;
	return "other";
}

/*
 * Upstream has one class for JSON that it cannot read in a namespace, and another for the same in a
 * pod.
 */
static bool is_class(const char *recorded, const char *reason)
{
	const char *ours = class_of(reason);

	if (str_eq(recorded, "bad-json"))
		return str_eq(ours, "wrong-input") || str_eq(ours, "other");
	return str_eq(recorded, ours);
}

static int by_text(const void *a, const void *b)
{
	auto_free char *left = json_text(*(json_t *const *)a),
		       *right = json_text(*(json_t *const *)b);

	return strcmp(left, right);
}

static json_t *sorted(const json_t *list)
{
	size_t n = json_array_size(list);
	auto_free json_t **items = calloc(n + 1, sizeof(*items));
	json_t *copy = json_array();

	for (size_t i = 0; i < n; i++)
		items[i] = json_array_get(list, i);
	qsort(items, n, sizeof(*items), by_text);
	for (size_t i = 0; i < n; i++)
		json_array_append(copy, items[i]);
	return copy;
}

static void expect(struct strbuf *out, const char *what, const char *of, const json_t *ours,
		   const json_t *theirs)
{
	auto_free char *a = ours ? json_text(ours) : str_dup("nothing");
	auto_free char *b = theirs ? json_text(theirs) : str_dup("nothing");

	if (!str_eq(a, b))
		strbuf_addf(out, "%s%s\n  ours:     %s\n  recorded: %s\n", what, of, a, b);
}

/*
 * In any order, and without what each CNI version should have and the recorded program does not
 * say.
 */
static json_t *comparable_result(const json_t *result)
{
	json_t *copy = json_deep_copy(result), *ip;
	size_t i;

	json_array_foreach (json_object_get(copy, "ips"), i, ip)
		json_object_del(ip, "version");
	json_put(copy, "ips", sorted(json_object_get(copy, "ips")));
	if (json_object_get(copy, "routes"))
		json_put(copy, "routes", sorted(json_object_get(copy, "routes")));
	return copy;
}

void ipam_recording_compare_result(struct strbuf *out, const json_t *call, const json_t *result,
				   const char *reason)
{
	const char *class = json_str_at(call, "error", "class");
	json_auto_t *ours = NULL, *theirs = NULL;

	if (reason) {
		ours = json_string(class_of(reason));
		if (!class || !is_class(class, reason))
			expect(out, "error", "", ours, json_at(call, "error", "class"));
	} else if (json_at(call, "result")) {
		ours = comparable_result(result);
		theirs = comparable_result(json_at(call, "result"));
		expect(out, "result", "", ours, theirs);
	} else {
		expect(out, "result", "", result, json_at(call, "error", "class"));
	}
}

static json_t *comparable_status(const json_t *status)
{
	json_t *copy = json_deep_copy(status), *current = json_object_get(copy, "current"), *item;
	size_t i;

	json_array_foreach (json_object_get(current, "ips"), i, item)
		if (json_object_get(item, "routes"))
			json_put(item, "routes", sorted(json_object_get(item, "routes")));
	json_put(current, "ips", sorted(json_object_get(current, "ips")));
	return copy;
}

/* They take their finalizer away when the addresses are given back. */
static bool is_released(const json_t *endpoint)
{
	return json_array_size(json_at(endpoint, "finalizers")) == 0;
}

/* The pod of the endpoint's name, or the one that it is about: a virtual machine's. */
static bool has_pod(const json_t *pods, const char *key, const json_t *endpoint)
{
	const char *uid = json_str_or(json_at(endpoint, "status", "current", "uid"), ""), *name;
	json_t *pod;

	json_each (pods, name, pod)
		if (str_eq(json_uid(pod), uid))
			return true;
	return json_object_get(pods, key) != NULL;
}

void ipam_recording_compare_after(struct strbuf *out, const json_t *after, const json_t *pools,
				  const json_t *endpoints, const json_t *pods)
{
	const char *key, *address;
	json_t *theirs, *record;

	json_each (json_at(after, "pools"), key, theirs) {
		const char *text =
			json_str_at(json_object_get(pools, key), "status", "allocatedIPs");
		json_auto_t *records = text ? json_parse(text, strlen(text), NULL) : NULL;

		/* Our addition. */
		json_each (records, address, record)
			json_object_del(record, "node");
		if (!json_at(theirs, "allocatedIPsText"))
			expect(out, "records of pool ", key, records,
			       json_at(theirs, "allocatedIPs"));
	}
	json_each (json_at(after, "endpoints"), key, theirs) {
		const json_t *ours = json_at(json_object_get(endpoints, key), "status");
		json_auto_t *a = ours ? comparable_status(ours) : NULL;
		json_auto_t *b = comparable_status(json_at(theirs, "status"));

		if (has_pod(pods, key, theirs) && (ours || !is_released(theirs)))
			expect(out, "endpoint ", key, a, b);
	}
}

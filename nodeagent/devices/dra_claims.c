// SPDX-License-Identifier: Apache-2.0
/*
 * From a ResourceClaim to an entry of the state, in two calls: the agent reads the object from the
 * API server, kubeletd's driver prepares it, and writes state and CDI file. What a container gets
 * is what Allocate would give (allocate.c); here it is put into CDI's words.
 */
#include "nodeagent/devices/dra_claims.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/devices/dra_names.h"
#include "nodeagent/devices/dra_slices.h"
#include "nodeagent/model/dra_state.h"

/* That of device files with another name in the container; older runtimes do not know it. */
#define CDI_VERSION "0.6.0"

/* ---- a ResourceClaim ------------------------------------------------------------------------- */

static int check_result(const json_t *result, const char *node, struct err *err)
{
	const char *pool = json_str_at(result, "pool"), *device = json_str_at(result, "device");

	if (str_empty(json_str_at(result, "request")) || str_empty(pool) || str_empty(device))
		return err_set(err, ERR_INVALID, "BadClaim",
			       "a result of its allocation lacks request, pool or device");
	if (!str_eq(pool, node))
		return err_set(err, ERR_INVALID, "BadClaim",
			       "device %.64s is of pool %.64s, ours is %s", device, pool, node);
	if (json_is_true(json_at(result, "adminAccess")))
		return err_set(err, ERR_INVALID, "BadClaim",
			       "device %.64s is asked for with adminAccess, which we do not give: "
			       "take it off the request",
			       device);
	return 0;
}

/* Ours of the results, new; NULL with err. */
static json_t *results_of(const json_t *object, const char *node, struct err *err)
{
	json_auto_t *results = json_array();
	const json_t *result;
	size_t i;

	json_array_foreach (json_at(object, "status", "allocation", "devices", "results"), i,
			    result) {
		json_t *ours;

		if (!str_eq(json_str_at(result, "driver"), DRA_DRIVER))
			continue;
		if (check_result(result, node, err) < 0)
			return NULL;
		ours = json_object();
		json_put_str(ours, "request", json_str_at(result, "request"));
		json_put_str(ours, "pool", json_str_at(result, "pool"));
		json_put_str(ours, "device", json_str_at(result, "device"));
		json_array_append_new(results, ours);
	}
	if (json_array_size(results) > 0 && json_array_size(results) <= DRA_CLAIM_DEVICES_MAX)
		return take_ptr(results);
	(void)err_set(err, ERR_INVALID, "BadClaim",
		      "%zu devices of " DRA_DRIVER " are allocated to it, must be 1 to %d",
		      json_array_size(results), DRA_CLAIM_DEVICES_MAX);
	return NULL;
}

json_t *dra_claim_read(const json_t *object, const char *node, const char *uid, struct err *err)
{
	json_t *results, *claim;
	const json_t *user;
	size_t i;

	assert(node);
	if (!str_eq(json_uid(object), uid)) {
		(void)err_set(err, ERR_INVALID, "BadClaim",
			      "the claim of this name is another one now, with uid %.64s",
			      json_uid(object));
		return NULL;
	}
	results = results_of(object, node, err);
	if (!results)
		return NULL;
	claim = json_object();
	json_put_str(claim, "namespace", json_namespace(object));
	json_put_str(claim, "name", json_name(object));
	json_put_str(claim, "uid", uid);
	json_array_foreach (json_at(object, "status", "reservedFor"), i, user) {
		if (!str_eq(json_str_at(user, "resource"), "pods"))
			continue;
		json_put_str(claim, "pod", json_str_at(user, "name"));
		break;
	}
	json_put(claim, "results", results);
	return claim;
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool is_shared(const json_t *resource)
{
	return str_eq(json_str_at(resource, "kind"), "shared");
}

/* What a name in a slice means: of a shared device any token. False: nothing. */
static bool find_device(const json_t *pools, const char *name, const json_t **ret_resource,
			const json_t **ret_device)
{
	const json_t *resource, *device;
	size_t i, k;

	json_array_foreach (json_at(pools, "resources"), i, resource) {
		bool shared = is_shared(resource);

		json_array_foreach (json_at(resource, "devices"), k, device) {
			const char *id = json_str_or(
				json_at(shared ? resource : device, shared ? "name" : "id"), "");
			auto_free char *known = shared ? dra_shared_name(id) : dra_device_name(id);

			*ret_resource = resource;
			*ret_device = device;
			if (str_eq(known, name))
				return true;
			if (shared)
				break;
		}
	}
	return false;
}

static int check_free(const json_t *state, const char *own_uid, const char *id, struct err *err)
{
	const json_t *entry, *device;
	const char *uid;
	size_t i;

	json_each (json_at(state, "claims"), uid, entry) {
		auto_free char *holder = NULL;

		if (str_eq(uid, own_uid))
			continue;
		json_array_foreach (json_at(entry, "devices"), i, device) {
			if (!str_eq(json_str_at(device, "id"), id))
				continue;
			holder = dra_holder(entry);
			return err_set(err, ERR_INVALID, "DeviceTaken",
				       "device %s is prepared for claim %.200s: that one has to be "
				       "unprepared first",
				       id, holder);
		}
	}
	return 0;
}

/* One device of the entry in the making, new; NULL with err. */
static json_t *device_of(const json_t *state, const json_t *claim, const json_t *result,
			 const json_t *pools, struct err *err)
{
	const char *name = json_str_or(json_at(result, "device"), "");
	const json_t *resource, *found;
	const char *id;
	json_t *device;

	if (!find_device(pools, name, &resource, &found)) {
		(void)err_set(err, ERR_INVALID, "UnknownDevice",
			      "there is no device %.64s here that claims may have", name);
		return NULL;
	}
	id = json_str_at(found, "id");
	if (!is_shared(resource) && check_free(state, json_str_at(claim, "uid"), id, err) < 0)
		return NULL;
	device = json_copy((json_t *)result);
	json_put_str(device, "resource", json_str_at(resource, "name"));
	if (!is_shared(resource))
		json_put_str(device, "id", id);
	return device;
}

static json_t *devices_of(const json_t *state, const json_t *claim, const json_t *pools,
			  struct err *err)
{
	json_auto_t *devices = json_array();
	const json_t *result, *other;
	size_t i, k;

	json_array_foreach (json_at(claim, "results"), i, result) {
		json_t *device = device_of(state, claim, result, pools, err);
		bool is_named = false;

		if (!device)
			return NULL;
		json_array_foreach (devices, k, other)
			is_named |= str_eq(json_str_at(other, "device"),
					   json_str_at(device, "device")) &&
				    str_eq(json_str_at(other, "request"),
					   json_str_at(device, "request"));
		/* Shares of one shared device are the same files. */
		if (is_named)
			json_decref(device);
		else
			json_array_append_new(devices, device);
	}
	return take_ptr(devices);
}

/* ---- health ---------------------------------------------------------------------------------- */

static json_t *health_of(const json_t *device, const json_t *pools)
{
	const char *name = json_str_or(json_at(device, "device"), "");
	json_t *health = json_object();
	const json_t *resource, *found;

	json_put_str(health, "pool", json_str_at(device, "pool"));
	json_put_str(health, "device", name);
	if (!find_device(pools, name, &resource, &found)) {
		json_put_str(health, "health", "unknown");
		json_put_str(health, "message", "it is not on this node now");
	} else if (json_is_true(json_at(found, "healthy"))) {
		json_put_str(health, "health", "healthy");
	} else {
		json_put_str(health, "health", "unhealthy");
		json_put_str(health, "message", json_str_at(found, "cause"));
	}
	return health;
}

json_t *dra_claims_health(const json_t *state, const json_t *pools)
{
	json_auto_t *by_name = json_object();
	auto_free const char **names = NULL;
	json_t *list = json_array();
	const json_t *entry, *device;
	const char *uid;
	size_t i, n;

	json_each (json_at(state, "claims"), uid, entry)
		json_array_foreach (json_at(entry, "devices"), i, device) {
			const char *name = json_str_or(json_at(device, "device"), "");

			if (!json_object_get(by_name, name))
				json_put(by_name, name, health_of(device, pools));
		}
	names = json_sorted_keys(by_name, &n);
	for (i = 0; i < n; i++)
		json_array_append(list, json_object_get(by_name, names[i]));
	return list;
}

/* ---- edits ----------------------------------------------------------------------------------- */

static bool is_same_group(const json_t *a, const json_t *b)
{
	return str_eq(json_str_at(a, "request"), json_str_at(b, "request")) &&
	       str_eq(json_str_at(a, "resource"), json_str_at(b, "resource"));
}

/* The first of those that go together. */
static bool leads_group(const json_t *devices, size_t number)
{
	const json_t *device = json_array_get(devices, number);

	for (size_t i = 0; i < number; i++)
		if (is_same_group(json_array_get(devices, i), device))
			return false;
	return true;
}

/* A shared device is whatever healthy token there is. */
static const char *token_of(const json_t *resource)
{
	const json_t *token;
	size_t i;

	json_array_foreach (json_at(resource, "devices"), i, token)
		if (json_is_true(json_at(token, "healthy")))
			return json_str_at(token, "id");
	return json_str_at(json_array_get(json_at(resource, "devices"), 0), "id");
}

/* What Allocate gives for the group that begins with this device, new; NULL with err. */
static json_t *allocation_of(const json_t *devices, size_t first, const json_t *pools,
			     struct err *err)
{
	const json_t *leader = json_array_get(devices, first);
	const json_t *resource =
		json_find(json_at(pools, "resources"), "name", json_str_at(leader, "resource"));
	size_t n = json_array_size(devices), n_ids = 0;
	auto_free const char **ids = mem_calloc(n + 1, sizeof(*ids));

	if (!resource) {
		(void)err_set(err, ERR_INVALID, "UnknownDevice", "resource %s is not here now",
			      json_str_or(json_at(leader, "resource"), "?"));
		return NULL;
	}
	for (size_t i = first; i < n; i++) {
		const json_t *device = json_array_get(devices, i);

		if (is_same_group(device, leader))
			ids[n_ids++] = json_str_or(json_at(device, "id"), token_of(resource));
	}
	assert(n_ids > 0);
	return allocate_devices(resource, ids, n_ids, err);
}

/* allocate.h's nodes are CDI's deviceNodes, member by member. */
static json_t *edits_of(const json_t *allocation)
{
	json_t *edits = json_object(), *nodes = json_at(allocation, "nodes"), *value;
	json_auto_t *env = json_array();
	const char *name;

	json_each (json_at(allocation, "env"), name, value)
		json_array_append_new(env, json_fmt("%s=%s", name, json_str_or(value, "")));
	if (json_array_size(env) > 0)
		json_put(edits, "env", json_incref(env));
	if (json_array_size(nodes) > 0)
		json_put(edits, "deviceNodes", json_incref(nodes));
	return edits;
}

/*
 * The CDI file for the devices, new; NULL with err. The first device of each group gets the group's
 * id: a container that has one device of a request has all of them.
 */
static json_t *cdi_of(const char *uid, json_t *devices, const json_t *pools, struct err *err)
{
	json_auto_t *list = json_array();
	json_t *device;
	size_t i;

	json_array_foreach (devices, i, device) {
		auto_free char *name = NULL;
		json_auto_t *allocation = NULL;
		json_t *edits;

		json_put(device, "cdi", json_array());
		if (!leads_group(devices, i))
			continue;
		allocation = allocation_of(devices, i, pools, err);
		if (!allocation)
			return NULL;
		edits = edits_of(allocation);
		if (json_object_size(edits) == 0) {
			/* The specification has no device without an edit. */
			json_decref(edits);
			continue;
		}
		name = str_printf("%s-%zu", uid, i);
		json_array_append_new(
			list, json_pack("{s:s, s:o}", "name", name, "containerEdits", edits));
		json_array_append_new(json_at(device, "cdi"), json_fmt(DRA_CDI_KIND "=%s", name));
	}
	return json_pack("{s:s, s:s, s:O}", "cdiVersion", CDI_VERSION, "kind", DRA_CDI_KIND,
			 "devices", list);
}

json_t *dra_claim_prepare(const json_t *state, const json_t *claim, const json_t *pools,
			  const char *boot, struct err *err)
{
	const char *uid = json_str_at(claim, "uid");
	json_auto_t *devices = NULL;
	json_t *cdi, *entry;

	if (!dra_uid_is_good(uid)) {
		(void)err_set(err, ERR_INVALID, "BadClaim",
			      "uid \"%.80s\" must be letters, digits and dashes, at most %d",
			      uid ? uid : "", DRA_UID_MAX);
		return NULL;
	}
	if (json_object_size(json_at(state, "claims")) >= DRA_CLAIMS_MAX) {
		(void)err_set(err, ERR_INVALID, "TooManyClaims",
			      "%d claims are prepared here, which is the most", DRA_CLAIMS_MAX);
		return NULL;
	}
	devices = devices_of(state, claim, pools, err);
	cdi = devices ? cdi_of(uid, devices, pools, err) : NULL;
	if (!cdi)
		return NULL;
	entry = json_object();
	json_put_str(entry, "namespace", json_str_at(claim, "namespace"));
	json_put_str(entry, "name", json_str_at(claim, "name"));
	json_put_str(entry, "pod", json_str_at(claim, "pod"));
	json_put_str(entry, "boot", boot);
	json_put(entry, "devices", json_incref(devices));
	json_put(entry, "cdi", cdi);
	return entry;
}

json_t *dra_claim_renew(const json_t *entry, const char *uid, const json_t *pools, const char *boot)
{
	json_t *next = json_deep_copy(entry), *cdi;
	struct err err = {0};

	cdi = cdi_of(uid, json_at(next, "devices"), pools, &err);
	if (cdi) {
		json_put(next, "cdi", cdi);
		json_put_str(next, "boot", boot);
	}
	if (cdi && !json_same(next, entry))
		return next;
	json_decref(next);
	return NULL;
}

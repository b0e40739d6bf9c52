// SPDX-License-Identifier: Apache-2.0
/*
 * Two views of one document of pools: resources that the Node's annotation gives to claims leave
 * the device plugins' view as their pods end, and enter that of claims once the kubelet gives
 * nothing of them away any more. offers.c makes both views after each change: no device is in both.
 */
#include "nodeagent/devices/dra_choice.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/dra_names.h"
#include "nodeagent/model/rdma_folder.h"

json_t *dra_choice_read(const char *annotation)
{
	json_t *chosen = json_object();
	const char *at = annotation ? annotation : "";

	for (;;) {
		size_t len;

		at += strspn(at, ", \t\n");
		len = strcspn(at, ", \t\n");
		if (len == 0)
			return chosen;
		(void)json_object_setn_new(chosen, at, len, json_true());
		at += len;
	}
}

static const char *name_of(const json_t *resource)
{
	return json_str_or(json_at(resource, "name"), "");
}

static bool set_has(const json_t *set, const char *name)
{
	return json_is_true(json_object_get(set, name));
}

static bool is_possible(const json_t *resource)
{
	const json_t *device, *node;
	size_t i, k;

	if (!str_eq(json_str_at(resource, "kind"), "sriov") &&
	    !str_eq(json_str_at(resource, "kind"), "shared"))
		return false;
	json_array_foreach (json_at(resource, "devices"), i, device)
		json_array_foreach (json_at(device, "nodes"), k, node)
			if (str_starts(json_str_at(node, "hostPath"), RDMA_FOLDER "/"))
				return false;
	return true;
}

json_t *dra_choice_names(const json_t *pools, const json_t *chosen, json_t **ret_refused)
{
	json_t *names = json_array();
	json_t *refused = json_array();
	const json_t *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource) {
		bool is_named = set_has(chosen, name_of(resource));

		if (!is_named && !set_has(chosen, "*"))
			continue;
		/* "*" means what can be. */
		if (is_possible(resource))
			json_array_append(names, json_at(resource, "name"));
		else if (is_named)
			json_array_append(refused, json_at(resource, "name"));
	}
	if (ret_refused)
		*ret_refused = refused;
	else
		json_decref(refused);
	return names;
}

static const char *holder_of(const json_t *held, const json_t *resource, const json_t *device)
{
	const char *id = json_str_at(device, "id");

	return id ? json_str_at(held, name_of(resource), id) : NULL;
}

/* Why a device plugin has none; new. */
static json_t *given_cause(void)
{
	return json_string("the annotation " DRA_ANNOTATION " of the Node gives it to claims");
}

/* The resource with other devices, which are taken; new. */
static json_t *with_devices(const json_t *resource, json_t *devices)
{
	json_t *copy = json_copy((json_t *)resource);

	json_put(copy, "devices", devices);
	return copy;
}

/* The device as no pod gets it; new. */
static json_t *as_unhealthy(const json_t *device, json_t *cause)
{
	json_t *copy = json_copy((json_t *)device);

	json_put_bool(copy, "healthy", false);
	json_put(copy, "cause", cause);
	return copy;
}

/* The pools with other resources, which are taken; new. */
static json_t *with_resources(const json_t *pools, json_t *resources)
{
	json_t *copy = json_is_object(pools) ? json_copy((json_t *)pools) : json_object();

	json_put(copy, "resources", resources);
	return copy;
}

/* ---- device plugins -------------------------------------------------------------------------- */

/* A resource of theirs, new; NULL: none any more. */
static json_t *plugin_resource(const struct dra_choice_input *input, const json_t *resource,
			       bool is_given)
{
	json_t *devices, *device;
	bool is_held = false;
	size_t i;

	if (is_given && json_object_size(json_at(input->allocated, name_of(resource))) == 0 &&
	    input->allocated)
		return NULL;
	devices = json_array();
	json_array_foreach (json_at(resource, "devices"), i, device) {
		const char *claim = holder_of(input->prepared, resource, device);

		if (!json_is_object(device))
			continue;
		is_held |= claim != NULL;
		if (claim)
			json_array_append_new(
				devices, as_unhealthy(device, json_fmt("claim %s has it", claim)));
		else if (is_given)
			json_array_append_new(devices, as_unhealthy(device, given_cause()));
		else
			json_array_append(devices, device);
	}
	if (is_given || is_held) {
		json_t *theirs = with_devices(resource, devices);

		/* What is left is for the pods that have it. */
		if (is_given)
			json_put_int(theirs, "wanted", 0);
		return theirs;
	}
	json_decref(devices);
	return json_incref((json_t *)resource);
}

json_t *dra_choice_plugins(const struct dra_choice_input *input)
{
	json_auto_t *given = dra_choice_names(input->pools, input->chosen, NULL);
	json_t *resources = json_array();
	const json_t *resource;
	size_t i;

	json_array_foreach (json_at(input->pools, "resources"), i, resource) {
		json_t *theirs =
			plugin_resource(input, resource, json_list_has(given, name_of(resource)));

		if (theirs)
			json_array_append_new(resources, theirs);
	}
	return with_resources(input->pools, resources);
}

json_t *dra_choice_status(const json_t *pools, const json_t *chosen)
{
	json_auto_t *given = dra_choice_names(pools, chosen, NULL);
	json_t *status = json_array();
	const json_t *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource) {
		size_t offered = json_array_size(json_at(resource, "devices"));
		json_t *entry;

		if (offered == 0 || !json_list_has(given, name_of(resource)))
			continue;
		entry = json_object();
		json_put_str(entry, "name", name_of(resource));
		json_put_str(entry, "kind", json_str_at(resource, "kind"));
		json_put_int(entry, "wanted", 0);
		json_put_bool(entry, "registered", false);
		json_put_int(entry, "offered", (int64_t)offered);
		json_put_int(entry, "healthy", 0);
		json_put(entry, "cause", given_cause());
		json_array_append_new(status, entry);
	}
	return status;
}

/* ---- claims ---------------------------------------------------------------------------------- */

json_t *dra_choice_claims(const struct dra_choice_input *input)
{
	json_auto_t *given = dra_choice_names(input->pools, input->chosen, NULL);
	json_t *resources = json_array();
	const json_t *resource, *device;
	size_t i, k;

	json_array_foreach (json_at(input->pools, "resources"), i, resource) {
		bool is_shared = str_eq(json_str_at(resource, "kind"), "shared");
		const char *name = name_of(resource);
		bool is_offered = input->allocated && json_list_has(given, name) &&
				  set_has(input->settled, name);
		json_t *ours, *devices;

		if (!json_is_object(resource))
			continue;
		devices = json_array();
		json_array_foreach (json_at(resource, "devices"), k, device) {
			/* Tokens say how many pods may share; who has which is of no interest. */
			bool is_free = is_offered && (is_shared || !holder_of(input->allocated,
									      resource, device));

			if (is_free || holder_of(input->prepared, resource, device))
				json_array_append(devices, (json_t *)device);
		}
		ours = with_devices(resource, devices);
		json_put_bool(ours, "offered", is_offered);
		if (is_offered || json_array_size(json_at(ours, "devices")) > 0)
			json_array_append_new(resources, ours);
		else
			json_decref(ours);
	}
	return with_resources(input->pools, resources);
}

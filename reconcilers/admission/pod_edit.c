// SPDX-License-Identifier: Apache-2.0
/* Resources, node selector and volume of a pod under review; pod_inject.c decides which. */
#include "reconcilers/admission/pod_edit.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/problems.h"

#define NET_INFO      "podnetinfo"
#define NET_INFO_PATH "/etc/podnetinfo"

json_t *pod_edit_object(json_t *parent, const char *key)
{
	json_t *own = json_copy(json_need_object(parent, key));

	json_put(parent, key, own);
	return own;
}

/* The member as an array that the request does not share. Borrowed. */
static json_t *own_array(json_t *parent, const char *key)
{
	json_t *there = json_at(parent, key);
	json_t *own = json_is_array(there) ? json_copy(there) : json_array();

	json_put(parent, key, own);
	return own;
}

/* A container that the request does not share; NULL when there is none. Borrowed. */
static json_t *own_container(json_t *pod, size_t i)
{
	json_t *containers = NULL;

	if (!json_is_object(json_array_get(json_at(pod, "spec", "containers"), i)))
		return NULL;
	containers = own_array(pod_edit_object(pod, "spec"), "containers");
	json_array_set_new(containers, i, json_copy(json_array_get(containers, i)));
	return json_array_get(containers, i);
}

void pod_edit_variable(json_t *pod, size_t i, const char *name, const char *value)
{
	json_t *container = own_container(pod, i);

	if (container && !json_find(json_at(container, "env"), "name", name))
		json_array_append_new(own_array(container, "env"),
				      json_pack("{s:s, s:s}", "name", name, "value", value));
}

/* ---- resources ------------------------------------------------------------------------------- */

/* Units of a quantity, at most INT32_MAX; -1 when it is not a plain number. */
static int64_t units_of(const json_t *quantity)
{
	int64_t units = -1;

	if (json_is_integer(quantity))
		units = json_integer_value(quantity);
	else
		(void)str_to_int(json_string_value(quantity), 0, INT32_MAX, &units);
	return units < 0 ? -1 : units < INT32_MAX ? units : INT32_MAX;
}

static const json_t *quantity_of(const json_t *container, const char *resource)
{
	const json_t *limit = json_at(container, "resources", "limits", resource);

	return limit ? limit : json_at(container, "resources", "requests", resource);
}

bool pod_edit_has(const json_t *pod, const char *resource, int64_t *ret_units)
{
	json_t *container;
	bool found = false;
	int64_t units = 0;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container) {
		const json_t *quantity = quantity_of(container, resource);
		int64_t n = units_of(quantity);

		if (!quantity)
			continue;
		found = true;
		units = n < 0 || units < 0 ? -1 : units + n;
	}
	*ret_units = units;
	return found;
}

static void put_units(json_t *pod, const char *kind, const char *resource, int64_t units)
{
	json_t *first = own_container(pod, 0);

	/* Without a container the API server rejects the pod anyway. */
	if (first)
		json_put(pod_edit_object(pod_edit_object(first, "resources"), kind), resource,
			 json_fmt("%lld", (long long)units));
}

/* What an earlier review has added. A text that cannot be read counts as nothing. Returns new. */
static json_t *added_before(const json_t *pod)
{
	const char *text = json_str_or(
		json_at(pod, "metadata", "annotations", INJECTED_RESOURCES_ANNOTATION), "");
	json_t *added =
		*text ? limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, NULL) : NULL;

	if (json_is_object(added))
		return added;
	json_decref(added);
	return json_object();
}

static void add_units(json_t *pod, const json_t *named, struct problems *warnings)
{
	json_auto_t *added = added_before(pod);
	auto_free char *text = NULL;
	const char *resource;
	json_t *units;
	bool changes = false;

	json_each (named, resource, units) {
		const json_t *present = quantity_of(
			json_array_get(json_at(pod, "spec", "containers"), 0), resource);
		/* Users can write the annotation, too. */
		json_int_t before = json_integer_value(json_at(added, resource));
		int64_t n = json_integer_value(units) - (before > 0 ? before : 0);
		int64_t there = present ? units_of(present) : 0;

		if (n <= 0)
			continue;
		if (there < 0) {
			problem_add(
				warnings, "BadField", "spec.containers[0].resources",
				"quantity of %s is not a plain number, so the %lld of the pod's "
				"networks are not added: write it as a number",
				resource, (long long)n);
			continue;
		}
		put_units(pod, "limits", resource, there + n);
		put_units(pod, "requests", resource, there + n);
		json_put(added, resource, json_incref(units));
		changes = true;
	}
	text = changes ? json_text(added) : NULL;
	if (text)
		json_put_str(pod_edit_object(pod_edit_object(pod, "metadata"), "annotations"),
			     INJECTED_RESOURCES_ANNOTATION, text);
}

void pod_edit_resources(json_t *pod, const json_t *group, const json_t *named, bool adds,
			struct problems *warnings)
{
	json_auto_t *needed = group ? json_copy((json_t *)group) : json_object();
	const char *resource;
	json_t *units;

	json_each (adds ? NULL : named, resource, units)
		json_put_int(needed, resource,
			     json_integer_value(json_at(needed, resource)) +
				     json_integer_value(units));
	json_each (needed, resource, units) {
		json_int_t n = json_integer_value(units);
		int64_t present = 0;

		if (!pod_edit_has(pod, resource, &present)) {
			put_units(pod, "limits", resource, n);
			if (json_at(named, resource))
				put_units(pod, "requests", resource, n);
		} else if (present >= 0 && present < n) {
			problem_add(warnings, "BadField", "spec.containers",
				    "limit %lld of %s, the pod's networks need %lld: raise it, or "
				    "remove it to have it set",
				    (long long)present, resource, (long long)n);
		}
	}
	if (adds)
		add_units(pod, named, warnings);
}

/* ---- node selector --------------------------------------------------------------------------- */

void pod_edit_selector(json_t *pod, const json_t *labels, struct problems *warnings)
{
	const char *label;
	json_t *value;

	json_each (labels, label, value) {
		const char *there = json_str_at(pod, "spec", "nodeSelector", label);
		json_t *selector = NULL;

		if (there && str_eq(there, json_string_value(value)))
			continue;
		if (there)
			problem_add(warnings, "NoEffect", "spec.nodeSelector",
				    "%s=%.64s is replaced: the pod's networks need %s=%s", label,
				    there, label, json_string_value(value));
		selector = pod_edit_object(pod_edit_object(pod, "spec"), "nodeSelector");
		json_put(selector, label, json_incref(value));
	}
}

/* ---- /etc/podnetinfo ------------------------------------------------------------------------- */

static void add_field_file(json_t *items, const json_t *pod, const char *field)
{
	if (json_object_size(json_at(pod, "metadata", field)))
		json_array_append_new(items,
				      json_pack("{s:s, s:{s:o}}", "path", field, "fieldRef",
						"fieldPath", json_fmt("metadata.%s", field)));
}

/* hugepages-1Gi of a container's requests → hugepages_1G_request_NAME. */
static bool add_hugepage_files(json_t *items, const json_t *container, const char *kind,
			       const char *suffix)
{
	static const char prefix[] = "hugepages-";
	const char *name = json_str_or(json_at(container, "name"), "");
	const char *resource;
	json_t *quantity;
	bool found = false;

	json_each (json_at(container, "resources", kind), resource, quantity) {
		auto_strbuf struct strbuf size = {0};

		if (!str_starts(resource, prefix) || units_of(quantity) == 0)
			continue;
		for (const char *c = resource + strlen(prefix); *c; c++)
			if (*c != 'i')
				strbuf_addc(&size, *c);
		json_array_append_new(
			items,
			json_pack("{s:o, s:{s:o, s:s, s:s}}", "path",
				  json_fmt("hugepages_%s_%s_%s", strbuf_str(&size), suffix, name),
				  "resourceFieldRef", "resource", json_fmt("%s.%s", kind, resource),
				  "containerName", name, "divisor", "1Mi"));
		found = true;
	}
	return found;
}

/* The name, and the path, can be mounted once. */
static void add_mount(json_t *pod, size_t i)
{
	json_t *container = own_container(pod, i);
	const json_t *mounts = json_at(container, "volumeMounts");

	if (container && !json_find(mounts, "name", NET_INFO) &&
	    !json_find(mounts, "mountPath", NET_INFO_PATH))
		json_array_append_new(own_array(container, "volumeMounts"),
				      json_pack("{s:s, s:s, s:b}", "name", NET_INFO, "mountPath",
						NET_INFO_PATH, "readOnly", 1));
}

void pod_edit_net_info(json_t *pod, bool hugepages)
{
	size_t n = json_array_size(json_at(pod, "spec", "containers"));
	json_t *items = NULL;

	if (json_find(json_at(pod, "spec", "volumes"), "name", NET_INFO))
		return;
	items = json_array();
	add_field_file(items, pod, "labels");
	add_field_file(items, pod, "annotations");
	for (size_t i = 0; i < n; i++) {
		const json_t *container = json_array_get(json_at(pod, "spec", "containers"), i);
		bool requests = false, limits = false;

		if (!json_is_object(container))
			continue;
		requests = hugepages && add_hugepage_files(items, container, "requests", "request");
		limits = hugepages && add_hugepage_files(items, container, "limits", "limit");

		if (requests || limits)
			pod_edit_variable(pod, i, "CONTAINER_NAME",
					  json_str_or(json_at(container, "name"), ""));
		add_mount(pod, i);
	}
	json_array_append_new(
		own_array(pod_edit_object(pod, "spec"), "volumes"),
		json_pack("{s:s, s:{s:o}}", "name", NET_INFO, "downwardAPI", "items", items));
}

/*
 * Projections: in-place removal, no decisions.
 */
#include "operator/projection.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/kinds.h"
#include "reconcilers/node_resources.h"

/* Remove all members of an object but these. */
static void keep_only(json_t *object, const char *const *keys)
{
	const char *key = NULL;
	json_t *value = NULL;
	void *next = NULL;

	json_object_foreach_safe(object, next, key, value)
	{
		bool keep = false;

		for (size_t i = 0; keys[i] && !keep; i++)
			keep = str_eq(keys[i], key);
		if (!keep)
			json_object_del(object, key);
	}
}

static void trim_metadata(json_t *object)
{
	static const char *const kept[] = {
		"name",
		"namespace",
		"uid",
		"resourceVersion",
		"generation",
		"creationTimestamp",
		"deletionTimestamp",
		"labels",
		"annotations",
		"ownerReferences",
		"finalizers",
		"orbweaver",
		NULL,
	};
	json_t *metadata = json_at(object, "metadata");
	json_t *annotations = json_at(metadata, "annotations");

	keep_only(metadata, kept);
	/* kubectl's copy of the whole object; reconcilers never look at it. */
	if (annotations)
		json_object_del(annotations, "kubectl.kubernetes.io/last-applied-configuration");
}

/* Every element of a list would carry them; the cache knows its kind. */
static void drop_type(json_t *object)
{
	json_object_del(object, "apiVersion");
	json_object_del(object, "kind");
}

void project_object(json_t *object)
{
	drop_type(object);
	trim_metadata(object);
}

static json_t *ready_condition(const json_t *conditions)
{
	const json_t *ready = json_find(conditions, "type", "Ready");

	if (!ready)
		return NULL;
	return json_pack("[{s:s, s:s}]", "type", "Ready", "status",
			 json_str_or(json_at(ready, "status"), "Unknown"));
}

void project_node(json_t *object)
{
	static const char *const kept[] = {
		"name", "uid", "resourceVersion", "labels", "deletionTimestamp", NULL};
	json_t *taints = json_incref(json_at(object, "spec", "taints"));
	json_t *ready = ready_condition(json_at(object, "status", "conditions"));
	json_t *resources = node_resources_of(json_at(object, "status", "allocatable"));

	drop_type(object);
	keep_only(json_at(object, "metadata"), kept);
	json_object_del(object, "spec");
	json_object_del(object, "status");
	if (taints)
		json_put(json_need_object(object, "spec"), "taints", taints);
	if (ready)
		json_put(json_need_object(object, "status"), "conditions", ready);
	if (resources)
		json_put(json_need_object(object, "status"), "allocatable", resources);
}

void project_namespace(json_t *object)
{
	project_object(object);
	json_object_del(object, "spec");
	json_object_del(object, "status");
}

/* FieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:KEY": {}}}}. */
static void add_owned(json_t *list, const json_t *fields)
{
	const char *key = NULL;
	json_t *value = NULL;

	json_each (fields, key, value)
		if (str_starts(key, "f:"))
			json_array_append_new(list, json_string(key + 2));
}

void project_written(json_t *object)
{
	json_t *metadata = json_at(object, "metadata");
	const json_t *entry = NULL;
	json_auto_t *labels = json_array();
	json_auto_t *annotations = json_array();
	size_t i = 0;

	json_array_foreach (json_at(metadata, "managedFields"), i, entry) {
		if (!str_eq(json_str_at(entry, "manager"), OPERATOR_NAME))
			continue;
		add_owned(labels, json_at(entry, "fieldsV1", "f:metadata", "f:labels"));
		add_owned(annotations, json_at(entry, "fieldsV1", "f:metadata", "f:annotations"));
	}
	if (json_array_size(labels))
		json_put(json_need_object(metadata, "orbweaver"), "labels", json_incref(labels));
	if (json_array_size(annotations))
		json_put(json_need_object(metadata, "orbweaver"), "annotations",
			 json_incref(annotations));
	project_object(object);
}

// SPDX-License-Identifier: Apache-2.0
/* Projections: in-place removal, no decisions. */
#include "operator/cache/projection.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/candidates.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/ip_range.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/sriov/node_health.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_network.h"

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

/* names: of the annotations that are kept, up to NULL; NULL: any, up to max_bytes together. */
static void trim_metadata(json_t *object, const char *const *names, size_t max_bytes)
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
	if (annotations)
		json_put(metadata, "annotations",
			 names ? limits_annotations(annotations, names)
			       : limits_all_annotations(
					 annotations, json_at(metadata, "orbweaver", "annotations"),
					 max_bytes));
	limits_reduce_metadata(metadata);
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
	trim_metadata(object, NULL, LIMIT_ANNOTATIONS_BYTES);
}

void project_policy(json_t *object)
{
	limits_reduce(json_at(object, "spec"));
	project_object(object);
}

/* Whether the Node is Ready, and our own one. New; NULL: it has neither. */
static json_t *kept_conditions(const json_t *conditions)
{
	static const char *const members[] = {
		"type", "status", "reason", "message", "lastTransitionTime", NULL};
	const json_t *ready = json_find(conditions, "type", "Ready");
	const json_t *ours = json_find(conditions, "type", NODE_HEALTH_CONDITION);
	json_t *ret = ready || ours ? json_array() : NULL;

	if (ready)
		json_array_append_new(ret,
				      json_pack("{s:s, s:s}", "type", "Ready", "status",
						json_str_or(json_at(ready, "status"), "Unknown")));
	if (ours)
		json_array_append_new(ret, json_pick(ours, members));
	return ret;
}

/*
 * Of a Node: those of drains (reconcilers/maintenance), and of its links. New; NULL: there is none.
 */
static json_t *kept_annotations(const json_t *annotations)
{
	static const char *const kept[] = {DRAIN_NODE_STATE, DRAIN_CORDONED_ANNOTATION,
					   POOL_ALLOW_REBOOT, NODE_HEALTH_ANNOTATION};
	json_auto_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		json_put(ret, kept[i], json_incref(json_at(annotations, kept[i])));
	return json_object_size(ret) ? json_incref(ret) : NULL;
}

/* What ip_pool_add_nodes() reads. New; NULL: there is none. */
static json_t *kept_addresses(const json_t *addresses)
{
	enum { KEPT_MAX = 16 };
	json_auto_t *ret = json_array();
	enum ip_family family;
	ip_number number;
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)addresses, i, item) {
		const char *text = json_str_or(json_at(item, "address"), "");

		if (i < KEPT_MAX && ip_parse_any(text, &family, &number, NULL) == 0)
			json_array_append_new(ret, json_pack("{s:s}", "address", text));
	}
	return json_array_size(ret) ? json_incref(ret) : NULL;
}

void project_node(json_t *object)
{
	static const char *const kept[] = {
		"name", "uid", "resourceVersion", "labels", "deletionTimestamp", NULL};
	json_t *taints = json_incref(json_at(object, "spec", "taints"));
	json_t *conditions = kept_conditions(json_at(object, "status", "conditions"));
	json_t *resources = node_resources_of(json_at(object, "status", "allocatable"));
	json_t *drain = kept_annotations(json_at(object, "metadata", "annotations"));
	json_t *addresses = kept_addresses(json_at(object, "status", "addresses"));
	bool is_cordoned = json_is_true(json_at(object, "spec", "unschedulable"));

	drop_type(object);
	keep_only(json_at(object, "metadata"), kept);
	json_object_del(object, "spec");
	json_object_del(object, "status");
	json_put(json_at(object, "metadata"), "annotations", drain);
	if (is_cordoned)
		json_put_bool(json_need_object(object, "spec"), "unschedulable", true);
	if (taints)
		json_put(json_need_object(object, "spec"), "taints", taints);
	if (conditions)
		json_put(json_need_object(object, "status"), "conditions", conditions);
	if (resources)
		json_put(json_need_object(object, "status"), "allocatable", resources);
	if (addresses)
		json_put(json_need_object(object, "status"), "addresses", addresses);
}

void project_namespace(json_t *object)
{
	static const char *const annotations[] = {
		IPAM_ANNOTATION_NS_IPV4,
		IPAM_ANNOTATION_NS_IPV6,
		CNI_ANNOTATION_RDMA_INJECT,
		CNI_ANNOTATION_NETWORK_INJECT,
		NULL,
	};

	drop_type(object);
	trim_metadata(object, annotations, 0);
	json_object_del(object, "spec");
	json_object_del(object, "status");
}

/*
 * FieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:KEY": {}}}}. Any user can write in our name,
 * so no more is kept than we ever write.
 */
static void add_owned(json_t *list, const json_t *fields, size_t *left)
{
	const char *key = NULL;
	json_t *value = NULL;

	json_each (fields, key, value) {
		size_t len = strlen(key);

		if (!str_starts(key, "f:") || len > *left)
			continue;
		*left -= len;
		json_array_append_new(list, json_string(key + 2));
	}
}

/*
 * Remember who, besides us, owns what we decide of a spec: { "manager", "time" } of the latest such
 * entry. Of a NodeState bridges are for others to enter.
 */
static void note_spec_writer(json_t *metadata)
{
	static const char *const decided[] = {"f:interfaces", "f:system", "f:config"};
	const json_t *entry = NULL, *last = NULL;
	json_t *writer = NULL;
	size_t i = 0;

	json_array_foreach (json_at(metadata, "managedFields"), i, entry) {
		const json_t *spec = json_at(entry, "fieldsV1", "f:spec");
		bool is_decided = false;

		for (size_t k = 0; k < ARRAY_LEN(decided); k++)
			is_decided = is_decided || json_object_get(spec, decided[k]);
		if (!is_decided || str_eq(json_str_at(entry, "manager"), OPERATOR_NAME))
			continue;
		/* RFC 3339 in UTC sorts as text. */
		if (!last || strcmp(json_str_or(json_at(entry, "time"), ""),
				    json_str_or(json_at(last, "time"), "")) > 0)
			last = entry;
	}
	if (!last)
		return;
	writer = json_need_object(json_need_object(metadata, "orbweaver"), "specWriter");
	json_put_str(writer, "manager", json_str_at(last, "manager"));
	json_put_str(writer, "time", json_str_at(last, "time"));
}

/* metadata.orbweaver: see projection.h. */
static void note_own(json_t *object)
{
	json_t *metadata = json_at(object, "metadata");
	const json_t *entry = NULL;
	json_auto_t *labels = json_array();
	json_auto_t *annotations = json_array();
	size_t of_labels = LIMIT_ANNOTATION_BYTES, of_annotations = LIMIT_ANNOTATION_BYTES;
	size_t i = 0;

	note_spec_writer(metadata);
	json_array_foreach (json_at(metadata, "managedFields"), i, entry) {
		if (!str_eq(json_str_at(entry, "manager"), OPERATOR_NAME))
			continue;
		add_owned(labels, json_at(entry, "fieldsV1", "f:metadata", "f:labels"), &of_labels);
		add_owned(annotations, json_at(entry, "fieldsV1", "f:metadata", "f:annotations"),
			  &of_annotations);
	}
	if (json_array_size(labels))
		json_put(json_need_object(metadata, "orbweaver"), "labels", json_incref(labels));
	if (json_array_size(annotations))
		json_put(json_need_object(metadata, "orbweaver"), "annotations",
			 json_incref(annotations));
}

void project_written(json_t *object)
{
	note_own(object);
	project_object(object);
}

void project_definition(json_t *object)
{
	limits_reduce(json_at(object, "spec"));
	project_written(object);
	foresight_project(object);
}

/* Its annotations are copied to its definition, which has some of its own. */
void project_config(json_t *object)
{
	limits_reduce(json_at(object, "spec"));
	drop_type(object);
	trim_metadata(object, NULL, LIMIT_ANNOTATION_BYTES);
}

void project_network(json_t *object)
{
	static const char *const annotations[] = {SRIOV_NETWORK_LAST_NAMESPACE, NULL};

	limits_reduce(json_at(object, "spec"));
	drop_type(object);
	trim_metadata(object, annotations, 0);
}

/* No name, "namespace/name" or UID is longer. */
enum { ENDPOINT_WORD_MAX = 512 };

static void reduce_words(json_t *value)
{
	const char *key;
	json_t *word;

	json_object_foreach (value, key, word)
		if (json_string_length(word) > ENDPOINT_WORD_MAX)
			json_object_set_new(value, key,
					    json_integer((json_int_t)json_string_length(word)));
}

void project_endpoint(json_t *object)
{
	static const char *const annotations[] = {
		ENDPOINT_DOWN_ANNOTATION,
		ENDPOINT_ASKS_ANNOTATION,
		ENDPOINT_CONFLICTS_ANNOTATION,
		ENDPOINT_REFUSED_ANNOTATION,
		NULL,
	};
	json_t *status = json_at(object, "status"), *current = json_at(status, "current");
	size_t items = json_array_size(json_at(current, "ips"));

	reduce_words(status);
	reduce_words(current);
	/* One for each network of the pod, and one for eth0. */
	if (items > LIMIT_NETWORKS + 1)
		json_put_int(current, "ips", (int64_t)items);
	limits_reduce(status);
	note_own(object);
	drop_type(object);
	trim_metadata(object, annotations, 0);
}

void project_operator_config(json_t *object)
{
	bool disables = json_is_true(json_at(object, "spec", "disableDrain"));

	project_namespace(object);
	if (disables)
		json_put_bool(json_need_object(object, "spec"), "disableDrain", true);
}

void project_workload(json_t *object)
{
	static const char *const counts[] = {"replicas", "desiredNumberScheduled"};
	int64_t replicas = 0;

	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		replicas += json_integer_value(json_at(object, "status", counts[i]));
	project_namespace(object);
	if (replicas > 0)
		json_put_int(json_need_object(object, "status"), "replicas", replicas);
}

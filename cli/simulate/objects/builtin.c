// SPDX-License-Identifier: Apache-2.0
/*
 * The built-in kinds, as far as merging needs them: one row for each field that is a list with
 * keys, a set, an atomic map, or leads to one. All other fields are kept as they come.
 *
 * Source: the OpenAPI document of Kubernetes (x-kubernetes-list-type, -list-map-keys, -map-type,
 * -patch-strategy, -patch-merge-key).
 */
#include <string.h>

#include "cli/simulate/objects/shape.h"
#include "lib/json/json.h"

enum form {
	STRUCT,      /* an object of the type `is` */
	MAP,         /* an object with free keys */
	ATOMIC_MAP,  /* an object that is replaced as a whole */
	LIST,        /* a list with keys; of objects of the type `is`, if there is one */
	SET,         /* a list of distinct strings */
	MERGED_LIST, /* replaced as a whole by apply, merged by key in strategic patches */
};

struct row {
	const char *type, *field;
	enum form form;
	const char *is;
	const char *keys;  /* of apply: "a,b"; "a=X": X is the default */
	const char *merge; /* key of strategic patches; NULL: they replace the list */
};

/* clang-format off */
static const struct row rows[] = {
	{"ObjectMeta", "labels", MAP, NULL, NULL, NULL},
	{"ObjectMeta", "annotations", MAP, NULL, NULL, NULL},
	{"ObjectMeta", "finalizers", SET, NULL, NULL, NULL},
	{"ObjectMeta", "ownerReferences", LIST, "OwnerReference", "uid", "uid"},
	{"OwnerReference", NULL, ATOMIC_MAP, NULL, NULL, NULL},

	{"Node", "spec", STRUCT, "NodeSpec", NULL, NULL},
	{"Node", "status", STRUCT, "NodeStatus", NULL, NULL},
	{"NodeSpec", "taints", MERGED_LIST, NULL, NULL, "key"},
	{"NodeSpec", "podCIDRs", SET, NULL, NULL, NULL},
	{"NodeStatus", "conditions", LIST, NULL, "type", "type"},
	{"NodeStatus", "addresses", LIST, NULL, "type", "type"},
	{"NodeStatus", "capacity", MAP, NULL, NULL, NULL},
	{"NodeStatus", "allocatable", MAP, NULL, NULL, NULL},

	{"Namespace", "spec", STRUCT, NULL, NULL, NULL},
	{"Namespace", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"ConditionedStatus", "conditions", LIST, NULL, "type", "type"},

	{"Pod", "spec", STRUCT, "PodSpec", NULL, NULL},
	{"Pod", "status", STRUCT, "PodStatus", NULL, NULL},
	{"PodStatus", "conditions", LIST, NULL, "type", "type"},
	{"PodStatus", "podIPs", LIST, NULL, "ip", "ip"},
	{"PodSpec", "containers", LIST, "Container", "name", "name"},
	{"PodSpec", "initContainers", LIST, "Container", "name", "name"},
	{"PodSpec", "ephemeralContainers", LIST, "Container", "name", "name"},
	{"PodSpec", "volumes", LIST, NULL, "name", "name"},
	{"PodSpec", "imagePullSecrets", LIST, NULL, "name", "name"},
	{"PodSpec", "hostAliases", LIST, NULL, "ip", "ip"},
	{"PodSpec", "topologySpreadConstraints", LIST, "SpreadConstraint",
		"topologyKey,whenUnsatisfiable", "topologyKey"},
	{"PodSpec", "resourceClaims", LIST, NULL, "name", "name"},
	{"PodSpec", "schedulingGates", LIST, NULL, "name", "name"},
	{"PodSpec", "nodeSelector", ATOMIC_MAP, NULL, NULL, NULL},
	{"PodSpec", "overhead", MAP, NULL, NULL, NULL},
	{"SpreadConstraint", "labelSelector", ATOMIC_MAP, NULL, NULL, NULL},
	{"Container", "env", LIST, "EnvVar", "name", "name"},
	{"Container", "ports", LIST, NULL, "containerPort,protocol=TCP", "containerPort"},
	{"Container", "volumeMounts", LIST, NULL, "mountPath", "mountPath"},
	{"Container", "volumeDevices", LIST, NULL, "devicePath", "devicePath"},
	{"Container", "resources", STRUCT, "Resources", NULL, NULL},
	{"EnvVar", "valueFrom", STRUCT, "EnvVarSource", NULL, NULL},
	{"EnvVarSource", "fieldRef", ATOMIC_MAP, NULL, NULL, NULL},
	{"EnvVarSource", "resourceFieldRef", ATOMIC_MAP, NULL, NULL, NULL},
	{"EnvVarSource", "configMapKeyRef", ATOMIC_MAP, NULL, NULL, NULL},
	{"EnvVarSource", "secretKeyRef", ATOMIC_MAP, NULL, NULL, NULL},
	{"Resources", "limits", MAP, NULL, NULL, NULL},
	{"Resources", "requests", MAP, NULL, NULL, NULL},
	{"Resources", "claims", LIST, NULL, "name", "name"},
	{"PodTemplate", "metadata", STRUCT, "ObjectMeta", NULL, NULL},
	{"PodTemplate", "spec", STRUCT, "PodSpec", NULL, NULL},

	{"Deployment", "spec", STRUCT, "Workload", NULL, NULL},
	{"Deployment", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"DaemonSet", "spec", STRUCT, "Workload", NULL, NULL},
	{"DaemonSet", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"StatefulSet", "spec", STRUCT, "Workload", NULL, NULL},
	{"StatefulSet", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"ReplicaSet", "spec", STRUCT, "Workload", NULL, NULL},
	{"ReplicaSet", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"Job", "spec", STRUCT, "Workload", NULL, NULL},
	{"Workload", "selector", ATOMIC_MAP, NULL, NULL, NULL},
	{"Workload", "template", STRUCT, "PodTemplate", NULL, NULL},

	{"ConfigMap", "data", MAP, NULL, NULL, NULL},
	{"ConfigMap", "binaryData", MAP, NULL, NULL, NULL},
	{"Secret", "data", MAP, NULL, NULL, NULL},
	{"Secret", "stringData", MAP, NULL, NULL, NULL},
	{"ServiceAccount", "secrets", LIST, NULL, "name", "name"},
	{"ServiceAccount", "imagePullSecrets", MERGED_LIST, NULL, NULL, "name"},

	{"Service", "spec", STRUCT, "ServiceSpec", NULL, NULL},
	{"Service", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"ServiceSpec", "selector", ATOMIC_MAP, NULL, NULL, NULL},
	{"ServiceSpec", "ports", LIST, NULL, "port,protocol=TCP", "port"},

	{"Event", "involvedObject", ATOMIC_MAP, NULL, NULL, NULL},
	{"Event", "source", STRUCT, NULL, NULL, NULL},

	{"CustomResourceDefinition", "status", STRUCT, "ConditionedStatus", NULL, NULL},
	{"ValidatingWebhookConfiguration", "webhooks", LIST, NULL, "name", "name"},
	{"MutatingWebhookConfiguration", "webhooks", LIST, NULL, "name", "name"},
};
/* clang-format on */

/* Fields of ObjectMeta that need no row of their own, for pruning. */
static const char *const metadata_fields[] = {
	"name",          "generateName",    "namespace",         "selfLink",
	"uid",           "resourceVersion", "creationTimestamp", "deletionTimestamp",
	"managedFields",
};
static const char *const metadata_integers[] = {"generation", "deletionGracePeriodSeconds"};

static json_t *type_node(const char *type);

static void put_keys(json_t *list, json_t *items, const char *keys)
{
	json_t *names = json_array();

	for (const char *at = keys; *at;) {
		size_t len = strcspn(at, ",");
		size_t name_len = strcspn(at, ",=");
		auto_free char *name = str_ndup(at, name_len);

		json_array_append_new(names, json_string(name));
		if (name_len < len) {
			auto_free char *value = str_ndup(at + name_len + 1, len - name_len - 1);
			json_t *member =
				json_need_object(json_need_object(items, "properties"), name);

			json_put_str(member, "default", value);
		}
		at += len;
		at += *at == ',';
	}
	json_put(list, SHAPE_KEYS, names);
}

static json_t *list_node(const struct row *row)
{
	json_t *node = json_object();
	json_t *items = row->is ? type_node(row->is) : json_object();

	json_put_str(node, "type", "array");
	if (row->form == SET)
		json_put_str(items, "type", "string");
	else
		json_put_bool(items, SHAPE_PRESERVE, true);
	if (row->form != MERGED_LIST)
		json_put_str(node, SHAPE_LIST, row->form == SET ? "set" : "map");
	if (row->keys)
		put_keys(node, items, row->keys);
	if (row->merge)
		json_put_str(node, SHAPE_MERGE, row->merge);
	if (row->merge || row->form == SET)
		json_put_str(node, SHAPE_STRATEGY, "merge");
	json_put(node, "items", items);
	return node;
}

static json_t *map_node(const struct row *row)
{
	json_t *node = json_object();

	json_put_str(node, "type", "object");
	if (row->form == ATOMIC_MAP) {
		json_put_str(node, SHAPE_MAP, "atomic");
		json_put_bool(node, SHAPE_PRESERVE, true);
	} else {
		json_put(node, "additionalProperties", json_object());
		json_put_bool(json_at(node, "additionalProperties"), SHAPE_PRESERVE, true);
	}
	return node;
}

static json_t *row_node(const struct row *row)
{
	switch (row->form) {
	case STRUCT:
		return type_node(row->is);
	case MAP:
	case ATOMIC_MAP:
		return map_node(row);
	case LIST:
	case SET:
	case MERGED_LIST:
		return list_node(row);
	}
	return NULL;
}

/* Types refer to types further down in the table only, so this ends. */
static json_t *type_node(const char *type)
{
	json_t *node = json_object();
	json_t *properties = json_object();

	json_put_str(node, "type", "object");
	json_put_bool(node, SHAPE_PRESERVE, true);
	json_put(node, "properties", properties);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!str_eq(rows[i].type, type))
			continue;
		if (rows[i].field)
			json_put(properties, rows[i].field, row_node(&rows[i]));
		else
			json_put_str(node, SHAPE_MAP, "atomic");
	}
	return node;
}

json_t *shape_metadata(void)
{
	json_t *node = type_node("ObjectMeta");
	json_t *properties = json_at(node, "properties");

	json_object_del(node, SHAPE_PRESERVE);
	for (size_t i = 0; i < ARRAY_LEN(metadata_fields); i++)
		json_put_bool(json_need_object(properties, metadata_fields[i]), SHAPE_PRESERVE,
			      true);
	for (size_t i = 0; i < ARRAY_LEN(metadata_integers); i++)
		json_put_str(json_need_object(properties, metadata_integers[i]), "type", "integer");
	json_put_str(json_at(properties, "labels", "additionalProperties"), "type", "string");
	json_put_str(json_at(properties, "annotations", "additionalProperties"), "type", "string");
	return node;
}

json_t *shape_builtin(const char *group, const char *kind)
{
	static const char *const groups[] = {
		"", "apps", "batch", "apiextensions.k8s.io", "admissionregistration.k8s.io",
	};
	bool known = false;
	json_t *node = NULL;

	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		known |= str_eq(group, groups[i]);
	node = type_node(known ? kind : NULL);
	json_put(json_at(node, "properties"), "metadata", shape_metadata());
	json_put_str(json_need_object(json_at(node, "properties"), "apiVersion"), "type", "string");
	json_put_str(json_need_object(json_at(node, "properties"), "kind"), "type", "string");
	return node;
}

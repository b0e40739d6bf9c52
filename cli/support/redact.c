// SPDX-License-Identifier: Apache-2.0
/*
 * A table of kinds with the fields that are kept of each; what is not in it is dropped, and what is
 * kept goes through scrub.c. support_dump.c passes every object through here before it is written.
 */
#include "cli/support/redact.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/core/kinds.h"

/* ---- fields by path -------------------------------------------------------------------------- */

/*
 * Copy what stands under a path: names joined by dots, "[]" behind the name of a list goes into
 * each item. Nothing there, or something else: nothing is copied.
 */
static void keep_path(json_t *to, const json_t *from, const char *path)
{
	size_t len = strcspn(path, ".");
	bool is_last = path[len] == '\0',
	     is_list = len > 2 && strncmp(path + len - 2, "[]", 2) == 0;
	auto_free char *name = str_ndup(path, is_list ? len - 2 : len);
	json_t *value = json_object_get(from, name), *copy = json_object_get(to, name), *item;
	size_t i;

	if (!value)
		return;
	if (is_last) {
		json_object_set(to, name, value);
		return;
	}
	if (is_list ? !json_is_array(value) : !json_is_object(value))
		return;
	if (!copy) {
		copy = is_list ? json_array() : json_object();
		json_object_set_new(to, name, copy);
	}
	if (!is_list) {
		keep_path(copy, value, path + len + 1);
		return;
	}
	json_array_foreach (value, i, item) {
		if (json_array_size(copy) <= i)
			json_array_append_new(copy, json_object());
		keep_path(json_array_get(copy, i), item, path + len + 1);
	}
}

static json_t *keep_paths(const json_t *object, const char *const *paths)
{
	json_t *kept = json_object();

	for (; *paths; paths++)
		keep_path(kept, object, *paths);
	return kept;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static const char *const metadata_paths[] = {
	"name",
	"namespace",
	"uid",
	"resourceVersion",
	"generation",
	"creationTimestamp",
	"deletionTimestamp",
	"labels",
	"ownerReferences[].apiVersion",
	"ownerReferences[].kind",
	"ownerReferences[].name",
	"ownerReferences[].uid",
	"ownerReferences[].controller",
	"ownerReferences[].blockOwnerDeletion",
	"finalizers",
	NULL,
};

/* Our programs read annotations of these domains. */
static const char *const domains[] = {
	"k8s.v1.cni.cncf.io/", "v1.multus-cni.io/",    "ipam.spidernet.io/",
	"cni.spidernet.io/",   "multus.spidernet.io/", "sriovnetwork.openshift.io/",
	"orbweaver.io/",       "rdma.orbweaver.io/",   "kubernetes.io/config.mirror",
};

static bool is_read(const char *annotation)
{
	for (size_t i = 0; i < ARRAY_LEN(domains); i++)
		if (str_starts(annotation, domains[i]))
			return true;
	return false;
}

/* copied: annotations of this kind go to another object, or come from one. */
static json_t *keep_annotations(struct scrub *scrub, const json_t *annotations, bool copied)
{
	json_t *kept = json_object(), *value;
	const char *name;

	json_each (annotations, name, value) {
		if (is_read(name)) {
			json_object_set(kept, name, value);
		} else if (copied && !str_starts(name, "kubectl.kubernetes.io/")) {
			auto_free char *word = scrub_word(scrub, json_str_or(value, ""));

			json_put_str(kept, name, word);
		}
	}
	return kept;
}

/* Of FieldsV1: the names of fields two levels below "f:metadata" and one below "f:spec". */
static json_t *keep_fields(const json_t *fields)
{
	static const char *const lists[] = {"f:labels", "f:annotations"};
	json_t *kept = json_object(), *value;
	const char *name;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		json_each (json_at(fields, "f:metadata", lists[i]), name, value)
			json_object_set_new(
				json_need_object(json_need_object(kept, "f:metadata"), lists[i]),
				name, json_object());
	json_each (json_at(fields, "f:spec"), name, value)
		json_object_set_new(json_need_object(kept, "f:spec"), name, json_object());
	return kept;
}

/* Who wrote which field: decisions take back what is ours, and name who else writes. */
static json_t *keep_managers(const json_t *managers)
{
	static const char *const paths[] = {"manager", "operation", "time", "subresource", NULL};
	json_t *kept = json_array(), *manager;
	size_t i;

	json_array_foreach (managers, i, manager) {
		json_t *entry = keep_paths(manager, paths);

		json_put(entry, "fieldsV1", keep_fields(json_at(manager, "fieldsV1")));
		json_array_append_new(kept, entry);
	}
	return kept;
}

static json_t *keep_metadata(struct scrub *scrub, const json_t *metadata, bool copied)
{
	json_t *kept = keep_paths(metadata, metadata_paths);
	json_t *annotations = keep_annotations(scrub, json_at(metadata, "annotations"), copied);

	if (json_object_size(annotations) > 0)
		json_put(kept, "annotations", json_incref(annotations));
	json_decref(annotations);
	if (json_at(metadata, "managedFields"))
		json_put(kept, "managedFields", keep_managers(json_at(metadata, "managedFields")));
	return kept;
}

/* ---- what is kept of each kind --------------------------------------------------------------- */

static const char *const none[] = {NULL};
static const char *const node_paths[] = {
	"spec.unschedulable",
	"spec.taints",
	"status.allocatable",
	"status.capacity",
	"status.conditions",
	"status.nodeInfo.architecture",
	"status.nodeInfo.containerRuntimeVersion",
	"status.nodeInfo.kernelVersion",
	"status.nodeInfo.kubeletVersion",
	"status.nodeInfo.osImage",
	NULL,
};
static const char *const namespace_paths[] = {"status.phase", NULL};
static const char *const pod_paths[] = {
	"spec.nodeName",
	"spec.restartPolicy",
	"spec.hostNetwork",
	"spec.containers[].name",
	"spec.containers[].resources",
	"spec.initContainers[].name",
	"spec.initContainers[].resources",
	"status.phase",
	"status.reason",
	"status.message",
	"status.startTime",
	"status.conditions",
	"status.containerStatuses[].name",
	"status.containerStatuses[].ready",
	"status.containerStatuses[].restartCount",
	"status.containerStatuses[].state.running.startedAt",
	"status.containerStatuses[].state.waiting.reason",
	"status.containerStatuses[].state.terminated.reason",
	"status.containerStatuses[].state.terminated.exitCode",
	"status.containerStatuses[].lastState.terminated.reason",
	"status.containerStatuses[].lastState.terminated.exitCode",
	"status.containerStatuses[].lastState.terminated.finishedAt",
	NULL,
};
/* Of our own programs, besides: which version, and how they are called. */
static const char *const own_pod_paths[] = {
	"spec.containers[].image",
	"spec.containers[].args",
	"status.containerStatuses[].imageID",
	NULL,
};
static const char *const event_paths[] = {
	"involvedObject.apiVersion",
	"involvedObject.kind",
	"involvedObject.namespace",
	"involvedObject.name",
	"involvedObject.uid",
	"type",
	"reason",
	"message",
	"count",
	"firstTimestamp",
	"lastTimestamp",
	"eventTime",
	"series",
	"source.component",
	"source.host",
	"reportingComponent",
	NULL,
};
static const char *const service_paths[] = {"spec.clusterIP", NULL};
static const char *const lease_paths[] = {"spec", NULL};
static const char *const budget_paths[] = {"spec", "status", NULL};
static const char *const workload_paths[] = {
	"spec.replicas", "spec.ordinals", "spec.selector", "status", NULL,
};
static const char *const machine_paths[] = {"status.phase", "status.printableStatus", NULL};
static const char *const definition_paths[] = {
	"spec.group",
	"spec.names.kind",
	"spec.names.plural",
	"spec.scope",
	"spec.versions[].name",
	"spec.versions[].served",
	"spec.versions[].storage",
	"status.conditions",
	"status.storedVersions",
	NULL,
};
static const char *const disable_paths[] = {"spec.disableDrain", NULL};

static json_t *keep_pod(const json_t *object);
static json_t *keep_event(const json_t *object);
static json_t *keep_config_map(const json_t *object);
static json_t *keep_definition(const json_t *object);
static json_t *keep_nothing(const json_t *object);

/* Kinds that are not here are ours, or show the cluster's networks: all but metadata is kept. */
static const struct {
	const char *kind;
	const char *const *paths;
	json_t *(*keep)(const json_t *object); /* instead of paths; NULL: leave the object out */
} rules[] = {
	{KIND_NODE, node_paths, NULL},
	{KIND_NAMESPACE, namespace_paths, NULL},
	{KIND_POD, NULL, keep_pod},
	{"events", NULL, keep_event},
	{"configmaps", NULL, keep_config_map},
	{"secrets", NULL, keep_nothing},
	{"serviceaccounts", NULL, keep_nothing},
	{"leases", lease_paths, NULL},
	{"services", service_paths, NULL},
	{"poddisruptionbudgets", budget_paths, NULL},
	{"statefulsets", workload_paths, NULL},
	{"deployments", workload_paths, NULL},
	{"daemonsets", workload_paths, NULL},
	{"virtualmachines", machine_paths, NULL},
	{"virtualmachineinstances", machine_paths, NULL},
	{"customresourcedefinitions", NULL, keep_definition},
	{"sriovoperatorconfigs", disable_paths, NULL},
	{"spidersubnets", none, NULL},
};

static json_t *keep_nothing(const json_t *object)
{
	return NULL;
}

static json_t *keep_pod(const json_t *object)
{
	const json_t *labels = json_at(object, "metadata", "labels");
	const char *program = json_str_or(json_at(labels, "app.kubernetes.io/name"), "");
	const char *component = json_str_at(labels, "component");
	json_t *kept = keep_paths(object, pod_paths);

	if (str_eq(program, OPERATOR_NAME) || str_eq(program, AGENT_NAME))
		for (size_t i = 0; own_pod_paths[i]; i++)
			keep_path(kept, object, own_pod_paths[i]);
	if (str_eq(component, COMPONENT_API_SERVER) ||
	    str_eq(component, COMPONENT_CONTROLLER_MANAGER)) {
		/*
		 * The control plane has the cluster's networks in its arguments
		 * (SpiderCoordinator).
		 */
		static const char *const flags[] = {"--cluster-cidr=",
						    "--service-cluster-ip-range="};
		static const char *const lists[] = {"command", "args"};
		json_t *container, *argument;
		size_t i, k;

		json_array_foreach (json_at(object, "spec", "containers"), i, container)
			for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
				json_t *copy = json_array();

				json_array_foreach (json_at(container, lists[l]), k, argument)
					for (size_t f = 0; f < ARRAY_LEN(flags); f++)
						if (str_starts(json_str_or(argument, ""), flags[f]))
							json_array_append(copy, argument);
				json_put(json_array_get(json_at(kept, "spec", "containers"), i),
					 lists[l], copy);
			}
	}
	return kept;
}

/* By us, about kinds of ours, or about what keeps a pod's sandbox from starting. */
static bool is_event_of_ours(const json_t *event)
{
	static const char *const groups[] = {"sriovnetwork.openshift.io/",
					     "spiderpool.spidernet.io/", "k8s.cni.cncf.io/"};
	static const char *const reasons[] = {"FailedScheduling", "FailedCreatePodSandBox",
					      "FailedKillPod", "UnexpectedAdmissionError"};
	const char *by = json_str_or(json_at(event, "source", "component"), "");
	const char *version = json_str_or(json_at(event, "involvedObject", "apiVersion"), "");

	if (str_empty(by))
		by = json_str_or(json_at(event, "reportingComponent"), "");
	if (str_eq(by, OPERATOR_NAME) || str_eq(by, AGENT_NAME))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (str_starts(version, groups[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(json_str_at(event, "involvedObject", "kind"), "Pod") &&
		    str_eq(json_str_at(event, "reason"), reasons[i]))
			return true;
	return false;
}

static json_t *keep_event(const json_t *object)
{
	return is_event_of_ours(object) ? keep_paths(object, event_paths) : NULL;
}

/* kubeadm's has much besides: of it only the networks. */
static void keep_kubeadm(json_t *kept, const json_t *object)
{
	const char *text = json_str_or(json_at(object, "data", "ClusterConfiguration"), "");
	json_auto_t *config = yaml_parse(text, strlen(text), NULL), *networks = json_object();
	auto_strbuf struct strbuf out = {0};

	if (!json_is_object(json_at(config, "networking")))
		return;
	json_put(networks, "networking", json_incref(json_at(config, "networking")));
	yaml_write(networks, &out);
	json_put_str(json_need_object(kept, "data"), "ClusterConfiguration", strbuf_str(&out));
}

static json_t *keep_config_map(const json_t *object)
{
	/* What the operator, the agents and we read. */
	static const struct {
		const char *name, *key;
	} keys[] = {
		{"cilium-config", "ipam"},
		{"cilium-config", "cluster-pool-ipv4-cidr"},
		{"cilium-config", "cluster-pool-ipv6-cidr"},
		{"kube-flannel-cfg", "net-conf.json"},
		{"spiderpool-conf", "conf.yml"},
		{"spiderpool-conf", "clusterNetwork"},
		{"spiderpool-rdma-shared-device-plugin", "config.json"},
		{"sriovdp-config", "config.json"},
		{"smarter-device-manager", "conf.yaml"},
		{"rdma-devices", "-"},
		{"kubeadm-config", "-"},
		{"orbweaver-operator", "webhook-addr"},
		{"orbweaver-operator", "policy-namespaces"},
		{"orbweaver-operator-metrics", "secure"},
	};
	json_t *kept = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!str_eq(json_name(object), keys[i].name))
			continue;
		kept = kept ? kept : json_object();
		json_put_str(json_need_object(kept, "data"), keys[i].key,
			     json_str_at(object, "data", keys[i].key));
	}
	if (str_eq(json_name(object), "kubeadm-config"))
		keep_kubeadm(kept, object);
	return kept;
}

static json_t *keep_definition(const json_t *object)
{
	static const char *const groups[] = {"sriovnetwork.openshift.io", "spiderpool.spidernet.io",
					     "k8s.cni.cncf.io"};

	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (str_eq(json_str_at(object, "spec", "group"), groups[i]))
			return keep_paths(object, definition_paths);
	return NULL;
}

/* NULL: nothing. */
static json_t *keep_body(const char *kind, const json_t *object)
{
	json_t *kept;

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (str_eq(rules[i].kind, kind))
			return rules[i].keep ? rules[i].keep(object)
					     : keep_paths(object, rules[i].paths);
	kept = json_copy((json_t *)object);
	json_object_del(kept, "metadata");
	return kept;
}

/* apiVersion, kind and metadata first, as people expect. */
static json_t *assemble(const json_t *object, json_t *metadata, const json_t *body)
{
	static const char *const type[] = {"apiVersion", "kind", NULL};
	json_t *whole = keep_paths(object, type);

	json_put(whole, "metadata", metadata);
	json_object_update(whole, (json_t *)body);
	return whole;
}

json_t *redact_object(struct scrub *scrub, const char *kind, const json_t *object)
{
	bool copied = str_eq(kind, KIND_MULTUS_CONFIG) || str_eq(kind, KIND_NAD);
	json_auto_t *body = NULL;
	json_t *metadata;

	if (!json_is_object(object) || !*json_name(object))
		return NULL;
	body = keep_body(kind, object);
	if (!body)
		return NULL;
	metadata = keep_metadata(scrub, json_at(object, "metadata"), copied);
	return scrub_value(scrub, assemble(object, metadata, body));
}

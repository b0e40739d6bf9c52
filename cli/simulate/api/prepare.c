// SPDX-License-Identifier: Apache-2.0
/*
 * One function for each built-in kind that needs something, found by its name. Called for each
 * write, before admission and validation.
 */
#include "cli/simulate/api/prepare.h"

#include <string.h>

#include "cli/simulate/objects/failure.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* ---- defaults -------------------------------------------------------------------------------- */

static void default_str(json_t *object, const char *key, const char *value)
{
	if (!json_at(object, key))
		json_put_str(object, key, value);
}

static void default_int(json_t *object, const char *key, int64_t value)
{
	if (!json_at(object, key))
		json_put_int(object, key, value);
}

/* What is limited and not asked for is asked for. */
static void default_requests(json_t *container)
{
	const json_t *limits = json_at(container, "resources", "limits");
	json_t *resources = json_need_object(container, "resources"), *value;
	const char *name;

	if (!json_is_object(limits))
		return;
	json_each (limits, name, value) {
		json_t *requests = json_need_object(resources, "requests");

		if (!json_object_get(requests, name))
			json_put(requests, name, json_incref(value));
	}
}

static void default_containers(json_t *list)
{
	json_t *container, *port;
	size_t i, j;

	json_array_foreach (list, i, container) {
		const char *image = json_str_or(json_at(container, "image"), "");
		const char *tag = strrchr(image, ':');
		bool is_latest = !tag || strchr(tag, '/') || str_eq(tag, ":latest");

		if (!json_is_object(container))
			continue;
		default_str(container, "imagePullPolicy", is_latest ? "Always" : "IfNotPresent");
		default_str(container, "terminationMessagePath", "/dev/termination-log");
		default_str(container, "terminationMessagePolicy", "File");
		default_requests(container);
		json_array_foreach (json_at(container, "ports"), j, port)
			if (json_is_object(port))
				default_str(port, "protocol", "TCP");
	}
}

static void default_pod_spec(json_t *spec)
{
	if (!json_is_object(spec))
		return;
	default_str(spec, "restartPolicy", "Always");
	default_str(spec, "dnsPolicy", "ClusterFirst");
	default_str(spec, "schedulerName", "default-scheduler");
	default_int(spec, "terminationGracePeriodSeconds", 30);
	(void)json_need_object(spec, "securityContext");
	default_containers(json_at(spec, "containers"));
	default_containers(json_at(spec, "initContainers"));
}

static void default_pod(json_t *pod)
{
	json_t *spec = json_at(pod, "spec");

	default_pod_spec(spec);
	if (json_is_object(spec)) {
		default_str(spec, "serviceAccountName", "default");
		if (!json_at(spec, "enableServiceLinks"))
			json_put_bool(spec, "enableServiceLinks", true);
	}
}

static void default_workload(json_t *object)
{
	json_t *spec = json_at(object, "spec");

	if (!json_is_object(spec))
		return;
	default_pod_spec(json_at(spec, "template", "spec"));
	if (!str_eq(json_str_at(object, "kind"), "DaemonSet"))
		default_int(spec, "replicas", 1);
	default_int(spec, "revisionHistoryLimit", 10);
}

static void default_namespace(json_t *namespace)
{
	json_t *spec = json_need_object(namespace, "spec");
	json_t *labels = json_need_object(json_need_object(namespace, "metadata"), "labels");

	json_put_str(labels, "kubernetes.io/metadata.name", json_name(namespace));
	if (!json_at(spec, "finalizers"))
		json_put(spec, "finalizers", json_pack("[s]", "kubernetes"));
}

static void default_secret(json_t *secret)
{
	json_t *plain = json_at(secret, "stringData"), *value;
	const char *key;

	default_str(secret, "type", "Opaque");
	if (json_is_object(plain))
		json_each (plain, key, value) {
			auto_strbuf struct strbuf text = {0};

			base64_encode(json_str_or(value, ""),
				      json_is_string(value) ? json_string_length(value) : 0, &text);
			json_put_str(json_need_object(secret, "data"), key, strbuf_str(&text));
		}
	json_object_del(secret, "stringData");
}

static void default_service(json_t *service)
{
	json_t *spec = json_at(service, "spec"), *port;
	size_t i;

	if (!json_is_object(spec))
		return;
	default_str(spec, "type", "ClusterIP");
	default_str(spec, "sessionAffinity", "None");
	json_array_foreach (json_at(spec, "ports"), i, port) {
		if (!json_is_object(port))
			continue;
		default_str(port, "protocol", "TCP");
		if (json_at(port, "port") && !json_at(port, "targetPort"))
			json_put(port, "targetPort", json_incref(json_at(port, "port")));
	}
}

static void default_definition(json_t *definition)
{
	json_t *names = json_at(definition, "spec", "names"), *spec = json_at(definition, "spec");
	const char *kind = json_str_at(names, "kind");
	auto_free char *lower = str_dup(kind ? kind : "");

	if (!json_is_object(names) || !kind)
		return;
	for (char *c = lower; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c + ('a' - 'A'));
	default_str(names, "singular", lower);
	if (!json_at(names, "listKind"))
		json_put(names, "listKind", json_fmt("%sList", kind));
	if (!json_at(spec, "conversion"))
		json_put(spec, "conversion", json_pack("{s:s}", "strategy", "None"));
}

static void default_webhooks(json_t *configuration)
{
	json_t *webhook, *rule;
	size_t i, j;

	json_array_foreach (json_at(configuration, "webhooks"), i, webhook) {
		if (!json_is_object(webhook))
			continue;
		default_str(webhook, "failurePolicy", "Fail");
		default_str(webhook, "matchPolicy", "Equivalent");
		default_int(webhook, "timeoutSeconds", 10);
		(void)json_need_object(webhook, "namespaceSelector");
		(void)json_need_object(webhook, "objectSelector");
		if (str_eq(json_str_at(configuration, "kind"), "MutatingWebhookConfiguration"))
			default_str(webhook, "reinvocationPolicy", "Never");
		json_array_foreach (json_at(webhook, "rules"), j, rule)
			if (json_is_object(rule))
				default_str(rule, "scope", "*");
	}
}

static const struct {
	const char *kind;
	void (*set)(json_t *object);
} defaults[] = {
	{"Pod", default_pod},
	{"Namespace", default_namespace},
	{"Secret", default_secret},
	{"Service", default_service},
	{"Deployment", default_workload},
	{"StatefulSet", default_workload},
	{"ReplicaSet", default_workload},
	{"DaemonSet", default_workload},
	{"CustomResourceDefinition", default_definition},
	{"ValidatingWebhookConfiguration", default_webhooks},
	{"MutatingWebhookConfiguration", default_webhooks},
};

void prepare_defaults(const struct resource *resource, json_t *object)
{
	if (resource->flags & RESOURCE_CUSTOM)
		return;
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		if (str_eq(defaults[i].kind, resource->kind))
			defaults[i].set(object);
}

/* ---- new objects ----------------------------------------------------------------------------- */

static bool asks_for_anything(const json_t *pod)
{
	json_t *container;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container)
		if (json_object_size(json_at(container, "resources", "requests")) > 0)
			return true;
	return false;
}

void prepare_new(const struct resource *resource, json_t *object)
{
	if (resource->flags & RESOURCE_STATUS)
		json_object_del(object, "status");
	if (resource->flags & RESOURCE_CUSTOM)
		return;
	if (str_eq(resource->kind, "Pod"))
		json_put(object, "status",
			 json_pack("{s:s, s:s}", "phase", "Pending", "qosClass",
				   asks_for_anything(object) ? "Burstable" : "BestEffort"));
	else if (str_eq(resource->kind, "Namespace"))
		json_put(object, "status", json_pack("{s:s}", "phase", "Active"));
	else if (str_eq(resource->kind, "Service"))
		json_put(object, "status", json_pack("{s:{}}", "loadBalancer"));
	else if (str_eq(resource->kind, "Deployment") || str_eq(resource->kind, "ReplicaSet") ||
		 str_eq(resource->kind, "StatefulSet"))
		json_put(object, "status", json_pack("{s:i}", "replicas", 0));
}

void prepare_established(json_t *definition)
{
	json_t *old = json_at(definition, "status", "conditions"), *status, *version;
	const json_t *names = json_at(definition, "spec", "names");
	char now[RFC3339_SIZE];
	json_t *stored = json_array();
	size_t i;

	rfc3339_write(clock_wall_us(), now);
	json_array_foreach (json_at(definition, "spec", "versions"), i, version)
		if (json_is_true(json_at(version, "storage")))
			json_array_append(stored, json_at(version, "name"));
	old = json_incref(old);
	status = json_object();
	json_put(status, "acceptedNames", json_deep_copy(names));
	json_put(status, "storedVersions", stored);
	json_put(status, "conditions",
		 json_is_array(old)
			 ? json_incref(old)
			 : json_pack("[{s:s, s:s, s:s, s:s, s:s}, {s:s, s:s, s:s, s:s, s:s}]",
				     "type", "NamesAccepted", "status", "True",
				     "lastTransitionTime", now, "reason", "NoConflicts", "message",
				     "no conflicts found", "type", "Established", "status", "True",
				     "lastTransitionTime", now, "reason", "InitialNamesAccepted",
				     "message", "the initial names have been accepted"));
	json_decref(old);
	json_put(definition, "status", status);
}

/* ---- validation ------------------------------------------------------------------------------ */

static void validate_pod(const json_t *pod, json_t *causes)
{
	const json_t *containers = json_at(pod, "spec", "containers");
	json_t *container;
	size_t i;

	if (json_array_size(containers) == 0)
		cause_add(causes, "FieldValueRequired", "spec.containers", "Required value");
	json_array_foreach (containers, i, container) {
		auto_free char *name = str_printf("spec.containers[%zu].name", i);
		auto_free char *image = str_printf("spec.containers[%zu].image", i);

		if (str_empty(json_str_at(container, "name")))
			cause_add(causes, "FieldValueRequired", name, "Required value");
		if (str_empty(json_str_at(container, "image")))
			cause_add(causes, "FieldValueRequired", image, "Required value");
	}
}

static void validate_workload(const json_t *object, json_t *causes)
{
	if (!json_at(object, "spec", "selector"))
		cause_add(causes, "FieldValueRequired", "spec.selector", "Required value");
	if (json_array_size(json_at(object, "spec", "template", "spec", "containers")) == 0)
		cause_add(causes, "FieldValueRequired", "spec.template.spec.containers",
			  "Required value");
}

void prepare_validate(const struct resource *resource, const json_t *object, json_t *causes)
{
	if (resource->flags & RESOURCE_CUSTOM)
		return;
	if (str_eq(resource->kind, "Pod"))
		validate_pod(object, causes);
	else if (str_eq(resource->group, "apps") && !str_eq(resource->kind, "ControllerRevision"))
		validate_workload(object, causes);
}

/* The containers of a pod spec without the fields that an update may change: images. */
static json_t *fixed_containers(const json_t *pod)
{
	json_t *copy = json_deep_copy(json_at(pod, "spec", "containers")), *container;
	size_t i;

	json_array_foreach (copy, i, container)
		if (json_is_object(container))
			json_object_del(container, "image");
	return copy;
}

void prepare_validate_update(const struct resource *resource, const json_t *live,
			     const json_t *object, json_t *causes)
{
	if (resource->flags & RESOURCE_CUSTOM)
		return;
	if (str_eq(resource->kind, "Pod")) {
		json_auto_t *before = fixed_containers(live), *after = fixed_containers(object);

		if (!json_same(before, after) || !json_same(json_at(live, "spec", "nodeName"),
							    json_at(object, "spec", "nodeName")))
			cause_add(causes, "FieldValueForbidden", "spec",
				  "Forbidden: pod updates may not change fields other than "
				  "`spec.containers[*].image`, `spec.initContainers[*].image`, "
				  "`spec.activeDeadlineSeconds`, `spec.tolerations` (only "
				  "additions to existing tolerations), "
				  "`spec.terminationGracePeriodSeconds`");
	} else if (str_eq(resource->group, "apps")) {
		if (!json_same(json_at(live, "spec", "selector"),
			       json_at(object, "spec", "selector")))
			cause_add(causes, "FieldValueInvalid", "spec.selector",
				  "Invalid value: field is immutable");
	} else if (json_is_true(json_at(live, "immutable"))) {
		if (!json_same(json_at(live, "data"), json_at(object, "data")) ||
		    !json_is_true(json_at(object, "immutable")))
			cause_add(causes, "FieldValueForbidden", "data",
				  "Forbidden: field is immutable when `immutable` is set");
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What kubectl prints of built-in kinds: one row of columns and one function for each kind.
 *
 * Names, types and order of columns were recorded from a kube-apiserver.
 */
#include "cli/simulate/objects/cells.h"

#include <ctype.h>
#include <string.h>

#include "cli/simulate/objects/table.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"

#define NONE "<none>"

static void add_text(json_t *cells, const char *text)
{
	json_array_append_new(cells, json_fmt("%s", str_empty(text) ? NONE : text));
}

static void add_str(json_t *cells, const char *text)
{
	json_array_append_new(cells, json_fmt("%s", text ? text : ""));
}

static void add_int(json_t *cells, const json_t *value)
{
	json_array_append_new(cells, json_integer(json_integer_value(value)));
}

json_t *cells_age(const json_t *time, int64_t now_us)
{
	char text[TABLE_AGE_SIZE];
	int64_t at_us = 0;

	if (!json_is_string(time) || !*json_string_value(time))
		return json_string("<unknown>");
	if (!rfc3339_read(json_string_value(time), &at_us))
		return json_string("<invalid>");
	table_age(now_us - at_us, text);
	return json_string(text);
}

static void add_age(json_t *cells, const json_t *object, int64_t now_us)
{
	json_array_append_new(cells,
			      cells_age(json_at(object, "metadata", "creationTimestamp"), now_us));
}

/* The members `key` of a list's items, with commas between. Returns new. */
static char *joined(const json_t *list, const char *key)
{
	struct strbuf out = {0};
	const json_t *item = NULL;
	size_t i = 0;

	json_array_foreach (list, i, item)
		strbuf_addf(&out, "%s%s", i ? "," : "", json_str_or(json_at(item, key), ""));
	return strbuf_take(&out);
}

/* "a=b,c=d" in the order of keys. Returns new. */
static char *pairs(const json_t *map)
{
	struct strbuf out = {0};
	auto_free char *sorted = json_text(map ? map : json_null());
	json_auto_t *ordered = json_parse(sorted, strlen(sorted), NULL);
	const char *key = NULL;
	json_t *value = NULL;

	json_each (ordered, key, value)
		strbuf_addf(&out, "%s%s=%s", out.len ? "," : "", key, json_str_or(value, ""));
	return strbuf_take(&out);
}

static void add_template(json_t *cells, const json_t *object)
{
	const json_t *containers = json_at(object, "spec", "template", "spec", "containers");
	auto_free char *names = joined(containers, "name");
	auto_free char *images = joined(containers, "image");

	add_str(cells, names);
	add_str(cells, images);
}

static void add_selector(json_t *cells, const json_t *object)
{
	auto_free char *text = pairs(json_at(object, "spec", "selector", "matchLabels"));

	add_text(cells, text);
}

static void add_fraction(json_t *cells, const json_t *some, const json_t *all)
{
	json_array_append_new(
		cells, json_fmt("%lld/%lld", json_integer_value(some), json_integer_value(all)));
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static char *node_status(const json_t *node)
{
	const json_t *ready = json_find(json_at(node, "status", "conditions"), "type", "Ready");
	const char *status = json_str_or(json_at(ready, "status"), "Unknown");
	const char *word = str_eq(status, "True") ? "Ready" : ready ? "NotReady" : "Unknown";

	return str_printf(
		"%s%s", word,
		json_is_true(json_at(node, "spec", "unschedulable")) ? ",SchedulingDisabled" : "");
}

static char *node_roles(const json_t *node)
{
	static const char prefix[] = "node-role.kubernetes.io/";
	auto_free char *sorted = NULL;
	json_auto_t *roles = json_object();
	const char *key = NULL;
	json_t *value = NULL;

	json_each (json_at(node, "metadata", "labels"), key, value)
		if (str_starts(key, prefix) && key[strlen(prefix)])
			json_object_set_new(roles, key + strlen(prefix), json_string(""));
	sorted = pairs(roles);
	/* "a=,b=": no role has the character. */
	for (char *from = sorted, *to = sorted;; from++) {
		if (*from != '=')
			*to++ = *from;
		if (!*from)
			break;
	}
	return take_ptr(sorted);
}

static const char *node_address(const json_t *node, const char *type)
{
	return json_str_at(json_find(json_at(node, "status", "addresses"), "type", type),
			   "address");
}

static const char *or_unknown(const char *text)
{
	return str_empty(text) ? "<unknown>" : text;
}

static void add_node(const json_t *object, int64_t now_us, json_t *cells)
{
	const json_t *info = json_at(object, "status", "nodeInfo");
	auto_free char *status = node_status(object);
	auto_free char *roles = node_roles(object);

	add_str(cells, status);
	add_text(cells, roles);
	add_age(cells, object, now_us);
	add_str(cells, json_str_at(info, "kubeletVersion"));
	add_text(cells, node_address(object, "InternalIP"));
	add_text(cells, node_address(object, "ExternalIP"));
	add_str(cells, or_unknown(json_str_at(info, "osImage")));
	add_str(cells, or_unknown(json_str_at(info, "kernelVersion")));
	add_str(cells, or_unknown(json_str_at(info, "containerRuntimeVersion")));
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* The word for one container that does not run, or NULL. */
static const char *container_reason(const json_t *status)
{
	const char *waiting = json_str_at(status, "state", "waiting", "reason");

	return waiting ? waiting : json_str_at(status, "state", "terminated", "reason");
}

static const char *pod_status(const json_t *pod)
{
	const char *reason = json_str_at(pod, "status", "reason");
	const json_t *status = NULL;
	size_t i = 0;

	if (json_at(pod, "metadata", "deletionTimestamp"))
		return "Terminating";
	if (!reason)
		reason = json_str_at(pod, "status", "phase");
	json_array_foreach (json_at(pod, "status", "containerStatuses"), i, status)
		if (container_reason(status))
			reason = container_reason(status);
	return reason;
}

static void add_pod(const json_t *object, int64_t now_us, json_t *cells)
{
	const json_t *statuses = json_at(object, "status", "containerStatuses"), *status = NULL;
	const char *ip = json_str_at(object, "status", "podIP");
	json_int_t restarts = 0;
	size_t ready = 0, i = 0;

	json_array_foreach (statuses, i, status) {
		ready += json_is_true(json_at(status, "ready"));
		restarts += json_integer_value(json_at(status, "restartCount"));
	}
	json_array_append_new(
		cells,
		json_fmt("%zu/%zu", ready, json_array_size(json_at(object, "spec", "containers"))));
	add_str(cells, pod_status(object));
	json_array_append_new(cells, json_integer(restarts));
	add_age(cells, object, now_us);
	add_text(cells, ip);
	add_text(cells, json_str_at(object, "spec", "nodeName"));
	add_text(cells, json_str_at(object, "status", "nominatedNodeName"));
	add_text(cells, NULL);
}

/* ---- events ---------------------------------------------------------------------------------- */

static const json_t *first_of(const json_t *a, const json_t *b)
{
	return json_is_string(a) ? a : b;
}

static char *event_object(const json_t *event)
{
	char *text = str_printf("%s/%s", json_str_or(json_at(event, "involvedObject", "kind"), ""),
				json_str_or(json_at(event, "involvedObject", "name"), ""));

	for (char *c = text; *c && *c != '/'; c++)
		*c = (char)tolower((unsigned char)*c);
	return text;
}

static char *event_source(const json_t *event)
{
	const char *component = json_str_at(event, "source", "component");
	const char *host = json_str_at(event, "source", "host");

	if (!component)
		component = json_str_at(event, "reportingComponent");
	return str_printf("%s%s%s", component ? component : "", host ? ", " : "", host ? host : "");
}

static void add_event(const json_t *object, int64_t now_us, json_t *cells)
{
	const json_t *time = json_at(object, "eventTime");
	const json_t *first = first_of(json_at(object, "firstTimestamp"), time);
	const json_t *last = first_of(json_at(object, "lastTimestamp"), first);
	const json_t *count = json_at(object, "count");
	auto_free char *involved = event_object(object);
	auto_free char *source = event_source(object);

	json_array_append_new(cells, cells_age(last, now_us));
	add_str(cells, json_str_at(object, "type"));
	add_str(cells, json_str_at(object, "reason"));
	add_str(cells, involved);
	add_str(cells, json_str_at(object, "involvedObject", "fieldPath"));
	add_str(cells, source);
	add_str(cells, json_str_at(object, "message"));
	json_array_append_new(cells, cells_age(first, now_us));
	json_array_append_new(cells, json_integer(count ? json_integer_value(count) : 1));
	add_str(cells, json_name(object));
}

/* ---- workloads ------------------------------------------------------------------------------- */

static void add_deployment(const json_t *object, int64_t now_us, json_t *cells)
{
	add_fraction(cells, json_at(object, "status", "readyReplicas"),
		     json_at(object, "spec", "replicas"));
	add_int(cells, json_at(object, "status", "updatedReplicas"));
	add_int(cells, json_at(object, "status", "availableReplicas"));
	add_age(cells, object, now_us);
	add_template(cells, object);
	add_selector(cells, object);
}

static void add_daemon_set(const json_t *object, int64_t now_us, json_t *cells)
{
	static const char *const counts[] = {
		"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
		"updatedNumberScheduled", "numberAvailable",
	};
	auto_free char *nodes = pairs(json_at(object, "spec", "template", "spec", "nodeSelector"));

	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		add_int(cells, json_at(object, "status", counts[i]));
	add_text(cells, nodes);
	add_age(cells, object, now_us);
	add_template(cells, object);
	add_selector(cells, object);
}

static void add_stateful_set(const json_t *object, int64_t now_us, json_t *cells)
{
	add_fraction(cells, json_at(object, "status", "readyReplicas"),
		     json_at(object, "spec", "replicas"));
	add_age(cells, object, now_us);
	add_template(cells, object);
}

static void add_replica_set(const json_t *object, int64_t now_us, json_t *cells)
{
	add_int(cells, json_at(object, "spec", "replicas"));
	add_int(cells, json_at(object, "status", "replicas"));
	add_int(cells, json_at(object, "status", "readyReplicas"));
	add_age(cells, object, now_us);
	add_template(cells, object);
	add_selector(cells, object);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void add_namespace(const json_t *object, int64_t now_us, json_t *cells)
{
	add_str(cells, json_str_at(object, "status", "phase"));
	add_age(cells, object, now_us);
}

static void add_config_map(const json_t *object, int64_t now_us, json_t *cells)
{
	size_t n = json_object_size(json_at(object, "data")) +
		   json_object_size(json_at(object, "binaryData"));

	json_array_append_new(cells, json_integer((json_int_t)n));
	add_age(cells, object, now_us);
}

static void add_secret(const json_t *object, int64_t now_us, json_t *cells)
{
	add_str(cells, json_str_at(object, "type"));
	json_array_append_new(cells,
			      json_integer((json_int_t)json_object_size(json_at(object, "data"))));
	add_age(cells, object, now_us);
}

static void add_service_account(const json_t *object, int64_t now_us, json_t *cells)
{
	json_array_append_new(
		cells, json_integer((json_int_t)json_array_size(json_at(object, "secrets"))));
	add_age(cells, object, now_us);
}

static void add_lease(const json_t *object, int64_t now_us, json_t *cells)
{
	add_str(cells, json_str_at(object, "spec", "holderIdentity"));
	add_age(cells, object, now_us);
}

static void add_definition(const json_t *object, int64_t now_us, json_t *cells)
{
	add_str(cells, json_str_at(object, "metadata", "creationTimestamp"));
}

static char *service_ports(const json_t *service)
{
	struct strbuf out = {0};
	const json_t *port = NULL;
	size_t i = 0;

	json_array_foreach (json_at(service, "spec", "ports"), i, port) {
		json_int_t node = json_integer_value(json_at(port, "nodePort"));

		strbuf_addf(&out, "%s%lld", i ? "," : "",
			    json_integer_value(json_at(port, "port")));
		if (node)
			strbuf_addf(&out, ":%lld", node);
		strbuf_addf(&out, "/%s", json_str_or(json_at(port, "protocol"), "TCP"));
	}
	return strbuf_take(&out);
}

static void add_service(const json_t *object, int64_t now_us, json_t *cells)
{
	auto_free char *ports = service_ports(object);
	auto_free char *selector = pairs(json_at(object, "spec", "selector"));

	add_str(cells, json_str_or(json_at(object, "spec", "type"), "ClusterIP"));
	add_text(cells, json_str_at(object, "spec", "clusterIP"));
	add_text(cells,
		 json_string_value(json_array_get(json_at(object, "spec", "externalIPs"), 0)));
	add_text(cells, ports);
	add_age(cells, object, now_us);
	add_text(cells, selector);
}

/* clang-format off */
#define NAME       {"Name", "string", "name", 0}
#define TEXT(name) {name, "string", "", 0}
#define INT(name)  {name, "integer", "", 0}
#define WIDE(name) {name, "string", "", 1}
#define AGE        TEXT("Age")
#define TEMPLATE   WIDE("Containers"), WIDE("Images")

static const struct cells_kind kinds[] = {
	{"", "Node", {NAME, TEXT("Status"), TEXT("Roles"), AGE, TEXT("Version"), WIDE("Internal-IP"),
		WIDE("External-IP"), WIDE("OS-Image"), WIDE("Kernel-Version"),
		WIDE("Container-Runtime")}, add_node},
	{"", "Pod", {NAME, TEXT("Ready"), TEXT("Status"), INT("Restarts"), AGE, WIDE("IP"),
		WIDE("Node"), WIDE("Nominated Node"), WIDE("Readiness Gates")}, add_pod},
	{"", "Namespace", {NAME, TEXT("Status"), AGE}, add_namespace},
	{"", "Event", {TEXT("Last Seen"), TEXT("Type"), TEXT("Reason"), TEXT("Object"),
		WIDE("Subobject"), WIDE("Source"), TEXT("Message"), WIDE("First Seen"),
		WIDE("Count"), {"Name", "string", "name", 1}}, add_event},
	{"", "ConfigMap", {NAME, TEXT("Data"), AGE}, add_config_map},
	{"", "Secret", {NAME, TEXT("Type"), TEXT("Data"), AGE}, add_secret},
	{"", "ServiceAccount", {NAME, TEXT("Secrets"), AGE}, add_service_account},
	{"", "Service", {NAME, TEXT("Type"), TEXT("Cluster-IP"), TEXT("External-IP"),
		TEXT("Port(s)"), AGE, WIDE("Selector")}, add_service},
	{"apps", "Deployment", {NAME, TEXT("Ready"), TEXT("Up-to-date"), TEXT("Available"), AGE,
		TEMPLATE, WIDE("Selector")}, add_deployment},
	{"apps", "DaemonSet", {NAME, INT("Desired"), INT("Current"), INT("Ready"),
		INT("Up-to-date"), INT("Available"), TEXT("Node Selector"), AGE, TEMPLATE,
		WIDE("Selector")}, add_daemon_set},
	{"apps", "StatefulSet", {NAME, TEXT("Ready"), AGE, TEMPLATE}, add_stateful_set},
	{"apps", "ReplicaSet", {NAME, INT("Desired"), INT("Current"), INT("Ready"), AGE, TEMPLATE,
		WIDE("Selector")}, add_replica_set},
	{"coordination.k8s.io", "Lease", {NAME, TEXT("Holder"), AGE}, add_lease},
	{"apiextensions.k8s.io", "CustomResourceDefinition",
		{NAME, {"Created At", "date", "", 0}}, add_definition},
};
/* clang-format on */

const struct cells_kind *cells_find(const char *group, const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].group, group) && str_eq(kinds[i].kind, kind))
			return &kinds[i];
	return NULL;
}

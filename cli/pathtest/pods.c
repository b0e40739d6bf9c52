// SPDX-License-Identifier: Apache-2.0
#include "cli/pathtest/pods.h"

#include <string.h>

#include "cli/explain/resource.h"
#include "cli/pathtest/tasks.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/core/reconcile.h"

#define RESOURCE_ANNOTATION "k8s.v1.cni.cncf.io/resourceName"

/* ---- networks -------------------------------------------------------------------------------- */

/* Names of shared resources that nodes have, each once: { name: true }, new. */
static json_t *shared_resources(const json_t *world)
{
	json_t *found = json_object(), *state, *resource;
	const char *key;
	size_t i;

	json_each (world_kind(world, KIND_NODE_STATE), key, state)
		json_array_foreach (json_at(state, "status", "resources"), i, resource)
			if (str_eq(json_str_at(resource, "kind"), "shared") &&
			    json_str_at(resource, "name"))
				json_put_bool(found, json_str_at(resource, "name"), true);
	return found;
}

/* The one shared resource that there is. */
static int guess_resource(const json_t *world, const char *key, json_t *network, struct err *err)
{
	json_auto_t *shared = shared_resources(world);
	auto_strbuf struct strbuf names = {0};
	const char *name;
	json_t *value;

	json_each (shared, name, value)
		strbuf_addf(&names, "%s%s", names.len > 0 ? ", " : "", name);
	if (json_object_size(shared) > 1)
		return err_set(err, ERR_INVALID, "ManyResources",
			       "network %s names no resource, and there are several shared ones "
			       "(%s): choose with --resource",
			       key, strbuf_str(&names));
	if (names.len > 0)
		json_put_str(network, "resource", strbuf_str(&names));
	return 0;
}

static int add_network(const json_t *world, json_t *networks, const char *key, const char *resource,
		       struct err *err)
{
	const json_t *nad = world_get(world, KIND_NAD, key);
	json_auto_t *network = json_object(), *masters = network_masters(nad);

	if (!nad)
		return err_set(err, ERR_INVALID, "NoNetworkFound",
			       "there is no NetworkAttachmentDefinition %s: see orbweaver explain "
			       "network, explain config",
			       key);
	json_put_str(network, "key", key);
	json_put(network, "master", json_incref(json_array_get(masters, 0)));
	if (!resource)
		resource = json_str_at(nad, "metadata", "annotations", RESOURCE_ANNOTATION);
	if (!str_empty(resource))
		json_put_str(network, "resource", resource);
	else if (!resource && guess_resource(world, key, network, err) < 0)
		return -1;
	json_array_append(networks, network);
	return 0;
}

json_t *pathtest_networks(const json_t *world, const char *text, const char *ns,
			  const char *resource, struct err *err)
{
	json_auto_t *named = networks_parse(text, ns, err);
	json_auto_t *networks = json_array();
	json_t *one;
	size_t i;

	if (!named)
		return NULL;
	json_array_foreach (named, i, one) {
		auto_free char *key =
			str_printf("%s/%s", json_str_or(json_at(one, "namespace"), ""),
				   json_str_or(json_at(one, "name"), ""));

		if (add_network(world, networks, key, resource, err) < 0)
			return NULL;
	}
	if (json_array_size(networks) == 0) {
		(void)err_set(err, ERR_INVALID, "BadNetworks", "no network is named");
		return NULL;
	}
	return json_incref(networks);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* How many of each resource the pods of these networks ask for: { name: count }, new. */
static json_t *wanted_resources(const json_t *networks)
{
	json_t *wanted = json_object(), *network;
	size_t i;

	json_array_foreach (networks, i, network) {
		const char *name = json_str_at(network, "resource");

		if (name)
			json_put_int(wanted, name, json_integer_value(json_at(wanted, name)) + 1);
	}
	return wanted;
}

/* The first resource of which it has too few, or NULL. Borrowed from wanted. */
static const char *lacks(const json_t *node, const json_t *wanted)
{
	const char *name;
	json_t *count;

	json_each (wanted, name, count)
		if (resource_allocatable(node, name) < json_integer_value(count))
			return name;
	return NULL;
}

static bool is_usable(const json_t *node, const json_t *wanted)
{
	const json_t *ready = condition_find(json_at(node, "status", "conditions"), "Ready");

	return !json_is_true(json_at(node, "spec", "unschedulable")) &&
	       str_eq(json_str_at(ready, "status"), "True") && !lacks(node, wanted);
}

static int add_named(const json_t *world, const json_t *wanted, const char *name, json_t *nodes,
		     struct err *err)
{
	const json_t *node = world_get(world, KIND_NODE, name);
	const char *lack = lacks(node, wanted);

	if (!node)
		return err_set(err, ERR_INVALID, "NotFound", "there is no node %s", name);
	if (lack)
		return err_set(err, ERR_INVALID, "ResourceMissing",
			       "node %s has too few %s allocatable: see orbweaver explain resource "
			       "%s",
			       name, lack, lack);
	if (json_list_has(nodes, name))
		return err_set(err, ERR_INVALID, "TooFewNodes",
			       "node %s is named twice: a path has two ends", name);
	json_array_append_new(nodes, json_string(name));
	return 0;
}

json_t *pathtest_nodes(const json_t *world, const json_t *networks, char *const *named,
		       size_t named_len, bool all, struct err *err)
{
	json_auto_t *wanted = wanted_resources(networks);
	json_auto_t *nodes = json_array();
	const char *name, *first = NULL;
	json_t *node, *count;

	for (size_t i = 0; i < named_len; i++)
		if (add_named(world, wanted, named[i], nodes, err) < 0)
			return NULL;
	json_each (world_kind(world, KIND_NODE), name, node)
		if (named_len == 0 && (all || json_array_size(nodes) < 2) &&
		    is_usable(node, wanted))
			json_array_append_new(nodes, json_string(name));
	if (json_array_size(nodes) >= 2)
		return json_incref(nodes);
	json_each (wanted, name, count)
		first = first ? first : name;
	(void)err_set(err, ERR_INVALID, "TooFewNodes",
		      "a test needs two nodes that are Ready and have %s allocatable, and there "
		      "are %zu%s%s",
		      first ? first : "room", json_array_size(nodes),
		      first ? ": see orbweaver explain resource " : "", first ? first : "");
	return NULL;
}

/* ---- the pod --------------------------------------------------------------------------------- */

static json_t *network_annotation(const json_t *networks)
{
	auto_strbuf struct strbuf text = {0};
	json_t *network;
	size_t i;

	json_array_foreach (networks, i, network)
		strbuf_addf(&text, "%s%s", i > 0 ? "," : "",
			    json_str_or(json_at(network, "key"), ""));
	return json_string(strbuf_str(&text));
}

static json_t *limits(const json_t *networks)
{
	json_auto_t *wanted = wanted_resources(networks);
	json_t *found = json_object(), *count;
	const char *name;

	json_each (wanted, name, count)
		json_put(found, name, json_fmt("%" JSON_INTEGER_FORMAT, json_integer_value(count)));
	return found;
}

/*
 * By the scheduler, which keeps account of devices and says why there is none; spec.nodeName would
 * go past it.
 */
static json_t *on_node(const char *node)
{
	return json_pack("{s:{s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}}", "nodeAffinity",
			 "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms",
			 "matchFields", "key", "metadata.name", "operator", "In", "values", node);
}

/* Memory is registered (IPC_LOCK), echo requests are sent (NET_RAW). */
static json_t *container(const struct pathtest_pod *pod)
{
	json_t *c = json_pack("{s:s, s:s, s:s, s:{s:{s:[s, s]}}}", "name", PATHTEST_CONTAINER,
			      "image", pod->image, "imagePullPolicy", "IfNotPresent",
			      "securityContext", "capabilities", "add", "IPC_LOCK", "NET_RAW");

	json_put(c, "command", json_pack("[s, s, s, s]", "sh", "-c", task_pod_script, TASK_FOLDER));
	json_put(c, "volumeMounts",
		 json_pack("[{s:s, s:s, s:b}]", "name", "task", "mountPath", TASK_FOLDER,
			   "readOnly", true));
	json_put(json_need_object(c, "resources"), "limits", limits(pod->networks));
	return c;
}

json_t *pathtest_pod(const struct pathtest_pod *pod)
{
	json_t *object = json_pack("{s:s, s:s}", "apiVersion", "v1", "kind", "Pod");
	json_t *metadata = json_need_object(object, "metadata");
	json_t *spec = json_need_object(object, "spec");

	json_put_str(metadata, "name", pod->name);
	json_put_str(metadata, "namespace", pod->ns);
	json_put(metadata, "labels",
		 json_pack("{s:s}", "app.kubernetes.io/name", "orbweaver-test"));
	json_put(json_need_object(metadata, "annotations"), NETWORKS_ANNOTATION,
		 network_annotation(pod->networks));
	json_put(spec, "affinity", on_node(pod->node));
	json_put_str(spec, "restartPolicy", "Never");
	json_put_bool(spec, "automountServiceAccountToken", false);
	json_put_int(spec, "terminationGracePeriodSeconds", 1);
	json_put_int(spec, "activeDeadlineSeconds", PATHTEST_POD_S);
	json_put(spec, "volumes",
		 json_pack("[{s:s, s:{s:[{s:s, s:{s:s}}]}}]", "name", "task", "downwardAPI",
			   "items", "path", TASK_FILE, "fieldRef", "fieldPath",
			   "metadata.annotations['" TASK_ANNOTATION "']"));
	json_put(spec, "containers", json_array());
	json_array_append_new(json_at(spec, "containers"), container(pod));
	return object;
}

/* ---- what becomes of it ---------------------------------------------------------------------- */

/* New; NULL: there is none yet, or it cannot be read. */
static json_t *network_status(const json_t *pod)
{
	const char *text = json_str_at(pod, "metadata", "annotations", NETWORK_STATUS_ANNOTATION);

	return text ? json_parse(text, strlen(text), NULL) : NULL;
}

/* An image that cannot be had, a container that cannot be made: nothing that passes by itself. */
static bool is_hopeless(const char *reason)
{
	static const char *const reasons[] = {
		"ErrImagePull",      "ImagePullBackOff",           "ErrImageNeverPull",
		"InvalidImageName",  "CreateContainerConfigError", "CreateContainerError",
		"RunContainerError", "CrashLoopBackOff",
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(reason, reasons[i]))
			return true;
	return false;
}

static enum pod_state state_of_container(const json_t *pod, const json_t *networks, struct err *err)
{
	const json_t *status = json_array_get(json_at(pod, "status", "containerStatuses"), 0);
	const json_t *waiting = json_at(status, "state", "waiting");
	const char *reason = json_str_at(waiting, "reason");
	json_t *network;
	size_t i;

	if (is_hopeless(reason)) {
		(void)err_set(err, ERR_TRANSIENT, "PodFailed", "its container: %s: %s", reason,
			      json_str_or(json_at(waiting, "message"), "no reason is given"));
		return POD_FAILED;
	}
	if (!json_at(status, "state", "running")) {
		(void)err_set(err, ERR_TRANSIENT, "PodFailed", "its container is being made");
		return POD_WAITS;
	}
	json_array_foreach (networks, i, network) {
		const char *key = json_str_or(json_at(network, "key"), "");
		json_auto_t *interface = pathtest_interface(pod, key);

		if (interface)
			continue;
		(void)err_set(err, ERR_TRANSIENT, "NoInterface",
			      "it runs, and its network-status has no interface with an address "
			      "in %s: does a meta plugin (Multus, or ours) set up networks here?",
			      key);
		return POD_STUCK;
	}
	return POD_READY;
}

enum pod_state pathtest_pod_state(const json_t *pod, const json_t *networks, struct err *err)
{
	const char *phase = json_str_at(pod, "status", "phase");
	const json_t *scheduled =
		condition_find(json_at(pod, "status", "conditions"), "PodScheduled");

	if (json_at(pod, "metadata", "deletionTimestamp")) {
		(void)err_set(err, ERR_TRANSIENT, "PodFailed", "somebody deletes it");
		return POD_FAILED;
	}
	if (pod_has_terminated(pod)) {
		(void)err_set(err, ERR_TRANSIENT, "PodFailed", "it ended: %s: %s",
			      json_str_or(json_at(pod, "status", "reason"), phase),
			      json_str_or(json_at(pod, "status", "message"), "no reason is given"));
		return POD_FAILED;
	}
	if (json_str_at(pod, "spec", "nodeName"))
		return state_of_container(pod, networks, err);
	if (str_eq(json_str_at(scheduled, "status"), "False")) {
		(void)err_set(err, ERR_TRANSIENT, "NotScheduled", "it is not scheduled: %s",
			      json_str_or(json_at(scheduled, "message"), "no reason is given"));
		return POD_STUCK;
	}
	(void)err_set(err, ERR_TRANSIENT, "NotScheduled",
		      "it is not scheduled: no scheduler has looked at it");
	return POD_WAITS;
}

const char *pathtest_complaint(const json_t *events)
{
	const char *last = NULL;
	json_t *event;
	size_t i;

	json_array_foreach (json_at(events, "items"), i, event)
		if (str_eq(json_str_at(event, "type"), "Warning") && json_str_at(event, "message"))
			last = json_str_at(event, "message");
	return last;
}

/* IPv4, if it has one: the tools of perftest find each other by that. */
static const char *address_of(const json_t *element)
{
	const char *found = NULL;
	json_t *ip;
	size_t i;

	json_array_foreach (json_at(element, "ips"), i, ip) {
		const char *text = json_string_value(ip);

		if (text && (!found || (strchr(found, ':') && !strchr(text, ':'))))
			found = text;
	}
	return found;
}

json_t *pathtest_interface(const json_t *pod, const char *network)
{
	json_auto_t *status = network_status(pod);
	json_t *element, *interface;
	size_t i;

	json_array_foreach (status, i, element) {
		const char *address = address_of(element);

		if (!str_eq(json_str_at(element, "name"), network) || !address ||
		    !json_str_at(element, "interface"))
			continue;
		interface = json_object();
		json_put_str(interface, "interface", json_str_at(element, "interface"));
		/* Without the prefix's length, should it have one. */
		json_put(interface, "address",
			 json_fmt("%.*s", (int)strcspn(address, "/"), address));
		json_put_str(interface, "control",
			     strchr(address, ':') ? json_str_at(pod, "status", "podIP")
						  : json_str_at(interface, "address"));
		json_put_str(interface, "rdma",
			     json_str_at(element, "device-info", "pci", "rdma-device"));
		json_put_str(interface, "pci",
			     json_str_at(element, "device-info", "pci", "pci-address"));
		return interface;
	}
	return NULL;
}

const json_t *pathtest_pf(const json_t *world, const char *node, const json_t *interface,
			  const char *master)
{
	const char *key, *pci = json_str_at(interface, "pci");
	json_t *state, *pf;
	size_t i;

	json_each (world_kind(world, KIND_NODE_STATE), key, state)
		json_array_foreach (json_at(state, "status", "interfaces"), i, pf)
			if (str_eq(json_name(state), node) &&
			    (pci ? str_eq(json_str_at(pf, "pciAddress"), pci) ||
					     json_find(json_at(pf, "Vfs"), "pciAddress", pci)
				 : master && str_eq(json_str_at(pf, "name"), master)))
				return pf;
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Pods from their creation to their end, as scheduler, kubelet and the agent's part of CNI make
 * them: bound, given devices, networks and addresses, running, and all released.
 *
 * A turn (pods_turn) looks at the object and at what is known of it, starts the one thing that is
 * next and ends; what it started adds the key again. A pod that is gone or is being deleted is let
 * go from any state.
 */
#include <stdio.h>
#include <string.h>

#include "cli/simulate/decide/devices.h"
#include "cli/simulate/decide/pod_networks.h"
#include "cli/simulate/decide/pod_status.h"
#include "cli/simulate/decide/quantity.h"
#include "cli/simulate/decide/scheduler.h"
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/network_status.h"
#include "nodeagent/cni/worker/spiderpool.h"
#include "nodeagent/devices/pools.h"

enum {
	/* A CNI call, as kubelets give it. */
	ADDRESSES_MS = 90000,
	BIND_AGAIN_MS = 1000,
	RETRY_FIRST_MS = 500,
	RETRY_MAX_MS = 15000,
};

/*
 *	BINDING     the node is written to the API server
 *	WAITING     for a first try, or the next one
 *	READING     networks that the pod names
 *	ADDRESSING  its SpiderEndpoint
 *	ANNOTATING  network-status
 *	STARTING    its status
 *	RUNNING
 *	ENDING      its deletion
 */
enum sim_pod_state {
	POD_BINDING,
	POD_WAITING,
	POD_READING,
	POD_ADDRESSING,
	POD_ANNOTATING,
	POD_STARTING,
	POD_RUNNING,
	POD_ENDING,
};

struct sim_pod {
	struct sim_node *node;
	char *key, *uid, *ns, *name;
	enum sim_pod_state state;
	json_t *requests;
	bool has_devices, wants_addresses;
	int ip; /* on the cluster's network, an index into sim_node.ips; -1: none */
	json_t *delegates, *results;
	int64_t try_ms; /* no try before */
	int64_t pause_ms;
	struct kube_call *call;
	struct networks_question *question;
	struct addresses_want *want;
};

static const struct kube_write as_kubelet = {.field_manager = "kubelet"};

static void want_turn(const struct sim_pod *pod, int64_t after_ms)
{
	nodes_want(pod->node->nodes, KEY_POD, pod->key, after_ms);
}

static json_t *object_of(const struct sim_pod *pod)
{
	return cache_get(pod->node->nodes->pod_cache, pod->key);
}

static void emit(struct recorder *recorder, const json_t *object, bool warning, const char *reason,
		 const char *message)
{
	recorder_emit(recorder,
		      &(struct event_object){
			      .resource = &kube_pods,
			      .ns = json_namespace(object),
			      .name = json_name(object),
			      .uid = json_uid(object),
		      },
		      warning, reason, message);
}

/* ---- what a node has used -------------------------------------------------------------------- */

static void account(const struct sim_pod *pod, double sign)
{
	json_t *used = json_need_object(
		json_object_get(pod->node->nodes->schedule, pod->node->name), "used");
	const char *resource;
	json_t *amount;

	json_each (pod->requests, resource, amount) {
		double sum = json_number_value(json_object_get(used, resource)) +
			     sign * json_number_value(amount);

		json_put(used, resource, json_real(sum));
	}
}

static struct sim_pod *pod_new(struct sim_node *node, const char *key, const json_t *object)
{
	struct sim_pod *pod = mem_new(struct sim_pod);

	*pod = (struct sim_pod){
		.node = node,
		.key = str_dup(key),
		.uid = str_dup(json_uid(object)),
		.ns = str_dup(json_namespace(object)),
		.name = str_dup(json_name(object)),
		.requests = quantity_of_pod(object),
		.state = POD_WAITING,
		.ip = -1,
	};
	account(pod, 1);
	map_set(&node->nodes->pods, key, pod);
	return pod;
}

static void cancel_all(struct sim_pod *pod)
{
	kube_call_cancel(take_ptr(pod->call));
	networks_cancel(take_ptr(pod->question));
	addresses_want_cancel(take_ptr(pod->want));
}

static void pod_free(struct sim_pod *pod)
{
	cancel_all(pod);
	json_decref(pod->requests);
	json_decref(pod->delegates);
	json_decref(pod->results);
	mem_free(pod->key);
	mem_free(pod->uid);
	mem_free(pod->ns);
	mem_free(pod->name);
	mem_free(pod);
}

/* Its sandbox is gone: devices and addresses go back, as after the last DEL. */
static void tear_down(struct sim_pod *pod)
{
	struct sim_node *node = pod->node;

	cancel_all(pod);
	if (pod->wants_addresses)
		addresses_release(node->addresses, pod->ns, pod->name, pod->uid, NULL, NULL);
	pod->wants_addresses = false;
	if (pod->ip >= 0)
		node->ips[pod->ip] = false;
	pod->ip = -1;
	if (json_object_del(node->attachments, pod->key) == 0 || pod->has_devices) {
		devices_release(node->allocated, pod->key);
		sim_node_offer(node);
	}
	pod->has_devices = false;
}

/* What it had may be enough for one that waits. */
static void let_go(struct sim_pod *pod)
{
	struct nodes *nodes = pod->node->nodes;

	tear_down(pod);
	account(pod, -1);
	(void)map_take(&nodes->pods, pod->key);
	pod_free(pod);
	pods_look_at_unbound(nodes);
}

static void try_again(struct sim_pod *pod)
{
	pod->pause_ms = pod->pause_ms ? 2 * pod->pause_ms : RETRY_FIRST_MS;
	if (pod->pause_ms > RETRY_MAX_MS)
		pod->pause_ms = RETRY_MAX_MS;
	pod->try_ms = clock_ms() + pod->pause_ms;
	pod->state = POD_WAITING;
	want_turn(pod, pod->pause_ms);
}

static void fail(struct sim_pod *pod, const char *reason, const struct err *err)
{
	json_auto_t *object = object_of(pod);
	auto_free char *text = str_printf("Failed to create pod sandbox: %s", err->text);

	if (object)
		emit(pod->node->nodes->kubelet, object, true, reason,
		     str_eq(reason, "FailedCreatePodSandBox") ? text : err->text);
	try_again(pod);
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static void on_bound(void *arg, json_t *object, const struct err *err)
{
	struct sim_pod *pod = arg;

	pod->call = NULL;
	if (!err) {
		pod->state = POD_WAITING;
		want_turn(pod, 0);
		return;
	}
	/* Bound by another, or gone: the object says. */
	want_turn(pod, BIND_AGAIN_MS);
	let_go(pod);
}

static void bind(struct sim_node *node, const char *key, const json_t *object)
{
	static const struct kube_write how = {.subresource = "binding",
					      .field_manager = "kube-scheduler"};
	struct sim_pod *pod = pod_new(node, key, object);
	auto_free char *text = str_printf("Successfully assigned %s to %s", key, node->name);
	json_auto_t *binding =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "apiVersion", "v1", "kind",
			  "Binding", "metadata", "name", pod->name, "namespace", pod->ns, "target",
			  "apiVersion", "v1", "kind", "Node", "name", node->name);

	pod->state = POD_BINDING;
	emit(node->nodes->scheduler, object, false, "Scheduled", text);
	pod->call = kube_create(node->nodes->client, &kube_pods, binding, &how, on_bound, pod);
}

static void on_nothing(void *arg, json_t *object, const struct err *err)
{
}

/* In the pod's status once, and as an event. */
static void say_unschedulable(struct nodes *nodes, const json_t *object, const char *why)
{
	const json_t *before =
		json_find(json_at(object, "status", "conditions"), "type", "PodScheduled");
	struct kube_write how = {.subresource = "status", .field_manager = "kube-scheduler"};
	json_auto_t *patch = NULL;
	char now[RFC3339_SIZE];

	emit(nodes->scheduler, object, true, "FailedScheduling", why);
	if (str_eq(json_str_at(before, "message"), why))
		return;
	rfc3339_write(clock_wall_us(), now);
	patch = json_pack("{s:o}", "status", pod_status_unschedulable(object, why, now));
	kube_patch(nodes->client, &kube_pods, json_namespace(object), json_name(object),
		   KUBE_PATCH_MERGE, patch, &how, on_nothing, NULL);
}

static void schedule(struct nodes *nodes, const char *key, const json_t *object)
{
	struct err err = {0};
	const char *name = scheduler_choose(object, nodes->schedule, &err);

	if (name)
		bind(map_get(&nodes->all, name), key, object);
	else
		say_unschedulable(nodes, object, err.text);
}

static void queue_pod(void *arg, const char *key)
{
	nodes_want(arg, KEY_POD, key, 0);
}

void pods_look_at_unbound(struct nodes *nodes)
{
	cache_find(nodes->pod_cache, PODS_BY_NODE, PODS_UNBOUND, queue_pod, nodes);
}

/* ---- the end of a try: the status ------------------------------------------------------------ */

static char *pod_ip(const struct sim_pod *pod)
{
	unsigned int n = pod->node->number;

	if (pod->ip < 0)
		return str_dup(pod->node->ip);
	return str_printf("10.%u.%u.%d", 128 + n / 256, n % 256, pod->ip + 1);
}

static void on_started(void *arg, json_t *object, const struct err *err)
{
	struct sim_pod *pod = arg;

	pod->call = NULL;
	if (err) {
		try_again(pod);
		return;
	}
	pod->pause_ms = 0;
	pod->state = POD_RUNNING;
	informer_learn(pod->node->nodes->pod_informer, object);
}

/* The address that the pod is reached by: of its first network. */
static char *first_address(const struct sim_pod *pod)
{
	const char *text = json_str_at(
		json_array_get(json_at(json_array_get(pod->results, 0), "ips"), 0), "address");

	return text ? str_ndup(text, strcspn(text, "/")) : pod_ip(pod);
}

static void start(struct sim_pod *pod)
{
	json_auto_t *object = object_of(pod), *patch = NULL;
	auto_free char *ip = first_address(pod);
	struct kube_write how = as_kubelet;
	char now[RFC3339_SIZE];

	if (!object)
		return;
	rfc3339_write(clock_wall_us(), now);
	patch = json_pack("{s:o}", "status", pod_status_running(object, pod->node->ip, ip, now));
	how.subresource = "status";
	pod->state = POD_STARTING;
	emit(pod->node->nodes->kubelet, object, false, "Started", "Started container");
	pod->call = kube_patch(pod->node->nodes->client, &kube_pods, pod->ns, pod->name,
			       KUBE_PATCH_MERGE, patch, &how, on_started, pod);
}

/* ---- networks and addresses ------------------------------------------------------------------ */

static void on_annotated(void *arg, const json_t *answer, const struct err *err)
{
	struct sim_pod *pod = arg;

	pod->question = NULL;
	if (err)
		fail(pod, "FailedCreatePodSandBox", err);
	else
		start(pod);
}

static json_t *infos_of(const struct sim_pod *pod)
{
	json_t *infos = json_array(), *delegate;
	size_t i;

	json_array_foreach (pod->delegates, i, delegate) {
		const json_t *info = devices_info(
			pod->node->pools, json_str_or(json_at(delegate, "resourceName"), ""),
			json_str_at(delegate, "deviceID"));

		json_array_append_new(infos, info ? json_incref((json_t *)info) : json_null());
	}
	return infos;
}

static json_t *added_texts(const struct sim_pod *pod)
{
	json_t *texts = json_array(), *delegate;
	size_t i;

	json_array_foreach (pod->delegates, i, delegate) {
		auto_free char *text =
			network_added_text(delegate, json_array_get(pod->results, i));

		if (text)
			json_array_append_new(texts, json_string(text));
	}
	return texts;
}

static void take_results(struct sim_pod *pod, const json_t *status)
{
	auto_free char *address = pod_ip(pod), *ip = str_printf("%s/24", address);
	struct err err = {0};
	json_t *results = pod_networks_results(pod->delegates, status, ip, pod->uid, &err);
	json_auto_t *infos = NULL, *metadata = NULL, *question = NULL;
	auto_free char *text = NULL;

	if (!results) {
		fail(pod, "FailedCreatePodSandBox", &err);
		return;
	}
	json_replace(&pod->results, results);
	infos = infos_of(pod);
	text = network_status_text(pod->delegates, pod->results, infos);
	metadata = json_pack("{s:s, s:s, s:s}", "namespace", pod->ns, "name", pod->name, "uid",
			     pod->uid);
	question = json_pack("{s:s, s:O, s:s, s:o}", "kind", "status", "pod", metadata, "text",
			     text, "added", added_texts(pod));
	json_put(pod->node->attachments, pod->key,
		 pod_networks_attachments(metadata, pod->delegates, pod->results));
	pod->node->server.is_dirty = true;
	nodes_want(pod->node->nodes, KEY_NODE, pod->node->name, 0);
	pod->state = POD_ANNOTATING;
	pod->question = networks_ask(pod->node->networks, question, on_annotated, pod);
}

static void on_addresses(void *arg, const json_t *status, const struct err *err)
{
	struct sim_pod *pod = arg;

	pod->want = NULL;
	if (err)
		fail(pod, "FailedCreatePodSandBox", err);
	else
		take_results(pod, status);
}

/* What the NICs ask with, as the CNI plugin `spiderpool` does; NULL with err. New. */
static json_t *asks_of(const struct sim_pod *pod, struct err *err)
{
	json_auto_t *asks = json_array();
	const json_t *delegate;
	size_t i;

	json_array_foreach (pod->delegates, i, delegate) {
		const json_t *plugin = pod_networks_plugin(delegate);
		bool matches = false;
		json_t *wish;

		if (!plugin)
			continue;
		wish = spiderpool_wish(plugin, json_str_at(delegate, "interface"), &matches, err);
		if (!wish)
			return NULL;
		/* Simulated NICs have no addresses. */
		if (matches)
			json_put(wish, "masterAddresses", json_array());
		json_array_append_new(asks, wish);
	}
	return json_incref(asks);
}

static void want_addresses(struct sim_pod *pod)
{
	struct err err = {0};
	json_auto_t *asks = asks_of(pod, &err);

	if (!asks) {
		fail(pod, "FailedCreatePodSandBox", &err);
		return;
	}
	if (json_array_size(asks) == 0) {
		take_results(pod, NULL);
		return;
	}
	pod->state = POD_ADDRESSING;
	pod->wants_addresses = true;
	pod->want = addresses_want(pod->node->addresses,
				   &(struct addresses_request){
					   .ns = pod->ns,
					   .name = pod->name,
					   .uid = pod->uid,
					   .asks = asks,
					   .deadline_ms = clock_ms() + ADDRESSES_MS,
				   },
				   on_addresses, pod);
}

static void on_networks(void *arg, const json_t *answer, const struct err *err)
{
	struct sim_pod *pod = arg;
	json_auto_t *config = pod_networks_config(), *links = json_array();
	auto_free char *args = str_printf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;"
					  "K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
					  pod->ns, pod->name, pod->uid, pod->uid);
	struct err why = {0};
	json_t *delegates;

	pod->question = NULL;
	if (err) {
		fail(pod, "FailedCreatePodSandBox", err);
		return;
	}
	delegates = meta_delegates(
		&(struct meta_input){
			.container_id = pod->uid,
			.ifname = "eth0",
			.args = args,
			.config = config,
			.pod = json_at(answer, "pod"),
			.nads = json_at(answer, "nads"),
			.devices = json_at(answer, "devices"),
			.links = links,
		},
		&why);
	if (!delegates) {
		fail(pod, "FailedCreatePodSandBox", &why);
		return;
	}
	json_replace(&pod->delegates, delegates);
	want_addresses(pod);
}

static void look_at_devices(void *arg)
{
	const struct sim_node *node = arg;
	json_auto_t *served = pools_names(node->pools);

	networks_devices(node->networks, node->allocated, served);
}

static void need_machinery(struct sim_node *node)
{
	struct nodes *nodes = node->nodes;

	if (node->networks)
		return;
	node->networks = networks_new(&(struct networks_config){
		.loop = nodes->loop,
		.client = nodes->client,
		.recorder = nodes->agent,
		.look_at_devices = look_at_devices,
		.arg = node,
	});
	node->addresses = addresses_new(&(struct addresses_config){
		.loop = nodes->loop,
		.client = nodes->client,
		.node = node->name,
		.ns = nodes->config->ns,
		.config_ns = nodes->config->config_ns,
	});
}

/* ---- the beginning of a try ------------------------------------------------------------------ */

static int give_devices(struct sim_pod *pod, const json_t *object, struct err *err)
{
	struct sim_node *node = pod->node;
	json_auto_t *chosen = NULL;

	if (pod->has_devices)
		return 0;
	chosen = devices_choose(node->kubelet, agent_view(node->agent).observed, node->allocated,
				object, err);
	if (!chosen)
		return -1;
	pod->has_devices = json_object_size(chosen) > 0;
	devices_add(node->allocated, chosen);
	if (pod->has_devices)
		sim_node_offer(node);
	return 0;
}

static bool give_ip(struct sim_pod *pod)
{
	for (int i = 1; i < SIM_POD_IP_LAST && pod->ip < 0; i++) {
		if (pod->node->ips[i])
			continue;
		pod->node->ips[i] = true;
		pod->ip = i;
	}
	return pod->ip >= 0;
}

static void begin_try(struct sim_pod *pod, const json_t *object)
{
	json_auto_t *config = pod_networks_config(), *question = NULL;
	struct err err = {0};

	if (!pod->node->offered) {
		try_again(pod);
		return;
	}
	if (give_devices(pod, object, &err) < 0) {
		fail(pod, "UnexpectedAdmissionError", &err);
		return;
	}
	if (json_is_true(json_at(object, "spec", "hostNetwork"))) {
		start(pod);
		return;
	}
	if (!give_ip(pod)) {
		(void)err_set(&err, ERR_TRANSIENT, "NoAddress",
			      "the node has no address left for pods");
		fail(pod, "FailedCreatePodSandBox", &err);
		return;
	}
	need_machinery(pod->node);
	question = json_pack("{s:s, s:{s:s, s:s}, s:O}", "kind", "networks", "pod", "namespace",
			     pod->ns, "name", pod->name, "config", config);
	pod->state = POD_READING;
	pod->question = networks_ask(pod->node->networks, question, on_networks, pod);
}

static void on_deleted(void *arg, json_t *object, const struct err *err)
{
	struct sim_pod *pod = arg;

	pod->call = NULL;
	if (err && !kube_err_is(err, "NotFound"))
		try_again(pod);
	else
		want_turn(pod, 0);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool is_over(const json_t *object)
{
	const char *phase = json_str_at(object, "status", "phase");

	return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
}

static void turn_known(struct sim_pod *pod, const json_t *object)
{
	if (json_at(object, "metadata", "deletionTimestamp")) {
		struct kube_write how = as_kubelet;

		/* The grace period is not waited for: containers do nothing. */
		if (pod->state != POD_ENDING) {
			tear_down(pod);
			how.at_once = true;
			pod->state = POD_ENDING;
			pod->call = kube_delete(pod->node->nodes->client, &kube_pods, pod->ns,
						pod->name, pod->uid, NULL, &how, on_deleted, pod);
		}
	} else if (pod->state == POD_WAITING && clock_ms() >= pod->try_ms &&
		   str_eq(json_str_at(object, "spec", "nodeName"), pod->node->name))
		begin_try(pod, object);
}

void pods_turn(struct nodes *nodes, const char *key)
{
	json_auto_t *object = cache_get(nodes->pod_cache, key);
	struct sim_pod *pod = map_get(&nodes->pods, key);
	const char *name = json_str_at(object, "spec", "nodeName");
	struct sim_node *node;

	if (pod && (!object || !str_eq(pod->uid, json_uid(object)) || is_over(object) ||
		    (name && !str_eq(name, pod->node->name)))) {
		let_go(pod);
		pod = NULL;
	}
	if (!object || is_over(object))
		return;
	node = name ? map_get(&nodes->all, name) : NULL;
	if (!pod && node)
		pod = pod_new(node, key, object);
	if (pod)
		turn_known(pod, object);
	else if (!name && !json_at(object, "metadata", "deletionTimestamp"))
		schedule(nodes, key, object);
}

void pods_free_all(struct nodes *nodes)
{
	const char *key;
	void *pod;
	size_t i = 0;

	while (map_next(&nodes->pods, &i, &key, &pod))
		pod_free(pod);
	map_done(&nodes->pods);
}

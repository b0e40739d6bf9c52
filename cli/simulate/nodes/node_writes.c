// SPDX-License-Identifier: Apache-2.0
/*
 * What a simulated node writes to the API server: its Node as a kubelet does, its NodeState as the
 * agent does. One write at a time for each node, the next one that is due.
 */
#include "cli/simulate/decide/devices.h"
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/agent/node_state.h"

/* A write under way. */
struct writing {
	struct sim_node *node;
	char *key;
	json_t *node_status; /* what it says of devices; NULL: nothing */
};

static const struct kube_write as_kubelet = {.field_manager = "kubelet", .force = true};

static struct writing *begin(struct sim_node *node, const char *key)
{
	struct writing *writing = mem_new(struct writing);

	writing->node = node;
	writing->key = str_dup(key);
	return writing;
}

/* Takes writing. */
static void end(struct writing *writing, const struct err *err)
{
	struct queue *queue = writing->node->nodes->queue;
	auto_free char *key = writing->key;

	if (err && err->class != ERR_CONFLICT)
		log_warn("write failed, will retry", F_STR("node", writing->node->name),
			 F_ERR(err));
	json_decref(writing->node_status);
	mem_free(writing);
	queue_done(queue, key, err);
	/* For the next that is due. */
	if (!err)
		queue_add(queue, key, QUEUE_MAIN);
}

/* ---- the Node -------------------------------------------------------------------------------- */

static json_t *conditions_now(const struct sim_node *node)
{
	static const struct {
		const char *type, *status, *reason, *message;
	} all[] = {
		{"MemoryPressure", "False", "KubeletHasSufficientMemory",
		 "kubelet has sufficient memory available"},
		{"DiskPressure", "False", "KubeletHasNoDiskPressure",
		 "kubelet has no disk pressure"},
		{"PIDPressure", "False", "KubeletHasSufficientPID",
		 "kubelet has sufficient PID available"},
		{"Ready", "True", "KubeletReady", "simulated: this node does not exist"},
	};
	json_auto_t *object = cache_get(node->nodes->node_cache, node->name);
	json_t *list = json_array();
	char now[RFC3339_SIZE];

	rfc3339_write(clock_wall_us(), now);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const json_t *old =
			json_find(json_at(object, "status", "conditions"), "type", all[i].type);
		const char *since = str_eq(json_str_at(old, "status"), all[i].status)
					    ? json_str_at(old, "lastTransitionTime")
					    : NULL;

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "type",
						      all[i].type, "status", all[i].status,
						      "reason", all[i].reason, "message",
						      all[i].message, "lastHeartbeatTime", now,
						      "lastTransitionTime", since ? since : now));
	}
	return list;
}

static json_t *machine_status(const struct sim_node *node)
{
	json_t *capacity = json_pack("{s:s, s:s, s:s, s:s}", "cpu", "192", "memory", "2Ti", "pods",
				     "110", "ephemeral-storage", "7Ti");

	return json_pack("{s:o, s:o, s:[{s:s, s:s}, {s:s, s:s}], s:o, s:{s:s, s:s, s:s, s:s, s:s}}",
			 "capacity", capacity, "allocatable", json_deep_copy(capacity), "addresses",
			 "type", "InternalIP", "address", node->ip, "type", "Hostname", "address",
			 node->name, "conditions", conditions_now(node), "nodeInfo", "architecture",
			 "amd64", "operatingSystem", "linux", "osImage", "simulated",
			 "kernelVersion", "simulated", "kubeletVersion", "simulated");
}

static void on_untainted(void *arg, json_t *object, const struct err *err)
{
	end(arg, err);
}

/*
 * A server with the admission plugin TaintNodesByCondition taints new Nodes, and the node lifecycle
 * controller takes that away once they are Ready. True: that was begun.
 */
static bool untaint(struct writing *writing, const json_t *object)
{
	json_auto_t *left = json_array(), *patch = NULL;
	const json_t *taints = json_at(object, "spec", "taints"), *taint;
	size_t i;

	json_array_foreach (taints, i, taint)
		if (!str_eq(json_str_at(taint, "key"), "node.kubernetes.io/not-ready"))
			json_array_append(left, (json_t *)taint);
	if (json_array_size(left) == json_array_size(taints))
		return false;
	patch = json_pack("{s:{s:O}}", "spec", "taints", left);
	kube_patch(writing->node->nodes->client, &kube_nodes, NULL, writing->node->name,
		   KUBE_PATCH_MERGE, patch, &(struct kube_write){.field_manager = NODES_MANAGER},
		   on_untainted, writing);
	return true;
}

static void on_node_status(void *arg, json_t *object, const struct err *err)
{
	struct writing *writing = arg;
	struct sim_node *node = writing->node;

	if (!err) {
		if (!node->server.is_registered)
			sim_node_start(node);
		node->nodes->n_registered += !node->server.is_registered;
		node->server.is_registered = true;
		node->server.is_beating = false;
		if (writing->node_status) {
			json_replace(&node->server.devices, json_incref(writing->node_status));
		}
		if (untaint(writing, object))
			return;
		informer_learn(node->nodes->node_informer, object);
	}
	end(writing, err);
}

/* Takes status. */
static void patch_node_status(struct writing *writing, json_t *status)
{
	json_auto_t *patch = json_pack("{s:o}", "status", status);
	const struct sim_node *node = writing->node;
	struct kube_write how = as_kubelet;

	how.subresource = "status";
	how.force = false;
	kube_patch(node->nodes->client, &kube_nodes, NULL, node->name, KUBE_PATCH_MERGE, patch,
		   &how, on_node_status, writing);
}

static void on_node_applied(void *arg, json_t *object, const struct err *err)
{
	struct writing *writing = arg;

	if (err)
		end(writing, err);
	else
		patch_node_status(writing, machine_status(writing->node));
}

/* What its pools offer, if that is not what the Node says. */
static bool offer_if_due(struct sim_node *node, const char *key)
{
	json_auto_t *status = NULL;
	struct writing *writing;

	if (!node->offered)
		return false;
	status = devices_node_status(node->kubelet, json_at(node->server.devices, "capacity"));
	if (json_same(status, node->server.devices) ||
	    (!node->server.devices && json_object_size(json_at(status, "capacity")) == 0))
		return false;
	writing = begin(node, key);
	writing->node_status = json_incref(status);
	patch_node_status(writing, json_incref(status));
	return true;
}

/* ---- the NodeState --------------------------------------------------------------------------- */

static const struct kube_write as_agent = {.field_manager = NODE_STATE_MANAGER};

static void on_created(void *arg, json_t *object, const struct err *err)
{
	struct writing *writing = arg;

	if (object)
		informer_learn(writing->node->nodes->state_informer, object);
	end(writing, kube_err_is(err, "AlreadyExists") ? NULL : err);
}

/* The operator makes it sooner, mostly. */
static bool create_if_due(struct sim_node *node, const char *key)
{
	int64_t left = node->server.absent_ms + NODE_STATE_CREATE_MS - clock_ms();
	json_auto_t *object = NULL;

	if (node->server.node_state || !informer_is_synced(node->nodes->state_informer) ||
	    !cache_has(node->nodes->node_cache, node->name))
		return false;
	if (!node->server.absent_ms) {
		node->server.absent_ms = clock_ms();
		left = NODE_STATE_CREATE_MS;
	}
	if (left > 0) {
		queue_add_after(node->nodes->queue, key, left);
		return false;
	}
	object = kube_object_new(&node_state_resource, node->nodes->config->ns, node->name);
	kube_create(node->nodes->client, &node_state_resource, object, &as_agent, on_created,
		    begin(node, key));
	return true;
}

static void on_reported(void *arg, json_t *object, const struct err *err)
{
	struct writing *writing = arg;
	struct sim_node *node = writing->node;

	if (err) {
		node->server.is_dirty = true;
	} else {
		sim_node_reported(node, json_uid(object));
		informer_learn(node->nodes->state_informer, object);
	}
	end(writing, kube_err_is(err, "NotFound") ? NULL : err);
}

static bool report_if_due(struct sim_node *node, const char *key)
{
	const json_t *before = json_at(node->server.node_state, "status");
	struct kube_write how = as_agent;
	char now[RFC3339_SIZE];
	json_auto_t *status = NULL, *body = NULL;

	if (!node->server.is_dirty || !node->server.node_state || !node->agent)
		return false;
	rfc3339_write(clock_wall_us(), now);
	status = sim_node_status(node, before, now);
	node->server.is_dirty = false;
	if (!status)
		return false;
	if (json_same(status, before)) {
		sim_node_reported(node, json_uid(node->server.node_state));
		return false;
	}
	body = kube_object_new(&node_state_resource, node->nodes->config->ns, node->name);
	json_put_str(json_at(body, "metadata"), "resourceVersion",
		     json_str_at(node->server.node_state, "metadata", "resourceVersion"));
	json_put(body, "status", json_incref(status));
	how.subresource = "status";
	kube_update(node->nodes->client, &node_state_resource, body, &how, on_reported,
		    begin(node, key));
	return true;
}

void node_write_next(struct sim_node *node, const char *key)
{
	struct writing *writing;

	if (!node->server.is_registered) {
		json_auto_t *object = kube_object_new(&kube_nodes, NULL, node->name);
		json_t *labels = json_need_object(json_at(object, "metadata"), "labels");
		unsigned int n = node->number;

		json_put_str(labels, "kubernetes.io/os", "linux");
		json_put_str(labels, "kubernetes.io/arch", "amd64");
		json_put_str(labels, "kubernetes.io/hostname", node->name);
		json_put_str(labels, "node-role.kubernetes.io/worker", "");
		json_put_str(labels, "orbweaver.io/simulated", "true");
		json_put(json_need_object(object, "spec"), "podCIDR",
			 json_fmt("10.%u.%u.0/24", 128 + n / 256, n % 256));
		kube_patch(node->nodes->client, &kube_nodes, NULL, node->name, KUBE_PATCH_APPLY,
			   object, &as_kubelet, on_node_applied, begin(node, key));
	} else if (node->server.is_beating) {
		writing = begin(node, key);
		patch_node_status(writing, json_pack("{s:o}", "conditions", conditions_now(node)));
	} else if (!offer_if_due(node, key) && !create_if_due(node, key) &&
		   !report_if_due(node, key)) {
		queue_done(node->nodes->queue, key, NULL);
	}
}

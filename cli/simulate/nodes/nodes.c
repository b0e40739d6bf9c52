// SPDX-License-Identifier: Apache-2.0
/*
 * The process: watches, one queue of keys, and the beginning and end of all nodes. `orbweaver
 * simulate` starts it beside API server and operator.
 */
#include "cli/simulate/nodes/nodes.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/simulate/host/gpus.h"
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/node_state.h"

enum {
	/* Keys in work: a write each. */
	WORKING_MAX = 64,
	/* Changes of many pods are one turn of their workload. */
	WORKLOAD_MS = 20,
	/* Each Node says that it is alive so often. */
	BEAT_MS = 300000,
	HEART_MS = 1000,
};

const struct node_models nodes_models = {vendor_nic_names, simulated_gpu_names};

const struct kube_resource node_state_resource = {
	"sriovnetwork.openshift.io", "v1", "sriovnetworknodestates", "SriovNetworkNodeState", true};

/* ---- the queue ------------------------------------------------------------------------------- */

static void want_workload(struct nodes *nodes, enum workload_kind kind, const char *key)
{
	auto_free char *text = str_printf("%s/%s", workload_resources[kind].plural, key);

	nodes_want(nodes, KEY_WORKLOAD, text, WORKLOAD_MS);
}

static void take_workload(struct nodes *nodes, const char *key)
{
	const char *plural = key + strlen(KEY_WORKLOAD);

	for (int i = 0; i < WORKLOAD_KINDS; i++) {
		size_t len = strlen(workload_resources[i].plural);

		if (strncmp(plural, workload_resources[i].plural, len) == 0 && plural[len] == '/') {
			workload_turn(nodes, (enum workload_kind)i, key);
			return;
		}
	}
}

static void on_queue(void *arg)
{
	struct nodes *nodes = arg;
	const char *key;

	if (!nodes->is_ready && nodes->n_registered >= nodes->all.len) {
		nodes->is_ready = true;
		log_info("all nodes are registered", F_INT("nodes", (int64_t)nodes->all.len));
	}
	while (queue_working(nodes->queue) < WORKING_MAX &&
	       (key = queue_take(nodes->queue, NULL))) {
		if (str_starts(key, KEY_NODE)) {
			node_write_next(map_get(&nodes->all, key + strlen(KEY_NODE)), key);
		} else if (str_starts(key, KEY_WORKLOAD)) {
			take_workload(nodes, key);
		} else {
			pods_turn(nodes, key + strlen(KEY_POD));
			queue_done(nodes->queue, key, NULL);
		}
	}
}

/* ---- watches --------------------------------------------------------------------------------- */

static void want_daemon_sets(struct nodes *nodes)
{
	const struct cache *cache = nodes->workload_caches[WORKLOAD_DAEMON_SET];
	const char *key;
	size_t i = 0;

	while ((key = cache_next(cache, &i)))
		want_workload(nodes, WORKLOAD_DAEMON_SET, key);
}

static void on_node_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct nodes *nodes = arg;
	json_t *entry = json_object_get(nodes->schedule, key);

	if (!map_get(&nodes->all, key))
		return;
	if (entry && now)
		json_object_set(entry, "node", (json_t *)now);
	else if (entry)
		json_object_del(entry, "node");
	nodes_want(nodes, KEY_NODE, key, 0);
	pods_look_at_unbound(nodes);
	want_daemon_sets(nodes);
}

static void on_state_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct nodes *nodes = arg;
	struct sim_node *node = map_get(&nodes->all, strchr(key, '/') + 1);

	if (node)
		sim_node_set_node_state(node, now);
}

static const char *controller_of(const json_t *object, const char **ret_kind)
{
	const json_t *owner;
	size_t i;

	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner) {
		if (!json_is_true(json_at(owner, "controller")))
			continue;
		*ret_kind = json_str_at(owner, "kind");
		return json_str_at(owner, "name");
	}
	return NULL;
}

/* What controls it looks at it. */
static void want_controller(struct nodes *nodes, const json_t *object)
{
	const char *kind = NULL, *name = controller_of(object, &kind);
	auto_free char *key = NULL;

	if (!name)
		return;
	key = str_printf("%s/%s", json_namespace(object), name);
	for (int i = 0; i < WORKLOAD_KINDS; i++)
		if (str_eq(workload_resources[i].kind, kind))
			want_workload(nodes, (enum workload_kind)i, key);
}

static void on_pod_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct nodes *nodes = arg;

	nodes_want(nodes, KEY_POD, key, 0);
	want_controller(nodes, now ? now : old);
}

/* One function for each kind: which it is, is not said. */
#define ON_WORKLOAD(name, kind)                                                                    \
	static void name(void *arg, const char *key, const json_t *old, const json_t *now)         \
	{                                                                                          \
		want_workload(arg, kind, key);                                                     \
		want_controller(arg, now ? now : old);                                             \
	}
ON_WORKLOAD(on_deployment_changed, WORKLOAD_DEPLOYMENT)
ON_WORKLOAD(on_replica_set_changed, WORKLOAD_REPLICA_SET)
ON_WORKLOAD(on_daemon_set_changed, WORKLOAD_DAEMON_SET)
ON_WORKLOAD(on_stateful_set_changed, WORKLOAD_STATEFUL_SET)

static void index_node(const json_t *pod, struct cache_values *values)
{
	const char *node = json_str_at(pod, "spec", "nodeName");

	cache_index_value(values, node ? node : PODS_UNBOUND);
}

static void index_owner(const json_t *object, struct cache_values *values)
{
	const json_t *owner;
	size_t i;

	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner)
		if (json_is_true(json_at(owner, "controller")))
			cache_index_value(values, json_str_or(json_at(owner, "uid"), ""));
}

/* Heartbeats are ignored here. */
static void project_node(json_t *object)
{
	json_t *condition;
	size_t i;

	json_array_foreach (json_at(object, "status", "conditions"), i, condition)
		json_object_del(condition, "lastHeartbeatTime");
}

static void want_all_workloads(struct nodes *nodes)
{
	for (int kind = 0; kind < WORKLOAD_KINDS; kind++) {
		const char *key;
		size_t i = 0;

		while ((key = cache_next(nodes->workload_caches[kind], &i)))
			want_workload(nodes, (enum workload_kind)kind, key);
	}
}

static void on_synced(void *arg)
{
	want_all_workloads(arg);
}

/* Those without a NodeState do not know it yet. */
static void on_states_synced(void *arg)
{
	struct nodes *nodes = arg;
	const char *name;
	void *node;
	size_t i = 0;

	while (map_next(&nodes->all, &i, &name, &node))
		if (!((struct sim_node *)node)->server.node_state)
			sim_node_set_node_state(node, NULL);
}

static void on_trouble(void *arg, const struct err *err)
{
	if (err)
		log_warn("cannot watch, trying again", F_ERR(err));
}

static void on_sources_changed(void *arg)
{
	struct nodes *nodes = arg;
	const char *name;
	void *node;
	size_t i = 0;

	while (map_next(&nodes->all, &i, &name, &node))
		sim_node_offer(node);
}

static void on_wrong(void *arg, const struct event_object *config_map, const char *reason,
		     const char *message)
{
	const struct nodes *nodes = arg;

	recorder_emit(nodes->agent, config_map, true, reason, message);
}

static void on_source_event(void *arg, bool warning, const char *reason, const char *message)
{
	if (warning)
		log_warn("a configuration of devices has trouble", F_STR("reason", reason),
			 F_STR("message", message));
}

static struct informer *watch(struct nodes *nodes, const struct kube_resource *resource,
			      const char *ns, struct cache *cache, void (*synced)(void *arg))
{
	static const splitter_path drops[] = {{"metadata", "managedFields"}};

	return informer_new(nodes->loop, nodes->client,
			    &(struct informer_config){
				    .resource = resource,
				    .ns = ns,
				    .drops = drops,
				    .n_drops = ARRAY_LEN(drops),
				    .cache = cache,
				    .synced = synced,
				    .trouble = on_trouble,
				    .arg = nodes,
			    });
}

static void start_watches(struct nodes *nodes)
{
	static const struct cache_kind node_kind = {.live = true, .project = project_node};
	static const struct cache_kind state_kind = {0};
	static const struct cache_kind pod_kind = {.indexes = {index_node, index_owner}};
	static const struct cache_kind workload_kind = {.indexes = {index_owner}};
	static cache_changed_fn *const changed[WORKLOAD_KINDS] = {
		[WORKLOAD_DEPLOYMENT] = on_deployment_changed,
		[WORKLOAD_REPLICA_SET] = on_replica_set_changed,
		[WORKLOAD_DAEMON_SET] = on_daemon_set_changed,
		[WORKLOAD_STATEFUL_SET] = on_stateful_set_changed,
	};

	nodes->node_cache = cache_new(&node_kind, on_node_changed, nodes);
	nodes->state_cache = cache_new(&state_kind, on_state_changed, nodes);
	nodes->pod_cache = cache_new(&pod_kind, on_pod_changed, nodes);
	for (int i = 0; i < WORKLOAD_KINDS; i++)
		nodes->workload_caches[i] = cache_new(&workload_kind, changed[i], nodes);
	nodes->node_informer = watch(nodes, &kube_nodes, NULL, nodes->node_cache, on_synced);
	nodes->state_informer = watch(nodes, &node_state_resource, nodes->config->ns,
				      nodes->state_cache, on_states_synced);
	nodes->pod_informer = watch(nodes, &kube_pods, NULL, nodes->pod_cache, on_synced);
	for (int i = 0; i < WORKLOAD_KINDS; i++)
		nodes->workload_informers[i] = watch(nodes, &workload_resources[i], NULL,
						     nodes->workload_caches[i], on_synced);
	nodes->sources = pool_sources_new(&(struct pool_sources_config){
		.loop = nodes->loop,
		.client = nodes->client,
		.ns = nodes->config->ns,
		.from = {[POOL_SOURCE_SHARED] = "spiderpool-rdma-shared-device-plugin"},
		.changed = on_sources_changed,
		.emit = on_source_event,
		.wrong = on_wrong,
		.arg = nodes,
	});
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Each Node once in BEAT_MS, one after the other. */
static void on_heart(void *arg)
{
	struct nodes *nodes = arg;
	int64_t now = clock_ms();
	const char *name;
	void *value;
	size_t i = 0;

	while (map_next(&nodes->all, &i, &name, &value)) {
		struct sim_node *node = value;

		if (now < node->server.beat_ms)
			continue;
		node->server.beat_ms = now + BEAT_MS;
		node->server.is_beating = true;
		nodes_want(nodes, KEY_NODE, name, 0);
	}
	timer_start(nodes->heart, HEART_MS);
}

static void on_end(void *arg)
{
	struct nodes *nodes = arg;

	loop_stop(nodes->loop);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void run(struct nodes *nodes)
{
	const char *name;
	void *node;
	size_t i = 0, k;
	const json_t *spec;

	nodes->queue = queue_new(nodes->loop, on_queue, nodes);
	nodes->agent = recorder_new(nodes->client, NODE_STATE_MANAGER, "simulated", false, NULL);
	nodes->pod_events = pod_events_new(nodes->client, nodes->agent);
	nodes->kubelet = recorder_new(nodes->client, "kubelet", "simulated", false, NULL);
	nodes->scheduler =
		recorder_new(nodes->client, "default-scheduler", "simulated", false, NULL);
	start_watches(nodes);
	json_array_foreach ((json_t *)nodes->config->nodes, k, spec) {
		struct sim_node *one = sim_node_new(nodes, spec, (unsigned int)k);

		one->server.beat_ms = clock_ms() + BEAT_MS + (int64_t)clock_jitter(BEAT_MS);
		map_set(&nodes->all, one->name, one);
		json_put(nodes->schedule, one->name, json_pack("{s:{}}", "used"));
	}
	nodes->heart = timer_new(nodes->loop, on_heart, nodes);
	timer_start(nodes->heart, HEART_MS);
	nodes->on_term = signal_watch_new(nodes->loop, SIGTERM, on_end, nodes);
	nodes->on_int = signal_watch_new(nodes->loop, SIGINT, on_end, nodes);
	while (map_next(&nodes->all, &i, &name, &node))
		nodes_want(nodes, KEY_NODE, name, 0);
	loop_run(nodes->loop);
}

static void stop(struct nodes *nodes)
{
	const char *name;
	void *node;
	size_t i = 0;

	signal_watch_free(nodes->on_int);
	signal_watch_free(nodes->on_term);
	timer_free(nodes->heart);
	pods_free_all(nodes);
	while (map_next(&nodes->all, &i, &name, &node))
		sim_node_free(node);
	map_done(&nodes->all);
	pool_sources_free(nodes->sources);
	informer_free(nodes->node_informer);
	informer_free(nodes->state_informer);
	informer_free(nodes->pod_informer);
	cache_free(nodes->node_cache);
	cache_free(nodes->state_cache);
	cache_free(nodes->pod_cache);
	for (i = 0; i < WORKLOAD_KINDS; i++) {
		informer_free(nodes->workload_informers[i]);
		cache_free(nodes->workload_caches[i]);
	}
	pod_events_free(nodes->pod_events);
	recorder_free(nodes->agent);
	recorder_free(nodes->kubelet);
	recorder_free(nodes->scheduler);
	queue_free(nodes->queue);
}

static int start(struct nodes *nodes, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = nodes->config->kubeconfig,
		.envp = (const char *const *)environ,
	};
	struct rlimit limit;

	/* Each host has two descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &limit) >= 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (kube_config_load(&source, &nodes->kube, err) < 0)
		return -1;
	nodes->folder = str_below(nodes->config->folder, "hosts");
	if (fs_make_dirs(nodes->folder, 0700) < 0)
		return err_sys(err, "FolderNotMade", "make %s", nodes->folder);
	nodes->loop = loop_new();
	if (nodes->config->socket)
		nodes->control = control_new(nodes, nodes->config->socket, err);
	if (nodes->config->socket && !nodes->control)
		return -1;
	nodes->client = kube_client_new(nodes->loop, &nodes->kube, NULL);
	nodes->texts = tree_texts_new(nodes->folder);
	return 0;
}

int nodes_run(const struct nodes_config *config)
{
	struct nodes nodes = {.config = config, .schedule = json_object()};
	struct err err = {0};
	int status = 0;

	(void)signal(SIGPIPE, SIG_IGN);
	if (start(&nodes, &err) == 0) {
		run(&nodes);
		stop(&nodes);
	} else {
		(void)fprintf(stderr, "orbweaver simulate: nodes: %s\n", err.text);
		status = 1;
	}
	control_free(nodes.control);
	if (nodes.client)
		kube_client_free(nodes.client);
	if (nodes.loop)
		loop_free(nodes.loop);
	tree_texts_free(nodes.texts);
	if (nodes.folder)
		(void)rmdir(nodes.folder);
	mem_free(nodes.folder);
	json_decref(nodes.schedule);
	kube_config_done(&nodes.kube);
	return status;
}

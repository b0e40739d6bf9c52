// SPDX-License-Identifier: Apache-2.0
/*
 * node-stand-in: plays the node agents of nodes that do not exist, so that operator, demo and
 * benchmarks have someone to talk to. It touches no host: what it reports is what an inventory
 * says, plus the VFs that the NodeState asks for.
 *
 * One queue of node names; each turn of a name makes the next write that is due (node object,
 * heartbeat, NodeState status) from what the cache shows, so it may be stopped and started at any
 * time.
 */
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/queue.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"
#include "tests/fakes/node_inventory.h"
#include "tests/fakes/pods_stand_in.h"
#include "tests/support/connection.h"

#define FIELD_MANAGER "node-stand-in"

enum { HEART_MS = 50 };

static const char help[] =
	"usage: node-stand-in [OPTION...] (--inventory FILE... | --generate SHAPE)\n"
	"\n"
	"A stand-in for node agents, for demos, tests and benchmarks. The nodes do not exist: no "
	"NIC is configured, and\n"
	"every VF that it reports is made up from the spec of the SriovNetworkNodeState. Never run "
	"it in a cluster that\n"
	"has real nodes of these names.\n"
	"\n"
	"  --inventory FILE     play the node that FILE (JSON) describes; may be given several "
	"times\n"
	"  --generate SHAPE     play a crowd: nodes=1000,pfs=8,vfs=16,prefix=node-\n"
	"  --register           make Node objects for them, too, and say that they are Ready\n"
	"  --heartbeat SECONDS  renew their leases, so that they stay Ready where a node "
	"controller runs\n"
	"  --work-ms MS         time between syncStatus InProgress and Succeeded (300); 0: no "
	"InProgress\n"
	"  --pods RESOURCE      play kubelets, too: pods that are bound run, and those that "
	"request "
	"RESOURCE hold VFs,\n"
	"                       which are not taken from them\n"
	"  --once               end when all nodes have a NodeState and its status is up to date\n"
	"  --kubeconfig FILE    default: $KUBECONFIG\n"
	"  --namespace NS       of the NodeStates (orbweaver-system)\n"
	"  --concurrency N      writes at a time (16)\n"
	"  --log-level SPEC     as for orbweaver-operator (info)\n"
	"  --help\n";

struct options {
	const char *kubeconfig;
	const char *ns;
	int64_t heartbeat_s, work_ms, concurrency;
	bool reg, once;
	const char *pods; /* a resource; NULL: there are none */
};

struct node {
	struct stand_in *owner;
	json_t *inventory;
	const char *name; /* from the inventory */
	bool registered;
	bool beat; /* the lease is to be renewed */
	bool at_rest;
	json_t *starting;   /* the pod that is said to run, while that is written */
	int told;           /* devices that the Node has allocatable; -1: nothing was said */
	int healthy;        /* that it should have */
	int64_t generation; /* of the spec that is being worked on; done at due_ms */
	int64_t due_ms;
};

struct stand_in {
	struct options options;
	struct connection connection;
	struct map nodes; /* name → struct node */
	struct kube_resource node_kind, state_kind, pod_kind;
	struct cache *cache, *pods;
	struct informer *informer, *pod_informer;
	struct queue *queue;
	struct timer *heart;
	int64_t heart_since_ms, beats; /* leases that were due since then */
	size_t next_beat;              /* map_next */
	struct signal_watch *on_term, *on_int;
	size_t resting;
	bool told;
};

static const struct kube_resource lease_kind = {"coordination.k8s.io", "v1", "leases", "Lease",
						true};

static void node_free(void *arg)
{
	struct node *node = arg;

	json_decref(node->inventory);
	json_decref(node->starting);
	mem_free(node);
}

/* ---- writes ---------------------------------------------------------------------------------- */

/* The turn of this node is over; it comes again at once when it went well, for what is due next. */
static void turn_over(struct node *node, const struct err *err)
{
	struct queue *queue = node->owner->queue;

	if (err)
		log_warn("write failed", F_STR("node", node->name), F_ERR(err));
	queue_done(queue, node->name, err);
	if (!err)
		queue_add(queue, node->name, QUEUE_MAIN);
}

static void on_node_ready(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;

	node->registered = !err;
	turn_over(node, err);
}

static void add_condition(json_t *list, const char *type, const char *status, const char *now)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "type", type,
					      "status", status, "reason", "StandIn", "message",
					      "no kubelet here: node-stand-in says so",
					      "lastHeartbeatTime", now, "lastTransitionTime", now));
}

static void on_node_applied(void *arg, json_t *object, const struct err *err)
{
	static const char *const pressures[] = {"MemoryPressure", "DiskPressure", "PIDPressure",
						"NetworkUnavailable"};
	struct node *node = arg;
	struct stand_in *s = node->owner;
	json_auto_t *patch = json_object();
	json_t *status = json_need_object(patch, "status"), *conditions = json_array();
	char now[RFC3339_SIZE];

	if (err) {
		turn_over(node, err);
		return;
	}
	rfc3339_write(clock_wall_us(), now);
	add_condition(conditions, "Ready", "True", now);
	for (size_t i = 0; i < ARRAY_LEN(pressures); i++)
		add_condition(conditions, pressures[i], "False", now);
	json_put(status, "conditions", conditions);
	json_put(status, "capacity",
		 json_pack("{s:s, s:s, s:s}", "cpu", "64", "memory", "512Gi", "pods", "110"));
	json_put(status, "allocatable", json_deep_copy(json_at(status, "capacity")));
	kube_patch(s->connection.client, &s->node_kind, NULL, node->name, KUBE_PATCH_MERGE, patch,
		   &(struct kube_write){.subresource = "status", .field_manager = FIELD_MANAGER},
		   on_node_ready, node);
}

static void register_node(struct node *node)
{
	struct stand_in *s = node->owner;
	json_auto_t *object = kube_object_new(&s->node_kind, NULL, node->name);
	json_t *labels = json_need_object(json_at(object, "metadata"), "labels");

	json_put_str(labels, "kubernetes.io/os", "linux");
	json_put_str(labels, "kubernetes.io/arch", "amd64");
	json_put_str(labels, "kubernetes.io/hostname", node->name);
	json_put_str(labels, "node-role.kubernetes.io/worker", "");
	if (json_at(node->inventory, "labels"))
		json_object_update(labels, json_at(node->inventory, "labels"));
	kube_patch(s->connection.client, &s->node_kind, NULL, node->name, KUBE_PATCH_APPLY, object,
		   &(struct kube_write){.field_manager = FIELD_MANAGER, .force = true},
		   on_node_applied, node);
}

static void on_beat(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;

	node->beat = err != NULL;
	turn_over(node, err);
}

static void renew_lease(struct node *node)
{
	struct stand_in *s = node->owner;
	json_auto_t *lease = kube_object_new(&lease_kind, "kube-node-lease", node->name);
	json_t *spec = json_need_object(lease, "spec");
	char now[RFC3339_SIZE];

	rfc3339_write_micro(clock_wall_us(), now);
	json_put_str(spec, "holderIdentity", node->name);
	json_put_int(spec, "leaseDurationSeconds", 40);
	json_put_str(spec, "renewTime", now);
	kube_patch(s->connection.client, &lease_kind, "kube-node-lease", node->name,
		   KUBE_PATCH_APPLY, lease,
		   &(struct kube_write){.field_manager = FIELD_MANAGER, .force = true}, on_beat,
		   node);
}

static void on_reported(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;

	if (object)
		informer_learn(node->owner->informer, object);
	/* The NodeState went meanwhile: nobody wants to know any more. */
	turn_over(node, kube_err_is(err, "NotFound") ? NULL : err);
}

/* What is not in it any more goes. Takes status. */
static void report(struct node *node, const json_t *before, json_t *status)
{
	struct stand_in *s = node->owner;
	json_auto_t *patch = json_object(), *owned = status;

	json_put(patch, "status", json_merge_diff(before, owned));
	kube_patch(s->connection.client, &s->state_kind, s->options.ns, node->name,
		   KUBE_PATCH_MERGE, patch,
		   &(struct kube_write){.subresource = "status", .field_manager = FIELD_MANAGER},
		   on_reported, node);
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* By the node that they are bound to. */
static void index_node(const json_t *pod, struct cache_values *values)
{
	const char *node = json_str_at(pod, "spec", "nodeName");

	if (node)
		cache_index_value(values, node);
}

struct visit {
	struct node *node;
	json_t *holders, *waiting; /* the latter: one that does not run yet */
};

static void visit_pod(void *arg, const char *key)
{
	struct visit *visit = arg;
	const struct stand_in *s = visit->node->owner;
	json_auto_t *pod = cache_get(s->pods, key);

	if (pods_holds(pod, s->options.pods))
		json_array_append_new(visit->holders, json_string(key));
	if (!visit->waiting && !json_at(pod, "metadata", "deletionTimestamp") &&
	    str_eq(json_str_at(pod, "status", "phase"), "Pending"))
		visit->waiting = json_incref(pod);
}

/* ["ns/name"], new; *ret_waiting: one that is to run, new, or NULL. */
static json_t *visit_pods(struct node *node, json_t **ret_waiting)
{
	struct visit visit = {.node = node, .holders = json_array()};

	cache_find(node->owner->pods, 0, node->name, visit_pod, &visit);
	*ret_waiting = visit.waiting;
	return visit.holders;
}

static void on_started(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;

	if (object)
		informer_learn(node->owner->pod_informer, object);
	json_decref(node->starting);
	node->starting = NULL;
	/* It may have gone meanwhile. */
	turn_over(node, kube_err_is(err, "NotFound") ? NULL : err);
}

/* Takes pod. */
static void start_pod(struct node *node, json_t *pod)
{
	struct stand_in *s = node->owner;
	json_auto_t *patch = json_object();
	char now[RFC3339_SIZE];

	rfc3339_write(clock_wall_us(), now);
	node->starting = pod;
	json_put(patch, "status", pods_running(pod, now));
	kube_patch(s->connection.client, &s->pod_kind, json_namespace(pod), json_name(pod),
		   KUBE_PATCH_MERGE, patch,
		   &(struct kube_write){.subresource = "status", .field_manager = FIELD_MANAGER},
		   on_started, node);
}

static void on_allocatable(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;

	if (err)
		node->told = -1;
	turn_over(node, err);
}

static void tell_allocatable(struct node *node)
{
	struct stand_in *s = node->owner;
	json_auto_t *patch = json_object();
	json_t *status = json_need_object(patch, "status");

	node->told = node->healthy;
	json_put(json_need_object(status, "capacity"), s->options.pods,
		 json_fmt("%d", PODS_DEVICES));
	json_put(json_need_object(status, "allocatable"), s->options.pods,
		 json_fmt("%d", node->healthy));
	kube_patch(s->connection.client, &s->node_kind, NULL, node->name, KUBE_PATCH_MERGE, patch,
		   &(struct kube_write){.subresource = "status", .field_manager = FIELD_MANAGER},
		   on_allocatable, node);
}

/* Start what a kubelet has to write; false when there is nothing. */
static bool play_kubelet(struct node *node)
{
	json_auto_t *holders = NULL;
	json_t *waiting = NULL;

	if (!node->owner->options.pods || !informer_is_synced(node->owner->pod_informer))
		return false;
	holders = visit_pods(node, &waiting);
	if (waiting) {
		start_pod(node, waiting);
		return true;
	}
	if (node->told == node->healthy)
		return false;
	tell_allocatable(node);
	return true;
}

/* With what pods hold. Takes next. */
static json_t *with_pods(struct node *node, const json_t *state, json_t *next)
{
	struct stand_in *s = node->owner;
	json_auto_t *owned = next, *holders = NULL, *waiting = NULL;
	json_t *status;
	int healthy;

	if (!s->options.pods)
		return json_incref(owned);
	holders = visit_pods(node, &waiting);
	status = pods_status(state, next, holders, s->options.pods, &healthy);
	if (healthy != node->healthy)
		queue_add(s->queue, node->name, QUEUE_MAIN);
	node->healthy = healthy;
	return status;
}

/* ---- what is due ----------------------------------------------------------------------------- */

static void set_resting(struct node *node, bool at_rest)
{
	struct stand_in *s = node->owner;

	s->resting += (size_t)at_rest - (size_t)node->at_rest;
	node->at_rest = at_rest;
	if (s->resting < s->nodes.len) {
		s->told = false;
		return;
	}
	if (!s->told)
		log_info("all nodes are reported", F_INT("nodes", (int64_t)s->nodes.len));
	s->told = true;
	if (s->options.once)
		loop_stop(s->connection.loop);
}

/* The "work" on this generation is over; when not, the node gets its turn at that time. */
static bool work_is_over(struct node *node, int64_t generation)
{
	int64_t now = clock_ms();

	if (node->generation != generation) {
		node->generation = generation;
		node->due_ms = now + node->owner->options.work_ms;
	}
	if (now >= node->due_ms)
		return true;
	queue_add_after(node->owner->queue, node->name, node->due_ms - now);
	return false;
}

/* Start the write that is due on the NodeState; false when none is. */
static bool report_if_due(struct node *node)
{
	struct stand_in *s = node->owner;
	auto_free char *key = str_printf("%s/%s", s->options.ns, node->name);
	json_auto_t *state = cache_get(s->cache, key);
	json_t *status = json_at(state, "status"), *next = NULL;
	char now[RFC3339_SIZE];

	if (!state) {
		set_resting(node, false);
		return false;
	}
	rfc3339_write(clock_wall_us(), now);
	next = with_pods(node, state, inventory_status(node->inventory, state, true, now));
	if (!json_same(next, status) && !work_is_over(node, json_generation(state))) {
		json_decref(next);
		next = with_pods(node, state, inventory_status(node->inventory, state, false, now));
		if (json_same(next, status)) {
			json_decref(next);
			set_resting(node, false);
			return false;
		}
	}
	if (json_same(next, status)) {
		json_decref(next);
		set_resting(node, true);
		return false;
	}
	set_resting(node, false);
	report(node, status, next);
	return true;
}

static void on_queue(void *arg)
{
	struct stand_in *s = arg;
	const char *name = NULL;

	while (queue_working(s->queue) < (size_t)s->options.concurrency &&
	       (name = queue_take(s->queue, NULL))) {
		struct node *node = map_get(&s->nodes, name);

		if (!node->registered)
			register_node(node);
		else if (node->beat)
			renew_lease(node);
		else if (!play_kubelet(node) &&
			 (!informer_is_synced(s->informer) || !report_if_due(node)))
			queue_done(s->queue, node->name, NULL);
	}
}

static void queue_all(struct stand_in *s)
{
	const char *name = NULL;
	void *node = NULL;
	size_t i = 0;

	while (map_next(&s->nodes, &i, &name, &node))
		queue_add(s->queue, name, QUEUE_MAIN);
}

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct stand_in *s = arg;
	const char *name = strchr(key, '/') + 1;

	if (map_get(&s->nodes, name))
		queue_add(s->queue, name, QUEUE_MAIN);
}

static void on_pod_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct stand_in *s = arg;
	const char *name = json_str_at(now ? now : old, "spec", "nodeName");

	if (name && map_get(&s->nodes, name))
		queue_add(s->queue, name, QUEUE_MAIN);
}

static void on_synced(void *arg)
{
	queue_all(arg);
}

static void on_trouble(void *arg, const struct err *err)
{
	if (err)
		log_warn("cannot watch NodeStates, trying again", F_ERR(err));
	else
		log_info("watching NodeStates");
}

/*
 * Each node once in an interval, one after the other as real agents do, lest the server gets 10,000
 * leases at once.
 */
static void on_heart(void *arg)
{
	struct stand_in *s = arg;
	int64_t due = (clock_ms() - s->heart_since_ms) * (int64_t)s->nodes.len /
		      (s->options.heartbeat_s * 1000);
	const char *name = NULL;
	void *node = NULL;

	for (; s->beats < due; s->beats++) {
		if (!map_next(&s->nodes, &s->next_beat, &name, &node)) {
			s->next_beat = 0;
			map_next(&s->nodes, &s->next_beat, &name, &node);
		}
		((struct node *)node)->beat = true;
		queue_add(s->queue, name, QUEUE_MAIN);
	}
	timer_start(s->heart, HEART_MS);
}

static void on_end(void *arg)
{
	struct stand_in *s = arg;

	loop_stop(s->connection.loop);
}

/* ---- start and end --------------------------------------------------------------------------- */

static void add_node(struct stand_in *s, json_t *inventory)
{
	struct node *node = mem_new(struct node);

	node->owner = s;
	node->inventory = inventory;
	node->name = json_str_at(inventory, "name");
	node->registered = !s->options.reg;
	node->told = -1;
	node->healthy = PODS_DEVICES;
	map_set(&s->nodes, node->name, node);
}

static int add_inventory(struct stand_in *s, const char *path, struct err *err)
{
	json_t *inventory = inventory_read(path, err);

	if (!inventory)
		return -1;
	add_node(s, inventory);
	return 0;
}

static int add_generated(struct stand_in *s, char *text, struct err *err)
{
	struct inventory_shape shape;

	if (inventory_shape_parse(text, &shape, err) < 0)
		return err_in(err, "--generate");
	for (int64_t i = 0; i < shape.nodes; i++)
		add_node(s, inventory_generate(&shape, i));
	return 0;
}

static int number(const char *option, const char *text, int64_t min, int64_t max, int64_t *ret,
		  struct err *err)
{
	if (str_to_int(text, min, max, ret))
		return 0;
	return err_set(err, ERR_INVALID, "BadOption",
		       "--%s \"%s\": must be a number from %lld to %lld", option, text,
		       (long long)min, (long long)max);
}

enum {
	OPT_INVENTORY,
	OPT_GENERATE,
	OPT_REGISTER,
	OPT_HEARTBEAT,
	OPT_WORK_MS,
	OPT_PODS,
	OPT_ONCE,
	OPT_KUBECONFIG,
	OPT_NAMESPACE,
	OPT_CONCURRENCY,
	OPT_LOG_LEVEL,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"inventory", required_argument, NULL, OPT_INVENTORY},
	{"generate", required_argument, NULL, OPT_GENERATE},
	{"register", no_argument, NULL, OPT_REGISTER},
	{"heartbeat", required_argument, NULL, OPT_HEARTBEAT},
	{"work-ms", required_argument, NULL, OPT_WORK_MS},
	{"pods", required_argument, NULL, OPT_PODS},
	{"once", no_argument, NULL, OPT_ONCE},
	{"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
	{"namespace", required_argument, NULL, OPT_NAMESPACE},
	{"concurrency", required_argument, NULL, OPT_CONCURRENCY},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int set_option(struct options *o, int option, const char *value, struct err *err)
{
	switch (option) {
	case OPT_REGISTER:
		o->reg = true;
		return 0;
	case OPT_ONCE:
		o->once = true;
		return 0;
	case OPT_PODS:
		o->pods = value;
		return 0;
	case OPT_KUBECONFIG:
		o->kubeconfig = value;
		return 0;
	case OPT_NAMESPACE:
		o->ns = value;
		return 0;
	case OPT_HEARTBEAT:
		return number("heartbeat", value, 1, 3600, &o->heartbeat_s, err);
	case OPT_WORK_MS:
		return number("work-ms", value, 0, 3600000, &o->work_ms, err);
	case OPT_CONCURRENCY:
		return number("concurrency", value, 1, 1000, &o->concurrency, err);
	case OPT_LOG_LEVEL:
		return log_configure(value, err);
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	default: /* getopt has said what is wrong */
		return err_set(err, ERR_INVALID, "BadOption", "see node-stand-in --help");
	}
}

/* Twice over the arguments: nodes are made once all other options are known. */
static int parse(struct stand_in *s, int argc, char **argv, struct err *err)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (option != OPT_INVENTORY && option != OPT_GENERATE &&
		    set_option(&s->options, option, optarg, err) < 0)
			return -1;
	if (optind < argc)
		return err_set(err, ERR_INVALID, "BadOption", "\"%s\": unknown argument",
			       argv[optind]);
	optind = 1;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPT_INVENTORY && add_inventory(s, optarg, err) < 0)
			return -1;
		if (option == OPT_GENERATE && add_generated(s, optarg, err) < 0)
			return -1;
	}
	if (s->nodes.len == 0)
		return err_set(err, ERR_INVALID, "NoNodes",
			       "no node: give --inventory or --generate");
	return 0;
}

static void watch_pods(struct stand_in *s)
{
	static const struct cache_kind kind = {.indexes = {index_node}};

	s->pod_kind = connection_resource(KIND_POD);
	s->pods = cache_new(&kind, on_pod_changed, s);
	s->pod_informer = informer_new(s->connection.loop, s->connection.client,
				       &(struct informer_config){
					       .resource = &s->pod_kind,
					       .cache = s->pods,
					       .synced = on_synced,
					       .trouble = on_trouble,
					       .arg = s,
				       });
}

static void run(struct stand_in *s)
{
	struct loop *loop = s->connection.loop;
	const struct cache_kind kind = {0};

	s->node_kind = connection_resource(KIND_NODE);
	s->state_kind = connection_resource(KIND_NODE_STATE);
	s->queue = queue_new(loop, on_queue, s);
	s->cache = cache_new(&kind, on_changed, s);
	s->informer = informer_new(loop, s->connection.client,
				   &(struct informer_config){
					   .resource = &s->state_kind,
					   .ns = s->options.ns,
					   .cache = s->cache,
					   .synced = on_synced,
					   .trouble = on_trouble,
					   .arg = s,
				   });
	if (s->options.pods)
		watch_pods(s);
	s->heart = timer_new(loop, on_heart, s);
	s->on_term = signal_watch_new(loop, SIGTERM, on_end, s);
	s->on_int = signal_watch_new(loop, SIGINT, on_end, s);
	queue_all(s);
	s->heart_since_ms = clock_ms();
	if (s->options.heartbeat_s)
		on_heart(s);

	loop_run(loop);

	signal_watch_free(s->on_int);
	signal_watch_free(s->on_term);
	timer_free(s->heart);
	informer_free(s->informer);
	if (s->pod_informer)
		informer_free(s->pod_informer);
	queue_free(s->queue);
	connection_close(&s->connection);
}

int main(int argc, char **argv)
{
	struct stand_in s = {
		.options = {.ns = "orbweaver-system", .work_ms = 300, .concurrency = 16},
		.nodes = {.free_value = node_free},
	};
	struct err err = {0};

	mem_tune();
	json_init();
	if (parse(&s, argc, argv, &err) < 0 ||
	    connection_open(&s.connection, s.options.kubeconfig, &err) < 0) {
		fprintf(stderr, "node-stand-in: %s\n", err.text);
		map_done(&s.nodes);
		return 2;
	}
	run(&s);
	cache_free(s.cache);
	if (s.pods)
		cache_free(s.pods);
	map_done(&s.nodes);
	return 0;
}

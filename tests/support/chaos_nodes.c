// SPDX-License-Identifier: Apache-2.0
/*
 * Kubelets and agents. See the header.
 *
 *	CREATING	the object, and its binding
 *	WAITING		for the next attempt to make a sandbox
 *	ADDING		the agent is asked for addresses
 *	MARKING		what the interfaces have is being written down
 *	UP		the interfaces are there
 *	UNMARKING	they are taken down
 *	DOWN		the agent is about to say so
 *	OVER		nothing of the pod is on the node
 *
 * What ends a pod sets has_ended, and what is due follows from the state: end_turn().
 */
#include "tests/support/chaos_nodes.h"

#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/ipam/endpoint.h"

static const struct kube_write plain, to_status = {.subresource = "status"};
static const struct kube_write at_once = {.at_once = true};

/* Annotation: which wish a pod is. */
#define NUMBER "orbweaver.test/number"

enum { ASK_MS = 8000, LOOK_MS = 20000, SECOND_LOOK_MS = 10000, POLL_MS = 300 };

enum pod_state { CREATING, WAITING, ADDING, MARKING, UP, UNMARKING, DOWN, OVER };

struct node {
	struct chaos_nodes *nodes;
	char name[32];
	struct addresses *addresses; /* NULL: the agent is away */
	struct timer *back;
	bool is_dead; /* until the Node is there again */
	bool is_deleted;
};

struct chaos_nodes {
	struct chaos_nodes_config config;
	uint64_t random;
	struct node each[CHAOS_NODES];
	TAILQ_HEAD(pod_list, chaos_pod) pods;
	struct deferred *reaping;
	int64_t wishes;
	json_t *counts;
};

struct chaos_pod {
	TAILQ_ENTRY(chaos_pod) link;
	struct chaos_nodes *nodes;
	struct node *node;
	char *ns, *name, *key, *uid; /* uid: "" until it is known */
	json_t *asks, *object;       /* what is to be created */
	enum pod_state state;
	bool bound_later, is_rejected;
	bool may_exist;   /* the object: an attempt to create it had no answer */
	bool is_there;    /* the object, as far as is known */
	bool has_ended;   /* no sandbox is made any more */
	bool is_graceful; /* the kubelet deletes the object when it is done */
	bool is_deleting; /* that request is under way */
	bool is_busy;     /* with a request of a user */
	bool is_marked;
	bool is_releasing; /* its agent was told of the DEL, and has not answered */
	struct timer *timer;
	char *addresses; /* of its interfaces, by blanks */
};

int64_t chaos_below(uint64_t *state, int64_t bound)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (int64_t)((*state * 0x2545F4914F6CDD1Dull >> 33) % (uint64_t)bound);
}

static int64_t below(struct chaos_nodes *nodes, int64_t bound)
{
	return chaos_below(&nodes->random, bound);
}

static void count(struct chaos_nodes *nodes, const char *what)
{
	json_put_int(nodes->counts, what, json_integer_value(json_at(nodes->counts, what)) + 1);
}

json_t *chaos_nodes_counts(struct chaos_nodes *nodes)
{
	return nodes->counts;
}

static void on_ignored(void *arg, json_t *object, const struct err *err)
{
}

static void end_turn(struct chaos_pod *pod);
static void on_timer(void *arg);
static void create(struct chaos_pod *pod);

/* ---- the end of an object -------------------------------------------------------------------- */

static void pod_free(struct chaos_pod *pod)
{
	TAILQ_REMOVE(&pod->nodes->pods, pod, link);
	timer_free(pod->timer);
	json_decref(pod->asks);
	json_decref(pod->object);
	mem_free(pod->ns);
	mem_free(pod->name);
	mem_free(pod->key);
	mem_free(pod->uid);
	mem_free(pod->addresses);
	mem_free(pod);
}

/* Out of the middle of callbacks. */
static void reap(void *arg)
{
	struct chaos_nodes *nodes = arg;
	struct chaos_pod *pod, *next;

	for (pod = TAILQ_FIRST(&nodes->pods); pod; pod = next) {
		next = TAILQ_NEXT(pod, link);
		if (pod->state == OVER && !pod->is_there && !pod->is_deleting && !pod->is_busy)
			pod_free(pod);
	}
}

static void on_object_deleted(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;

	pod->is_deleting = false;
	if (!err || kube_err_is(err, "NotFound") || err->class == ERR_CONFLICT)
		pod->is_there = false;
	deferred_run(pod->nodes->reaping);
	if (pod->is_there)
		end_turn(pod);
}

/* As a kubelet does when all containers have ended, or a user by force. */
static void delete_object(struct chaos_pod *pod)
{
	if (!pod->is_there || pod->is_deleting || str_empty(pod->uid))
		return;
	pod->is_deleting = true;
	kube_delete(pod->nodes->config.users, &kube_pods, pod->ns, pod->name, pod->uid, NULL,
		    &at_once, on_object_deleted, pod);
}

/* ---- taking down ----------------------------------------------------------------------------- */

static void set_over(struct chaos_pod *pod)
{
	pod->state = OVER;
	timer_stop(pod->timer);
	if (pod->is_graceful || pod->node->is_dead)
		delete_object(pod);
	deferred_run(pod->nodes->reaping);
}

static void on_released(void *arg, const struct err *err)
{
	struct chaos_pod *pod = arg;

	pod->is_releasing = false;
	/* The runtime repeats a DEL that failed. */
	if (err)
		timer_start(pod->timer, POLL_MS);
	else
		set_over(pod);
}

static void release(struct chaos_pod *pod)
{
	pod->state = DOWN;
	if (pod->node->is_dead) {
		set_over(pod);
		return;
	}
	if (pod->is_releasing)
		return;
	if (!pod->node->addresses) {
		timer_start(pod->timer, POLL_MS);
		return;
	}
	timer_stop(pod->timer);
	pod->is_releasing = true;
	count(pod->nodes, "DEL");
	addresses_release(pod->node->addresses, pod->ns, pod->name, pod->uid, on_released, pod);
}

static void on_unmarked(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;

	if (err && !kube_err_is(err, "NotFound")) {
		pod->state = UP;
		timer_start(pod->timer, POLL_MS);
		return;
	}
	pod->is_marked = false;
	release(pod);
}

static char *mark_name(const struct chaos_pod *pod)
{
	return str_printf("sandbox-%s", pod->uid);
}

static void take_down(struct chaos_pod *pod)
{
	auto_free char *name = mark_name(pod);

	pod->state = UNMARKING;
	kube_delete(pod->nodes->config.users, &kube_config_maps, CHAOS_NAMESPACE, name, NULL, NULL,
		    &plain, on_unmarked, pod);
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* As Multus and we as meta plugin write it. Returns new; free(). */
static char *network_status(const struct chaos_pod *pod)
{
	auto_free char *addresses = str_dup(pod->addresses);
	json_auto_t *list = json_array();
	char *rest = addresses, *address;
	size_t i = 0;

	while ((address = strsep(&rest, " ")))
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:[s]}", "name", "net", "interface",
				  json_str_or(json_at(json_array_get(pod->asks, i++), "nic"), "?"),
				  "ips", address));
	return json_text(list);
}

static void run_containers(struct chaos_pod *pod)
{
	auto_free char *status = network_status(pod);
	json_auto_t *metadata = json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
					  NETWORK_STATUS_ANNOTATION, status);
	json_auto_t *running = json_pack("{s:{s:s}}", "status", "phase", "Running");
	struct kube_client *client = pod->nodes->config.users;

	kube_patch(client, &kube_pods, pod->ns, pod->name, KUBE_PATCH_MERGE, metadata, &plain,
		   on_ignored, NULL);
	kube_patch(client, &kube_pods, pod->ns, pod->name, KUBE_PATCH_MERGE, running, &to_status,
		   on_ignored, NULL);
}

static void on_marked(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;

	pod->state = UP;
	pod->is_marked = true;
	if (!pod->has_ended && !pod->node->is_dead)
		run_containers(pod);
	end_turn(pod);
}

static void mark(struct chaos_pod *pod)
{
	auto_free char *name = mark_name(pod);
	json_auto_t *object =
		json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "metadata", "name", name, "namespace",
			  CHAOS_NAMESPACE, "data", "pod", pod->key, "addresses", pod->addresses);

	pod->state = MARKING;
	kube_create(pod->nodes->config.users, &kube_config_maps, object, &plain, on_marked, pod);
}

static void on_got(void *arg, const json_t *status, const struct err *err)
{
	struct chaos_pod *pod = arg;
	auto_strbuf struct strbuf text = {0};
	json_t *ask;
	size_t i;

	if (err) {
		count(pod->nodes, err->reason);
		pod->state = WAITING;
		timer_start(pod->timer, 500 + below(pod->nodes, 1500));
		return;
	}
	json_array_foreach (pod->asks, i, ask) {
		const json_t *item = endpoint_item(status, json_str_at(ask, "nic"));
		const char *address = json_str_or(json_at(item, "ipv4"), "?");

		strbuf_addf(&text, "%s%.*s", i ? " " : "", (int)strcspn(address, "/"), address);
	}
	count(pod->nodes, "ADD");
	mem_free(pod->addresses);
	pod->addresses = strbuf_take(&text);
	mark(pod);
}

static void add(struct chaos_pod *pod)
{
	if (!pod->node->addresses) {
		timer_start(pod->timer, POLL_MS);
		return;
	}
	pod->state = ADDING;
	(void)addresses_want(pod->node->addresses,
			     &(struct addresses_request){
				     .ns = pod->ns,
				     .name = pod->name,
				     .uid = pod->uid,
				     .asks = pod->asks,
				     .deadline_ms = clock_ms() + ASK_MS,
			     },
			     on_got, pod);
}

/* ---- what is due ----------------------------------------------------------------------------- */

/* Something has changed: a pod that has ended goes on to its end, after a while. */
static void end_turn(struct chaos_pod *pod)
{
	bool is_dead = pod->node->is_dead;

	pod->has_ended |= is_dead;
	if (!pod->has_ended)
		return;
	switch (pod->state) {
	case CREATING:
	case ADDING:
	case MARKING:
	case UNMARKING:
		break;
	case WAITING:
	case UP:
		/* Some kubelets delete the object before the sandbox is gone. */
		if (pod->is_graceful && below(pod->nodes, 3) == 0)
			delete_object(pod);
		timer_start(pod->timer, is_dead ? 0 : below(pod->nodes, 2500));
		break;
	case DOWN:
		timer_start(pod->timer, 0);
		break;
	case OVER:
		set_over(pod);
		break;
	}
}

/* There is no DEL of what never had a sandbox. */
static void reject(struct chaos_pod *pod)
{
	timer_start(pod->timer, POLL_MS);
	if (!pod->is_busy && !pod->is_deleting)
		chaos_pod_end(pod, "UnexpectedAdmissionError");
}

static void on_timer(void *arg)
{
	struct chaos_pod *pod = arg;

	switch (pod->state) {
	case WAITING:
		if (pod->is_rejected && !pod->has_ended)
			reject(pod);
		else if (!pod->has_ended)
			add(pod);
		else if (pod->addresses || (!pod->is_rejected && below(pod->nodes, 2)))
			release(pod);
		else
			/* It never had a sandbox, so there is no DEL. */
			set_over(pod);
		break;
	case UP:
		take_down(pod);
		break;
	case DOWN:
		release(pod);
		break;
	case CREATING:
		create(pod);
		break;
	case ADDING:
	case MARKING:
	case UNMARKING:
	case OVER:
		break;
	}
}

/* ---- creating -------------------------------------------------------------------------------- */

static void on_bound(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;

	pod->state = WAITING;
	/* Who is too late to bind it does not run it either. */
	if (err)
		pod->has_ended = pod->is_graceful = true;
	timer_start(pod->timer, below(pod->nodes, 1000));
	end_turn(pod);
}

static void bind(struct chaos_pod *pod)
{
	static const struct kube_write binding = {.subresource = "binding"};
	json_auto_t *object =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "apiVersion", "v1", "kind",
			  "Binding", "metadata", "name", pod->name, "namespace", pod->ns, "target",
			  "apiVersion", "v1", "kind", "Node", "name", pod->node->name);

	kube_create(pod->nodes->config.users, &kube_pods, object, &binding, on_bound, pod);
}

static void on_created(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;

	if (err)
		count(pod->nodes, err->reason);
	if (err && kube_err_is(err, "AlreadyExists") && pod->may_exist) {
		pod->may_exist = false;
		kube_get(pod->nodes->config.users, &kube_pods, pod->ns, pod->name, NULL, on_created,
			 pod);
	} else if (err && err->class == ERR_TRANSIENT && !kube_err_is(err, "NotFound")) {
		/* No answer: it may be there, or come. */
		pod->may_exist = true;
		timer_start(pod->timer, POLL_MS);
	} else if (err || !str_eq(json_str_at(object, "metadata", "annotations", NUMBER),
				  json_str_at(pod->object, "metadata", "annotations", NUMBER))) {
		pod->is_there = false;
		set_over(pod);
	} else {
		count(pod->nodes, "pods");
		mem_free(pod->uid);
		pod->uid = str_dup(json_uid(object));
		if (pod->bound_later)
			bind(pod);
		else
			on_bound(pod, NULL, NULL);
	}
}

static void create(struct chaos_pod *pod)
{
	kube_create(pod->nodes->config.users, &kube_pods, pod->object, &plain, on_created, pod);
}

static struct node *some_node(struct chaos_nodes *nodes)
{
	for (int i = 0; i < CHAOS_NODES; i++) {
		struct node *node = &nodes->each[below(nodes, CHAOS_NODES)];

		if (!node->is_dead)
			return node;
	}
	return NULL;
}

static json_t *object_of(const struct chaos_pod *pod, const struct chaos_pod_wish *wish)
{
	json_t *object = json_pack(
		"{s:s, s:s, s:{s:s, s:s, s:O}, s:{s:i, s:b, s:[{s:s, s:s}]}}", "apiVersion", "v1",
		"kind", "Pod", "metadata", "name", pod->name, "namespace", pod->ns, "annotations",
		wish->annotations, "spec", "terminationGracePeriodSeconds", 30,
		"automountServiceAccountToken", 0, "containers", "name", "c", "image", "none");

	if (wish->of_set)
		json_put(json_at(object, "metadata"), "ownerReferences",
			 json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "apps/v1", "kind",
				   "StatefulSet", "name", "web", "uid", "owner", "controller", 1));
	if (!wish->bound_later)
		json_put_str(json_at(object, "spec"), "nodeName", pod->node->name);
	json_put(json_at(object, "metadata", "annotations"), NUMBER,
		 json_fmt("%" PRId64, ++pod->nodes->wishes));
	return object;
}

bool chaos_pod_create(struct chaos_nodes *nodes, const struct chaos_pod_wish *wish)
{
	struct node *node = some_node(nodes);
	struct chaos_pod *pod;

	if (!node)
		return false;
	pod = mem_new(struct chaos_pod);
	pod->nodes = nodes;
	pod->node = node;
	pod->ns = str_dup(wish->ns);
	pod->name = str_dup(wish->name);
	pod->key = str_printf("%s/%s", wish->ns, wish->name);
	pod->uid = str_dup("");
	pod->asks = json_incref(wish->asks);
	pod->bound_later = wish->bound_later;
	pod->is_rejected = wish->is_rejected;
	pod->is_there = true;
	pod->timer = timer_new(nodes->config.loop, on_timer, pod);
	TAILQ_INSERT_HEAD(&nodes->pods, pod, link);
	pod->object = object_of(pod, wish);
	create(pod);
	return true;
}

/* ---- users ----------------------------------------------------------------------------------- */

bool chaos_pod_is_there(const struct chaos_nodes *nodes, const char *ns, const char *name)
{
	const struct chaos_pod *pod;

	TAILQ_FOREACH(pod, &nodes->pods, link)
	if (pod->is_there && str_eq(pod->ns, ns) && str_eq(pod->name, name))
		return true;
	return false;
}

struct chaos_pod *chaos_pod_find(struct chaos_nodes *nodes, const char *ns, const char *name)
{
	struct chaos_pod *pod;

	TAILQ_FOREACH(pod, &nodes->pods, link)
	if (pod->is_there && !pod->is_busy && !pod->is_deleting && pod->state != CREATING &&
	    str_eq(pod->ns, ns) && str_eq(pod->name, name))
		return pod;
	return NULL;
}

struct chaos_pod *chaos_pod_any(struct chaos_nodes *nodes, uint64_t *random)
{
	struct chaos_pod *pod, *found = NULL;
	int64_t n = 0;

	TAILQ_FOREACH(pod, &nodes->pods, link)
	if (pod->state == UP && chaos_below(random, ++n) == 0)
		found = pod;
	return found;
}

const char *chaos_pod_uid(const struct chaos_pod *pod)
{
	return pod->uid;
}

const char *chaos_pod_key(const struct chaos_pod *pod)
{
	return pod->key;
}

const char *chaos_pod_address(const struct chaos_pod *pod)
{
	return pod->addresses ? pod->addresses : "";
}

static void on_asked_to_end(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;

	pod->is_busy = false;
	/* Without an answer it may be so: the kubelet deletes the object in any case. */
	if (err && err->class != ERR_TRANSIENT)
		return;
	pod->is_there &= !kube_err_is(err, "NotFound");
	pod->is_graceful = true;
	pod->has_ended = true;
	end_turn(pod);
	deferred_run(pod->nodes->reaping);
}

void chaos_pod_delete(struct chaos_pod *pod, bool by_force)
{
	count(pod->nodes, by_force ? "deleted by force" : "deleted");
	if (by_force) {
		pod->has_ended = true;
		delete_object(pod);
		end_turn(pod);
		return;
	}
	pod->is_busy = true;
	kube_delete(pod->nodes->config.users, &kube_pods, pod->ns, pod->name, pod->uid, NULL,
		    &plain, on_asked_to_end, pod);
}

static void on_phase(void *arg, json_t *object, const struct err *err)
{
	struct chaos_pod *pod = arg;
	bool is_unknown = err && err->class == ERR_TRANSIENT && !kube_err_is(err, "NotFound");

	pod->is_busy = false;
	if (is_unknown || (!err && str_eq(json_uid(object), pod->uid))) {
		pod->has_ended = true;
		pod->is_graceful |= is_unknown;
		end_turn(pod);
	}
	deferred_run(pod->nodes->reaping);
}

void chaos_pod_end(struct chaos_pod *pod, const char *reason)
{
	json_auto_t *patch =
		reason ? json_pack("{s:{s:s}, s:{s:s, s:s}}", "metadata", "uid", pod->uid, "status",
				   "phase", "Failed", "reason", reason)
		       : json_pack("{s:{s:s}, s:{s:s}}", "metadata", "uid", pod->uid, "status",
				   "phase", "Succeeded");

	count(pod->nodes, reason ? reason : "Succeeded");
	pod->is_busy = true;
	kube_patch(pod->nodes->config.users, &kube_pods, pod->ns, pod->name, KUBE_PATCH_MERGE,
		   patch, &to_status, on_phase, pod);
}

/* ---- agents ---------------------------------------------------------------------------------- */

/* What is set up, or about to be, of any pod with this UID. */
static bool node_holds(void *arg, const char *uid)
{
	const struct node *node = arg;
	const struct chaos_pod *pod;

	TAILQ_FOREACH(pod, &node->nodes->pods, link)
	if (pod->node == node && str_eq(pod->uid, uid))
		return pod->state >= ADDING && pod->state <= UNMARKING;
	return false;
}

static void start_agent(struct node *node)
{
	node->addresses = addresses_new(&(struct addresses_config){
		.loop = node->nodes->config.loop,
		.client = node->nodes->config.agents,
		.node = node->name,
		.ns = "orbweaver-system",
		.config_ns = "orbweaver-system",
		.holds = node_holds,
		.look_ms = LOOK_MS,
		.second_look_ms = SECOND_LOOK_MS,
		.arg = node,
	});
}

/* Calls that it had under way fail, and are repeated. */
static void stop_agent(struct node *node)
{
	struct chaos_pod *pod;

	if (!node->addresses)
		return;
	addresses_free(take_ptr(node->addresses));
	TAILQ_FOREACH(pod, &node->nodes->pods, link)
	{
		if (pod->node != node)
			continue;
		pod->is_releasing = false;
		if (pod->state == ADDING) {
			pod->state = WAITING;
			timer_start(pod->timer, POLL_MS);
		} else if (pod->state == DOWN) {
			timer_start(pod->timer, POLL_MS);
		}
	}
}

void chaos_agent_restart(struct chaos_nodes *nodes, int64_t number, int64_t after_ms)
{
	struct node *node = &nodes->each[number];

	if (node->is_dead || !node->addresses)
		return;
	count(nodes, "agents killed");
	stop_agent(node);
	timer_start(node->back, after_ms);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void create_node(struct node *node, kube_object_fn *done)
{
	json_auto_t *object = json_pack("{s:{s:s}}", "metadata", "name", node->name);

	kube_create(node->nodes->config.users, &kube_nodes, object, &plain, done, node);
}

static void on_node_back(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;

	if (err && !kube_err_is(err, "AlreadyExists")) {
		timer_start(node->back, POLL_MS);
		return;
	}
	node->is_dead = node->is_deleted = false;
	start_agent(node);
}

static void on_node_deleted(void *arg, json_t *object, const struct err *err)
{
	struct node *node = arg;
	struct chaos_pod *pod;

	node->is_deleted = !err || kube_err_is(err, "NotFound");
	timer_start(node->back, node->is_deleted ? 2000 + below(node->nodes, 4000) : POLL_MS);
	TAILQ_FOREACH(pod, &node->nodes->pods, link)
	if (node->is_deleted && pod->node == node)
		delete_object(pod);
}

/* What was on the node is gone before the Node is. */
static bool is_dark(const struct node *node)
{
	const struct chaos_pod *pod;

	TAILQ_FOREACH(pod, &node->nodes->pods, link)
	if (pod->node == node && (pod->is_marked || pod->state == MARKING ||
				  pod->state == CREATING || pod->state == UNMARKING))
		return false;
	return true;
}

static void on_back(void *arg)
{
	struct node *node = arg;

	if (!node->is_dead)
		start_agent(node);
	else if (node->is_deleted)
		create_node(node, on_node_back);
	else if (is_dark(node))
		kube_delete(node->nodes->config.users, &kube_nodes, NULL, node->name, NULL, NULL,
			    &plain, on_node_deleted, node);
	else
		timer_start(node->back, POLL_MS);
}

void chaos_node_die(struct chaos_nodes *nodes, int64_t number)
{
	struct node *node = &nodes->each[number];
	struct chaos_pod *pod;

	if (node->is_dead || !node->addresses)
		return;
	count(nodes, "nodes died");
	stop_agent(node);
	node->is_dead = true;
	TAILQ_FOREACH(pod, &nodes->pods, link)
	if (pod->node == node)
		end_turn(pod);
	timer_start(node->back, POLL_MS);
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct chaos_nodes *chaos_nodes_new(const struct chaos_nodes_config *config)
{
	struct chaos_nodes *nodes = mem_new(struct chaos_nodes);

	nodes->config = *config;
	nodes->random = config->seed * 0x9E3779B97F4A7C15ull + 1;
	nodes->counts = json_object();
	nodes->reaping = deferred_new(config->loop, reap, nodes);
	TAILQ_INIT(&nodes->pods);
	for (int i = 0; i < CHAOS_NODES; i++) {
		struct node *node = &nodes->each[i];

		node->nodes = nodes;
		(void)snprintf(node->name, sizeof(node->name), "node-%05d", i);
		node->back = timer_new(config->loop, on_back, node);
		node->is_dead = true;
		create_node(node, on_node_back);
	}
	return nodes;
}

void chaos_nodes_free(struct chaos_nodes *nodes)
{
	for (int i = 0; i < CHAOS_NODES; i++) {
		addresses_free(nodes->each[i].addresses);
		timer_free(nodes->each[i].back);
	}
	while (!TAILQ_EMPTY(&nodes->pods))
		pod_free(TAILQ_FIRST(&nodes->pods));
	deferred_free(nodes->reaping);
	json_decref(nodes->counts);
	mem_free(nodes);
}

bool chaos_nodes_are_empty(const struct chaos_nodes *nodes)
{
	for (int i = 0; i < CHAOS_NODES; i++)
		if (nodes->each[i].is_dead || !nodes->each[i].addresses)
			return false;
	return TAILQ_EMPTY(&nodes->pods);
}

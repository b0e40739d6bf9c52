// SPDX-License-Identifier: Apache-2.0
/*
 * one-key: what the decision on one node costs in a large cluster, counted in instructions.
 *
 *	valgrind --tool=callgrind --instr-atstart=no --collect-atstart=no one-key NODES
 *
 * Fills the caches of the operator's manager with NODES nodes and their NodeStates (8 PFs, 128 VFs)
 * and 50 policies, as its informers would, and then changes the label of a few nodes, each of which
 * gets other policies by that. Counted is what the operator does between the decoded event and the
 * finished plan: cache and indexes, who is woken, the world of the node's key, the reconciler. No
 * server, no time: the number is the same on any machine, but for the seeds of hash tables.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/auth/config.h"
#include "operator/controllers/controllers.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/manager.h"
#include "operator/schedule.h"
#include "tests/fakes/node_inventory.h"

#define NAMESPACE "orbweaver-system"
#define GROUP     "orbweaver.test/group"
#define NOW       "2026-01-01T00:00:00Z"

enum {
	POLICIES = 50,
	POOL_CONFIGS = 3,
	GROUPS = 10,
	CHANGES = 20, /* each of a node of its own */
	NODES_MIN = 100,
};

/* Never connected to: nothing runs the loop. */
static const char kubeconfig[] =
	"{\"current-context\": \"c\", \"contexts\": [{\"name\": \"c\", \"context\": {\"cluster\": "
	"\"c\", "
	"\"user\": \"u\"}}], \"clusters\": [{\"name\": \"c\", \"cluster\": {\"server\": "
	"\"http://127.0.0.1:1\"}}], \"users\": [{\"name\": \"u\", \"user\": {}}]}";

struct cluster {
	struct kube_config config;
	struct loop *loop;
	struct kube_client *client;
	struct metrics *metrics;
	struct health *health;
	struct dependency_health *troubles;
	struct recorder *recorder;
	struct manager *manager;
	const struct controller_sources *sources;
	struct inventory_shape shape;
	int64_t version;
	json_t *settled[GROUPS]; /* a NodeState of each group, when operator and agent are done */
};

/* ---- objects --------------------------------------------------------------------------------- */

static json_t *new_object(struct cluster *c, const char *ns, json_t *name)
{
	json_t *object = json_object(), *metadata = json_need_object(object, "metadata");

	json_put(metadata, "name", name);
	json_put_str(metadata, "namespace", ns);
	json_put(metadata, "uid", json_fmt("uid-%" PRId64, c->version));
	json_put(metadata, "resourceVersion", json_fmt("%" PRId64, ++c->version));
	json_put_int(metadata, "generation", 1);
	json_put_str(metadata, "creationTimestamp", NOW);
	return object;
}

/* Takes object. */
static void put(const struct cluster *c, const char *kind, json_t *object)
{
	cache_put(mirror_cache(c->sources->mirror, kind), object);
}

static json_t *group_name(int64_t group)
{
	return json_fmt("group-%" PRId64, group % GROUPS);
}

static json_t *node_object(struct cluster *c, int64_t n, int64_t group)
{
	json_t *node = new_object(c, NULL, json_fmt("%s%05" PRId64, c->shape.prefix, n));
	json_t *labels = json_need_object(json_at(node, "metadata"), "labels");

	json_put_str(labels, "kubernetes.io/os", "linux");
	json_put_str(labels, "kubernetes.io/hostname", json_name(node));
	json_put(labels, GROUP, group_name(group));
	return node;
}

/* Five for each group, three of them on one PF. */
static json_t *policy_object(struct cluster *c, int64_t n)
{
	json_t *policy = new_object(c, NAMESPACE, json_fmt("policy-%02" PRId64, n));
	json_t *spec = json_need_object(policy, "spec");
	int64_t rank = n / GROUPS;

	json_put(spec, "resourceName", json_fmt("resource%" PRId64, n));
	json_put_int(spec, "numVfs", 16);
	json_put_int(spec, "priority", 10 + rank);
	json_put(json_need_object(spec, "nodeSelector"), GROUP, group_name(n));
	json_put(json_need_object(spec, "nicSelector"), "pfNames",
		 json_pack("[o]", rank < 3 ? json_fmt("ens1f0np0#%" PRId64 "-%" PRId64, 5 * rank,
						      5 * rank + 4)
					   : json_fmt("ens%" PRId64 "f0np0", rank)));
	return policy;
}

static json_t *pool_config_object(struct cluster *c, int64_t n)
{
	json_t *pool = new_object(c, NAMESPACE, json_fmt("pool-%" PRId64, n));
	json_t *spec = json_need_object(pool, "spec");

	json_put_str(spec, "rdmaMode", "exclusive");
	json_put(json_need_object(json_need_object(spec, "nodeSelector"), "matchLabels"), GROUP,
		 group_name(n));
	return pool;
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* As work_on() in operator/manager.c, up to the finished plan. */
static void decide(const struct cluster *c, const char *node, struct plan *plan)
{
	const struct controller *controller = &controllers[CONTROLLER_NODE_STATE];
	json_auto_t *world = json_object();
	struct err err = {0};

	gather_env(c->sources, world);
	controllers_gather(c->sources, CONTROLLER_NODE_STATE, node, world);
	if (controller->reconcile(world, node, plan, &err) < 0) {
		fprintf(stderr, "one-key: %s: %s\n", node, err.text);
		exit(1);
	}
}

/* The spec that is wanted for a node; borrowed from plan. */
static json_t *wanted_spec(const struct plan *plan, const char *node)
{
	const json_t *op = json_find(plan->ops, "op", "apply");

	if (op)
		return json_at(op, "object", "spec");
	fprintf(stderr, "one-key: %s: no NodeState is wanted\n", node);
	exit(1);
}

/* What the operator wants and the agent reports, until neither has anything to add. */
static json_t *settled_state(struct cluster *c, int64_t n)
{
	json_auto_t *inventory = inventory_generate(&c->shape, n);
	json_t *state = new_object(c, NAMESPACE, json_fmt("%s", json_str_at(inventory, "name")));
	json_t *pf = NULL;
	size_t i = 0;

	json_put(state, "status", inventory_status(inventory, state, true, NOW));
	put(c, KIND_NODE_STATE, json_deep_copy(state));
	auto_plan struct plan plan = {0};

	decide(c, json_name(state), &plan);
	json_put(state, "spec", json_deep_copy(wanted_spec(&plan, json_name(state))));
	json_put(state, "status", inventory_status(inventory, state, true, NOW));
	/* As the informer: drop_node_state in operator/cache/mirror.c. */
	json_array_foreach (json_at(state, "status", "interfaces"), i, pf)
		json_object_del(pf, "Vfs");
	return state;
}

static void add_node(struct cluster *c, int64_t n)
{
	json_t *state = new_object(c, NAMESPACE, json_fmt("%s%05" PRId64, c->shape.prefix, n));
	json_t **settled = &c->settled[n % GROUPS];

	put(c, KIND_NODE, node_object(c, n, n));
	if (!*settled)
		*settled = settled_state(c, n);
	json_object_set_new(state, "spec", json_deep_copy(json_at(*settled, "spec")));
	json_object_set_new(state, "status", json_deep_copy(json_at(*settled, "status")));
	json_put(json_at(state, "metadata"), "resourceVersion", json_fmt("%" PRId64, ++c->version));
	put(c, KIND_NODE_STATE, state);
}

/* True when the label brought the node another NodeState. */
static bool change_label(struct cluster *c, int64_t n)
{
	json_t *node = node_object(c, n, n + 1);
	auto_free char *name = str_dup(json_name(node));
	auto_plan struct plan plan = {0};

	CALLGRIND_TOGGLE_COLLECT;
	put(c, KIND_NODE, node);
	decide(c, name, &plan);
	CALLGRIND_TOGGLE_COLLECT;
	return !json_same(wanted_spec(&plan, name), json_at(c->settled[n % GROUPS], "spec"));
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static int cluster_open(struct cluster *c, struct err *err)
{
	static const struct webhook_settings no_webhooks;

	if (kube_config_parse(&(struct kube_config_source){0}, kubeconfig, strlen(kubeconfig),
			      &c->config, err) < 0)
		return -1;
	c->loop = loop_new();
	c->metrics = metrics_new();
	c->health = health_new();
	c->troubles = dependency_health_new(c->metrics, c->health);
	c->client = kube_client_new(c->loop, &c->config, c->metrics);
	c->recorder = recorder_new(c->client, "one-key", "one-key", false, c->metrics);
	c->manager = manager_new(&(struct manager_config){
		.loop = c->loop,
		.client = c->client,
		.recorder = c->recorder,
		.metrics = c->metrics,
		.troubles = c->troubles,
		.ns = NAMESPACE,
		.resource_prefix = "spidernet.io",
		.config_ns = NAMESPACE,
		.webhook = &no_webhooks,
		.writes_max = SCHEDULE_WINDOW,
	});
	c->sources = manager_sources(c->manager);
	return 0;
}

static void cluster_close(struct cluster *c)
{
	for (size_t i = 0; i < GROUPS; i++)
		json_decref(c->settled[i]);
	manager_free(c->manager);
	recorder_free(c->recorder);
	kube_client_free(c->client);
	loop_free(c->loop);
	dependency_health_free(c->troubles);
	health_free(c->health);
	metrics_free(c->metrics);
	kube_config_done(&c->config);
}

static int64_t run(struct cluster *c)
{
	int64_t changed = 0;

	for (int64_t i = 0; i < POLICIES; i++)
		put(c, KIND_POLICY, policy_object(c, i));
	for (int64_t i = 0; i < POOL_CONFIGS; i++)
		put(c, KIND_POOL_CONFIG, pool_config_object(c, i));
	for (int64_t i = 0; i < c->shape.nodes; i++)
		add_node(c, i);
	CALLGRIND_START_INSTRUMENTATION;
	for (int64_t i = 0; i < CHANGES; i++)
		changed += change_label(c, i * (c->shape.nodes / CHANGES));
	CALLGRIND_STOP_INSTRUMENTATION;
	return changed;
}

int main(int argc, char **argv)
{
	struct cluster c = {.shape = {.prefix = "node-", .pfs = 8, .vfs = 16}};
	struct err err = {0};
	int64_t changed = 0;

	mem_tune();
	json_init();
	if (argc != 2 || !str_to_int(argv[1], NODES_MIN, INVENTORY_MAX_NODES, &c.shape.nodes)) {
		fprintf(stderr, "usage: one-key NODES\n");
		return 2;
	}
	if (cluster_open(&c, &err) < 0) {
		fprintf(stderr, "one-key: %s\n", err.text);
		return 1;
	}
	changed = run(&c);
	cluster_close(&c);
	printf("%" PRId64 " nodes, %d labels changed, %" PRId64 " NodeStates changed by that\n",
	       c.shape.nodes, CHANGES, changed);
	return changed == CHANGES ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The scheduler of drains: random orders of events against a cluster that is made up here: nodes
 * that boot, lose their power, go and come, their agents with what those remember on disk,
 * kubelets, pods, budgets; and an operator that dies between any two writes.
 *
 * What may never happen ends the test at once. Every SETTLE_EVERY steps whatever is in the way for
 * good is taken away, and then everything that wants something has to get it.
 * Environment: LONG=1, a million steps; SEED.
 */
#include "lib/base/rfc3339.h"
#include "reconcilers/sriov/pool_config.h"
#include "tests/unit/reconcilers/maintenance/drain_world.h"

#define CAUSE "rdma-mode-exclusive"

enum { NODES = 6, PODS_PER_NODE = 3, STEPS = 50000, SETTLE_EVERY = 1000 };

/* What the operator cannot see but through its world. */
struct sim_node {
	bool wants;   /* a change is to be made, and pods are in the way */
	bool works;   /* the agent makes it */
	bool boots;   /* the mode is another than wanted */
	bool is_gone; /* it has no Node object */
	bool is_down;
	bool is_stale;      /* the next boot does not bring the mode */
	bool is_deaf;       /* the first process does not do as it is asked */
	bool has_had_three; /* reboots today */
	unsigned int boot;  /* number of the one that runs */
	/* The agent's record: the boot that is to end, 0: none is open. The API server's copy. */
	unsigned int record, told;
	unsigned int asked; /* the boot that the first process was last asked to end */
};

static struct {
	json_t *world;
	json_t *pods;  /* as the API server has them, {"ml/p7": pod} */
	json_t *asked; /* what is being read; NULL: nothing */
	json_t *seen;  /* {reason of the condition Draining: how often it was written} */
	struct sim_node nodes[NODES];
	int64_t now_us;
	bool refuses; /* the budget of the pods is spent */
	unsigned int seed, next_pod, evictions, drains, reboots, cuts, deaths, deleted;
} sim;

static unsigned int chance(unsigned int of)
{
	sim.seed = sim.seed * 1103515245U + 12345U;
	return (sim.seed >> 8) % of;
}

static const char *node_name(int n)
{
	static const char *const names[NODES] = {"w0", "w1", "w2", "w3", "w4", "w5"};

	return names[n];
}

static json_t *sim_node(int n)
{
	return node_of(sim.world, node_name(n));
}

static json_t *sim_state(int n)
{
	return state_of(sim.world, node_name(n));
}

static json_t *annotations_of(json_t *object)
{
	return json_need_object(json_at(object, "metadata"), "annotations");
}

static const char *state_says(int n, const char *annotation)
{
	return json_str_or(json_at(sim_state(n), "metadata", "annotations", annotation), "");
}

/* ---- pods ------------------------------------------------------------------------------------ */

static bool is_on(const json_t *pod, int n)
{
	return str_eq(json_str_at(pod, "spec", "nodeName"), node_name(n));
}

static size_t pods_on(int n)
{
	size_t count = 0;
	const char *key;
	json_t *pod;

	json_each (sim.pods, key, pod)
		count += is_on(pod, n);
	return count;
}

static void pod_comes(int n, bool is_managed)
{
	auto_free char *name = str_printf("p%u", sim.next_pod++);
	auto_free char *key = str_printf("ml/%s", name);

	if (sim.nodes[n].is_gone || json_is_true(json_at(sim_node(n), "spec", "unschedulable")) ||
	    json_is_true(json_at(sim_state(n), "status", "impact", "withdrawn")))
		return;
	if (pods_on(n) < PODS_PER_NODE)
		json_put(sim.pods, key, new_pod(name, node_name(n), is_managed));
}

/* The first on the node that was asked to end does; nobody ends on a node that is down. */
static void pod_ends(int n)
{
	const char *key;
	json_t *pod;

	if (sim.nodes[n].is_down)
		return;
	json_each (sim.pods, key, pod) {
		if (is_on(pod, n) && json_at(pod, "metadata", "deletionTimestamp")) {
			json_object_del(sim.pods, key);
			return;
		}
	}
}

/* ---- boots ----------------------------------------------------------------------------------- */

static void loses_its_power(int n)
{
	sim.cuts += !sim.nodes[n].is_down;
	sim.nodes[n].is_down = true;
}

static void comes_up(int n)
{
	struct sim_node *node = &sim.nodes[n];

	if (!node->is_down)
		return;
	node->is_down = false;
	node->boot++;
	node->boots &= node->is_stale;
}

/* The kubelet's word; of a node that is down another controller's, some time later. */
static void kubelet_reports(int n)
{
	json_t *node = sim_node(n);

	if (!node)
		return;
	set_ready(sim.world, node_name(n), !sim.nodes[n].is_down);
	if (!sim.nodes[n].is_down)
		json_put(json_need_object(json_at(node, "status"), "nodeInfo"), "bootID",
			 json_fmt("boot-%u", sim.nodes[n].boot));
}

/* Nobody waits for it any more, and its pods are nobody's. */
static void node_goes(int n)
{
	const char *key;
	json_t *pod;
	void *next;

	if (sim.nodes[n].is_gone)
		return;
	sim.deleted++;
	sim.nodes[n].is_gone = true;
	json_object_del(json_at(sim.world, KIND_NODE), node_name(n));
	json_object_foreach_safe(sim.pods, next, key, pod) if (is_on(pod, n))
		json_object_del(sim.pods, key);
}

/* As a kubelet registers it: without what was written on it. */
static void node_comes(int n)
{
	json_auto_t *made = NULL;

	if (!sim.nodes[n].is_gone)
		return;
	sim.nodes[n].is_gone = false;
	made = json_object();
	add_node(made, node_name(n));
	json_object_set(json_at(sim.world, KIND_NODE), node_name(n), node_of(made, node_name(n)));
	set_ready(sim.world, node_name(n), false);
}

static void state_goes(int n)
{
	auto_free char *key = str_printf(NS "/%s", node_name(n));

	json_object_del(json_at(sim.world, KIND_NODE_STATE), key);
	sim.nodes[n].told = 0;
}

static void state_comes(int n)
{
	auto_free char *key = str_printf(NS "/%s", node_name(n));
	json_auto_t *made = NULL;

	if (sim_state(n))
		return;
	made = json_object();
	add_node(made, node_name(n));
	json_object_del(state_of(made, node_name(n)), "status");
	json_object_set(json_at(sim.world, KIND_NODE_STATE), key, state_of(made, node_name(n)));
}

/* ---- agents ---------------------------------------------------------------------------------- */

/* Rebooted for it before. */
static bool is_in_vain(const struct sim_node *node)
{
	return node->boots && node->record && node->record != node->boot;
}

/* What nodeagent/host_plan/planner_node.c does with its record. */
static void agent_keeps_record(int n)
{
	struct sim_node *node = &sim.nodes[n];
	auto_free char *boot = str_printf("boot-%u", node->boot);

	if (!node->boots ||
	    (is_in_vain(node) && str_eq(state_says(n, DRAIN_RETRY_ANNOTATION), boot)))
		node->record = 0;
}

/* One step of it, if there is one: record, then ask. Never with pods, nor twice for nothing. */
static void agent_may_reboot(int n)
{
	struct sim_node *node = &sim.nodes[n];
	auto_free char *wanted = str_printf("boot-%u " CAUSE, node->boot);

	if (node->is_down || node->is_gone)
		return;
	agent_keeps_record(n);
	if (!node->boots || is_in_vain(node) || (node->has_had_three && !node->record) ||
	    !str_eq(state_says(n, DRAIN_REBOOT_ANNOTATION), wanted))
		return;
	if (!node->record) {
		node->record = node->boot;
		return;
	}
	if (node->told != node->record)
		return;
	if (pods_on(n) > 0)
		fail_msg("%s reboots with %zu pods", node_name(n), pods_on(n));
	if (str_eq(current(sim.world, node_name(n)), "Idle"))
		fail_msg("%s reboots without a slot", node_name(n));
	node->asked = node->boot;
	if (!node->is_deaf) {
		sim.reboots++;
		node->is_down = true;
	}
}

/* Where the reboot stands, in words of the NodeState. */
static void report_boots(int n, json_t *status)
{
	struct sim_node *node = &sim.nodes[n];
	json_t *boots = json_pack("{s:o}", "id", json_fmt("boot-%u", node->boot));
	json_t *impact = json_at(status, "impact");

	(void)json_object_del(status, "problems");
	if (is_in_vain(node)) {
		json_put_str(boots, "inVain", CAUSE);
		json_put_str(status, "syncStatus", "Failed");
	} else if (node->boots && node->has_had_three && !node->record) {
		json_put_str(status, "syncStatus", "Failed");
	} else if (node->boots) {
		json_put_str(impact, "class", "reboot");
		json_put_str(impact, "cause", CAUSE);
		json_put_str(status, "syncStatus", "InProgress");
		if (node->asked == node->boot)
			json_put(status, "problems",
				 json_pack("[{s:s}]", "reason", "RebootDidNotStart"));
	}
	json_put(status, "boots", boots);
	node->told = node->record;
}

static void agent_reports(int n)
{
	struct sim_node *node = &sim.nodes[n];
	json_t *state = sim_state(n), *status, *pod;
	json_auto_t *impact = NULL, *pods = NULL, *conditions = NULL;
	const char *key;

	if (node->is_down || node->is_gone || !state)
		return;
	status = json_need_object(state, "status");
	json_put_int(status, "observedGeneration", json_generation(state));
	if (node->wants && pods_on(n) == 0) {
		node->wants = false;
		node->works = true;
	}
	pods = json_array();
	json_each (sim.pods, key, pod)
		if (node->wants && is_on(pod, n))
			json_array_append_new(pods, json_pack("{s:s, s:s}", "pod", key, "device",
							      "0000:3b:00.2"));
	impact = json_pack("{s:s}", "class", json_array_size(pods) ? "evict" : "none");
	if (json_array_size(pods) > 0) {
		json_object_set(impact, "pods", pods);
		if (!str_eq(current(sim.world, node_name(n)), "Idle"))
			json_put_bool(impact, "withdrawn", true);
	}
	json_object_set(status, "impact", impact);
	json_put_str(status, "syncStatus", node->wants || node->works ? "InProgress" : "Succeeded");
	agent_keeps_record(n);
	report_boots(n, status);
	if (!json_is_array(json_at(status, "conditions")))
		json_put(status, "conditions", json_array());
	conditions = json_incref(json_at(status, "conditions"));
	condition_set(conditions, conditions, "Progressing",
		      node->works ? CONDITION_TRUE : CONDITION_FALSE, "Working", "", 1, NOW);
}

/* ---- the operator ---------------------------------------------------------------------------- */

static json_t *look_on(const char *node)
{
	json_t *ret = json_object(), *pod;
	const char *key;

	json_each (sim.pods, key, pod)
		if (str_eq(json_str_at(pod, "spec", "nodeName"), node))
			json_put(ret, key, json_deep_copy(pod));
	return ret;
}

static void shell_looks(void)
{
	json_t *item, *look;
	size_t i;

	if (!sim.asked)
		return;
	look = json_object();
	json_put_int(look, "atMs", json_integer_value(json_at(sim.world, "env", "nowMs")));
	json_array_foreach (sim.asked, i, item) {
		const char *kind = json_str_at(item, "kind"), *key = json_str_at(item, "key");
		json_t *found = str_eq(kind, KIND_NODE)
					? json_object_get(json_at(sim.world, KIND_NODE), key)
					: json_object_get(sim.pods, key);

		if (str_eq(kind, BOX_PODS_OF_NODE))
			json_put(json_need_object(look, kind), key, look_on(key));
		else
			json_put(json_need_object(look, kind), key,
				 found ? json_deep_copy(found) : json_null());
	}
	json_put(json_need_object(sim.world, BOX_DRAIN_LOOK), DRAIN_KEY, look);
	json_decref(sim.asked);
	sim.asked = NULL;
}

static size_t limit_now(void)
{
	const json_t *max = json_at(pool_of(sim.world), "spec", "maxUnavailable");
	size_t nodes = json_object_size(json_at(sim.world, KIND_NODE)), half = nodes / 2;

	if (json_is_integer(max))
		return (size_t)json_integer_value(max);
	/* 10 % of six, rounded to one; 50 %. */
	return str_eq(json_string_value(max), "50%") && half > 0 ? half : 1;
}

static bool is_away(int n)
{
	const json_t *node = sim_node(n);

	if (!node)
		return false;
	return !str_eq(current(sim.world, node_name(n)), "Idle") ||
	       json_is_true(json_at(node, "spec", "unschedulable")) ||
	       !str_eq(json_str_at(json_array_get(json_at(node, "status", "conditions"), 0),
				   "status"),
		       "True");
}

/* About to be carried out. */
static void check_begin(const json_t *op)
{
	const char *name = strchr(json_str_at(op, "key"), '/') + 1;
	const char *to = json_str_at(op, "metadata", "annotations", DRAIN_CURRENT_STATE);
	size_t away = 0;

	if (!str_eq(to, "Draining") || !str_eq(current(sim.world, name), "Idle"))
		return;
	sim.drains++;
	if (!json_at(pool_of(sim.world), "spec", "maxUnavailable"))
		fail_msg("%s is drained although nobody allowed it", name);
	for (int n = 0; n < NODES; n++)
		away += !str_eq(node_name(n), name) && is_away(n);
	if (away >= limit_now())
		fail_msg("%s is drained although %zu others are away and %zu may be", name, away,
			 limit_now());
}

/* Nobody is cordoned without a slot of its own. */
static void check_cordon(const json_t *op)
{
	const char *name = json_str_at(op, "key");

	if (json_is_true(json_at(op, "spec", "unschedulable")) &&
	    str_eq(current(sim.world, name), "Idle"))
		fail_msg("%s is cordoned without a slot", name);
}

static void carry_out_eviction(const json_t *op)
{
	const char *key = json_str_at(op, "key");
	json_t *pod = json_object_get(sim.pods, key), *answers, *answer;
	const char *node = json_str_at(pod, "spec", "nodeName");

	sim.evictions++;
	answers = json_need_object(sim.world, BOX_EVICTIONS);
	if (pod && str_eq(current(sim.world, node), "Idle"))
		fail_msg("%s is evicted from %s, which is not drained", key, node);
	if (pod && !json_at(pod, "metadata", "ownerReferences"))
		fail_msg("%s is evicted and nobody makes it anew", key);
	answer = json_pack("{s:s, s:O, s:i}", "uid", json_str_at(op, "uid"), "atMs",
			   json_at(sim.world, "env", "nowMs"), "tries",
			   (int)json_integer_value(json_at(answers, key, "tries")) + 1);
	if (pod && sim.refuses)
		json_put_str(answer, "reason", "PdbRefuses");
	else if (pod)
		json_put_str(json_at(pod, "metadata"), "deletionTimestamp", NOW);
	json_put(answers, key, answer);
}

static void carry_out_post(const json_t *op)
{
	const char *box = json_str_at(op, "box");

	if (str_eq(box, BOX_LOOK)) {
		json_decref(sim.asked);
		sim.asked = json_deep_copy(json_at(op, "value"));
	} else if (str_eq(box, BOX_DRAIN_LOOK)) {
		(void)json_object_del(sim.world, BOX_DRAIN_LOOK);
	} else {
		(void)json_object_del(json_at(sim.world, BOX_EVICTIONS), json_str_at(op, "key"));
	}
}

static void count_reason(const json_t *op)
{
	const json_t *said = condition_find(json_at(op, "status", "conditions"), "Draining");
	const char *reason = json_str_at(said, "reason");

	if (reason)
		json_put_int(sim.seen, reason, json_integer_value(json_at(sim.seen, reason)) + 1);
}

static void carry_out(const json_t *op)
{
	const char *what = json_str_at(op, "op");
	json_auto_t *copy = json_deep_copy(op);

	if (str_eq(what, "evict")) {
		carry_out_eviction(op);
		return;
	}
	if (str_eq(what, "post")) {
		carry_out_post(op);
		return;
	}
	if (str_eq(what, "meta") && str_eq(json_str_at(op, "kind"), KIND_NODE_STATE))
		check_begin(op);
	if (str_eq(what, "cordon"))
		check_cordon(op);
	count_reason(op);
	cluster_carry_out_op(sim.world, copy);
}

static void operator_dies(void)
{
	json_decref(sim.asked);
	sim.asked = NULL;
	(void)json_object_del(sim.world, BOX_DRAIN_LOOK);
	(void)json_object_del(sim.world, BOX_EVICTIONS);
}

static void operator_decides(bool may_die)
{
	json_auto_t *ops = decide(sim.world);
	const json_t *op;
	bool dies = may_die && chance(10) == 0;
	size_t n = dies ? chance((unsigned int)json_array_size(ops) + 1) : json_array_size(ops), i;

	json_array_foreach (ops, i, op) {
		if (i == n)
			break;
		carry_out(op);
	}
	if (dies) {
		sim.deaths++;
		operator_dies();
	}
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void time_passes(int seconds)
{
	json_t *env = json_at(sim.world, "env");
	char now[RFC3339_SIZE];

	sim.now_us += seconds * 1000000LL;
	rfc3339_write(sim.now_us, now);
	json_put_str(env, "now", now);
	json_put_int(env, "nowMs", json_integer_value(json_at(env, "nowMs")) + seconds * 1000);
}

static void pool_changes(void)
{
	static const char *const limits[] = {"10%", "50%"};
	json_t *spec = json_at(pool_of(sim.world), "spec");
	json_t *annotations = annotations_of(pool_of(sim.world));

	switch (chance(8)) {
	case 0:
		json_object_del(spec, "maxUnavailable");
		break;
	case 1:
		json_put_str(annotations, POOL_ALLOW_REBOOT, chance(2) ? "false" : "true");
		break;
	case 2:
		json_put_str(annotations, POOL_DRAIN_TIMEOUT, "10m");
		break;
	case 3:
		json_object_del(annotations, POOL_DRAIN_TIMEOUT);
		break;
	default:
		json_put(spec, "maxUnavailable",
			 chance(2) ? json_integer(chance(4)) : json_string(limits[chance(2)]));
	}
}

/* What people do to one node, with the command line or without. */
static void somebody_meddles(int n)
{
	json_t *state = sim_state(n), *node = sim_node(n);

	switch (chance(6)) {
	case 0:
		if (node && !drain_is_marked(node))
			json_put_bool(json_at(node, "spec"), "unschedulable", chance(3) == 0);
		break;
	case 1:
		if (state)
			json_put_str(annotations_of(state), DRAIN_STOP_ANNOTATION, "stop");
		break;
	case 2:
		if (state)
			json_put(annotations_of(state), DRAIN_RETRY_ANNOTATION,
				 json_fmt("boot-%u", sim.nodes[n].boot));
		break;
	case 3:
		/* Node and NodeState go and come, together or not. */
		if (chance(4) == 0)
			node_goes(n);
		if (chance(4) == 0)
			state_goes(n);
		break;
	default:
		if (state)
			json_object_del(annotations_of(state), DRAIN_STOP_ANNOTATION);
	}
}

/* What is wrong with the host, and what is wanted of it. */
static void host_changes(int n)
{
	struct sim_node *node = &sim.nodes[n];

	switch (chance(6)) {
	case 0:
		node->is_stale = chance(2);
		break;
	case 1:
		node->is_deaf = chance(2) == 0;
		break;
	case 2:
		node->has_had_three = chance(3) == 0;
		break;
	case 3:
		if (chance(3) == 0)
			loses_its_power(n);
		break;
	default:
		/* The pool's mode changes to and fro. */
		node->boots = !node->boots;
		node->is_stale |= chance(3) == 0;
	}
}

/* What nobody waits for. */
static void trouble(int n)
{
	json_t *state = sim_state(n);

	switch (chance(10)) {
	case 0:
		sim.nodes[n].wants = !sim.nodes[n].wants;
		if (state)
			json_put_int(json_at(state, "metadata"), "generation",
				     json_generation(state) + 1);
		break;
	case 1:
	case 2:
		pod_comes(n, chance(12) > 0);
		break;
	case 3:
		if (sim_node(n) && chance(3) == 0)
			set_ready(sim.world, node_name(n), false);
		break;
	case 4:
		pool_changes();
		break;
	case 5:
		somebody_meddles(n);
		break;
	case 6:
		sim.refuses = chance(4) == 0;
		break;
	case 7:
		time_passes(chance(2) ? 1200 : 6);
		break;
	default:
		host_changes(n);
	}
}

/* What gets things on, on some of the nodes. */
static void progress(unsigned int what)
{
	for (int n = 0; n < NODES; n++) {
		if (chance(2))
			continue;
		switch (what) {
		case 0:
			pod_ends(n);
			break;
		case 1:
			agent_reports(n);
			break;
		case 2:
			agent_may_reboot(n);
			break;
		case 3:
			kubelet_reports(n);
			break;
		case 4:
			sim.nodes[n].works = false;
			break;
		default:
			if (chance(4))
				continue;
			comes_up(n);
			node_comes(n);
			state_comes(n);
		}
	}
}

static void something_happens(void)
{
	if (chance(8) == 0)
		trouble((int)chance(NODES));
	else if (chance(3) > 0)
		progress(chance(6));
	else if (chance(2))
		shell_looks();
	else
		operator_decides(true);
}

/* ---- rest ------------------------------------------------------------------------------------ */

static void make_host_good(int n)
{
	struct sim_node *node = &sim.nodes[n];
	json_t *annotations;

	node_comes(n);
	state_comes(n);
	comes_up(n);
	kubelet_reports(n);
	node->is_stale = node->is_deaf = node->has_had_three = false;
	annotations = annotations_of(sim_state(n));
	(void)json_object_del(annotations, DRAIN_STOP_ANNOTATION);
	json_put(annotations, DRAIN_RETRY_ANNOTATION, json_fmt("boot-%u", node->boot));
	if (!drain_is_marked(sim_node(n)))
		json_put_bool(json_at(sim_node(n), "spec"), "unschedulable", false);
}

/* Nothing is in the way for good any more. */
static void make_good(void)
{
	json_t *annotations = annotations_of(pool_of(sim.world));
	const char *key;
	json_t *pod;

	sim.refuses = false;
	json_put_int(json_at(pool_of(sim.world), "spec"), "maxUnavailable", 1);
	json_put_str(annotations, POOL_ALLOW_REBOOT, "true");
	(void)json_object_del(annotations, POOL_DRAIN_TIMEOUT);
	json_each (sim.pods, key, pod)
		if (!json_at(pod, "metadata", "ownerReferences"))
			json_put(json_at(pod, "metadata"), "ownerReferences",
				 json_pack("[{s:b}]", "controller", 1));
	for (int n = 0; n < NODES; n++)
		make_host_good(n);
}

static bool is_at_rest(void)
{
	for (int n = 0; n < NODES; n++)
		if (sim.nodes[n].wants || sim.nodes[n].boots ||
		    !str_eq(current(sim.world, node_name(n)), "Idle") ||
		    *state_says(n, DRAIN_REBOOT_ANNOTATION) || drain_is_marked(sim_node(n)) ||
		    json_is_true(json_at(sim_node(n), "spec", "unschedulable")))
			return false;
	return true;
}

static void fail_stuck(void)
{
	for (int n = 0; n < NODES; n++)
		print_error("%s: %s, wants %d, boots %d, boot %u, record %u, %zu pods; %s %s; %s\n",
			    node_name(n), current(sim.world, node_name(n)), sim.nodes[n].wants,
			    sim.nodes[n].boots, sim.nodes[n].boot, sim.nodes[n].record, pods_on(n),
			    json_text(sim_node(n)), json_text(json_at(sim_state(n), "metadata")),
			    json_text(json_at(sim_state(n), "status")));
	fail_msg("stuck");
}

/* Everything that can go goes: each node in turn. */
static void settle(void)
{
	make_good();
	for (int i = 0; i < 60 * NODES; i++) {
		operator_decides(false);
		shell_looks();
		operator_decides(false);
		for (int n = 0; n < NODES; n++) {
			pod_ends(n);
			sim.nodes[n].works = false;
			comes_up(n);
			kubelet_reports(n);
			agent_reports(n);
			agent_may_reboot(n);
		}
		time_passes(6);
		if (is_at_rest())
			return;
	}
	fail_stuck();
}

/* What a run has to have met, or it says little. */
static void assert_met(long steps)
{
	static const char *const reasons[] = {
		"AgentWorks",     "AsksPods",     "CordonsNode",    "DrainStopped",
		"DrainTimedOut",  "LooksAtPods",  "NodeNotBack",    "NodeNotReady",
		"NothingToDrain", "PdbRefuses",   "PodTerminating", "RebootDidNotHelp",
		"RebootUnderWay", "UnmanagedPod", "WaitsForAgent",  "WaitsForKubelet",
		"WaitsForSlot"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (!json_at(sim.seen, reasons[i]))
			fail_msg("it never said %s: %s", reasons[i], json_text(sim.seen));
	assert_true(sim.drains > steps / 1000);
	assert_true(sim.evictions > steps / 1000);
	assert_true(sim.reboots > steps / 1000);
	print_message("%ld steps: %u drains, %u evictions, %u reboots, %u power cuts, %u nodes "
		      "deleted, the operator died %u times\n",
		      steps, sim.drains, sim.evictions, sim.reboots, sim.cuts, sim.deleted,
		      sim.deaths);
}

TEST(is_never_beyond_the_limit_and_never_stuck)
{
	long steps = getenv("LONG") ? 1000000 : STEPS;
	const char *seed = getenv("SEED");

	memset(&sim, 0, sizeof(sim));
	sim.seed = seed ? (unsigned int)strtoul(seed, NULL, 10) : 1;
	sim.world = new_world("1");
	sim.pods = json_object();
	sim.seen = json_object();
	assert_true(rfc3339_read(NOW, &sim.now_us));
	json_put_str(json_at(pool_of(sim.world), "spec"), "rdmaMode", "exclusive");
	for (int n = 0; n < NODES; n++) {
		sim.nodes[n].boot = 1;
		add_node(sim.world, node_name(n));
	}
	for (long i = 1; i <= steps; i++) {
		something_happens();
		if (i % SETTLE_EVERY == 0)
			settle();
	}
	assert_met(steps);
	operator_dies();
	json_decref(sim.world);
	json_decref(sim.pods);
	json_decref(sim.seen);
}

/*
 * The scheduler of drains: random orders of events against a cluster that is made up here (nodes,
 * their agents, pods, budgets), with an operator that dies between any two writes.
 */
#include "reconcilers/sriov/pool_config.h"
#include "tests/unit/reconcilers/maintenance/drain_world.h"

enum { NODES = 6, PODS_PER_NODE = 3, STEPS = 50000, SETTLE_EVERY = 500 };

/* What the operator cannot see but through its world. */
static struct {
	json_t *world;
	json_t *pods;      /* as the API server has them, {"ml/p7": pod} */
	json_t *asked;     /* what is being read; NULL: nothing */
	bool wants[NODES]; /* a change is to be made, and pods are in the way */
	bool works[NODES]; /* the agent makes it */
	/* It has to boot; the reboot it asked for did not help; the host goes down. */
	bool boots[NODES], in_vain[NODES], is_down[NODES];
	unsigned int boot[NODES]; /* number of the boot that runs */
	unsigned int reboots;
	bool refuses; /* the budget of the pods is spent */
	unsigned int seed, next_pod, evictions, drains;
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

	if (json_is_true(json_at(node_of(sim.world, node_name(n)), "spec", "unschedulable")))
		return;
	if (pods_on(n) < PODS_PER_NODE && !json_is_true(json_at(state_of(sim.world, node_name(n)),
								"status", "impact", "withdrawn")))
		json_put(sim.pods, key, new_pod(name, node_name(n), is_managed));
}

/* The first on the node that was asked to end does. */
static void pod_ends(int n)
{
	const char *key;
	json_t *pod;

	json_each (sim.pods, key, pod) {
		if (is_on(pod, n) && json_at(pod, "metadata", "deletionTimestamp")) {
			json_object_del(sim.pods, key);
			return;
		}
	}
}

/* What an agent does with the permission: never with pods on the node, nor for what was in vain. */
static void agent_may_reboot(int n)
{
	auto_free char *wanted = str_printf("boot-%u rdma-mode-exclusive", sim.boot[n]);
	const char *allowed = json_str_at(state_of(sim.world, node_name(n)), "metadata",
					  "annotations", DRAIN_REBOOT_ANNOTATION);

	if (sim.is_down[n] || !sim.boots[n] || sim.in_vain[n] || !str_eq(allowed, wanted))
		return;
	if (pods_on(n) > 0)
		fail_msg("%s reboots with %zu pods", node_name(n), pods_on(n));
	if (str_eq(current(sim.world, node_name(n)), "Idle"))
		fail_msg("%s reboots without a slot", node_name(n));
	sim.reboots++;
	sim.is_down[n] = true;
	set_ready(sim.world, node_name(n), false);
}

static void comes_back(int n, bool helped)
{
	if (!sim.is_down[n])
		return;
	sim.is_down[n] = false;
	sim.boot[n]++;
	sim.boots[n] = !helped;
	sim.in_vain[n] = !helped;
	set_ready(sim.world, node_name(n), true);
}

static void report_boots(int n, json_t *status)
{
	json_t *boots = json_pack("{s:o}", "id", json_fmt("boot-%u", sim.boot[n]));
	json_t *impact = json_at(status, "impact");

	if (sim.boots[n] && sim.in_vain[n]) {
		json_put_str(boots, "inVain", "rdma-mode-exclusive");
		json_put_str(status, "syncStatus", "Failed");
	} else if (sim.boots[n]) {
		json_put_str(impact, "class", "reboot");
		json_put_str(impact, "cause", "rdma-mode-exclusive");
		json_put_str(status, "syncStatus", "InProgress");
	}
	json_put(status, "boots", boots);
}

static void agent_reports(int n)
{
	json_t *state = state_of(sim.world, node_name(n)), *status = json_at(state, "status");
	json_t *impact = json_object(), *pods = json_array(), *pod;
	bool asked = !str_eq(current(sim.world, node_name(n)), "Idle");
	const char *key;

	if (sim.is_down[n]) {
		json_decref(pods);
		json_decref(impact);
		return;
	}
	json_put_int(status, "observedGeneration", json_generation(state));
	if (sim.wants[n] && pods_on(n) == 0) {
		sim.wants[n] = false;
		sim.works[n] = true;
	}
	json_each (sim.pods, key, pod)
		if (sim.wants[n] && is_on(pod, n))
			json_array_append_new(pods, json_pack("{s:s, s:s}", "pod", key, "device",
							      "0000:3b:00.2"));
	json_put_str(impact, "class", json_array_size(pods) ? "evict" : "none");
	if (json_array_size(pods) && asked)
		json_put_bool(impact, "withdrawn", true);
	if (json_array_size(pods))
		json_object_set(impact, "pods", pods);
	json_decref(pods);
	json_put(status, "impact", impact);
	json_put_str(status, "syncStatus",
		     sim.wants[n] || sim.works[n] ? "InProgress" : "Succeeded");
	report_boots(n, status);
	{
		json_auto_t *list = json_incref(json_at(status, "conditions"));

		condition_set(list, list, "Progressing",
			      sim.works[n] ? CONDITION_TRUE : CONDITION_FALSE, "Working", "", 1,
			      NOW);
	}
}

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

	if (json_is_integer(max))
		return (size_t)json_integer_value(max);
	/* 10 % of six, rounded to one; 50 %. */
	return str_eq(json_string_value(max), "50%") ? NODES / 2 : 1;
}

static bool is_away(const char *name)
{
	const json_t *node = node_of(sim.world, name);

	return !str_eq(current(sim.world, name), "Idle") ||
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
		away += !str_eq(node_name(n), name) && is_away(node_name(n));
	if (away >= limit_now())
		fail_msg("%s is drained although %zu others are away and %zu may be", name, away,
			 limit_now());
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

static void carry_out(const json_t *op)
{
	const char *what = json_str_at(op, "op");
	json_auto_t *copy = json_deep_copy(op);

	if (str_eq(what, "evict")) {
		carry_out_eviction(op);
	} else if (str_eq(what, "post")) {
		if (str_eq(json_str_at(op, "box"), BOX_LOOK)) {
			json_decref(sim.asked);
			sim.asked = json_deep_copy(json_at(op, "value"));
		} else if (str_eq(json_str_at(op, "box"), BOX_DRAIN_LOOK)) {
			(void)json_object_del(sim.world, BOX_DRAIN_LOOK);
		} else {
			(void)json_object_del(json_at(sim.world, BOX_EVICTIONS),
					      json_str_at(op, "key"));
		}
	} else {
		if (str_eq(what, "meta") && str_eq(json_str_at(op, "kind"), KIND_NODE_STATE))
			check_begin(op);
		cluster_carry_out_op(sim.world, copy);
	}
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
	if (dies)
		operator_dies();
}

static void time_passes(void)
{
	json_t *env = json_at(sim.world, "env");

	json_put_int(env, "nowMs", json_integer_value(json_at(env, "nowMs")) + 6000);
}

static void something_happens(void)
{
	static const char *const limits[] = {"10%", "50%"};
	json_t *spec = json_at(pool_of(sim.world), "spec");
	int n = (int)chance(NODES);
	json_t *state = state_of(sim.world, node_name(n));

	switch (chance(20)) {
	case 0:
		sim.wants[n] = !sim.wants[n];
		json_put_int(json_at(state, "metadata"), "generation", json_generation(state) + 1);
		break;
	case 1:
		pod_comes(n, chance(8) > 0);
		break;
	case 2:
		set_ready(sim.world, node_name(n), !sim.is_down[n] && chance(3) > 0);
		break;
	case 3:
		if (!drain_is_marked(node_of(sim.world, node_name(n))))
			json_put_bool(json_at(node_of(sim.world, node_name(n)), "spec"),
				      "unschedulable", chance(3) == 0);
		break;
	case 4:
		if (chance(4) == 0)
			json_object_del(spec, "maxUnavailable");
		else
			json_put(spec, "maxUnavailable",
				 chance(2) ? json_integer(chance(4))
					   : json_string(limits[chance(2)]));
		break;
	case 5:
		sim.refuses = chance(3) == 0;
		break;
	case 6:
		sim.works[n] = false;
		break;
	case 7:
		time_passes();
		break;
	case 8:
	case 9:
		pod_ends(n);
		break;
	case 10:
	case 11:
		agent_reports(n);
		break;
	case 12:
		shell_looks();
		break;
	case 13:
		/* The pool's mode changes, or somebody mends what made it be in vain. */
		if (sim.in_vain[n] || !sim.is_down[n]) {
			sim.boots[n] = !sim.in_vain[n] && !sim.boots[n];
			sim.in_vain[n] = false;
		}
		break;
	case 14:
		agent_may_reboot(n);
		break;
	case 15:
		comes_back(n, chance(4) > 0);
		break;
	case 16:
		if (chance(10) == 0)
			json_put_str(json_need_object(json_at(pool_of(sim.world), "metadata"),
						      "annotations"),
				     POOL_ALLOW_REBOOT, chance(2) ? "false" : "true");
		break;
	default:
		operator_decides(true);
	}
}

/* Nothing is in the way for good any more. */
static void make_good(void)
{
	const char *key;
	json_t *pod;

	sim.refuses = false;
	json_put_int(json_at(pool_of(sim.world), "spec"), "maxUnavailable", 1);
	json_each (sim.pods, key, pod)
		if (!json_at(pod, "metadata", "ownerReferences"))
			json_put(json_at(pod, "metadata"), "ownerReferences",
				 json_pack("[{s:b}]", "controller", 1));
	for (int n = 0; n < NODES; n++) {
		comes_back(n, true);
		sim.boots[n] &= !sim.in_vain[n];
		sim.in_vain[n] = false;
		set_ready(sim.world, node_name(n), true);
		if (!drain_is_marked(node_of(sim.world, node_name(n))))
			json_put_bool(json_at(node_of(sim.world, node_name(n)), "spec"),
				      "unschedulable", false);
	}
	json_put_str(json_need_object(json_at(pool_of(sim.world), "metadata"), "annotations"),
		     POOL_ALLOW_REBOOT, "true");
}

static bool is_at_rest(void)
{
	for (int n = 0; n < NODES; n++)
		if (sim.wants[n] || sim.boots[n] ||
		    !str_eq(current(sim.world, node_name(n)), "Idle") ||
		    drain_is_marked(node_of(sim.world, node_name(n))))
			return false;
	return true;
}

/* Everything that can go goes: each node in turn. */
static void settle(void)
{
	make_good();
	for (int i = 0; i < 40 * NODES; i++) {
		operator_decides(false);
		shell_looks();
		operator_decides(false);
		for (int n = 0; n < NODES; n++) {
			pod_ends(n);
			sim.works[n] = false;
			agent_may_reboot(n);
			comes_back(n, true);
			agent_reports(n);
		}
		time_passes();
		if (is_at_rest())
			return;
	}
	fail_msg("stuck: %s", json_text(json_at(sim.world, KIND_NODE_STATE)));
}

static void is_never_beyond_the_limit_and_never_stuck(void **state)
{
	long steps = getenv("LONG") ? 1000000 : STEPS;
	const char *seed = getenv("SEED");

	memset(&sim, 0, sizeof(sim));
	sim.seed = seed ? (unsigned int)strtoul(seed, NULL, 10) : 1;
	sim.world = new_world("1");
	sim.pods = json_object();
	json_put_str(json_at(pool_of(sim.world), "spec"), "rdmaMode", "exclusive");
	for (int n = 0; n < NODES; n++) {
		sim.boot[n] = 1;
		add_node(sim.world, node_name(n));
	}
	for (long i = 1; i <= steps; i++) {
		something_happens();
		if (i % SETTLE_EVERY == 0)
			settle();
	}
	assert_true(sim.drains > steps / 1000);
	assert_true(sim.evictions > steps / 1000);
	assert_true(sim.reboots > steps / 1000);
	print_message("%ld steps: %u drains, %u evictions, %u reboots\n", steps, sim.drains,
		      sim.evictions, sim.reboots);
	operator_dies();
	json_decref(sim.world);
	json_decref(sim.pods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_never_beyond_the_limit_and_never_stuck),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * One pass over the nodes that are being drained or want to be: begun ones first, then those with
 * the fewest pods.
 */
#include "reconcilers/maintenance/drain.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/maintenance/drain_internal.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/pool_config.h"

#define CONDITION "Draining"

/* What is decided about a node. */
enum phase {
	PHASE_NONE,
	PHASE_WAITING,
	PHASE_EVICTING,
	PHASE_WORKING,
	PHASE_STOPPED,
};

static const char *const phase_names[] = {NULL, "Waiting", "Evicting", "Working", "Stopped"};

struct candidate {
	const char *name; /* of the node */
	char *key;        /* of the NodeState */
	const json_t *state, *node, *pool;
	json_t *pods;     /* drain_pods_of() */
	bool begun;       /* it has a slot */
	bool is_external; /* somebody else drains it, when we ask */
	const char *down;
	enum phase phase;
	const char *reason;
	struct strbuf message;
	json_t *left; /* pods that have not ended, with what keeps them */
};

struct drain {
	const json_t *world;
	struct plan *plan;
	struct budgets budgets;
	struct candidate *nodes;
	size_t n;
	json_t *asked; /* what has to be read, {"pods": {key: true}, "nodes": …} */
	bool is_disabled, is_missing;
};

/* ---- reading --------------------------------------------------------------------------------- */

static const char *annotation(const json_t *object, const char *name)
{
	return json_str_or(json_at(object, "metadata", "annotations", name), "");
}

static bool is_begun(const json_t *state)
{
	const char *current = annotation(state, DRAIN_CURRENT_STATE);

	return *current && !str_eq(current, "Idle");
}

static bool is_current(const json_t *state)
{
	return json_integer_value(json_at(state, "status", "observedGeneration")) ==
	       json_generation(state);
}

bool drain_concerns(const json_t *state)
{
	return is_begun(state) || json_at(state, "status", "maintenance") ||
	       json_array_size(json_at(state, "status", "impact", "pods")) > 0;
}

/* The SR-IOV network operator's switch: nobody drains. */
static bool is_disabled(const json_t *world)
{
	const char *key;
	json_t *config;

	json_each (world_kind(world, LEFTOVER_SRIOV_CONFIG), key, config)
		if (json_is_true(json_at(config, "spec", "disableDrain")))
			return true;
	return false;
}

/* The pool that allows to drain the node; NULL: nothing does. */
static const json_t *allowing_pool(const struct drain *d, const json_t *state, const json_t *node)
{
	const json_t *pool = pool_config_of(d->world, json_at(node, "metadata", "labels"));
	size_t limit;

	if (d->is_disabled || !node || !pool || !pool_config_max_unavailable(pool, 1, &limit) ||
	    str_eq(annotation(state, DRAIN_STOP_ANNOTATION), "stop"))
		return NULL;
	return pool;
}

static int by_turn(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	size_t pods_a = json_object_size(a->pods), pods_b = json_object_size(b->pods);

	if (a->begun != b->begun)
		return a->begun ? -1 : 1;
	if (pods_a != pods_b)
		return pods_a < pods_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void read_candidates(struct drain *d)
{
	const json_t *states = world_kind(d->world, KIND_NODE_STATE);
	const char *key;
	json_t *state;

	d->nodes = mem_calloc(json_object_size(states) + 1, sizeof(*d->nodes));
	json_each (states, key, state) {
		const char *name = json_name(state);
		const json_t *node = world_get(d->world, KIND_NODE, name);

		if (!drain_concerns(state))
			continue;
		d->nodes[d->n++] = (struct candidate){
			.name = name,
			.key = str_dup(key),
			.state = state,
			.node = node,
			.pool = allowing_pool(d, state, node),
			.pods = drain_pods_of(state),
			.begun = is_begun(state),
			.is_external = str_eq(annotation(state, DRAIN_EXTERNAL), "true"),
			.down = budget_down(node),
			.left = json_array(),
		};
	}
	if (d->n > 0)
		qsort(d->nodes, d->n, sizeof(*d->nodes), by_turn);
}

static void drain_done(struct drain *d)
{
	for (size_t i = 0; i < d->n; i++) {
		mem_free(d->nodes[i].key);
		json_decref(d->nodes[i].pods);
		json_decref(d->nodes[i].left);
		strbuf_done(&d->nodes[i].message);
	}
	mem_free(d->nodes);
	json_decref(d->asked);
	budgets_done(&d->budgets);
}
#define auto_drain auto_call(drain_done)

/* ---- saying ---------------------------------------------------------------------------------- */

/* The first word counts. */
static void say(struct candidate *c, enum phase phase, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void say(struct candidate *c, enum phase phase, const char *reason, const char *fmt, ...)
{
	va_list ap;
	auto_free char *text = NULL;

	c->phase = phase;
	if (c->reason)
		return;
	c->reason = reason;
	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	strbuf_adds(&c->message, text);
}

static void keep_pod(struct candidate *c, const char *key, const struct pod_verdict *verdict)
{
	json_t *entry;

	if (json_array_size(c->left) == DRAIN_PODS_MAX)
		return;
	entry = json_object();
	json_put_str(entry, "pod", key);
	json_put_str(entry, "reason", verdict->reason);
	if (verdict->message)
		json_put(entry, "message", condition_message(verdict->message));
	json_array_append_new(c->left, entry);
}

/* ---- what has to be read --------------------------------------------------------------------- */

static void ask(struct drain *d, const char *kind, const char *key)
{
	json_put_bool(json_need_object(d->asked, kind), key, true);
	if (!json_at(drain_looked(d->world), kind, key))
		d->is_missing = true;
}

static void ask_for(struct drain *d, const struct candidate *c)
{
	const char *key;
	json_t *device;

	ask(d, KIND_NODE, c->name);
	json_each (c->pods, key, device)
		ask(d, KIND_POD, key);
}

static void plan_look(struct drain *d)
{
	int64_t now = json_integer_value(json_at(d->world, "env", "nowMs"));
	int64_t age = now - json_integer_value(json_at(drain_looked(d->world), "atMs"));
	json_t *wanted = json_array(), *keys, *value;
	const char *kind, *key;

	json_each (d->asked, kind, keys)
		json_each (keys, key, value)
			json_array_append_new(wanted,
					      json_pack("{s:s, s:s}", "kind", kind, "key", key));
	if (json_array_size(wanted) == 0) {
		json_decref(wanted);
		return;
	}
	if (d->is_missing || age >= DRAIN_LOOK_MS)
		plan_post(d->plan, BOX_LOOK, DRAIN_KEY, wanted);
	else
		json_decref(wanted);
	plan_requeue(d->plan, DRAIN_LOOK_MS);
}

/* ---- a node that waits ----------------------------------------------------------------------- */

/* What no eviction moves: it would cost pods and bring nothing. */
static bool is_held_by_others(struct candidate *c)
{
	const json_t *other = json_array_get(json_at(c->state, "status", "impact", "others"), 0);
	const char *device = json_str_at(other, "device");

	if (!other)
		return false;
	say(c, PHASE_WAITING, "HeldByOthers",
	    "%.100s holds %.40s and is no pod that can be evicted: end it, then the pods are asked",
	    json_str_or(json_at(other, "holder"), "somebody"),
	    device ? device : json_str_or(json_at(other, "pciAddress"), "the NIC"));
	return true;
}

/* All of them may be asked, or need not be. */
static bool may_ask_pods(struct drain *d, struct candidate *c)
{
	bool may = true;
	const char *key;
	json_t *device;

	json_each (c->pods, key, device) {
		auto_pod_verdict struct pod_verdict verdict =
			drain_judge_pod(d->world, c->pool, c->name, key);

		if (verdict.fate == POD_UNKNOWN) {
			say(c, PHASE_WAITING, "LooksAtPods", "its pods are being looked at; wait");
			may = false;
		} else if (verdict.fate == POD_KEPT) {
			say(c, PHASE_WAITING, verdict.reason, "%s", verdict.message);
			keep_pod(c, key, &verdict);
			may = false;
		}
	}
	return may;
}

static bool has_slot(struct drain *d, struct candidate *c)
{
	const struct budget *budget = budget_of(&d->budgets, d->world, c->pool);

	if (budget_allows(budget, c->down != NULL))
		return true;
	say(c, PHASE_WAITING, "WaitsForSlot",
	    "pods that have to end: %zu; of the %zu nodes of pool %s only %zu may be unavailable "
	    "at a time, drained, not Ready or cordoned: wait, or raise maxUnavailable",
	    json_object_size(c->pods), budget->nodes, budget->pool, budget->limit);
	return false;
}

static void begin(struct drain *d, struct candidate *c)
{
	budget_take(budget_of(&d->budgets, d->world, c->pool), c->down != NULL);
	say(c, PHASE_EVICTING, "WaitsForKubelet",
	    "the agent withdraws from the kubelet what pods have to give back (%zu of them); wait",
	    json_object_size(c->pods));
}

static void decide_waiting(struct drain *d, struct candidate *c)
{
	if (json_object_size(c->pods) == 0 || !is_current(c->state))
		return;
	if (str_eq(c->down, "not Ready")) {
		say(c, PHASE_WAITING, "NodeNotReady",
		    "the node is not Ready, so its pods cannot end: see what ails it");
		return;
	}
	if (is_held_by_others(c) || !has_slot(d, c))
		return;
	ask_for(d, c);
	if (may_ask_pods(d, c))
		begin(d, c);
	else if (str_eq(c->reason, "LooksAtPods"))
		/* Its turn is kept. */
		budget_take(budget_of(&d->budgets, d->world, c->pool), c->down != NULL);
}

/* ---- a node that is being drained ------------------------------------------------------------ */

/* The scheduler must know that there is less, or it sends pods that the kubelet then rejects. */
static bool is_kubelet_told(const struct drain *d, const struct candidate *c)
{
	const json_t *node = json_at(drain_looked(d->world), KIND_NODE, c->name), *resource;
	size_t i;

	if (!node || !json_is_true(json_at(c->state, "status", "impact", "withdrawn")))
		return false;
	json_array_foreach (json_at(c->state, "status", "resources"), i, resource) {
		const char *name = json_str_or(json_at(resource, "name"), "");

		if (node_allocatable(node, name) > json_integer_value(json_at(resource, "healthy")))
			return false;
	}
	return true;
}

struct tally {
	size_t under_way; /* asked, and have not ended */
	size_t kept;
};

static void count_pods(struct drain *d, struct candidate *c, struct tally *ret)
{
	const char *key;
	json_t *device;

	json_each (c->pods, key, device) {
		auto_pod_verdict struct pod_verdict verdict =
			drain_judge_pod(d->world, c->pool, c->name, key);

		ret->under_way += verdict.fate == POD_ENDING;
		ret->kept += verdict.fate == POD_KEPT;
	}
}

/* Ask pods to end, so many at a time; what keeps the others is told, refusals first. */
static void evict_pods(struct drain *d, struct candidate *c, size_t under_way)
{
	static const enum pod_fate order[] = {POD_REFUSED, POD_EVICTED, POD_KEPT, POD_ENDING};
	const char *key;
	json_t *device;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		json_each (c->pods, key, device) {
			auto_pod_verdict struct pod_verdict verdict =
				drain_judge_pod(d->world, c->pool, c->name, key);

			if (verdict.fate != order[i])
				continue;
			keep_pod(c, key, &verdict);
			if (verdict.reason)
				say(c, PHASE_EVICTING, verdict.reason, "%s", verdict.message);
			if (verdict.fate == POD_EVICTED && under_way < DRAIN_WINDOW) {
				plan_evict(d->plan, key, verdict.uid);
				under_way++;
			}
		}
	}
	say(c, PHASE_EVICTING, "AsksPods", "pods that are asked to end: %zu; wait",
	    json_object_size(c->pods));
}

static void decide_evicting(struct drain *d, struct candidate *c)
{
	struct tally tally = {0};

	ask_for(d, c);
	if (str_eq(c->down, "not Ready")) {
		say(c, PHASE_EVICTING, "NodeNotReady",
		    "the node is not Ready, so its pods cannot end: see what ails it");
		return;
	}
	count_pods(d, c, &tally);
	if (tally.kept > 0 && tally.under_way == 0) {
		/* Somebody else may have the slot. */
		(void)may_ask_pods(d, c);
		return;
	}
	if (!is_kubelet_told(d, c)) {
		say(c, PHASE_EVICTING, "WaitsForKubelet",
		    "the agent withdraws from the kubelet what pods have to give back (%zu of "
		    "them); wait",
		    json_object_size(c->pods));
		return;
	}
	evict_pods(d, c, tally.under_way);
}

static void decide_begun(struct drain *d, struct candidate *c)
{
	const json_t *status = json_at(c->state, "status");
	const json_t *other = json_array_get(json_at(status, "impact", "others"), 0);
	const char *progressing = condition_status_of(json_at(status, "conditions"), "Progressing");

	if (!is_current(c->state)) {
		say(c, PHASE_EVICTING, "WaitsForAgent",
		    "the agent has not looked at the new NodeState yet; wait");
	} else if (json_object_size(c->pods) > 0) {
		decide_evicting(d, c);
	} else if (other) {
		say(c, PHASE_EVICTING, "HeldByOthers",
		    "the pods have ended, and %.100s still holds a device: wait, and if this "
		    "lasts, end it",
		    json_str_or(json_at(other, "holder"), "somebody"));
	} else if (str_eq(progressing, "True")) {
		say(c, PHASE_WORKING, "AgentWorks",
		    "no pod is in the way, the agent changes the "
		    "node; wait");
	} else if (str_eq(json_str_at(status, "syncStatus"), "Failed")) {
		say(c, PHASE_STOPPED, "DrainStopped",
		    "no pod is in the way, and the agent failed (%.300s): correct that; until then "
		    "the node keeps its slot, lest the same be done to others",
		    json_str_or(json_at(status, "lastSyncError"), "see the NodeState"));
	}
}

/* ---- writing it down ------------------------------------------------------------------------- */

static void put_annotation(json_t *patch, const json_t *object, const char *name, const char *value)
{
	const char *now = json_str_at(object, "metadata", "annotations", name);

	/* Who never took part has none. */
	if (str_eq(now, value) || (!now && str_eq(value, "Idle")))
		return;
	json_put_str(json_need_object(patch, "annotations"), name, value);
}

static void plan_annotations(struct plan *plan, const char *kind, const char *key, json_t *patch)
{
	if (json_object_size(patch) > 0)
		plan_meta(plan, kind, key, json_incref(patch));
}

/*
 * In the order in which the SR-IOV network operator and its agent write them. Nodes that wait have
 * none: ten thousand of them would be as many writes.
 */
static void plan_states(struct drain *d, const struct candidate *c)
{
	static const char *const current[] = {"Idle", "Idle", "Draining", "DrainComplete",
					      "DrainComplete"};
	bool is_asked = c->phase > (c->is_external ? PHASE_NONE : PHASE_WAITING);
	const char *wanted = is_asked ? "Drain_Required" : "Idle";
	json_auto_t *node = json_object(), *state = json_object();

	if (c->node)
		put_annotation(node, c->node, DRAIN_NODE_STATE, wanted);
	put_annotation(state, c->state, DRAIN_DESIRED_STATE, wanted);
	if (!c->is_external)
		put_annotation(state, c->state, DRAIN_CURRENT_STATE, current[c->phase]);
	else if (is_asked && !*annotation(c->state, DRAIN_CURRENT_STATE))
		json_put_str(json_need_object(state, "annotations"), DRAIN_CURRENT_STATE, "Idle");
	plan_annotations(d->plan, KIND_NODE, c->name, node);
	plan_annotations(d->plan, KIND_NODE_STATE, c->key, state);
}

/* Since when it is in this phase. */
static const char *since(const struct drain *d, const struct candidate *c)
{
	const json_t *before = json_at(c->state, "status", "maintenance");

	if (str_eq(json_str_at(before, "state"), phase_names[c->phase]) &&
	    json_str_at(before, "since"))
		return json_str_at(before, "since");
	return world_env(d->world, "now");
}

static json_t *maintenance_of(const struct drain *d, const struct candidate *c)
{
	json_t *ret = json_object();

	json_put_str(ret, "state", phase_names[c->phase]);
	json_put_str(ret, "since", since(d, c));
	json_put_int(ret, "podsLeft", (int64_t)json_object_size(c->pods));
	if (json_array_size(c->left) > 0)
		json_object_set(ret, "pods", c->left);
	return ret;
}

/* Somebody has to do something. */
static bool needs_somebody(const char *reason)
{
	static const char *const reasons[] = {"PdbRefuses",   "TwoPdbs",        "UnmanagedPod",
					      "HeldByOthers", "EvictionFailed", "DrainStopped"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(reason, reasons[i]))
			return true;
	return false;
}

static bool is_draining(const struct candidate *c)
{
	return c->phase > PHASE_WAITING;
}

/* By what its status says. */
static bool was_draining(const struct candidate *c)
{
	const char *state = json_str_at(c->state, "status", "maintenance", "state");

	for (size_t i = PHASE_WAITING + 1; state && i < ARRAY_LEN(phase_names); i++)
		if (str_eq(state, phase_names[i]))
			return true;
	return false;
}

/*
 * Of those that come and go while all is well only the beginning and the end are told. By the
 * status, not by annotations: they are written first, and a plan may end between the two.
 */
static void plan_events(struct drain *d, const struct candidate *c, const char *reason,
			const char *message)
{
	const json_t *before = condition_find(json_at(c->state, "status", "conditions"), CONDITION);
	bool was = was_draining(c);
	bool began = !was && is_draining(c), ended = was && !is_draining(c);

	if (began || ended)
		plan_event(d->plan, KIND_NODE_STATE, c->key, false,
			   began ? "DrainBegins" : "DrainEnds", message);
	else if (needs_somebody(reason) && !str_eq(json_str_at(before, "reason"), reason))
		plan_event(d->plan, KIND_NODE_STATE, c->key, true, reason, message);
}

static void plan_said(struct drain *d, const struct candidate *c)
{
	const json_t *previous = json_at(c->state, "status", "conditions");
	bool is_none = c->phase == PHASE_NONE;
	const char *reason = is_none ? "NothingToDrain" : c->reason;
	const char *message = is_none ? "no pod has to end, or nobody allows that pods are asked to"
				      : strbuf_str(&c->message);
	json_auto_t *part = json_object();
	json_t *conditions;

	if (!json_is_object(json_at(c->state, "status")))
		return;
	json_put(part, "maintenance", is_none ? json_null() : maintenance_of(d, c));
	conditions = json_is_array(previous) ? json_copy((json_t *)previous) : json_array();
	condition_set(conditions, previous, CONDITION,
		      is_draining(c) ? CONDITION_TRUE : CONDITION_FALSE, reason, message,
		      json_generation(c->state), world_env(d->world, "now"));
	/* A node that was never drained need not say that it is not. */
	if (!is_none || condition_find(previous, CONDITION))
		json_object_set(part, "conditions", conditions);
	json_decref(conditions);
	if (!json_merge_changes(json_at(c->state, "status"), part))
		return;
	plan_status_part(d->plan, KIND_NODE_STATE, c->key, json_incref(part));
	plan_events(d, c, reason, message);
}

/* Refusals of pods that nobody asks any more. */
static void forget_refusals(struct drain *d)
{
	const json_t *known = world_kind(d->world, BOX_EVICTIONS);
	const char *key;
	json_t *refusal;

	json_each (known, key, refusal)
		if (!json_at(d->asked, KIND_POD, key))
			plan_post(d->plan, BOX_EVICTIONS, key, NULL);
}

/* Another drainer's answer is its own business; it is asked for as long as something has to end. */
static void decide_external(struct candidate *c)
{
	if (json_object_size(c->pods) > 0)
		say(c, PHASE_WAITING, "ExternalDrainer",
		    "pods that have to end: %zu; somebody else is asked to drain the node "
		    "(use-external-drainer): see that one",
		    json_object_size(c->pods));
}

static void decide(struct drain *d, struct candidate *c)
{
	if (!c->pool)
		return;
	if (c->is_external)
		decide_external(c);
	else if (c->begun)
		decide_begun(d, c);
	else
		decide_waiting(d, c);
}

int drain_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	auto_plan struct plan evictions = {0};
	auto_drain struct drain d = {.world = world, .plan = &evictions, .asked = json_object()};

	budgets_init(&d.budgets);
	d.is_disabled = is_disabled(world);
	read_candidates(&d);
	for (size_t i = 0; i < d.n; i++)
		decide(&d, &d.nodes[i]);
	d.plan = plan;
	for (size_t i = 0; i < d.n; i++)
		plan_states(&d, &d.nodes[i]);
	plan_join(plan, &evictions);
	for (size_t i = 0; i < d.n; i++)
		plan_said(&d, &d.nodes[i]);
	forget_refusals(&d);
	plan_look(&d);
	return 0;
}

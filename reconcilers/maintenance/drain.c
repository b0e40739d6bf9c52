// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the nodes that are being drained or want to be: begun ones first, then those that
 * need no reboot, then those with the fewest pods.
 */
#include "reconcilers/maintenance/drain.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/maintenance/drain_internal.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/pool_config.h"

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

/* Its agent waits for pods, or for a boot. */
static bool has_wish(const json_t *state)
{
	return json_array_size(json_at(state, "status", "impact", "pods")) > 0 ||
	       str_eq(json_str_at(state, "status", "impact", "class"), "reboot");
}

bool drain_concerns(const json_t *state)
{
	return is_begun(state) || json_at(state, "status", "maintenance") || has_wish(state);
}

static bool is_timed_out(const json_t *state)
{
	return str_eq(annotation(state, DRAIN_STOP_ANNOTATION), DRAIN_TIMED_OUT);
}

/*
 * The SR-IOV network operator's switch: no node is drained. It is about all nodes, so it counts in
 * the namespaces in which policies count.
 */
static bool is_disabled(const json_t *world)
{
	const char *key;
	json_t *config;

	json_each (world_kind(world, LEFTOVER_SRIOV_CONFIG), key, config)
		if (object_is_trusted(world, config) &&
		    json_is_true(json_at(config, "spec", "disableDrain")))
			return true;
	return false;
}

/* The pool that allows to drain the node; NULL: nothing does. */
static const json_t *allowing_pool(const struct drain *d, const json_t *state, const json_t *node)
{
	const json_t *pool = pool_config_of(d->world, json_at(node, "metadata", "labels"));
	size_t limit;

	if (d->is_disabled || !node || !pool || !pool_config_max_unavailable(pool, 1, &limit) ||
	    str_eq(annotation(state, DRAIN_STOP_ANNOTATION), "stop") || is_timed_out(state))
		return NULL;
	return pool;
}

static int by_turn(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	if (a->begun != b->begun)
		return a->begun ? -1 : 1;
	if (!a->cause != !b->cause)
		return a->cause ? 1 : -1;
	if (a->holders != b->holders)
		return a->holders < b->holders ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* What is to be done there: a reboot, or else what pods hold. */
static void read_wish(const struct drain *d, struct candidate *c)
{
	json_auto_t *holders = drain_pods_of(c->state);

	c->cause = boot_wanted(c->state, c->pool, c->node);
	c->holders = json_object_size(holders);
	c->pods = c->cause ? drain_pods_on(d->world, c->name) : json_incref(holders);
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
			.begun = is_begun(state),
			.is_external = str_eq(annotation(state, DRAIN_EXTERNAL), "true"),
			.down = budget_down(node),
			.left = json_array(),
		};
		read_wish(d, &d->nodes[d->n - 1]);
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
static void set_phase(struct candidate *c, enum phase phase, const char *reason, const char *fmt,
		      ...) __attribute__((format(printf, 4, 5)));

static void set_phase(struct candidate *c, enum phase phase, const char *reason, const char *fmt,
		      ...)
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

/* Pods of a node that is to be rebooted: those that are there now, so all of them. */
static void ask_for(struct drain *d, const struct candidate *c)
{
	const char *key;
	json_t *device;

	ask(d, KIND_NODE, c->name);
	if (c->cause) {
		ask(d, BOX_PODS_OF_NODE, c->name);
		return;
	}
	json_each (c->pods, key, device)
		ask(d, KIND_POD, key);
}

static struct pod_verdict judge(const struct drain *d, const struct candidate *c, const char *key)
{
	const json_t *looked = drain_looked(d->world);

	looked = c->cause ? json_at(looked, BOX_PODS_OF_NODE, c->name) : json_at(looked, KIND_POD);
	return drain_judge_pod(d->world, looked, c->pool, c->name, key);
}

/* Pods may have come to a node until it is cordoned: what was read before does not count. */
static void forget_look(struct drain *d)
{
	for (size_t i = 0; i < d->n; i++) {
		if (d->nodes[i].needs_cordon && drain_looked(d->world)) {
			plan_post(d->plan, BOX_DRAIN_LOOK, DRAIN_KEY, NULL);
			return;
		}
	}
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
	set_phase(c, PHASE_WAITING, "HeldByOthers",
		  "%.100s holds %.40s and is no pod that can be evicted: end it, then the pods are "
		  "asked",
		  json_str_or(json_at(other, "holder"), "somebody"),
		  device ? device : json_str_or(json_at(other, "pciAddress"), "the NIC"));
	return true;
}

/* All of them may be asked, or need not be. */
static bool may_ask_pods(struct drain *d, struct candidate *c)
{
	bool may = c->pods != NULL;
	const char *key;
	json_t *device;

	if (!may)
		set_phase(c, PHASE_WAITING, "LooksAtPods", "its pods are being looked at; wait");
	json_each (c->pods, key, device) {
		auto_pod_verdict struct pod_verdict verdict = judge(d, c, key);

		if (verdict.fate == POD_UNKNOWN) {
			set_phase(c, PHASE_WAITING, "LooksAtPods",
				  "its pods are being looked at; wait");
			may = false;
		} else if (verdict.fate == POD_KEPT) {
			set_phase(c, PHASE_WAITING, verdict.reason, "%s", verdict.message);
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
	set_phase(c, PHASE_WAITING, "WaitsForSlot",
		  "%s; of the %zu nodes of pool %s only %zu may be unavailable at a time, drained, "
		  "not "
		  "Ready or cordoned: wait, or raise maxUnavailable",
		  c->cause ? "it has to reboot" : "pods have to end", budget->nodes, budget->pool,
		  budget->limit);
	return false;
}

static void begin_drain(struct drain *d, struct candidate *c)
{
	budget_take(budget_of(&d->budgets, d->world, c->pool), c->down != NULL);
	if (c->cause) {
		set_phase(c, PHASE_EVICTING, "CordonsNode",
			  "the node is cordoned, then its pods are asked to end (%zu of them), "
			  "then it "
			  "reboots for %s; wait",
			  json_object_size(c->pods), c->cause);
		return;
	}
	set_phase(c, PHASE_EVICTING, "WaitsForKubelet",
		  "the agent withdraws from the kubelet what pods have to give back (%zu of them); "
		  "wait",
		  json_object_size(c->pods));
}

static void decide_waiting(struct drain *d, struct candidate *c)
{
	if ((!c->cause && json_object_size(c->pods) == 0) || !is_current(c->state))
		return;
	if (str_eq(c->down, "not Ready")) {
		set_phase(c, PHASE_WAITING, "NodeNotReady",
			  "the node is not Ready, so its pods cannot end: see what ails it");
		return;
	}
	if ((!c->cause && is_held_by_others(c)) || !has_slot(d, c))
		return;
	ask_for(d, c);
	if (may_ask_pods(d, c))
		begin_drain(d, c);
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

/* Ask pods to end, so many at a time; what keeps the others is reported, refusals first. */
static void evict_pods(struct drain *d, struct candidate *c, size_t under_way)
{
	static const enum pod_fate order[] = {POD_REFUSED, POD_EVICTED, POD_KEPT, POD_ENDING};
	const char *key;
	json_t *device;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		json_each (c->pods, key, device) {
			auto_pod_verdict struct pod_verdict verdict = judge(d, c, key);

			if (verdict.fate != order[i])
				continue;
			keep_pod(c, key, &verdict);
			if (verdict.reason)
				set_phase(c, PHASE_EVICTING, verdict.reason, "%s", verdict.message);
			if (verdict.fate == POD_EVICTED && under_way < DRAIN_WINDOW) {
				size_t first = json_array_size(d->plan->ops);

				plan_evict(d->plan, key, verdict.uid);
				drain_group(d->plan, first, c->name);
				under_way++;
			}
		}
	}
	set_phase(c, PHASE_EVICTING, "AsksPods", "pods that are asked to end: %zu; wait",
		  json_object_size(c->pods));
}

static bool may_evict(struct drain *d, struct candidate *c)
{
	if (c->cause) {
		/* The scheduler sends no new pods: by what was read before the pods were. */
		const json_t *looked = json_at(drain_looked(d->world), KIND_NODE, c->name);

		c->needs_cordon = !json_is_true(json_at(c->node, "spec", "unschedulable")) ||
				  str_eq(annotation(c->node, DRAIN_CORDONED_ANNOTATION),
					 DRAIN_CORDONED_FOR_LINKS);
		if (!c->needs_cordon && json_is_true(json_at(looked, "spec", "unschedulable")))
			return true;
		set_phase(c, PHASE_EVICTING, "CordonsNode",
			  "the node is cordoned, then its pods are asked to end; wait");
		return false;
	}
	if (is_kubelet_told(d, c))
		return true;
	set_phase(c, PHASE_EVICTING, "WaitsForKubelet",
		  "the agent withdraws from the kubelet what pods have to give back (%zu of them); "
		  "wait",
		  json_object_size(c->pods));
	return false;
}

/* The pool's time is over: nothing is forced, the node is as it was. */
static bool gives_up(struct drain *d, struct candidate *c)
{
	int64_t most_s;

	if (!pool_config_drain_timeout(c->pool, &most_s) ||
	    drain_age_s(d, c, PHASE_EVICTING) < most_s)
		return false;
	set_phase(c, PHASE_GIVEN_BACK, "DrainTimedOut",
		  "its pods did not end within %lld s, as the pool wants it (" POOL_DRAIN_TIMEOUT
		  "), so the node was given back: see what kept them, then orbweaver drain retry",
		  (long long)most_s);
	return true;
}

static void decide_rebooting(struct drain *d, struct candidate *c)
{
	const char *trouble = boot_trouble(c->state);

	if (str_eq(c->down, "not Ready") && drain_age_s(d, c, PHASE_REBOOTING) >= DRAIN_BOOT_S)
		set_phase(
			c, PHASE_REBOOTING, "NodeNotBack",
			"it was to reboot for %s, and has not been Ready for a long time: see its "
			"console; it keeps its slot",
			c->cause);
	else if (trouble && !str_eq(c->down, "not Ready"))
		set_phase(c, PHASE_STOPPED, "DrainStopped",
			  "the node is empty, and its agent cannot reboot it (%.300s); it keeps "
			  "its slot",
			  trouble);
	else
		set_phase(c, PHASE_REBOOTING, "RebootUnderWay",
			  "no pod is in the way, the node reboots for %s; wait", c->cause);
	if (str_eq(c->down, "not Ready"))
		plan_requeue(d->plan, DRAIN_LOOK_MS * 6);
}

static void decide_evicting(struct drain *d, struct candidate *c)
{
	struct tally tally = {0};
	const char *key;
	json_t *device;

	if (gives_up(d, c))
		return;
	ask_for(d, c);
	if (str_eq(c->down, "not Ready")) {
		set_phase(c, PHASE_EVICTING, "NodeNotReady",
			  "the node is not Ready, so its pods cannot end: see what ails it");
		return;
	}

	json_each (c->pods, key, device) {
		auto_pod_verdict struct pod_verdict verdict = judge(d, c, key);

		tally.under_way += verdict.fate == POD_ENDING;
		tally.kept += verdict.fate == POD_KEPT;
	}
	if (tally.kept > 0 && tally.under_way == 0) {
		/* Another node may have the slot. */
		(void)may_ask_pods(d, c);
		return;
	}
	if (!may_evict(d, c))
		return;
	if (!c->pods)
		set_phase(c, PHASE_EVICTING, "LooksAtPods", "its pods are being looked at; wait");
	else if (c->cause && json_object_size(c->pods) == 0)
		decide_rebooting(d, c);
	else
		evict_pods(d, c, tally.under_way);
}

/* A node that was cordoned is uncordoned when it is seen to be there. */
static void decide_done(struct drain *d, struct candidate *c)
{
	if (!drain_is_marked(c->node) && !*annotation(c->state, DRAIN_REBOOT_ANNOTATION))
		return;
	ask(d, KIND_NODE, c->name);
	if (!boot_is_back(c->state, json_at(drain_looked(d->world), KIND_NODE, c->name)))
		set_phase(c, PHASE_WORKING, "AgentWorks",
			  "the node is as wanted, and gets pods again once it is Ready; wait");
}

static void decide_failed(struct candidate *c)
{
	const char *error =
		json_str_or(json_at(c->state, "status", "lastSyncError"), "see the NodeState");

	if (boot_was_in_vain(c->state)) {
		c->frees_node = true;
		set_phase(c, PHASE_STOPPED, "RebootDidNotHelp",
			  "%.400s; the node takes pods again and keeps its slot, lest others be "
			  "rebooted "
			  "in vain",
			  error);
		return;
	}
	set_phase(
		c, PHASE_STOPPED, "DrainStopped",
		"no pod is in the way, and the agent failed (%.300s): correct that; until then the "
		"node keeps its slot, lest the same be done to others",
		error);
}

static void decide_begun(struct drain *d, struct candidate *c)
{
	const json_t *status = json_at(c->state, "status");
	const json_t *other = json_array_get(json_at(status, "impact", "others"), 0);
	const char *progressing = condition_status_of(json_at(status, "conditions"), "Progressing");

	if (!is_current(c->state)) {
		set_phase(c, PHASE_EVICTING, "WaitsForAgent",
			  "the agent has not looked at the new NodeState yet; wait");
	} else if (c->cause && boot_is_permitted(c->state, c->cause)) {
		decide_rebooting(d, c);
	} else if (c->cause || json_object_size(c->pods) > 0) {
		decide_evicting(d, c);
	} else if (other) {
		set_phase(c, PHASE_EVICTING, "HeldByOthers",
			  "the pods have ended, and %.100s still holds a device: wait, and if this "
			  "lasts, end it",
			  json_str_or(json_at(other, "holder"), "somebody"));
	} else if (str_eq(progressing, "True")) {
		set_phase(c, PHASE_WORKING, "AgentWorks",
			  "no pod is in the way, the agent changes the "
			  "node; wait");
	} else if (str_eq(json_str_at(status, "syncStatus"), "Failed")) {
		decide_failed(c);
	} else {
		decide_done(d, c);
	}
}

static bool is_asked(const struct drain *d, const char *pod)
{
	bool is = json_at(d->asked, KIND_POD, pod) != NULL;

	for (size_t i = 0; i < d->n && !is; i++)
		is = d->nodes[i].cause && json_at(d->nodes[i].pods, pod);
	return is;
}

/* Another drainer's answer is its own business; it is asked for as long as something has to end. */
static void decide_external(struct drain *d, struct candidate *c)
{
	if (c->cause && str_eq(annotation(c->state, DRAIN_CURRENT_STATE), "DrainComplete"))
		decide_rebooting(d, c);
	else if (c->cause)
		set_phase(c, PHASE_WAITING, "ExternalDrainer",
			  "it has to reboot for %s; somebody else is asked to drain the node "
			  "(use-external-drainer): see that one",
			  c->cause);
	else if (json_object_size(c->pods) > 0)
		set_phase(c, PHASE_WAITING, "ExternalDrainer",
			  "pods that have to end: %zu; somebody else is asked to drain the node "
			  "(use-external-drainer): see that one",
			  json_object_size(c->pods));
}

int drain_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	auto_plan struct plan evictions = {0};
	auto_drain struct drain d = {.world = world, .plan = &evictions, .asked = json_object()};
	const json_t *known;
	const char *pod;
	json_t *refusal;

	budgets_init(&d.budgets);
	d.is_disabled = is_disabled(world);
	read_candidates(&d);
	for (size_t i = 0; i < d.n; i++) {
		struct candidate *c = &d.nodes[i];

		/*
		 * Until an administrator removes the annotation, or nothing has to be done any
		 * more.
		 */
		if (is_timed_out(c->state) && has_wish(c->state))
			set_phase(c, PHASE_GIVEN_BACK, "DrainTimedOut",
				  "its pods did not end in the time that the pool has, so the node "
				  "was given back: see what kept them, then orbweaver drain retry");
		if (!c->pool)
			continue;
		if (c->is_external)
			decide_external(&d, c);
		else if (c->begun)
			decide_begun(&d, c);
		else
			decide_waiting(&d, c);
	}
	d.plan = plan;
	drain_plan_states(&d);
	plan_join(plan, &evictions);
	drain_plan_status(&d);

	/* Refusals of pods that are not evicted any more. */
	known = world_kind(d.world, BOX_EVICTIONS);
	json_each (known, pod, refusal)
		if (!is_asked(&d, pod))
			plan_post(d.plan, BOX_EVICTIONS, pod, NULL);
	forget_look(&d);
	plan_look(&d);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What was decided about nodes, written down: annotations and cordons first, then status and
 * events.
 */
#include <assert.h>
#include <string.h>

#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/maintenance/drain_internal.h"

#define CONDITION "Draining"

static const char *const phase_names[] = {NULL,        "Waiting", "TimedOut", "Evicting",
					  "Rebooting", "Working", "Stopped"};

/* ---- annotations ----------------------------------------------------------------------------- */

static void put_annotation(json_t *patch, const json_t *object, const char *name, const char *value)
{
	const char *now = json_str_at(object, "metadata", "annotations", name);

	/* Who never took part has none. */
	if (str_eq(now, value) || (!now && str_eq(value, "Idle")))
		return;
	json_put_str(json_need_object(patch, "annotations"), name, value);
}

static void drop_annotation(json_t *patch, const json_t *object, const char *name)
{
	if (json_at(object, "metadata", "annotations", name))
		json_put(json_need_object(patch, "annotations"), name, json_null());
}

void drain_group(struct plan *plan, size_t first, const char *node)
{
	json_auto_t *needs = json_pack("[s]", node);

	assert(node && first <= json_array_size(plan->ops));
	plan_group(plan, first, node, needs);
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
	static const char *const current[] = {"Idle",         "Idle",          "Idle",
					      "Draining",     "DrainComplete", "DrainComplete",
					      "DrainComplete"};
	const char *now = json_str_at(c->state, "metadata", "annotations", DRAIN_CURRENT_STATE);
	bool is_asked = c->is_external ? c->phase != PHASE_NONE : is_draining(c);
	const char *request = c->cause ? "Reboot_Required" : "Drain_Required";
	const char *wanted = is_asked ? request : "Idle";
	json_auto_t *node = json_object(), *state = json_object();
	size_t first = json_array_size(d->plan->ops);
	auto_free char *permission = NULL;
	const char *stops;

	/* A node that booted is worked on under the request that it was emptied for. */
	if (is_asked && !c->cause && c->phase >= PHASE_WORKING &&
	    json_at(c->state, "metadata", "annotations", DRAIN_REBOOT_ANNOTATION))
		wanted = "Reboot_Required";
	if (c->node)
		put_annotation(node, c->node, DRAIN_NODE_STATE, wanted);
	put_annotation(state, c->state, DRAIN_DESIRED_STATE, wanted);
	if (!c->is_external)
		put_annotation(state, c->state, DRAIN_CURRENT_STATE, current[c->phase]);
	else if (is_asked && str_empty(now))
		json_put_str(json_need_object(state, "annotations"), DRAIN_CURRENT_STATE, "Idle");

	/*
	 * What the agent may reboot for; worth nothing in another boot, so it stays until the end.
	 * An empty node whose agent has trouble gets it, too: the trouble may be of an earlier try
	 * in this boot, and the agent tries again.
	 */
	permission = c->cause ? boot_permission(c->state, c->cause) : NULL;
	if (permission && (c->phase == PHASE_REBOOTING || c->phase == PHASE_STOPPED))
		put_annotation(state, c->state, DRAIN_REBOOT_ANNOTATION, permission);
	else if (c->phase < PHASE_REBOOTING)
		drop_annotation(state, c->state, DRAIN_REBOOT_ANNOTATION);

	stops = json_str_at(c->state, "metadata", "annotations", DRAIN_STOP_ANNOTATION);
	if (c->phase == PHASE_GIVEN_BACK)
		put_annotation(state, c->state, DRAIN_STOP_ANNOTATION, DRAIN_TIMED_OUT);
	else if (str_eq(stops, DRAIN_TIMED_OUT))
		drop_annotation(state, c->state, DRAIN_STOP_ANNOTATION);
	plan_annotations(d->plan, KIND_NODE, c->name, node);
	plan_annotations(d->plan, KIND_NODE_STATE, c->key, state);
	drain_group(d->plan, first, c->name);
}

/* ---- cordons --------------------------------------------------------------------------------- */

static const struct candidate *candidate_of(const struct drain *d, const char *node)
{
	for (size_t i = 0; i < d->n; i++)
		if (str_eq(d->nodes[i].name, node))
			return &d->nodes[i];
	return NULL;
}

bool drain_is_marked(const json_t *node)
{
	return str_eq(json_str_at(node, "metadata", "annotations", DRAIN_CORDONED_ANNOTATION),
		      DRAIN_CORDONED_BY);
}

static void plan_mark(struct drain *d, const char *node, bool is_cordoned)
{
	json_t *metadata = json_object();
	size_t first = json_array_size(d->plan->ops);

	json_put(json_need_object(metadata, "annotations"), DRAIN_CORDONED_ANNOTATION,
		 is_cordoned ? json_string(DRAIN_CORDONED_BY) : json_null());
	plan_cordon(d->plan, node, is_cordoned, metadata);
	drain_group(d->plan, first, node);
}

void drain_plan_states(struct drain *d)
{
	const char *name;
	json_t *node;

	assert(d->plan);
	/* Also of nodes whose NodeState is gone. Nodes that others have cordoned have no mark. */
	json_each (world_kind(d->world, KIND_NODE), name, node) {
		const struct candidate *c;

		if (!drain_is_marked(node))
			continue;
		c = candidate_of(d, name);
		if (!c || !is_draining(c) || c->is_external || c->frees_node)
			plan_mark(d, name, false);
	}
	for (size_t i = 0; i < d->n; i++)
		plan_states(d, &d->nodes[i]);
	/* Its slot is taken by what was just written, or before. */
	for (size_t i = 0; i < d->n; i++)
		if (d->nodes[i].needs_cordon)
			plan_mark(d, d->nodes[i].name, true);
}

/* ---- status ---------------------------------------------------------------------------------- */

/* Since when it is in this phase. */
static const char *since(const struct drain *d, const struct candidate *c)
{
	const json_t *before = json_at(c->state, "status", "maintenance");

	if (str_eq(json_str_at(before, "state"), phase_names[c->phase]) &&
	    json_str_at(before, "since"))
		return json_str_at(before, "since");
	return world_env(d->world, "now");
}

int64_t drain_age_s(const struct drain *d, const struct candidate *c, enum phase phase)
{
	const json_t *before = json_at(c->state, "status", "maintenance");
	int64_t began, now;

	assert(phase != PHASE_NONE);
	if (!str_eq(json_str_at(before, "state"), phase_names[phase]) ||
	    !rfc3339_read(json_str_or(json_at(before, "since"), ""), &began) ||
	    !rfc3339_read(json_str_or(json_at(d->world, "env", "now"), ""), &now) || now < began)
		return 0;
	return (now - began) / 1000000;
}

/* What is not said any more has to be taken off. */
static void drop_member(json_t *part, const json_t *before, const char *name)
{
	if (json_at(before, name) && !json_at(part, name))
		json_put(part, name, json_null());
}

static json_t *maintenance_of(const struct drain *d, const struct candidate *c)
{
	const json_t *before = json_at(c->state, "status", "maintenance");
	json_t *ret = json_object();

	json_put_str(ret, "state", phase_names[c->phase]);
	json_put_str(ret, "since", since(d, c));
	json_put_str(ret, "class", c->cause ? "reboot" : "evict");
	json_put_str(ret, "cause", c->cause);
	json_put_int(ret, "podsLeft", (int64_t)json_object_size(c->pods));
	if (json_array_size(c->left) > 0)
		json_object_set(ret, "pods", c->left);
	drop_member(ret, before, "cause");
	drop_member(ret, before, "pods");
	return ret;
}

/* An administrator has to act. */
static bool needs_somebody(const char *reason)
{
	static const char *const reasons[] = {
		"PdbRefuses",       "TwoPdbs",        "UnmanagedPod",
		"HeldByOthers",     "EvictionFailed", "DrainStopped",
		"RebootDidNotHelp", "NodeNotBack",    "DrainTimedOut"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(reason, reasons[i]))
			return true;
	return false;
}

/* By what its status says. */
static bool was_draining(const struct candidate *c)
{
	const char *state = json_str_at(c->state, "status", "maintenance", "state");

	for (size_t i = PHASE_GIVEN_BACK + 1; state && i < ARRAY_LEN(phase_names); i++)
		if (str_eq(state, phase_names[i]))
			return true;
	return false;
}

/*
 * Of those that come and go while all is well only the beginning and the end are reported. By the
 * status, not by annotations: they are written first, and a plan may end between the two.
 */
static void plan_events(struct drain *d, const struct candidate *c, const char *reason,
			const char *message)
{
	const json_t *before = condition_find(json_at(c->state, "status", "conditions"), CONDITION);
	bool was = was_draining(c);
	bool began = !was && is_draining(c), ended = was && !is_draining(c);
	bool reboots = c->phase == PHASE_REBOOTING &&
		       !str_eq(json_str_at(c->state, "status", "maintenance", "state"),
			       phase_names[PHASE_REBOOTING]);

	if (began || ended)
		plan_event(d->plan, KIND_NODE_STATE, c->key, false,
			   began ? "DrainBegins" : "DrainEnds", message);
	if (reboots)
		plan_event(d->plan, KIND_NODE_STATE, c->key, false, "NodeReboots", message);
	if (needs_somebody(reason) && !str_eq(json_str_at(before, "reason"), reason))
		plan_event(d->plan, KIND_NODE_STATE, c->key, true, reason, message);
}

static void plan_status_of(struct drain *d, const struct candidate *c)
{
	const json_t *previous = json_at(c->state, "status", "conditions");
	bool is_none = c->phase == PHASE_NONE;
	const char *reason = is_none ? "NothingToDrain" : c->reason;
	const char *message = is_none ? "no pod has to end, or nobody allows that pods are asked to"
				      : strbuf_str(&c->message);
	json_auto_t *part = json_object();
	json_t *conditions;
	size_t first;

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
	first = json_array_size(d->plan->ops);
	/* First: where the agent has written meanwhile, the next pass may find the node further. */
	plan_events(d, c, reason, message);
	plan_status_part(d->plan, KIND_NODE_STATE, c->key, json_incref(part));
	drain_group(d->plan, first, c->name);
}

void drain_plan_status(struct drain *d)
{
	for (size_t i = 0; i < d->n; i++)
		plan_status_of(d, &d->nodes[i]);
}

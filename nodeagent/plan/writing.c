// SPDX-License-Identifier: Apache-2.0
/*
 * A plan being written: a step is written down only when hostd would take it and it was not refused
 * lately, and a PF that is protected has none.
 */
#include "nodeagent/plan/planner_internal.h"

bool steps_is_refused(const struct planning *p, const json_t *step)
{
	json_t *refused;
	size_t i;

	json_array_foreach ((json_t *)p->in->refused, i, refused) {
		if (json_same(refused, step))
			return true;
	}
	return false;
}

/*
 * Without VFs nobody can be disturbed, except through the PF: drivers of one family drop its link,
 * and mlx5 ends the RoCE LAG of a bond.
 */
static enum step_impact impact_of(const struct planning *p, const struct step_kind *kind,
				  const json_t *step, const char *pf)
{
	const json_t *entry = observed_pf(p, pf);
	const char *driver = json_str_at(entry, "driver");

	if (!str_eq(kind->name, "set-num-vfs") || json_integer_value(json_at(entry, "numVfs")) > 0)
		return kind->impact;
	if (observed_vfs_drop_link(driver) ||
	    (str_eq(driver, "mlx5_core") && str_eq(json_str_at(entry, "linkType"), "ETH") &&
	     json_at(entry, "host", "master")))
		return kind->impact;
	return STEP_IMPACT_NONE;
}

/* The new entry, borrowed; NULL: left out. */
static json_t *add(struct planning *p, const char *pf, const json_t *step, const char *why)
{
	struct err err = {0};
	const struct step_kind *kind = step_check(step, &err);
	json_t *entry;

	/* No wall (step.h): a slip of ours is said in the plan, and stops nothing else of it. */
	if (!kind) {
		steps_problem(p, pf, err.reason, "%s", err.text);
		return NULL;
	}
	if (steps_is_refused(p, step))
		return NULL;
	entry = json_object();
	json_object_set(entry, "step", (json_t *)step);
	json_put_str(entry, "pf", pf);
	json_put_str(entry, "impact", step_impact_name(impact_of(p, kind, step, pf)));
	json_put(entry, "why", json_fmt("%s", why));
	(void)json_array_append_new(p->steps, entry);
	return entry;
}

bool planner_add(struct planning *p, const char *pf, const char *vf, json_t *step, const char *fmt,
		 ...)
{
	json_auto_t *owned = step;
	auto_free char *why = NULL;
	json_t *entry;
	va_list ap;

	va_start(ap, fmt);
	why = str_vprintf(fmt, ap);
	va_end(ap);
	entry = add(p, pf, owned, why);
	if (entry)
		json_put_str(entry, "vf", vf);
	return entry;
}

bool planner_add_vfs(struct planning *p, const char *pf, const json_t *vfs, json_t *step,
		     const char *why)
{
	json_auto_t *owned = step;
	json_t *entry = add(p, pf, owned, why);

	if (entry)
		json_object_set(entry, "vfs", (json_t *)vfs);
	return entry;
}

void steps_problem(struct planning *p, const char *pf, const char *reason, const char *fmt, ...)
{
	json_t *problem = json_object();
	auto_free char *message = NULL;
	va_list ap;

	json_put_str(problem, "pf", pf);
	json_put_str(problem, "reason", reason);
	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	json_put(problem, "message", json_fmt("%s", message));
	(void)json_array_append_new(p->problems, problem);
}

/* How what says who is in the way ends, for every condition that has it. */
#define OR_LEAVE_IT ", or leave it: nothing is taken from it"

void steps_blocked(struct planning *p, const char *pf, const char *vf, const char *holder,
		   bool takes_all, const char *fmt, ...)
{
	bool is_pod = str_eq(json_str_at(p->in->held, vf), holder);
	json_t *blocked = json_object();
	auto_free char *what = NULL;
	va_list ap;

	va_start(ap, fmt);
	what = str_vprintf(fmt, ap);
	va_end(ap);
	json_put_str(blocked, "pf", pf);
	json_put_str(blocked, "vf", vf);
	json_put_str(blocked, "reason", "VfInUse");
	json_put_str(blocked, "holder", holder);
	if (is_pod)
		json_put_str(blocked, "pod", holder);
	if (takes_all)
		json_put_bool(blocked, "all", true);
	json_put(blocked, "message",
		 json_fmt("VF " QUOTE " is held by " QUOTE
			  ", and %s: it waits until the VF is free; %s" OR_LEAVE_IT,
			  vf, holder, what, is_pod ? "delete that pod" : "end what holds it"));
	(void)json_array_append_new(p->blocked, blocked);
}

void steps_pf_blocked(struct planning *p, const char *pf, const char *holder, const char *why)
{
	json_t *blocked = json_object();

	json_put_str(blocked, "pf", pf);
	json_put_str(blocked, "reason", "PfInUse");
	json_put_str(blocked, "holder", holder);
	json_put(blocked, "message",
		 json_fmt(QUOTE " lies on the PF, and " QUOTE
				": it waits until that is gone; remove it" OR_LEAVE_IT,
			  holder, why));
	(void)json_array_append_new(p->blocked, blocked);
}

void steps_lag_blocked(struct planning *p, const char *pf, const char *bond, const char *device)
{
	json_t *blocked = json_object();

	json_put_str(blocked, "pf", pf);
	json_put_str(blocked, "reason", "LagInUse");
	json_put_str(blocked, "holder", bond);
	json_put(blocked, "message",
		 json_fmt("its first VFs would end the RoCE LAG of " QUOTE
			  " and every connection on " QUOTE
			  ": take the port out of the bond, set eSwitchMode to switchdev, or "
			  "annotate the policy with orbweaver.io/allow-lag-loss: \"true\"",
			  bond, device));
	(void)json_array_append_new(p->blocked, blocked);
}

static void shrink(json_t *list, size_t size)
{
	while (json_array_size(list) > size)
		(void)json_array_remove(list, json_array_size(list) - 1);
}

/* Its interface goes or drops packets of the node: nobody can want that by a word about VFs. */
static bool touches_the_pf(const struct planning *p, const struct pf_now *now, size_t steps)
{
	for (size_t i = steps; i < json_array_size(p->steps); i++) {
		const json_t *step = json_at(json_array_get(p->steps, i), "step");

		if (str_eq(json_str_at(step, "step"), "set-eswitch") ||
		    str_eq(json_str_at(step, "device"), now->address))
			return true;
	}
	return false;
}

void steps_respect_protection(struct planning *p, const struct pf_now *now, size_t steps,
			      size_t blocked)
{
	auto_free char *why = NULL;

	if (!now->protected ||
	    (json_array_size(p->steps) == steps && json_array_size(p->blocked) == blocked) ||
	    (now->may_have_vfs && !touches_the_pf(p, now, steps)))
		return;
	why = str_printf(QUOTE, json_str_or(json_at(json_array_get(p->steps, steps), "why"),
					    "its VFs are held"));
	shrink(p->steps, steps);
	shrink(p->blocked, blocked);
	if (now->may_have_vfs)
		steps_problem(p, now->address, "ProtectedPf",
			      QUOTE " " QUOTE ": it may have VFs, but its MTU and eSwitchMode stay "
				    "as they are (%s): take mtu and eSwitchMode out of the policy",
			      now->name ? now->name : now->address, now->protected, why);
	else
		steps_problem(p, now->address, "ProtectedPf",
			      QUOTE " " QUOTE ", so it is not touched (%s), nor for an hour after "
				    "that has gone elsewhere: choose another NIC, annotate the "
				    "policy with orbweaver.io/allow-primary-nic: \"true\", or make "
				    "its VFs by other means and set externallyManaged",
			      now->name ? now->name : now->address, now->protected, why);
}

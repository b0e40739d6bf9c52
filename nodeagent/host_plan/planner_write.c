// SPDX-License-Identifier: Apache-2.0
/*
 * Steps, blocked entries and problems, written into the plan: a step only when hostd would take it
 * and it was not refused lately.
 */
#include "nodeagent/host_plan/planner_internal.h"

bool planner_is_refused(const struct planning *p, const json_t *step)
{
	json_t *refused;
	size_t i;

	json_array_foreach ((json_t *)p->in->refused, i, refused) {
		if (json_same(refused, step))
			return true;
	}
	return false;
}

json_t *planner_add(struct planning *p, const struct pf *pf, const struct vf *vf, json_t *step,
		    const char *fmt, ...)
{
	struct err err = {0};
	const struct step_kind *kind = step_check(step, &err);
	json_auto_t *owned = step;
	enum step_impact impact = kind ? kind->impact : STEP_IMPACT_NONE;
	auto_free char *why = NULL;
	json_t *entry;
	va_list ap;

	/* No wall (step.h): a slip of ours is said in the plan, and stops nothing else of it. */
	if (!kind) {
		planner_problem(p, pf, err.reason, "%s", err.text);
		return NULL;
	}
	if (planner_is_refused(p, owned))
		return NULL;
	/*
	 * Without VFs no pod can be disturbed, except through the PF: drivers of one family drop
	 * its link, and mlx5 ends the RoCE LAG of a bond.
	 */
	if (str_eq(kind->name, "set-num-vfs") && pf->now.num_vfs <= 0 &&
	    !observed_vfs_drop_link(pf->now.driver) &&
	    !(str_eq(pf->now.driver, "mlx5_core") && str_eq(pf->now.link, "ETH") && pf->now.bond))
		impact = STEP_IMPACT_NONE;
	va_start(ap, fmt);
	why = str_vprintf(fmt, ap);
	va_end(ap);
	entry = json_object();
	json_object_set(entry, "step", owned);
	json_put_str(entry, "pf", pf ? pf->address : NULL);
	json_put_str(entry, "impact", step_impact_names[impact]);
	json_put(entry, "why", json_fmt("%s", why));
	json_put_str(entry, "vf", vf ? vf->address : NULL);
	(void)json_array_append_new(p->steps, entry);
	return entry;
}

void planner_problem(struct planning *p, const struct pf *pf, const char *reason, const char *fmt,
		     ...)
{
	json_t *problem = json_object();
	auto_free char *message = NULL;
	va_list ap;

	assert(*reason);
	json_put_str(problem, "pf", pf ? pf->address : NULL);
	json_put_str(problem, "reason", reason);
	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	json_put(problem, "message", json_fmt("%s", message));
	(void)json_array_append_new(p->problems, problem);
}

/* How what says who is in the way ends, for every condition that has it. */
#define OR_LEAVE_IT ", or leave it: nothing is taken from it"

void planner_block(struct planning *p, const struct pf *pf, const struct vf *vf, const char *takes,
		   const char *why)
{
	const char *holder = vf ? vf->holder : pf->now.carries;
	bool is_pod = vf && str_eq(json_str_at(p->in->held, vf->address), holder);
	json_t *blocked = json_object();

	assert(holder);
	json_put_str(blocked, "pf", pf->address);
	json_put_str(blocked, "vf", vf ? vf->address : NULL);
	json_put_str(blocked, "reason", vf ? "VfInUse" : "PfInUse");
	json_put_str(blocked, "holder", holder);
	if (is_pod)
		json_put_str(blocked, "pod", holder);
	if (takes)
		json_put_bool(blocked, "all", true);
	if (vf)
		json_put(blocked, "message",
			 json_fmt("VF " QUOTE " is held by " QUOTE
				  ", and %s%s%s: it waits until the VF is free; %s" OR_LEAVE_IT,
				  vf->address, holder, why, takes ? ", which " : "",
				  takes ? takes : "",
				  is_pod ? "delete that pod" : "end what holds it"));
	else
		json_put(blocked, "message",
			 json_fmt(QUOTE " lies on the PF, and " QUOTE
					": it waits until that is gone; remove it" OR_LEAVE_IT,
				  holder, why));
	(void)json_array_append_new(p->blocked, blocked);
}

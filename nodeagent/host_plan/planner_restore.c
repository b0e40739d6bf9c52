// SPDX-License-Identifier: Apache-2.0
/*
 * Put back a PF that spec does not name any more. A PF that is not in "found" was never touched by
 * us and never is.
 *
 * Not put back: a link that was down (a port that is up does no harm, one set down might), and MAC
 * addresses of VFs that were there before us.
 */
#include "nodeagent/host_plan/planner_internal.h"

struct restore {
	struct planning *p;
	const struct pf *pf;
	bool was_autoprobe_off;
	bool is_done; /* nothing is left that differs, planned or not */
};

/* False: VFs come or go, or would if none of them was held; the rest is for later. */
static bool restore_vfs(struct restore *r)
{
	const struct pf *pf = r->pf;
	const char *eswitch = json_str_at(pf->found, "eSwitchMode");
	const json_t *count = json_at(pf->found, "numVfs");
	/* From a file: no PF had less than 0. */
	bool is_known = count && json_integer_value(count) >= 0;
	int wanted = is_known ? (int)json_integer_value(count) : pf->now.num_vfs;
	bool differs = eswitch && !str_eq(eswitch, pf->now.eswitch);

	if (wanted == pf->now.num_vfs && !differs)
		return true;
	r->is_done = false;
	/* The switch has to wait, the rest need not. */
	if (wanted == pf->now.num_vfs && !pf->now.can_set_eswitch)
		return true;
	(void)plan_vf_count(r->p, pf, wanted, eswitch);
	return false;
}

static bool plan_autoprobe(struct restore *r, bool on)
{
	return planner_add(r->p, r->pf, NULL,
			   json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf",
				     r->pf->address, "on", on),
			   on ? "drivers are to bind to the VFs again"
			      : "nobody wants the PF any more, and so it was");
}

/* The driver_override that the VF had; NULL: none. */
static const char *override_before(const struct restore *r, const struct vf *vf)
{
	return vf->address ? json_str_at(r->pf->found, "overrides", vf->address) : NULL;
}

/* It has another driver_override, or should have a driver and has none. */
static bool differs_in_driver(const struct restore *r, const struct vf *vf)
{
	return !str_eq(override_before(r, vf), vf->driver_override) ||
	       (!vf->driver && !r->was_autoprobe_off);
}

/* Without autoprobe no driver of the kernel's choice binds: off only after that. */
static void restore_drivers(struct restore *r)
{
	static const char why[] = "nobody wants the PF any more, and it had another driver";
	const struct pf *pf = r->pf;
	bool is_off = pf->now.is_autoprobe_off, is_to_do = !r->was_autoprobe_off;

	if (is_off != r->was_autoprobe_off)
		r->is_done = false;
	for (size_t i = 0; i < pf->n_vfs; i++)
		is_to_do |= differs_in_driver(r, &pf->vfs[i]) && !pf->vfs[i].holder;
	if (is_off && is_to_do) {
		if (!plan_autoprobe(r, true))
			return;
		is_off = false;
	}
	for (size_t i = 0; i < pf->n_vfs; i++) {
		const struct vf *vf = &pf->vfs[i];

		if (!differs_in_driver(r, vf))
			continue;
		r->is_done = false;
		if (vf->holder)
			planner_block(r->p, pf, vf, NULL, why);
		else
			(void)plan_rebind(r->p, pf, vf, override_before(r, vf), why);
	}
	if (!is_off && r->was_autoprobe_off)
		(void)plan_autoprobe(r, false);
}

static json_t *mtu_step(const char *device, int mtu)
{
	return json_pack("{s:s, s:s, s:i}", "step", "set-mtu", "device", device, "mtu", mtu);
}

/* VFs first: none may have more than its PF. */
static void restore_mtu(struct restore *r)
{
	static const char why[] = "nobody wants the PF any more, and its MTU was lower";
	const struct pf *pf = r->pf;
	int was = (int)json_integer_value(json_at(pf->found, "mtu"));
	bool may = !pf->now.carries;
	size_t i;

	/* Nothing that could be put back: not known, or no MTU. */
	if (was < STEP_MTU_MIN || was > STEP_MTU_MAX || pf->now.mtu <= was)
		return;
	r->is_done = false;
	/* The kernel takes the MTU of what lies on it along. */
	if (pf->now.carries)
		planner_block(r->p, pf, NULL, NULL, why);
	for (i = 0; i < pf->n_vfs; i++) {
		if (pf->vfs[i].holder)
			planner_block(r->p, pf, &pf->vfs[i], NULL, why);
		may &= !pf->vfs[i].holder;
	}
	for (i = 0; i < pf->n_vfs && may; i++) {
		const struct vf *vf = &pf->vfs[i];

		if (json_integer_value(json_at(vf->entry, "mtu")) > was)
			may = vf->address &&
			      planner_add(r->p, pf, vf, mtu_step(vf->address, was), "%s", why);
	}
	if (may)
		(void)planner_add(r->p, pf, NULL, mtu_step(pf->address, was), "%s", why);
}

static void restore_rules(struct restore *r)
{
	const struct pf *pf = r->pf;
	json_t *rule;
	size_t i;

	json_array_foreach (json_at(pf->now.entry, "host", "udevRules"), i, rule) {
		const char *name = json_string_value(rule);

		if (!name || json_list_has(json_at(pf->found, "udevRules"), name))
			continue;
		r->is_done = false;
		(void)planner_add(r->p, pf, NULL,
				  json_pack("{s:s, s:s, s:s}", "step", "remove-udev-rule", "pf",
					    pf->address, "rule", name),
				  "nobody wants the PF any more");
	}
}

bool plan_restore(struct planning *p, const struct pf *pf)
{
	struct restore r = {
		.p = p,
		.pf = pf,
		.was_autoprobe_off = json_is_false(json_at(pf->found, "driversAutoprobe")),
		.is_done = true,
	};

	assert(!pf->is_wanted && pf->now.entry && pf->found);
	if (restore_vfs(&r)) {
		restore_drivers(&r);
		restore_mtu(&r);
		restore_rules(&r);
	}
	return r.is_done;
}

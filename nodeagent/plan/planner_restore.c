// SPDX-License-Identifier: Apache-2.0
/*
 * Put back PFs that nobody wants any more. A PF that is not in "found" was never touched by
 * us and never is.
 *
 * Not put back: a link that was down (a port that is up harms nobody, one set down might), and MAC
 * addresses of VFs that were there before us.
 */
#include "nodeagent/plan/planner_internal.h"

#include <string.h>

/* ---- putting back ---------------------------------------------------------------------------- */

struct restore {
	struct planning *p;
	const struct pf_now *now;
	const json_t *found;
	bool is_done; /* nothing is left that differs, planned or not */
};

/* False: VFs come or go, or would if nobody held them; the rest is for later. */
static bool restore_vfs(struct restore *r)
{
	const char *eswitch = json_str_at(r->found, "eSwitchMode");
	const json_t *count = json_at(r->found, "numVfs");
	int wanted = count ? (int)json_integer_value(count) : r->now->num_vfs;
	bool differs = eswitch && !str_eq(eswitch, r->now->eswitch);

	if (wanted == r->now->num_vfs && !differs)
		return true;
	r->is_done = false;
	/* The switch has to wait, the rest need not. */
	if (wanted == r->now->num_vfs && !plan_can_set_eswitch(r->now))
		return true;
	(void)plan_vf_count(r->p, r->now, wanted, eswitch);
	return false;
}

static bool plan_autoprobe(struct restore *r, bool on)
{
	return planner_add(r->p, r->now->address, NULL,
			   json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf",
				     r->now->address, "on", on),
			   on ? "drivers are to bind to the VFs again"
			      : "nobody wants the PF any more, and so it was");
}

static bool was_autoprobe_off(const struct restore *r)
{
	return json_is_false(json_at(r->found, "driversAutoprobe"));
}

/*
 * The driver_override that the VF had; *ret_differs: it has another, or should have a driver and
 * has none.
 */
static const char *driver_before(const struct restore *r, const json_t *vf, bool *ret_differs)
{
	const char *address = json_str_or(json_at(vf, "pciAddress"), "");
	const char *was = json_str_at(r->found, "overrides", address);

	*ret_differs = !str_eq(was, json_str_at(vf, "host", "driverOverride")) ||
		       (!json_at(vf, "driver") && !was_autoprobe_off(r));
	return was;
}

static bool is_driver_to_do(const struct restore *r)
{
	json_t *vf;
	size_t i;
	bool differs;

	json_array_foreach (json_at(r->now->entry, "Vfs"), i, vf) {
		(void)driver_before(r, vf, &differs);
		if (differs && !vf_holder(r->p, vf))
			return true;
	}
	return false;
}

static void restore_driver(struct restore *r, const json_t *vf)
{
	static const char why[] = "nobody wants the PF any more, and it had another driver";
	bool differs;
	const char *was = driver_before(r, vf, &differs), *holder = vf_holder(r->p, vf);

	if (!differs)
		return;
	r->is_done = false;
	if (holder)
		steps_blocked(r->p, r->now->address, json_str_at(vf, "pciAddress"), holder, false,
			      "%s", why);
	else
		(void)plan_rebind(r->p, r->now->address, vf, was, why);
}

/* Without autoprobe no driver of the kernel's choice binds: off only after that. */
static void restore_drivers(struct restore *r)
{
	bool is_off = r->now->is_autoprobe_off, was_off = was_autoprobe_off(r);
	json_t *vf;
	size_t i;

	if (is_off != was_off)
		r->is_done = false;
	if (is_off && (!was_off || is_driver_to_do(r))) {
		if (!plan_autoprobe(r, true))
			return;
		is_off = false;
	}
	json_array_foreach (json_at(r->now->entry, "Vfs"), i, vf)
		restore_driver(r, vf);
	if (!is_off && was_off)
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
	int was = (int)json_integer_value(json_at(r->found, "mtu"));
	json_t *vf;
	size_t i;
	bool may;

	/* Nothing that could be put back: not known, or no MTU. */
	if (was < STEP_MTU_MIN || was > STEP_MTU_MAX || r->now->mtu <= was)
		return;
	r->is_done = false;
	/* The kernel takes the MTU of what lies on it along. */
	if (r->now->carries)
		steps_pf_blocked(r->p, r->now->address, r->now->carries, why);
	may = !r->now->carries;
	json_array_foreach (json_at(r->now->entry, "Vfs"), i, vf) {
		const char *holder = vf_holder(r->p, vf);

		if (holder)
			steps_blocked(r->p, r->now->address, json_str_at(vf, "pciAddress"), holder,
				      false, "%s", why);
		may &= !holder;
	}
	json_array_foreach (json_at(r->now->entry, "Vfs"), i, vf) {
		const char *address = json_str_at(vf, "pciAddress");

		if (may && json_integer_value(json_at(vf, "mtu")) > was)
			may = address && planner_add(r->p, r->now->address, address,
						     mtu_step(address, was), "%s", why);
	}
	if (may)
		(void)planner_add(r->p, r->now->address, NULL, mtu_step(r->now->address, was), "%s",
				  why);
}

static void restore_rules(struct restore *r)
{
	json_t *rule;
	size_t i;

	json_array_foreach (json_at(r->now->entry, "host", "udevRules"), i, rule) {
		const char *name = json_string_value(rule);

		if (!name || json_list_has(json_at(r->found, "udevRules"), name))
			continue;
		r->is_done = false;
		(void)planner_add(r->p, r->now->address, NULL,
				  json_pack("{s:s, s:s, s:s}", "step", "remove-udev-rule", "pf",
					    r->now->address, "rule", name),
				  "nobody wants the PF any more");
	}
}

static bool restore_pf(struct planning *p, const json_t *entry)
{
	size_t steps = json_array_size(p->steps), blocked = json_array_size(p->blocked);
	struct restore r = {.p = p, .is_done = true};
	struct pf_now now;

	pf_now_read(entry, &now);
	r.now = &now;
	r.found = found_pf(p, &now);
	if (!r.found)
		return true;
	now.may_have_vfs = json_is_true(json_at(r.found, "allowPrimaryNic"));
	if (restore_vfs(&r)) {
		restore_drivers(&r);
		restore_mtu(&r);
		restore_rules(&r);
	}
	steps_respect_protection(p, &now, steps, blocked);
	return r.is_done;
}

/* What spec says about it may be wrong, but it says something. */
static bool is_wanted(const json_t *interfaces, const char *address)
{
	json_t *entry;
	size_t i;

	json_array_foreach ((json_t *)interfaces, i, entry) {
		const char *name = json_str_at(entry, "pciAddress");

		/* It may be meant. */
		if (!name || str_eq(name, address))
			return true;
	}
	return false;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void plan_restore(struct planning *p, const struct pf_wish *wishes, size_t n)
{
	json_t *pfs = json_object_get(p->found, "pfs"), *found;
	auto_free const char **addresses = mem_calloc(json_object_size(pfs) + 1, sizeof(char *));
	const char *address;
	size_t i, count = 0;

	/* Whoever manages it now is to find it as it is. */
	for (i = 0; i < n; i++)
		if (wishes[i].is_external)
			(void)json_object_del(pfs, wishes[i].address);
	json_each (pfs, address, found)
		if (!is_wanted(json_at(p->in->spec, "interfaces"), address))
			addresses[count++] = address;
	if (count > 1)
		qsort(addresses, count, sizeof(*addresses), compare_text);
	for (i = 0; i < count; i++) {
		const json_t *entry = observed_pf(p, addresses[i]);

		/*
		 * Without it there is nothing to put back yet; just back, it may have been
		 * forgotten for its absence only.
		 */
		if (entry && !json_at(entry, "host", "arrivedMs") && restore_pf(p, entry))
			(void)json_object_del(pfs, addresses[i]);
	}
}

/*
 * How PFs were found, and putting back those that nobody wants any more. A PF that is not in "found" was never touched by
 * us and never is.
 *
 * Not put back: a link that was down (a port that is up harms nobody, one set down might), and MAC addresses of VFs that
 * were there before us.
 */
#include "nodeagent/planner_parts.h"

/* ---- remembering -------------------------------------------------------------------------------------------------------------- */

/* The same slot with another card (node-kernel 10, 31). What one of both does not tell is no evidence. */
static bool is_same_card(const json_t *found, const struct pf_now *now)
{
	const struct {
		const json_t *then, *now;
	} marks[] = {
		{json_at(found, "vendor"), json_at(now->entry, "vendor")},
		{json_at(found, "deviceID"), json_at(now->entry, "deviceID")},
		{json_at(found, "permanentMac"), json_at(now->entry, "host", "permanentMac")},
	};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (marks[i].then && marks[i].now && !json_same(marks[i].then, marks[i].now))
			return false;
	return true;
}

const json_t *plan_found_pf(const struct planning *p, const struct pf_now *now)
{
	const json_t *found = json_at(p->found, "pfs", now->address);

	return found && is_same_card(found, now) ? found : NULL;
}

static void keep(json_t *found, const char *key, json_t *value)
{
	if (value)
		json_put(found, key, json_deep_copy(value));
}

/* Only VFs that were there before us can have one. */
static json_t *overrides_of(const struct pf_now *now)
{
	json_t *ret = json_object(), *vf;
	size_t i;

	json_array_foreach (json_at(now->entry, "Vfs"), i, vf) {
		const char *address = json_str_at(vf, "pciAddress");

		if (address)
			keep(ret, address, json_at(vf, "host", "driverOverride"));
	}
	return ret;
}

void plan_remember_pf(struct planning *p, const struct pf_now *now)
{
	static const char *const of_pf[] = {"numVfs",         "mtu",    "eSwitchMode",
					    "linkAdminState", "vendor", "deviceID"};
	static const char *const of_host[] = {"driversAutoprobe", "udevRules", "permanentMac"};
	json_t *found;

	if (plan_found_pf(p, now))
		return;
	found = json_object();
	for (size_t i = 0; i < ARRAY_LEN(of_pf); i++)
		keep(found, of_pf[i], json_at(now->entry, of_pf[i]));
	for (size_t i = 0; i < ARRAY_LEN(of_host); i++)
		keep(found, of_host[i], json_at(now->entry, "host", of_host[i]));
	json_put(found, "overrides", overrides_of(now));
	json_put(json_need_object(p->found, "pfs"), now->address, found);
}

/* ---- putting back --------------------------------------------------------------------------------------------------------------- */

struct restore {
	struct planning *p;
	const struct pf_now *now;
	const json_t *found;
	bool is_done; /* nothing is left that differs, planned or not */
};

static void say_held(struct restore *r, const json_t *vf, const char *holder, const char *why)
{
	plan_blocked(r->p, r->now->address, json_str_at(vf, "pciAddress"), holder, "%s", why);
}

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
	return plan_step(r->p, r->now->address, NULL,
			 json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf",
				   r->now->address, "on", on),
			 on ? "drivers are to bind to the VFs again"
			    : "nobody wants the PF any more, and so it was");
}

static bool was_autoprobe_off(const struct restore *r)
{
	return json_is_false(json_at(r->found, "driversAutoprobe"));
}

/* The driver_override that the VF had; *ret_differs: it has another, or should have a driver and has none. */
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
		say_held(r, vf, holder, why);
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

/* VFs first: none may have more than its PF (node-kernel 10, 21). */
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
		plan_pf_blocked(r->p, r->now->address, r->now->carries, why);
	may = !r->now->carries;
	json_array_foreach (json_at(r->now->entry, "Vfs"), i, vf) {
		const char *holder = vf_holder(r->p, vf);

		if (holder)
			say_held(r, vf, holder, why);
		may &= !holder;
	}
	json_array_foreach (json_at(r->now->entry, "Vfs"), i, vf) {
		const char *address = json_str_at(vf, "pciAddress");

		if (may && json_integer_value(json_at(vf, "mtu")) > was)
			may = address && plan_step(r->p, r->now->address, address,
						   mtu_step(address, was), "%s", why);
	}
	if (may)
		(void)plan_step(r->p, r->now->address, NULL, mtu_step(r->now->address, was), "%s",
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
		(void)plan_step(r->p, r->now->address, NULL,
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
	r.found = plan_found_pf(p, &now);
	if (!r.found)
		return true;
	if (restore_vfs(&r)) {
		restore_drivers(&r);
		restore_mtu(&r);
		restore_rules(&r);
	}
	plan_respect_protection(p, &now, steps, blocked);
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

/* Whoever manages it now is to find it as it is. */
static void forget_external(struct planning *p, const struct pf_wish *wishes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (wishes[i].is_external)
			(void)json_object_del(json_object_get(p->found, "pfs"), wishes[i].address);
}

void plan_restore(struct planning *p, const struct pf_wish *wishes, size_t n)
{
	json_t *pfs = json_object_get(p->found, "pfs"), *found;
	auto_free const char **addresses = mem_calloc(json_object_size(pfs) + 1, sizeof(char *));
	const char *address;
	size_t i, count = 0;

	forget_external(p, wishes, n);
	json_each (pfs, address, found)
		if (!is_wanted(json_at(p->in->spec, "interfaces"), address))
			addresses[count++] = address;
	if (count > 1)
		qsort(addresses, count, sizeof(*addresses), plan_compare_text);
	for (i = 0; i < count; i++) {
		const json_t *entry = plan_observed_pf(p, addresses[i]);

		/* Without it there is nothing to put back yet; just back, it may have been forgotten for its absence only. */
		if (entry && !json_at(entry, "host", "arrivedMs") && restore_pf(p, entry))
			(void)json_object_del(pfs, addresses[i]);
	}
}

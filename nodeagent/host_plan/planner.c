// SPDX-License-Identifier: Apache-2.0
/*
 * The way through a plan: the shape of spec, then the node, PF after PF, and reboots. What holds
 * for a PF as a whole is here as well: it is not there, it is protected, how it was found is kept,
 * its RoCE settings.
 * planner_internal.h has the map of the other files.
 */
#include "nodeagent/host_plan/planner.h"

#include "nodeagent/host_plan/planner_internal.h"

#define INTERFACES_MAX 1024

/* ---- the shape of spec ----------------------------------------------------------------------- */

static int read_spec(const json_t *spec, const json_t **ret_interfaces, const char **ret_mode,
		     struct err *err)
{
	const json_t *system, *bridges, *ovs, *nics;

	if (!json_is_object(spec))
		return err_set(err, ERR_INVALID, "BadSpec", "spec is %s, must be an object",
			       json_type_words(spec));
	if (json_get_array(spec, "spec", "interfaces", ret_interfaces, err) < 0 ||
	    json_get_array(spec, "spec", "nicSettings", &nics, err) < 0 ||
	    json_get_object(spec, "spec", "system", &system, err) < 0 ||
	    json_get_object(spec, "spec", "bridges", &bridges, err) < 0 ||
	    json_get_array(bridges, "spec.bridges", "ovs", &ovs, err) < 0 ||
	    json_get_str(system, "spec.system", "rdmaMode", "", ret_mode, err) < 0)
		return -1;
	if (json_array_size(*ret_interfaces) > INTERFACES_MAX ||
	    json_array_size(nics) > INTERFACES_MAX)
		return err_set(err, ERR_INVALID, "BadSpec", "spec.%s: more than %d",
			       json_array_size(nics) > INTERFACES_MAX ? "nicSettings"
								      : "interfaces",
			       INTERFACES_MAX);
	if (!**ret_mode)
		*ret_mode = NULL;
	else if (!str_eq(*ret_mode, "shared") && !str_eq(*ret_mode, "exclusive"))
		return err_set(err, ERR_INVALID, "BadSpec",
			       "spec.system.rdmaMode: \"%.40s\" is neither shared nor exclusive",
			       *ret_mode);
	return 0;
}

/* ---- one PF ---------------------------------------------------------------------------------- */

static void say_not_there(struct planning *p, const struct pf *pf)
{
	static const char *const reasons[] = {"NoDriver", "NoInterface"};
	const json_t *unusable =
		json_find(json_at(p->in->observed, "unusable"), "pciAddress", pf->address);
	const json_t *missing =
		json_find(json_at(p->in->observed, "missing"), "pciAddress", pf->address);
	const char *reason = "PfUnusable";

	if (!unusable && missing) {
		planner_problem(p, pf, "PfMissing",
				QUOTE " has vanished; the agent waits some minutes for it: if "
				      "nobody restarts its driver or firmware now, look at the "
				      "kernel log",
				json_str_or(json_at(missing, "name"), "it"));
		return;
	}
	if (!unusable) {
		planner_problem(p, pf, "PfMissing",
				"there is no such network function on this node: look for the NIC "
				"with lspci, or correct the policy");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(json_str_at(unusable, "reason"), reasons[i]))
			reason = reasons[i];
	planner_problem(p, pf, reason, QUOTE,
			json_str_or(json_at(unusable, "message"), "it cannot be worked with"));
}

/* Its interface goes or drops packets of the node, which a policy about VFs does not ask for. */
static bool touches_the_pf(const struct planning *p, const struct pf *pf, size_t steps)
{
	for (size_t i = steps; i < json_array_size(p->steps); i++) {
		const json_t *step = json_at(json_array_get(p->steps, i), "step");

		if (str_eq(json_str_at(step, "step"), "set-eswitch") ||
		    str_eq(json_str_at(step, "device"), pf->address))
			return true;
	}
	return false;
}

static void shrink_list(json_t *list, size_t size)
{
	while (json_array_size(list) > size)
		(void)json_array_remove(list, json_array_size(list) - 1);
}

/*
 * When the PF is protected, take back its steps and blocked entries, those behind these sizes, and
 * say so in a problem.
 */
static void respect_protection(struct planning *p, const struct pf *pf, size_t steps,
			       size_t blocked)
{
	const char *name = pf->now.name ? pf->now.name : pf->address;
	auto_free char *why = NULL;

	assert(steps <= json_array_size(p->steps) && blocked <= json_array_size(p->blocked));
	if (!pf->now.protected ||
	    (json_array_size(p->steps) == steps && json_array_size(p->blocked) == blocked) ||
	    (pf->may_have_vfs && !touches_the_pf(p, pf, steps)))
		return;
	why = str_printf(QUOTE, json_str_or(json_at(json_array_get(p->steps, steps), "why"),
					    "its VFs are held"));
	shrink_list(p->steps, steps);
	shrink_list(p->blocked, blocked);
	if (pf->may_have_vfs)
		planner_problem(p, pf, "ProtectedPf",
				QUOTE " " QUOTE ": it may have VFs, but its MTU and eSwitchMode "
				      "stay as they are (%s): take mtu and eSwitchMode out of the "
				      "policy",
				name, pf->now.protected, why);
	else
		planner_problem(p, pf, "ProtectedPf",
				QUOTE
				" " QUOTE ", so it is not touched (%s), nor for an hour "
				"after that has gone elsewhere: choose another NIC, annotate "
				"the policy with orbweaver.io/allow-primary-nic: \"true\", or "
				"make its VFs by other means and set externallyManaged",
				name, pf->now.protected, why);
}

static void keep_member(json_t *found, const char *key, json_t *value)
{
	if (value)
		json_put(found, key, json_deep_copy(value));
}

static void plan_wanted(struct planning *p, struct pf *pf)
{
	size_t steps = json_array_size(p->steps), blocked = json_array_size(p->blocked);

	if (!pf->now.entry)
		say_not_there(p, pf);
	else if (check_pf(p, pf))
		plan_pf(p, pf);
	/* Of a PF that others manage only the VFs are touched, and they are to find it as it is. */
	if (pf->wanted.is_external) {
		(void)json_object_del(json_object_get(p->found, "pfs"), pf->address);
		return;
	}
	respect_protection(p, pf, steps, blocked);
	if (json_array_size(p->steps) > steps && !pf->found) {
		static const char *const of_pf[] = {"numVfs",         "mtu",    "eSwitchMode",
						    "linkAdminState", "vendor", "deviceID"};
		static const char *const of_host[] = {"driversAutoprobe", "udevRules",
						      "permanentMac"};
		json_t *found = json_object(), *overrides = json_object();

		/* Keep how the PF is now, before it is touched for the first time. */
		for (size_t i = 0; i < ARRAY_LEN(of_pf); i++)
			keep_member(found, of_pf[i], json_at(pf->now.entry, of_pf[i]));
		for (size_t i = 0; i < ARRAY_LEN(of_host); i++)
			keep_member(found, of_host[i], json_at(pf->now.entry, "host", of_host[i]));
		/* Only VFs that were there before us can have one. */
		for (size_t i = 0; i < pf->n_vfs; i++)
			if (pf->vfs[i].address)
				json_put_str(overrides, pf->vfs[i].address,
					     pf->vfs[i].driver_override);
		json_put(found, "overrides", overrides);
		if (pf->may_have_vfs)
			json_put_bool(found, "allowPrimaryNic", true);
		json_put(json_need_object(p->found, "pfs"), pf->address, found);
	}
}

/*
 * Spec does not name it any more. While it is missing, nothing can be put back; where it has just
 * arrived, spec may lack it for its absence only.
 */
static void plan_unwanted(struct planning *p, struct pf *pf)
{
	size_t steps = json_array_size(p->steps), blocked = json_array_size(p->blocked);

	if (!pf->now.entry || json_at(pf->now.entry, "host", "arrivedMs"))
		return;
	if (!pf->found || plan_restore(p, pf))
		(void)json_object_del(json_object_get(p->found, "pfs"), pf->address);
	respect_protection(p, pf, steps, blocked);
}

/* ---- RoCE settings of a PF ------------------------------------------------------------------- */

/* Whether the link may go; names the holders when not. */
static bool may_take_link(struct planning *p, const struct pf *pf, const char *why)
{
	bool may = !pf->now.carries && pf->n_vfs >= (size_t)pf->now.num_vfs;

	if (pf->now.carries)
		planner_block(p, pf, NULL, NULL, why);
	/* A VF without driver that is not in use has no link to lose. */
	for (size_t i = 0; i < pf->n_vfs; i++) {
		if (!pf->vfs[i].holder || pf->vfs[i].is_empty)
			continue;
		planner_block(p, pf, &pf->vfs[i], "takes the link of all VFs of the PF", why);
		may = false;
	}
	if (pf->n_vfs < (size_t)pf->now.num_vfs)
		planner_problem(p, pf, "VfUnknown",
				"%s, but not all of its VFs can be seen: look at the kernel log",
				why);
	return may;
}

static void plan_due(struct planning *p, const struct pf *pf, const json_t *due, json_t *values)
{
	enum { NOT_ASKED, FREE, TAKEN } link = NOT_ASKED;
	const json_t *one;
	size_t i;

	json_array_foreach ((json_t *)due, i, one) {
		const char *name = json_str_at(one, "setting");
		json_t *value = json_at(one, "value"), *is = json_at(one, "is"), *entry;
		bool wanted = json_is_true(json_at(one, "wanted"));
		bool takes_link = json_is_true(json_at(one, "takesLink"));
		auto_free char *was = json_text(is), *will = json_text(value);
		auto_free char *why =
			str_printf(wanted ? "%s is %.80s, wanted %.80s"
					  : "nobody wants %s any more; it is %.80s and was %.80s",
				   name, was, will);

		/* Where the PF has just arrived, spec may lack it for its absence only. */
		if (!wanted && json_at(pf->now.entry, "host", "arrivedMs"))
			continue;
		if (takes_link && link == NOT_ASKED)
			link = may_take_link(p, pf, why) ? FREE : TAKEN;
		if (takes_link && link == TAKEN)
			continue;
		entry = planner_add(p, pf, NULL,
				    json_pack("{s:s, s:s, s:s, s:O}", "step", "set-nic-setting",
					      "pf", pf->address, "setting", name, "value", value),
				    "%s", why);
		if (!entry)
			continue;
		json_put_str(entry, "impact", takes_link ? "pf" : "none");
		if (wanted)
			(void)json_object_update_missing(values, json_at(one, "found"));
	}
}

/*
 * Protection is said of what is wanted; what is to be put back waits in silence. values: of found.
 */
static void say_problems(struct planning *p, const struct pf *pf, const json_t *due,
			 const json_t *values)
{
	const json_t *offered = json_at(pf->now.entry, "settings"), *value;
	auto_strbuf struct strbuf kept = {0}, lacking = {0}, list = {0};
	const char *name, *first = NULL; /* words of the driver, of the first that it lacks */
	size_t i;

	json_array_foreach ((json_t *)due, i, value)
		if (pf->now.protected && json_is_true(json_at(value, "wanted")))
			strbuf_addf(&kept, "%s%s", kept.len ? ", " : "",
				    json_str_at(value, "setting"));
	json_each (offered, name, value)
		strbuf_addf(&list, "%s%.40s", list.len ? ", " : "", name);
	json_each (json_at(pf->nic, "settings"), name, value) {
		const char *words = json_str_at(pf->now.entry, "settingsUnsupported", name);

		if (!words || json_list_has(json_at(pf->nic, "ifSupported"), name))
			continue;
		first = lacking.len ? first : words;
		strbuf_addf(&lacking, "%s%.40s", lacking.len ? ", " : "", name);
	}
	json_each (json_at(pf->now.entry, "settingsUnreadable"), name, value)
		if (json_at(pf->nic, "settings", name) || json_at(values, name))
			planner_problem(p, pf, "SettingUnreadable",
					"%.40s: " QUOTE ": it stays as it is; see the kernel log",
					name, json_str_or(value, "?"));
	if (kept.len && !json_is_true(json_at(pf->nic, "unlessProtected")))
		planner_problem(p, pf, "ProtectedPf",
				QUOTE " " QUOTE ", so its settings stay as they are (%s): select "
				      "other NICs with roce.nicSelector of the "
				      "SriovNetworkPoolConfig",
				pf->now.name ? pf->now.name : pf->address, pf->now.protected,
				strbuf_str(&kept));
	if (lacking.len)
		planner_problem(p, pf, "RoceSettingUnsupported",
				"driver %.40s does not offer %.400s (%.100s): take them out of "
				"roce of the SriovNetworkPoolConfig, select other NICs, or install "
				"the driver of the vendor; it offers %.400s",
				pf->now.driver ? pf->now.driver : "none", strbuf_str(&lacking),
				first, list.len ? strbuf_str(&list) : "none");
}

/*
 * What nic_settings_due() finds becomes steps, before the VFs of the PF are made, so that pods find
 * it set. What takes the link of the PF down, and with it that of every VF, waits until no VF is
 * held and nothing of a pod lies on the PF. No setting of a protected PF is ever touched.
 */
static void plan_settings(struct planning *p, const struct pf *pf)
{
	const json_t *entry = pf->now.entry, *wanted = json_at(pf->nic, "settings");
	json_auto_t *values = json_object(), *due = NULL;
	struct err err = {0};
	json_t *found;

	/* Of another card that was in the slot. */
	if (entry && !pf->nic_found)
		(void)json_object_del(json_object_get(p->found, "settings"), pf->address);
	if (pf->nic && !json_is_object(wanted))
		(void)err_set(&err, ERR_INVALID, "BadSpec", "settings: must be an object");
	if (json_is_object(json_at(pf->nic_found, "values")))
		json_object_update(values, json_at(pf->nic_found, "values"));
	due = err.text[0] ? NULL
			  : nic_settings_due(wanted, values, json_at(entry, "settings"),
					     pf->now.driver, &err);
	if (!due)
		planner_problem(p, pf, "BadSpec",
				QUOTE ": its settings stay as they are; correct the pool",
				err.text);
	/* Not there or not looked at, as while a pod has it: nothing is known. */
	if (!due || pf->is_nic_unclear || !json_is_object(json_at(entry, "settings")))
		return;
	if (!pf->now.protected)
		plan_due(p, pf, due, values);
	say_problems(p, pf, due, values);
	(void)json_object_del(json_object_get(p->found, "settings"), pf->address);
	if (json_object_size(values) == 0)
		return;
	found = json_pack("{s:O}", "values", values);
	json_put(found, "vendor", json_incref(json_at(entry, "vendor")));
	json_put(found, "deviceID", json_incref(json_at(entry, "deviceID")));
	json_put(found, "permanentMac", json_incref(json_at(entry, "host", "permanentMac")));
	json_put(json_need_object(p->found, "settings"), pf->address, found);
}

/* ---- the node -------------------------------------------------------------------------------- */

/* Without a writable /sys nothing works, and nothing is remembered of what was not touched. */
static void check_writable(struct planning *p)
{
	size_t n = json_array_size(p->steps);

	if (n == 0 || !json_is_false(json_at(p->in->observed, "node", "sysfsWritable")))
		return;
	(void)json_array_clear(p->steps);
	json_replace(&p->found,
		     json_is_object(p->in->found) ? json_deep_copy(p->in->found) : json_object());
	planner_problem(
		p, NULL, "SysfsReadOnly",
		"/sys is mounted read-only, so %zu step%s cannot be done: give the agent the "
		"host's root with /sys writable",
		n, n == 1 ? "" : "s");
}

static void plan_host(struct planning *p, const json_t *interfaces, const char *mode)
{
	const json_t *rival = json_array_get(json_at(p->in->observed, "node", "rivals"), 0);
	size_t bridges = json_array_size(json_at(p->in->spec, "bridges", "ovs"));

	planner_read(p, interfaces);
	/* Written into the NodeState by hand: the operator puts no bridges there. */
	if (bridges > 0)
		planner_problem(
			p, NULL, "BridgeNotManaged",
			"spec.bridges asks for %zu software bridge%s, which this agent does "
			"not make: make them by other means and take `bridge` out of the "
			"policies",
			bridges, bridges == 1 ? "" : "s");
	/* Two that put the same NICs right take VFs from pods in turns. */
	if (rival) {
		planner_problem(p, NULL, "OtherConfigDaemon",
				QUOTE " (pid %lld) manages the NICs of this node too, so nothing "
				      "is changed: remove the SR-IOV network operator, or keep "
				      "this agent off the node",
				json_str_or(json_at(rival, "name"), "another program"),
				(long long)json_integer_value(json_at(rival, "pid")));
		return;
	}
	plan_node(p, mode);
	for (size_t i = 0; i < p->n_pfs; i++) {
		struct pf *pf = &p->pfs[i];

		plan_settings(p, pf);
		if (pf->is_wanted)
			plan_wanted(p, pf);
		else if (!pf->has_settings_only)
			plan_unwanted(p, pf);
	}
	check_writable(p);
	plan_boots(p);
}

static void planning_done(struct planning *p)
{
	for (size_t i = 0; i < p->n_pfs; i++) {
		free(p->pfs[i].wanted.groups);
		free(p->pfs[i].vfs);
	}
	free(p->pfs);
}

json_t *planner_plan(const struct planner_input *input, struct err *err)
{
	auto_call(planning_done) struct planning p = {.in = input};
	const json_t *interfaces = NULL, *entry;
	json_int_t wanted = 0, present = 0;
	const char *mode = NULL;
	struct err wrong = {0};
	json_t *ret, *vfs;
	size_t i;

	assert(json_is_object(input->observed));
	if (input->spec && read_spec(input->spec, &interfaces, &mode, &wrong) < 0) {
		(void)err_set(err, ERR_INVALID, "BadSpec", "%s", wrong.text);
		return NULL;
	}
	p.steps = json_array();
	p.blocked = json_array();
	p.problems = json_array();
	p.found = json_is_object(input->found) ? json_deep_copy(input->found) : json_object();
	if (input->spec)
		plan_host(&p, interfaces, mode);
	for (i = 0; i < p.n_pfs; i++)
		wanted += p.pfs[i].wanted.num_vfs;
	json_array_foreach (json_at(input->observed, "interfaces"), i, entry)
		present += json_integer_value(json_at(entry, "numVfs"));

	ret = json_object();
	vfs = json_object();
	json_put(ret, "steps", p.steps);
	json_put(ret, "blocked", p.blocked);
	json_put(ret, "problems", p.problems);
	json_put(ret, "reboot", p.reboot);
	json_put(ret, "nextBoot", p.next_boot);
	json_put(ret, "inVain", p.in_vain);
	json_put(ret, "found", p.found);
	json_put_int(vfs, "wanted", wanted);
	json_put_int(vfs, "present", present);
	json_put(ret, "vfs", vfs);
	return ret;
}

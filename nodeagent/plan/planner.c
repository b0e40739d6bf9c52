// SPDX-License-Identifier: Apache-2.0
/*
 * The way through a node: spec, then the node itself, PF after PF, and PFs that nobody wants any
 * more. See the header; planner_internal.h has the map of the other files.
 */
#include "nodeagent/plan/planner.h"

#include "nodeagent/plan/planner_internal.h"

#include <assert.h>
#include <string.h>

#define INTERFACES_MAX 1024

/* ---- the shape of spec ----------------------------------------------------------------------- */

static int read_spec(const json_t *spec, const json_t **ret_interfaces, const char **ret_mode,
		     struct err *err)
{
	const json_t *system, *bridges, *ovs;

	if (!json_is_object(spec))
		return err_set(err, ERR_INVALID, "BadSpec", "spec is %s, must be an object",
			       json_type_words(spec));
	if (json_get_array(spec, "spec", "interfaces", ret_interfaces, err) < 0 ||
	    json_get_object(spec, "spec", "system", &system, err) < 0 ||
	    json_get_object(spec, "spec", "bridges", &bridges, err) < 0 ||
	    json_get_array(bridges, "spec.bridges", "ovs", &ovs, err) < 0 ||
	    json_get_str(system, "spec.system", "rdmaMode", "", ret_mode, err) < 0)
		return -1;
	if (json_array_size(*ret_interfaces) > INTERFACES_MAX)
		return err_set(err, ERR_INVALID, "BadSpec", "spec.interfaces: more than %d",
			       INTERFACES_MAX);
	if (!**ret_mode)
		*ret_mode = NULL;
	else if (!str_eq(*ret_mode, "shared") && !str_eq(*ret_mode, "exclusive"))
		return err_set(err, ERR_INVALID, "BadSpec",
			       "spec.system.rdmaMode: \"%.40s\" is neither shared nor exclusive",
			       *ret_mode);
	return 0;
}

static int compare_wishes(const void *a, const void *b)
{
	const struct pf_wish *x = a, *y = b;
	int order = strcmp(x->address, y->address);

	return order != 0 ? order : x->index < y->index ? -1 : 1;
}

/* By address, each PF once. Returns how many. */
static size_t read_wishes(struct planning *p, const json_t *interfaces, struct pf_wish *wishes)
{
	json_t *entry;
	size_t i, n = 0, kept = 0;

	json_array_foreach ((json_t *)interfaces, i, entry) {
		if (pf_wish_read(p, entry, &wishes[n]))
			wishes[n++].index = i;
	}
	if (n > 1)
		qsort(wishes, n, sizeof(*wishes), compare_wishes);
	for (i = 0; i < n; i++) {
		if (kept == 0 || !str_eq(wishes[kept - 1].address, wishes[i].address)) {
			wishes[kept++] = wishes[i];
			continue;
		}
		steps_problem(p, wishes[i].address, "BadSpec",
			      "spec.interfaces has it more than once: the first one counts");
		pf_wish_done(&wishes[i]);
	}
	return kept;
}

/* ---- one PF ---------------------------------------------------------------------------------- */

static void say_not_there(struct planning *p, const char *address)
{
	static const char *const reasons[] = {"NoDriver", "NoInterface"};
	const json_t *unusable =
		json_find(json_at(p->in->observed, "unusable"), "pciAddress", address);
	const json_t *missing =
		json_find(json_at(p->in->observed, "missing"), "pciAddress", address);
	const char *reason = "PfUnusable";

	if (!unusable && missing) {
		steps_problem(p, address, "PfMissing",
			      QUOTE " has vanished; the agent waits some minutes for it: if "
				    "nobody restarts its driver or firmware now, look at the "
				    "kernel log",
			      json_str_or(json_at(missing, "name"), "it"));
		return;
	}
	if (!unusable) {
		steps_problem(p, address, "PfMissing",
			      "there is no such network function on this node: look for the NIC "
			      "with lspci, or correct the policy");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(json_str_at(unusable, "reason"), reasons[i]))
			reason = reasons[i];
	steps_problem(p, address, reason, QUOTE,
		      json_str_or(json_at(unusable, "message"), "it cannot be worked with"));
}

static void plan_one(struct planning *p, const struct pf_wish *wish)
{
	size_t steps = json_array_size(p->steps), blocked = json_array_size(p->blocked);
	struct pf_now now;

	if (!wish->entry) {
		say_not_there(p, wish->address);
		return;
	}
	pf_now_read(wish->entry, &now);
	now.may_have_vfs = wish->allows_primary;
	plan_pf(p, wish, &now);
	/* Of a PF that somebody else manages only the VFs are touched. */
	if (wish->is_external)
		return;
	steps_respect_protection(p, &now, steps, blocked);
	if (json_array_size(p->steps) > steps)
		found_remember(p, &now);
}

/* ---- the node -------------------------------------------------------------------------------- */

/* Without a writable /sys nothing works, and nothing is remembered of what was not touched. */
static void check_writable(struct planning *p)
{
	size_t n = json_array_size(p->steps);

	if (n == 0 || !json_is_false(json_at(p->in->observed, "node", "sysfsWritable")))
		return;
	(void)json_array_clear(p->steps);
	json_decref(p->found);
	p->found = json_is_object(p->in->found) ? json_deep_copy(p->in->found) : json_object();
	steps_problem(p, NULL, "SysfsReadOnly",
		      "/sys is mounted read-only, so %zu step%s cannot be done: give the agent the "
		      "host's root with /sys writable",
		      n, n == 1 ? "" : "s");
}

/* Two that put the same NICs right take VFs from pods in turns. */
static bool has_rival(struct planning *p)
{
	const json_t *rival = json_array_get(json_at(p->in->observed, "node", "rivals"), 0);

	if (!rival)
		return false;
	steps_problem(p, NULL, "OtherConfigDaemon",
		      QUOTE " (pid %lld) manages the NICs of this node too, so nothing is changed: "
			    "remove the SR-IOV network operator, or keep this agent off the node",
		      json_str_or(json_at(rival, "name"), "another program"),
		      (long long)json_integer_value(json_at(rival, "pid")));
	return true;
}

static void plan_node(struct planning *p, const json_t *interfaces, const char *mode)
{
	struct pf_wish *wishes = mem_calloc(json_array_size(interfaces) + 1, sizeof(*wishes));
	size_t n = read_wishes(p, interfaces, wishes), i;
	size_t bridges = json_array_size(json_at(p->in->spec, "bridges", "ovs"));

	for (i = 0; i < n; i++)
		p->wanted += wishes[i].num_vfs;
	/* Whoever writes the NodeState, not a policy, has put in what we do not do. */
	if (bridges > 0)
		steps_problem(p, NULL, "BridgeNotManaged",
			      "spec.bridges asks for %zu software bridge%s, which this agent does "
			      "not make: make them by other means and take `bridge` out of the "
			      "policies",
			      bridges, bridges == 1 ? "" : "s");
	if (!has_rival(p)) {
		plan_rdma_mode(p, mode);
		plan_modules(p, wishes, n);
		for (i = 0; i < n; i++)
			plan_one(p, &wishes[i]);
		plan_restore(p, wishes, n);
		check_writable(p);
		plan_boots(p);
	}
	for (i = 0; i < n; i++)
		pf_wish_done(&wishes[i]);
	free(wishes);
}

json_t *planner_plan(const struct planner_input *input, struct err *err)
{
	struct planning p = {.in = input};
	const json_t *interfaces = NULL, *entry;
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
	json_array_foreach (json_at(input->observed, "interfaces"), i, entry)
		p.present += json_integer_value(json_at(entry, "numVfs"));
	if (input->spec)
		plan_node(&p, interfaces, mode);

	ret = json_object();
	vfs = json_object();
	json_put(ret, "steps", p.steps);
	json_put(ret, "blocked", p.blocked);
	json_put(ret, "problems", p.problems);
	json_put(ret, "reboot", p.reboot);
	json_put(ret, "nextBoot", p.next_boot);
	json_put(ret, "inVain", p.in_vain);
	json_put(ret, "found", p.found);
	json_put_int(vfs, "wanted", p.wanted);
	json_put_int(vfs, "present", p.present);
	json_put(ret, "vfs", vfs);
	return ret;
}

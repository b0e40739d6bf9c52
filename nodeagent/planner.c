/*
 * Desired state against observed state, to steps. See the header; planner_parts.h has the map of the other files.
 *
 * The order is that of node-kernel 10.1. What is common to all parts is here: a step is written down only when hostd would
 * take it and it was not refused lately, and a PF that is protected has none.
 */
#include "nodeagent/planner.h"

#include "nodeagent/planner_parts.h"

#include <string.h>

#define INTERFACES_MAX 1024

/* ---- writing it down ---------------------------------------------------------------------------------------------------- */

bool plan_is_refused(const struct planning *p, const json_t *step)
{
	json_t *refused;
	size_t i;

	json_array_foreach ((json_t *)p->in->refused, i, refused) {
		if (json_same(refused, step))
			return true;
	}
	return false;
}

static __attribute__((format(printf, 1, 0))) json_t *message_new(const char *fmt, va_list ap)
{
	auto_free char *text = str_vprintf(fmt, ap);

	return json_fmt("%s", text);
}

static void put_where(json_t *object, const char *pf, const char *vf)
{
	json_put_str(object, "pf", pf);
	json_put_str(object, "vf", vf);
}

/* Without VFs nobody can be disturbed, except through the PF's link, which drivers of this family drop (node-kernel 1.7). */
static enum step_impact impact_of(const struct planning *p, const struct step_kind *kind,
				  const json_t *step, const char *pf)
{
	static const char *const dropping[] = {"igb", "ixgbe"};
	const json_t *entry = plan_observed_pf(p, pf);
	const char *driver = json_str_at(entry, "driver");

	if (!str_eq(kind->name, "set-num-vfs") || json_integer_value(json_at(entry, "numVfs")) > 0)
		return kind->impact;
	for (size_t i = 0; i < ARRAY_LEN(dropping); i++)
		if (str_eq(driver, dropping[i]))
			return kind->impact;
	return STEP_IMPACT_NONE;
}

bool plan_step(struct planning *p, const char *pf, const char *vf, json_t *step, const char *fmt,
	       ...)
{
	json_auto_t *owned = step;
	struct err err = {0};
	const struct step_kind *kind = step_check(step, &err);
	json_t *entry;
	va_list ap;

	if (!kind) {
		plan_problem(p, pf, err.reason, "%s", err.text);
		return false;
	}
	if (plan_is_refused(p, step))
		return false;
	entry = json_object();
	json_put(entry, "step", json_incref(owned));
	put_where(entry, pf, vf);
	json_put_str(entry, "impact", step_impact_name(impact_of(p, kind, step, pf)));
	va_start(ap, fmt);
	json_put(entry, "why", message_new(fmt, ap));
	va_end(ap);
	(void)json_array_append_new(p->steps, entry);
	return true;
}

void plan_problem(struct planning *p, const char *pf, const char *reason, const char *fmt, ...)
{
	json_t *problem = json_object();
	va_list ap;

	put_where(problem, pf, NULL);
	json_put_str(problem, "reason", reason);
	va_start(ap, fmt);
	json_put(problem, "message", message_new(fmt, ap));
	va_end(ap);
	(void)json_array_append_new(p->problems, problem);
}

void plan_blocked(struct planning *p, const char *pf, const char *vf, const char *holder,
		  const char *fmt, ...)
{
	json_t *blocked = json_object();
	auto_free char *what = NULL;
	va_list ap;

	va_start(ap, fmt);
	what = str_vprintf(fmt, ap);
	va_end(ap);
	put_where(blocked, pf, vf);
	json_put_str(blocked, "reason", "VfInUse");
	json_put_str(blocked, "holder", holder);
	json_put(blocked, "message",
		 json_fmt("VF " QUOTE " is held by " QUOTE
			  ", and %s: it waits until the VF is free",
			  vf, holder, what));
	(void)json_array_append_new(p->blocked, blocked);
}

void plan_pf_blocked(struct planning *p, const char *pf, const char *holder, const char *why)
{
	json_t *blocked = json_object();

	put_where(blocked, pf, NULL);
	json_put_str(blocked, "reason", "PfInUse");
	json_put_str(blocked, "holder", holder);
	json_put(blocked, "message",
		 json_fmt(QUOTE " lies on the PF, and " QUOTE ": it waits until that is gone",
			  holder, why));
	(void)json_array_append_new(p->blocked, blocked);
}

/* ---- looking things up ---------------------------------------------------------------------------------------------------- */

const json_t *plan_observed_pf(const struct planning *p, const char *address)
{
	return json_find(json_at(p->in->observed, "interfaces"), "pciAddress", address);
}

bool plan_has_module(const struct planning *p, const char *module)
{
	return json_list_has(json_at(p->in->observed, "node", "modules"), module);
}

const json_t *plan_rdma_hardware(const struct planning *p, const char *address)
{
	return json_find(json_at(p->in->observed, "rdma", "devices"), "pciAddress", address);
}

/* ---- one PF ------------------------------------------------------------------------------------------------------------------ */

static void shrink(json_t *list, size_t size)
{
	while (json_array_size(list) > size)
		(void)json_array_remove(list, json_array_size(list) - 1);
}

void plan_respect_protection(struct planning *p, const struct pf_now *now, size_t steps,
			     size_t blocked)
{
	auto_free char *why = NULL;

	if (!now->protected ||
	    (json_array_size(p->steps) == steps && json_array_size(p->blocked) == blocked))
		return;
	why = str_printf(QUOTE, json_str_or(json_at(json_array_get(p->steps, steps), "why"),
					    "its VFs are held"));
	shrink(p->steps, steps);
	shrink(p->blocked, blocked);
	plan_problem(p, now->address, "ProtectedPf",
		     QUOTE " " QUOTE ", so it is not touched (%s), nor for an hour after that "
			   "has gone elsewhere: choose another NIC, or make its VFs by other means "
			   "and set externallyManaged",
		     now->name ? now->name : now->address, now->protected, why);
}

static void say_not_there(struct planning *p, const char *address)
{
	static const char *const reasons[] = {"NoDriver", "NoInterface"};
	const json_t *unusable =
		json_find(json_at(p->in->observed, "unusable"), "pciAddress", address);
	const json_t *missing =
		json_find(json_at(p->in->observed, "missing"), "pciAddress", address);
	const char *reason = "PfUnusable";

	if (!unusable && missing) {
		plan_problem(p, address, "PfMissing",
			     QUOTE " was there and has vanished: for some minutes it is told as it "
				   "was and waited for; if nobody restarts its driver or its "
				   "firmware now, look at the kernel log",
			     json_str_or(json_at(missing, "name"), "it"));
		return;
	}
	if (!unusable) {
		plan_problem(
			p, address, "PfMissing",
			"there is no such network function on this node: look for the NIC with "
			"lspci, or correct the policy");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(json_str_at(unusable, "reason"), reasons[i]))
			reason = reasons[i];
	plan_problem(p, address, reason, QUOTE,
		     json_str_or(json_at(unusable, "message"), "it cannot be worked with"));
}

static void plan_one(struct planning *p, const struct pf_wish *wish)
{
	const json_t *entry = plan_observed_pf(p, wish->address);
	size_t steps = json_array_size(p->steps), blocked = json_array_size(p->blocked);
	struct pf_now now;

	if (!entry) {
		say_not_there(p, wish->address);
		return;
	}
	pf_now_read(entry, &now);
	plan_pf(p, wish);
	/* VFs of a PF that somebody else manages are all right: plan_pf touches nothing else. */
	if (!wish->is_external)
		plan_respect_protection(p, &now, steps, blocked);
	if (!wish->is_external && json_array_size(p->steps) > steps)
		plan_remember_pf(p, &now);
}

int plan_compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_wishes(const void *a, const void *b)
{
	const struct pf_wish *x = a, *y = b;
	int order = strcmp(x->address, y->address);

	return order != 0 ? order : x->index < y->index ? -1 : 1;
}

static bool is_double(struct planning *p, const struct pf_wish *last, const struct pf_wish *wish)
{
	if (!last || !str_eq(last->address, wish->address))
		return false;
	plan_problem(p, wish->address, "BadSpec",
		     "spec.interfaces has it more than once: the first one counts");
	return true;
}

/* ---- the node ---------------------------------------------------------------------------------------------------------------- */

/* Whoever writes the NodeState, not a policy, has put in what we do not do. */
static void check_bridges(struct planning *p)
{
	size_t n = json_array_size(json_at(p->in->spec, "bridges", "ovs"));

	if (n > 0)
		plan_problem(p, NULL, "BridgeNotManaged",
			     "spec.bridges asks for %zu software bridge%s, which this agent does "
			     "not make: make them by other means and take `bridge` out of the "
			     "policies",
			     n, n == 1 ? "" : "s");
}

static void count_vfs(struct planning *p, const struct pf_wish *wishes, size_t n)
{
	json_t *entry;
	size_t i;

	for (i = 0; i < n; i++)
		p->wanted += wishes[i].num_vfs;
	json_array_foreach (json_at(p->in->observed, "interfaces"), i, entry)
		p->present += json_integer_value(json_at(entry, "numVfs"));
}

/* Without a writable /sys nothing works, and nothing is remembered of what was not touched. */
static void check_writable(struct planning *p)
{
	size_t n = json_array_size(p->steps);

	if (n == 0 || !json_is_false(json_at(p->in->observed, "node", "sysfsWritable")))
		return;
	(void)json_array_clear(p->steps);
	json_decref(p->found);
	p->found = json_is_object(p->in->found) ? json_deep_copy(p->in->found) : json_object();
	plan_problem(p, NULL, "SysfsReadOnly",
		     "/sys is mounted read-only, so %zu step%s cannot be done: run the agent "
		     "privileged, with the host's /sys",
		     n, n == 1 ? "" : "s");
}

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
		if (is_double(p, kept ? &wishes[kept - 1] : NULL, &wishes[i]))
			pf_wish_done(&wishes[i]);
		else
			wishes[kept++] = wishes[i];
	}
	return kept;
}

static void plan_node(struct planning *p, const json_t *interfaces, const char *mode)
{
	struct pf_wish *wishes = mem_calloc(json_array_size(interfaces) + 1, sizeof(*wishes));
	size_t n = read_wishes(p, interfaces, wishes);

	count_vfs(p, wishes, n);
	check_bridges(p);
	plan_rdma_mode(p, mode);
	plan_modules(p, wishes, n);
	for (size_t i = 0; i < n; i++)
		plan_one(p, &wishes[i]);
	plan_restore(p, wishes, n);
	check_writable(p);
	for (size_t i = 0; i < n; i++)
		pf_wish_done(&wishes[i]);
	free(wishes);
}

/* ---- the shape of spec ------------------------------------------------------------------------------------------------------- */

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

static json_t *document(struct planning *p)
{
	json_t *ret = json_object(), *vfs = json_object();

	json_put(ret, "steps", p->steps);
	json_put(ret, "blocked", p->blocked);
	json_put(ret, "problems", p->problems);
	json_put(ret, "reboot", p->reboot);
	json_put(ret, "found", p->found);
	json_put_int(vfs, "wanted", p->wanted);
	json_put_int(vfs, "present", p->present);
	json_put(ret, "vfs", vfs);
	return ret;
}

json_t *planner_plan(const struct planner_input *input, struct err *err)
{
	struct planning p = {.in = input};
	const json_t *interfaces = NULL;
	const char *mode = NULL;
	struct err wrong = {0};

	if (input->spec && read_spec(input->spec, &interfaces, &mode, &wrong) < 0) {
		(void)err_set(err, ERR_INVALID, "BadSpec", "%s", wrong.text);
		return NULL;
	}
	p.steps = json_array();
	p.blocked = json_array();
	p.problems = json_array();
	p.found = json_is_object(input->found) ? json_deep_copy(input->found) : json_object();
	if (input->spec)
		plan_node(&p, interfaces, mode);
	else
		count_vfs(&p, NULL, 0);
	return document(&p);
}

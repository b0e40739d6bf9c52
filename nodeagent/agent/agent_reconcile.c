// SPDX-License-Identifier: Apache-2.0
/*
 * A round: look → plan → save → steps → look. The first look after an event is cheap; when it finds
 * something to do, a close one (with everybody who holds a VF) is planned from. A round ends when
 * the plan has no step that may be tried.
 */
#include "nodeagent/agent/agent_internal.h"

#include <assert.h>

#include "nodeagent/host/observe.h"
#include "nodeagent/host_plan/impact.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/step.h"

/* ---- looking and planning -------------------------------------------------------------------- */

static void on_looked(void *arg, const json_t *result, const struct err *err);

/* Settings of NICs cost questions: they are read where they are wanted, or have to be put back. */
static bool wants_settings(const struct agent *agent)
{
	return json_array_size(json_at(agent->desired.spec, "nicSettings")) > 0 ||
	       json_object_size(json_at(agent->state, "found", "settings")) > 0;
}

void agent_start_look(struct agent *agent, bool closely)
{
	int64_t scan_ms = agent->config.scan_ms ? agent->config.scan_ms : AGENT_SCAN_MS;

	assert(agent->doing != LOADING && agent->doing != WITHDRAWING);
	agent->doing = LOOKING;
	agent->seen.how = (closely ? HOST_OBSERVE_HOLDERS : 0) |
			  (wants_settings(agent) ? HOST_OBSERVE_SETTINGS : 0);
	agent->planned.must_replan = false;
	agent->seen.look_ms = INT64_MAX;
	agent->seen.scan_ms = clock_ms() + scan_ms + scan_ms * agent_chance() / 4000;
	metric_add(agent->metrics.looks, 1, closely ? "close" : "cheap");
	hostd_observe(agent->config.hostd, agent->seen.how, on_looked, agent);
}

/* Failures of steps that would not be planned any more are made good. */
static void forget_mended(struct agent *agent, struct planner_input *input)
{
	json_auto_t *plan = NULL;

	if (!attempts_has_steps(agent->attempts))
		return;
	input->refused = NULL;
	plan = planner_plan(input, NULL);
	if (plan)
		attempts_keep_steps(agent->attempts, json_at(plan, "steps"), clock_ms());
}

static void make_plan(struct agent *agent)
{
	struct planner_input input = {
		.observed = agent->seen.observed,
		.found = json_at(agent->state, "found"),
		.held = agent->held,
		.is_held_awaited = !agent->held,
	};
	/* In mode exclusive pods are given a folder, by PCI address (docs/device-plugins.md). */
	bool are_numbers_given =
		!str_eq(json_str_at(agent->seen.observed, "rdma", "netnsMode"), "exclusive");
	json_auto_t *refused = NULL;
	struct err err = {0};
	json_t *plan;

	input.spec = agent->desired.spec;
	input.reboot_allowed =
		json_str_at(agent->object, "metadata", "annotations", AGENT_REBOOT_ANNOTATION);
	input.reboot_retry =
		json_str_at(agent->object, "metadata", "annotations", AGENT_RETRY_ANNOTATION);
	input.boots_reported = json_at(agent->object, "status", "boots");
	forget_mended(agent, &input);
	refused = attempts_refused(agent->attempts, clock_ms());
	input.refused = refused;
	plan = planner_plan(&input, &err);
	json_replace(&agent->planned.plan, plan);
	json_replace(&agent->planned.held, json_incref(agent->held));
	agent->planned.generation = agent->desired.generation;
	parallel_nics_free(agent->planned.lanes);
	agent->planned.lanes = parallel_nics_new(agent_steps(agent), are_numbers_given);
	json_object_clear(agent->planned.skipped);
	if (plan)
		agent_forget_failure(agent, KEY_SPEC);
	else
		agent_note_failure(agent, KEY_SPEC, &err);
}

/* Takes devices; NULL: none any more. */
static void set_withdrawn(struct agent *agent, json_t *devices)
{
	json_replace(&agent->planned.withdrawn, devices);
	agent->planned.withdrawal = devices ? WITHDRAWAL_ASKED : WITHDRAWAL_NONE;
	agent->config.withdraw(agent->config.arg, agent->planned.withdrawn);
}

static void round_end(struct agent *agent)
{
	json_auto_t *devices = NULL;

	agent->doing = IDLE;
	/* Cut off in the middle: the next agent knows what can be allocated. */
	if (agent->stopping) {
		if (agent->stopped)
			deferred_run(agent->turn);
		return;
	}
	/*
	 * The kubelet may allocate everything again, but not what evicted pods still have: their
	 * successors would get it.
	 */
	if (agent_is_vacating(agent->object) && agent->authority == AUTHORITY_EXECUTING)
		devices = plan_vacated(agent->planned.plan, agent->seen.observed);
	if (!json_same(devices, agent->planned.withdrawn))
		set_withdrawn(agent, json_incref(devices));
	if (!agent->report.doubted)
		agent_end_round(agent);
	agent->config.changed(agent->config.arg);
	agent_schedule(agent);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void run_steps(struct agent *agent);

static const char *entry_pf(const json_t *entry)
{
	return json_str_at(entry, "pf");
}

static const char *entry_name(const json_t *entry)
{
	return json_str_or(json_at(entry, "step", "step"), "?");
}

/*
 * After a failure the rest of this PF's steps wait for the next plan. A worker that is asleep in
 * the kernel holds the PF's lock: another one falls asleep too.
 */
static bool may_run(const json_t *entry, void *arg)
{
	const struct agent *agent = arg;
	const char *pf = entry_pf(entry);

	if (!pf)
		return true;
	return !json_object_get(agent->planned.skipped, pf) &&
	       !(hostd_stuck(agent->config.hostd, NULL) > 0 &&
		 attempts_has_hung(agent->attempts, pf));
}

static void set_activity(struct agent *agent, char *text)
{
	str_replace(&agent->report.activity, text);
	agent->config.changed(agent->config.arg);
}

static void on_stepped(void *arg, const json_t *result, const struct err *err)
{
	struct stepping *stepping = arg;
	struct agent *agent = stepping->agent;
	const json_t *entry = take_ptr(stepping->entry);
	struct err too_often = {0};

	assert(agent->doing == STEPPING && entry);
	json_put_int(agent->seen.acted, json_str_or(json_at(entry, "pf"), ""), clock_ms());
	agent->round.steps++;
	metric_add(agent->metrics.steps, 1, entry_name(entry), err ? "failed" : "done");
	if (!err) {
		metric_observe(agent->metrics.seconds,
			       (double)json_integer_value(json_at(result, "tookMs")) / 1000,
			       entry_name(entry));
		if (json_is_true(json_at(result, "changed")))
			json_array_append(agent->round.made, (json_t *)entry);
		if (attempts_step_succeeded(agent->attempts, entry, clock_ms(), &too_often) < 0)
			err = &too_often;
	}
	if (err) {
		agent_note_failed_step(agent, entry, err);
		if (entry_pf(entry))
			json_object_set_new(agent->planned.skipped, entry_pf(entry), json_true());
		else
			agent->planned.must_replan = true; /* others may depend on it */
	}
	parallel_nics_done(agent->planned.lanes, stepping->index);
	run_steps(agent);
}

/* Stops or removes something that pods may have. */
static bool takes_from_pods(const json_t *entry)
{
	const char *impact = json_str_at(entry, "impact");

	return str_eq(impact, "vf") || str_eq(impact, "pf");
}

/*
 * The VF of a step that stops nothing, and writes to a VF that the kubelet may allocate: its driver
 * works already. NULL: it is none.
 */
static const char *working_vf(const struct agent *agent, const json_t *entry)
{
	const char *vf = json_str_at(entry, "vf");
	const json_t *pf = json_find(json_at(agent->seen.observed, "interfaces"), "pciAddress",
				     entry_pf(entry));

	return vf && str_eq(entry_name(entry), "set-mtu") &&
			       json_at(json_find(json_at(pf, "Vfs"), "pciAddress", vf), "driver")
		       ? vf
		       : NULL;
}

static void begin_step(struct agent *agent, size_t index)
{
	const json_t *entry = json_array_get(agent_steps(agent), index);
	const json_t *step = json_at(entry, "step");
	struct stepping *stepping = agent->planned.stepping;

	assert(entry && parallel_nics_running(agent->planned.lanes) <= agent->config.parallel);
	while (stepping->entry)
		stepping++;
	*stepping = (struct stepping){.agent = agent, .entry = entry, .index = index};
	json_put_int(agent->seen.acted, json_str_or(json_at(entry, "pf"), ""), INT64_MAX);
	if (!agent->round.began)
		agent_begin_round(agent, entry);
	log_debug("step", F_INT("number", (int64_t)index + 1), F_STR("step", entry_name(entry)),
		  F_STR("where", agent_where(entry)));
	hostd_step(agent->config.hostd, step, step_deadline_ms(step), on_stepped, stepping);
}

/* What may begin now; when nothing runs any more, a look at what came of it. */
static void run_steps(struct agent *agent)
{
	const json_t *entry;
	size_t index;

	agent->doing = STEPPING;
	/* Nothing more of a plan that may be wrong by now. */
	while (!agent->stopping && !agent->planned.must_replan &&
	       parallel_nics_running(agent->planned.lanes) < agent->config.parallel &&
	       (index = parallel_nics_next(agent->planned.lanes, may_run, agent)) !=
		       PARALLEL_NICS_NONE) {
		entry = json_array_get(agent_steps(agent), index);
		/* A pod may have it by now. */
		if ((takes_from_pods(entry) || working_vf(agent, entry)) &&
		    !json_same(agent->held, agent->planned.held)) {
			agent->planned.must_replan = true;
		} else {
			parallel_nics_begin(agent->planned.lanes, index);
			begin_step(agent, index);
		}
	}
	if (parallel_nics_running(agent->planned.lanes) > 0) {
		/* The first of those that run, and how many others do. */
		size_t others = parallel_nics_running(agent->planned.lanes) - 1;
		const struct stepping *at = agent->planned.stepping;
		auto_free char *more = others ? str_printf("; %zu more beside it", others) : NULL;

		assert(parallel_nics_running(agent->planned.lanes) > 0);
		while (!at->entry)
			at++;
		set_activity(agent, str_printf("%s: %s, step %zu of %zu: %s%s",
					       agent_where(at->entry), entry_name(at->entry),
					       at->index + 1, json_array_size(agent_steps(agent)),
					       json_str_or(json_at(at->entry, "why"), ""),
					       more ? more : ""));
		return;
	}
	if (agent->stopping) {
		round_end(agent);
		return;
	}
	set_activity(agent, NULL);
	agent_start_look(agent, true);
}

/* ---- withdrawing ----------------------------------------------------------------------------- */

static void add_vfs(json_t *devices, const json_t *pf)
{
	const json_t *vf;
	size_t i;

	json_array_foreach (json_at(pf, "Vfs"), i, vf) {
		const char *address = json_str_at(vf, "pciAddress");

		if (address)
			json_object_set_new(devices, address, json_true());
	}
}

/* VFs that the plan stops, removes or writes to, and those that are withdrawn already. New. */
static json_t *touched_devices(const struct agent *agent)
{
	json_t *devices =
		agent->planned.withdrawn ? json_copy(agent->planned.withdrawn) : json_object();
	const json_t *entry;
	size_t i;

	json_array_foreach (agent_steps(agent), i, entry) {
		const char *vf = json_str_at(entry, "vf"), *pf = entry_pf(entry);
		const json_t *one;
		size_t k;

		json_array_foreach (json_at(entry, "vfs"), k, one)
			json_object_set_new(devices, json_string_value(one), json_true());
		if (json_at(entry, "vfs"))
			continue;
		if (vf && (str_eq(json_str_at(entry, "impact"), "vf") || working_vf(agent, entry)))
			json_object_set_new(devices, vf, json_true());
		else if (takes_from_pods(entry) && pf)
			add_vfs(devices, json_find(json_at(agent->seen.observed, "interfaces"),
						   "pciAddress", pf));
	}
	return devices;
}

static void withdraw_and_run(struct agent *agent)
{
	json_auto_t *devices = touched_devices(agent);

	if (json_object_size(devices) == 0 || (agent->planned.withdrawal == WITHDRAWAL_DONE &&
					       json_same(devices, agent->planned.withdrawn))) {
		run_steps(agent);
		return;
	}
	agent->doing = WITHDRAWING;
	set_activity(agent, str_printf("waiting until the kubelet gives none of %zu VFs away",
				       json_object_size(devices)));
	set_withdrawn(agent, json_incref(devices));
}

void agent_withdrawn(struct agent *agent)
{
	if (agent->planned.withdrawal == WITHDRAWAL_ASKED)
		agent->planned.withdrawal = WITHDRAWAL_DONE;
	/* Meanwhile another plan may have been made, or the end. */
	if (agent->doing == WITHDRAWING)
		run_steps(agent);
	else
		agent->config.changed(agent->config.arg);
}

/* ---- the state file -------------------------------------------------------------------------- */

/* The state file as it has to be before anything is done. New. */
static json_t *wanted_state(const struct agent *agent)
{
	json_t *state = json_copy(agent->state);
	const json_t *found = json_at(agent->planned.plan, "found");

	if (found)
		json_object_set(state, "found", (json_t *)found);
	if (agent->planned.plan && agent->desired.source == DESIRED_SERVER)
		json_put(state, "nodeState", desired_kept(agent->object));
	if (agent->addresses)
		json_object_set(state, "addresses", agent->addresses);
	if (agent->given)
		json_object_set(state, "given", agent->given);
	json_put(state, "node", history_node(agent->seen.observed));
	return state;
}

/* Is there a step that may be tried, and by us? */
static bool has_work(struct agent *agent)
{
	const json_t *entry;
	size_t i;

	if (agent->authority != AUTHORITY_EXECUTING || agent->stopping)
		return false;
	json_array_foreach (agent_steps(agent), i, entry)
		if (may_run(entry, agent))
			return true;
	return false;
}

/* How the host was found is on disk, or there is nothing to do. */
static void round_carry_on(struct agent *agent)
{
	if (has_work(agent))
		withdraw_and_run(agent);
	else
		round_end(agent);
}

static void on_saved(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;

	assert(agent->doing == SAVING && agent->saving);
	if (err) {
		/* Without it a policy that is removed could not be undone: no step before. */
		json_replace(&agent->saving, NULL);
		agent_note_failure(agent, KEY_STATE, err);
		round_end(agent);
		return;
	}
	json_replace(&agent->state, agent->saving);
	agent->saving = NULL;
	agent_forget_failure(agent, KEY_STATE);
	/* The spec in force may be borrowed from the state that was replaced. */
	agent_decide_desired(agent);
	if (agent->planned.must_replan && !agent->stopping)
		agent_start_look(agent, true);
	else
		round_carry_on(agent);
}

static void on_looked(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;
	json_auto_t *state = NULL;

	assert(agent->doing == LOOKING);
	if (err) {
		agent_note_failure(agent, KEY_LOOK, err);
		round_end(agent);
		return;
	}
	agent_forget_failure(agent, KEY_LOOK);
	agent_decide_desired(agent);
	if (wants_settings(agent) && !(agent->seen.how & HOST_OBSERVE_SETTINGS)) {
		agent_start_look(agent, agent->seen.how & HOST_OBSERVE_HOLDERS);
		return;
	}
	agent_take_observed(agent, json_incref((json_t *)result));
	make_plan(agent);
	agent->config.looked(agent->config.arg);
	/* A cheap look sees that all is well; it takes some VFs for held that are not. */
	if (!(agent->seen.how & HOST_OBSERVE_HOLDERS) &&
	    (has_work(agent) || json_array_size(json_at(agent->planned.plan, "blocked")) > 0)) {
		agent_start_look(agent, true);
		return;
	}
	agent_show_plan(agent);
	state = wanted_state(agent);
	/* The file belongs to the one who executes. */
	if (agent->authority != AUTHORITY_EXECUTING || json_same(state, agent->state)) {
		round_carry_on(agent);
		return;
	}
	if (!attempts_may_try(agent->attempts, KEY_STATE, clock_ms())) {
		round_end(agent);
		return;
	}
	agent->doing = SAVING;
	json_replace(&agent->saving, json_incref(state));
	hostd_save(agent->config.hostd, state, on_saved, agent);
}

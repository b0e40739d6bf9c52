/*
 * A round: look → plan → save → steps → look. The first look after an event is cheap; when it finds something to do, a
 * close one (with everybody who holds a VF) is planned from. A round ends when the plan has no step that may be tried.
 */
#include "nodeagent/agent_parts.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/planner.h"

/* ---- looking and planning ----------------------------------------------------------------------------------------------- */

static void on_looked(void *arg, const json_t *result, const struct err *err);

void agent_start_look(struct agent *agent, bool closely)
{
	agent->doing = LOOKING;
	agent->closely = closely;
	agent->must_replan = false;
	agent->look_ms = INT64_MAX;
	agent->scan_ms = clock_ms() + AGENT_SCAN_MS + AGENT_SCAN_MS * agent_chance() / 4000;
	metric_add(agent->looks, 1, closely ? "close" : "cheap");
	hostd_observe(agent->config.hostd, closely ? HOST_OBSERVE_HOLDERS : 0, on_looked, agent);
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
		.observed = agent->observed,
		.found = json_at(agent->state, "found"),
		.held = agent->held,
		.is_held_awaited = !agent->is_held_asked,
	};
	json_auto_t *refused = NULL;
	struct err err = {0};
	json_t *plan;

	input.spec = agent->desired.spec;
	forget_mended(agent, &input);
	refused = attempts_refused(agent->attempts, clock_ms());
	input.refused = refused;
	plan = planner_plan(&input, &err);
	agent_replace(&agent->plan, plan);
	agent->plan_generation = agent->desired.generation;
	agent->step = 0;
	json_object_clear(agent->skipped);
	if (plan)
		agent_forget_failure(agent, KEY_SPEC);
	else
		agent_note_failure(agent, KEY_SPEC, &err);
}

static void rest(struct agent *agent)
{
	agent->doing = IDLE;
	if (agent->stopping) {
		if (agent->stopped)
			deferred_run(agent->go);
		return;
	}
	if (!agent->unsure)
		agent_end_round(agent);
	agent->config.changed(agent->config.arg);
	agent_schedule(agent);
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

static void run_step(struct agent *agent);

static const char *entry_pf(const json_t *entry)
{
	return json_str_at(entry, "pf");
}

static const char *entry_name(const json_t *entry)
{
	return json_str_or(json_at(entry, "step", "step"), "?");
}

/*
 * After a failure the rest of this PF's steps wait for the next plan. A worker that is asleep in the kernel holds the PF's
 * lock: who asks again falls asleep too.
 */
static bool may_run(const struct agent *agent, const json_t *entry)
{
	const char *pf = entry_pf(entry);

	if (!pf)
		return true;
	return !json_object_get(agent->skipped, pf) &&
	       !(hostd_stuck(agent->config.hostd, NULL) > 0 &&
		 attempts_has_hung(agent->attempts, pf));
}

/* Index of the first step from `from` on that may run now; the number of steps when there is none. */
static size_t next_step(const struct agent *agent, size_t from)
{
	size_t n = json_array_size(agent_steps(agent));

	while (from < n && !may_run(agent, json_array_get(agent_steps(agent), from)))
		from++;
	return from;
}

static void set_activity(struct agent *agent, char *text)
{
	mem_free(agent->activity);
	agent->activity = text;
	agent->config.changed(agent->config.arg);
}

static void on_stepped(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;
	const json_t *entry = json_array_get(agent_steps(agent), agent->step);
	struct err too_often = {0};

	agent->round.steps++;
	metric_add(agent->steps, 1, entry_name(entry), err ? "failed" : "done");
	if (!err) {
		metric_observe(agent->seconds,
			       (double)json_integer_value(json_at(result, "tookMs")) / 1000,
			       entry_name(entry));
		if (attempts_step_succeeded(agent->attempts, entry, clock_ms(), &too_often) < 0)
			err = &too_often;
	}
	if (err) {
		agent_note_failed_step(agent, entry, err);
		if (entry_pf(entry))
			json_object_set_new(agent->skipped, entry_pf(entry), json_true());
		else
			agent->must_replan = true; /* others may depend on it */
	}
	agent->step++;
	run_step(agent);
}

/* The next step, or, after the last, a look at what came of them. */
static void run_step(struct agent *agent)
{
	const json_t *entry;

	if (agent->stopping) {
		rest(agent);
		return;
	}
	agent->step = next_step(agent, agent->step);
	if (agent->must_replan || agent->step >= json_array_size(agent_steps(agent))) {
		set_activity(agent, NULL);
		agent_start_look(agent, true);
		return;
	}
	entry = json_array_get(agent_steps(agent), agent->step);
	if (!agent->round.began)
		agent_begin_round(agent, entry);
	log_debug("step", F_INT("number", (int64_t)agent->step + 1),
		  F_STR("step", entry_name(entry)), F_STR("where", agent_where(entry)));
	agent->doing = STEPPING;
	set_activity(agent, str_printf("%s: %s, step %zu of %zu: %s", agent_where(entry),
				       entry_name(entry), agent->step + 1,
				       json_array_size(agent_steps(agent)),
				       json_str_or(json_at(entry, "why"), "")));
	hostd_step(agent->config.hostd, json_at(entry, "step"), on_stepped, agent);
}

/* ---- the state file ------------------------------------------------------------------------------------------------------ */

/* The state file as it has to be before anything is done. New. */
static json_t *wanted_state(const struct agent *agent)
{
	json_t *state = json_copy(agent->state);
	const json_t *found = json_at(agent->plan, "found");

	if (found)
		json_object_set(state, "found", (json_t *)found);
	if (agent->plan && agent->desired.from_server)
		json_put(state, "nodeState", desired_kept(agent->object));
	if (agent->addresses)
		json_object_set(state, "addresses", agent->addresses);
	json_put(state, "node", recall_node(agent->observed));
	return state;
}

static bool has_work(const struct agent *agent)
{
	return agent->may_execute && !agent->stopping &&
	       next_step(agent, 0) < json_array_size(agent_steps(agent));
}

/* How the host was found is on disk, or there is nothing to do. */
static void carry_on(struct agent *agent)
{
	if (has_work(agent))
		run_step(agent);
	else
		rest(agent);
}

static void on_saved(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;

	if (err) {
		/* Without it a policy that is removed could not be undone: no step before. */
		agent_replace(&agent->saving, NULL);
		agent_note_failure(agent, KEY_STATE, err);
		rest(agent);
		return;
	}
	agent_replace(&agent->state, agent->saving);
	agent->saving = NULL;
	agent_forget_failure(agent, KEY_STATE);
	/* The spec in force may be borrowed from the state that was replaced. */
	agent_decide_desired(agent);
	if (agent->must_replan && !agent->stopping)
		agent_start_look(agent, true);
	else
		carry_on(agent);
}

static void save_and_carry_on(struct agent *agent)
{
	json_auto_t *state = wanted_state(agent);

	/* The file belongs to the one who executes. */
	if (!agent->may_execute || json_same(state, agent->state)) {
		carry_on(agent);
		return;
	}
	if (!attempts_may_try(agent->attempts, KEY_STATE, clock_ms())) {
		rest(agent);
		return;
	}
	agent->doing = SAVING;
	agent_replace(&agent->saving, json_incref(state));
	hostd_save(agent->config.hostd, state, on_saved, agent);
}

/* A cheap look is good for seeing that all is well; it takes some VFs for held that are not. */
static bool needs_close_look(const struct agent *agent)
{
	return has_work(agent) || json_array_size(json_at(agent->plan, "blocked")) > 0;
}

static void on_looked(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;

	if (err) {
		agent_note_failure(agent, KEY_LOOK, err);
		rest(agent);
		return;
	}
	agent_forget_failure(agent, KEY_LOOK);
	agent_decide_desired(agent);
	agent_take_observed(agent, json_incref((json_t *)result));
	make_plan(agent);
	agent->config.looked(agent->config.arg);
	if (!agent->closely && needs_close_look(agent)) {
		agent_start_look(agent, true);
		return;
	}
	agent_show_plan(agent);
	save_and_carry_on(agent);
}

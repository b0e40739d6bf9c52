/*
 * The state machine of a node: what it is told, and when it looks. See the header; agent_round.c has what follows.
 */
#include "nodeagent/agent_parts.h"

static void go(void *arg);

/* ---- when -------------------------------------------------------------------------------------------------------------- */

void agent_schedule(struct agent *agent)
{
	int64_t now = clock_ms();
	int64_t next = agent_soonest(agent->look_ms, agent->scan_ms);

	/* One whose pause is over and that still waits for a stuck worker comes with the scan. */
	agent->retry_ms = attempts_next_ms(agent->attempts, now);
	if (agent->desired.again_ms >= 0)
		agent->retry_ms = agent_soonest(agent->retry_ms, now + agent->desired.again_ms + 1);
	next = agent_soonest(next, agent->retry_ms);
	timer_start(agent->due, next > now ? next - now : 0);
}

static void look_at(struct agent *agent, int64_t at_ms)
{
	agent->look_ms = agent_soonest(agent->look_ms, at_ms);
	if (agent->doing == IDLE)
		agent_schedule(agent);
}

/* What is wanted changed: at once, and with a close look. */
static void want_round(struct agent *agent)
{
	agent->must_replan = true;
	look_at(agent, clock_ms());
}

/* ---- what is wanted ----------------------------------------------------------------------------------------------------- */

void agent_decide_desired(struct agent *agent)
{
	int64_t now = clock_ms();
	bool reported = agent->object && str_eq(agent->reported_uid, json_uid(agent->object));
	struct desired_input input = {
		.heard = agent->heard,
		.object = agent->object,
		.kept = json_at(agent->state, "nodeState"),
		.waited_ms = now - agent->started_ms,
		.reported_ms = reported ? now - agent->reported_ms : -1,
	};

	agent->desired = desired_spec(&input);
}

/* ---- what earlier looks have seen ---------------------------------------------------------------------------------------- */

void agent_take_observed(struct agent *agent, json_t *observed)
{
	json_auto_t *owned = observed;
	struct recall_input input = {
		.observed = owned,
		.before = agent->observed ? agent->observed : agent->earlier,
		.spec = agent->desired.offered,
		.now_ms = clock_ms(),
	};

	agent_replace(&agent->observed, recall(&input));
	json_object_clear(agent->earlier);
}

/* The first NodeState that we see has the last look of the agent before us. */
static void take_told_before(struct agent *agent)
{
	const json_t *interfaces = json_at(agent->object, "status", "interfaces");
	json_t *observed = agent->observed;

	if (agent->is_told_before || !agent->object)
		return;
	agent->is_told_before = true;
	if (json_array_size(interfaces) == 0)
		return;
	json_object_set(agent->earlier, "interfaces", (json_t *)interfaces);
	if (!observed)
		return;
	json_object_set(agent->earlier, "node", json_at(observed, "node"));
	agent->observed = NULL;
	agent_take_observed(agent, observed);
}

/* ---- the state file: at the start, and when it has become ours ------------------------------------------------------- */

static void load(struct agent *agent);

static void on_loaded(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;
	const json_t *addresses;

	if (err) {
		/* Also a damaged file, once: it is put aside, and the next try finds none. */
		agent_note_failure(agent, KEY_STATE, err);
		agent->config.changed(agent->config.arg);
		load(agent);
		return;
	}
	agent_forget_failure(agent, KEY_STATE);
	agent->may_execute = agent->loads_allowed;
	agent_replace(&agent->state, json_deep_copy(result));
	if (!agent->observed && json_at(agent->state, "node"))
		json_object_set(agent->earlier, "node", json_at(agent->state, "node"));
	addresses = json_at(agent->state, "addresses");
	if (addresses && !agent->addresses)
		hostd_set_node_addresses(agent->config.hostd, addresses);
	agent->doing = IDLE;
	agent_decide_desired(agent);
	agent->config.looked(agent->config.arg);
	deferred_run(agent->go);
}

/* Now, or when the pause after a failure is over: nothing else may happen before. */
static void load(struct agent *agent)
{
	int64_t now = clock_ms();

	agent->doing = LOADING;
	if (!attempts_may_try(agent->attempts, KEY_STATE, now)) {
		timer_start(agent->due, attempts_next_ms(agent->attempts, now) - now);
		return;
	}
	timer_stop(agent->due);
	agent->loads_allowed = agent->allowed;
	hostd_load(agent->config.hostd, on_loaded, agent);
}

/* ---- turns -------------------------------------------------------------------------------------------------------------- */

static void go(void *arg)
{
	struct agent *agent = arg;
	int64_t now = clock_ms();
	bool closely;

	if (agent->stopping) {
		void (*stopped)(void *arg) = take_ptr(agent->stopped);

		if (stopped)
			stopped(agent->stopped_arg);
		return;
	}
	/* Who executed before us may have written the file after we read it. */
	if (agent->doing == LOADING ||
	    (agent->doing == IDLE && agent->allowed && !agent->may_execute)) {
		load(agent);
		return;
	}
	if (agent->doing != IDLE)
		return;
	closely = agent->must_replan || now >= agent->retry_ms;
	if (!closely && agent->observed && now < agent->look_ms && now < agent->scan_ms) {
		agent_schedule(agent);
		return;
	}
	agent_start_look(agent, closely);
}

struct agent *agent_new(const struct agent_config *config)
{
	struct agent *agent = mem_new(struct agent);

	agent->config = *config;
	agent->attempts = attempts_new();
	agent->failures = json_array();
	agent->skipped = json_object();
	agent->earlier = json_object();
	agent->due = timer_new(config->loop, go, agent);
	agent->go = deferred_new(config->loop, go, agent);
	agent->started_ms = clock_ms();
	agent->look_ms = agent->scan_ms = agent->retry_ms = INT64_MAX;
	agent->desired.again_ms = -1;
	agent->looks = metric_counter(config->metrics, "orbweaver_agent_looks_total",
				      "Looks at the host.", "how");
	agent->steps = metric_counter(config->metrics, "orbweaver_agent_steps_total",
				      "Steps executed on the host.", "step,result");
	agent->seconds = metric_histogram(config->metrics, "orbweaver_agent_step_seconds",
					  "Time that steps took.", "step", METRIC_SECONDS);
	agent->failed = metric_counter(config->metrics, "orbweaver_agent_failures_total",
				       "Looks, steps and saves that failed.", "reason");
	deferred_run(agent->go);
	return agent;
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	timer_free(agent->due);
	deferred_free(agent->go);
	attempts_free(agent->attempts);
	json_decref(agent->state);
	json_decref(agent->object);
	json_decref(agent->addresses);
	json_decref(agent->held);
	json_decref(agent->earlier);
	json_decref(agent->observed);
	json_decref(agent->plan);
	json_decref(agent->failures);
	json_decref(agent->skipped);
	json_decref(agent->saving);
	mem_free(agent->activity);
	json_decref(agent->shown);
	mem_free(agent->told);
	mem_free(agent->doubted);
	mem_free(agent->reported_uid);
	mem_free(agent);
}

/* ---- what is told to us --------------------------------------------------------------------------------------------------- */

void agent_set_node_state(struct agent *agent, const json_t *object)
{
	json_auto_t *now = object ? desired_read(object) : NULL;
	bool same =
		agent->heard && json_same(json_at(agent->object, "spec"), json_at(now, "spec")) &&
		str_eq(agent->object ? json_uid(agent->object) : NULL, now ? json_uid(now) : NULL);

	agent->heard = true;
	agent_replace(&agent->object, take_ptr(now));
	agent_decide_desired(agent);
	take_told_before(agent);
	if (same && json_generation(object) == agent->plan_generation)
		return;
	/* What was refused may be good now. */
	if (!same)
		attempts_forget_all(agent->attempts);
	want_round(agent);
}

void agent_set_reported(struct agent *agent, const char *uid)
{
	if (str_eq(agent->reported_uid, uid))
		return;
	mem_free(agent->reported_uid);
	agent->reported_uid = str_dup(uid);
	agent->reported_ms = clock_ms();
	agent_decide_desired(agent);
	if (agent->doing == IDLE)
		agent_schedule(agent);
}

void agent_set_addresses(struct agent *agent, const json_t *addresses)
{
	if (json_same(agent->addresses, addresses))
		return;
	agent_replace(&agent->addresses, json_incref((json_t *)addresses));
	hostd_set_node_addresses(agent->config.hostd, addresses);
	want_round(agent);
}

void agent_set_held(struct agent *agent, const json_t *held)
{
	if (agent->is_held_asked && json_same(agent->held, held))
		return;
	agent->is_held_asked = true;
	agent_replace(&agent->held, json_incref((json_t *)held));
	agent_wake(agent);
}

void agent_set_may_execute(struct agent *agent, bool may)
{
	if (agent->allowed == may)
		return;
	agent->allowed = may;
	agent->may_execute = agent->loads_allowed = false;
	want_round(agent);
}

void agent_wake(struct agent *agent)
{
	look_at(agent, clock_ms() + AGENT_DEBOUNCE_MS);
}

static bool is_called(const json_t *device, const char *name)
{
	return str_eq(json_str_at(device, "name"), name) ||
	       json_list_has(json_at(device, "altNames"), name);
}

bool agent_knows_interface(const struct agent *agent, const char *name)
{
	const json_t *pf, *vf;
	size_t i, k;

	json_array_foreach (json_at(agent->observed, "interfaces"), i, pf) {
		if (is_called(pf, name))
			return true;
		json_array_foreach (json_at(pf, "Vfs"), k, vf)
			if (is_called(vf, name))
				return true;
	}
	return false;
}

void agent_stop(struct agent *agent, void (*done)(void *arg), void *arg)
{
	agent->stopping = true;
	agent->stopped = done;
	agent->stopped_arg = arg;
	if (agent->doing != STEPPING && agent->doing != SAVING)
		deferred_run(agent->go);
}

struct agent_view agent_view(struct agent *agent)
{
	return (struct agent_view){
		.generation = agent->shown_generation,
		.observed = agent->observed,
		.plan = agent->shown,
		.failures = agent->failures,
		.activity = agent->activity,
		.offered = agent->desired.offered,
	};
}

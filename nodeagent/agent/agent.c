// SPDX-License-Identifier: Apache-2.0
/*
 * The state machine of a node: what it gets from outside (agent_wiring.c), and its turns.
 *
 *	agent.c         events, turns, the state file at the start
 *	agent_reconcile.c   look, plan, save, withdraw, step
 *	agent_report.c  failures, what is shown, logged and emitted
 *	agent_schedule.c    when the next look is due, and which spec is in force
 *
 * Requests of one kind are under way at a time; `doing` says which. Events in the states (-:
 * nothing at once, it counts at the next turn or step):
 *
 *	              LOADING     IDLE           LOOKING   SAVING      WITHDRAWING  STEPPING
 *	NodeState,    -           LOOKING        look      LOOKING     LOOKING      LOOKING after
 *	addresses,                (close)        again     after it    after it     the step
 *	authority
 *	held          -           LOOKING soon   look      -           LOOKING      LOOKING before a
 *	                                         again     (1)         after it     step on VFs (1)
 *	host event    -           LOOKING soon   look again at the end of the round
 *	timer         LOADING     LOADING (2)    none runs
 *	              again       or LOOKING
 *	done          IDLE        -              SAVING,   WITHDRAW-   STEPPING     STEPPING,
 *	                                         IDLE      ING, IDLE                LOOKING (close)
 *	failed        LOADING     -              IDLE      IDLE        -            as done; others
 *	              after a                                                       of that PF wait
 *	              pause
 *	stop          stopped     stopped        stopped   IDLE, then  stopped      IDLE, then
 *	                                                   stopped                  stopped
 *
 *	(1) when it differs from what the plan was made with
 *	(2) when authority is GIVEN: who executed before may have written the file after it was read
 *
 * `authority`: NONE → GIVEN (agent_set_may_execute) → LOADING (a load has begun since) → EXECUTING
 * (it has ended); NONE again at any time. `desired.source` says whose spec is in force.
 */
#include "nodeagent/agent/agent_internal.h"

#include <assert.h>

/* ---- the NodeState that an earlier agent wrote ----------------------------------------------- */

/* The first NodeState that we see has the last look of the agent before us. */
static void take_earlier_report(struct agent *agent)
{
	const json_t *interfaces = json_at(agent->object, "status", "interfaces");
	json_t *observed = agent->seen.observed;

	if (agent->report.has_earlier || !agent->object)
		return;
	agent->report.has_earlier = true;
	if (json_array_size(interfaces) == 0)
		return;
	json_object_set(agent->seen.earlier, "interfaces", (json_t *)interfaces);
	json_put(agent->seen.earlier, "rails",
		 json_incref(json_at(agent->object, "status", "rails")));
	json_put(agent->seen.earlier, "linkHealth",
		 json_incref(json_at(agent->object, "status", "linkHealth")));
	if (!observed)
		return;
	json_object_set(agent->seen.earlier, "node", json_at(observed, "node"));
	agent->seen.observed = NULL;
	agent_take_observed(agent, observed);
}

/* ---- the state file: at the start, and when it has become ours ------------------------------- */

static void load_state(struct agent *agent);

static void on_loaded(void *arg, const json_t *result, const struct err *err)
{
	struct agent *agent = arg;
	const json_t *addresses;

	assert(agent->doing == LOADING);
	if (err) {
		/* Also a damaged file, once: it is put aside, and the next try finds none. */
		agent_note_failure(agent, KEY_STATE, err);
		agent->config.changed(agent->config.arg);
		load_state(agent);
		return;
	}
	agent_forget_failure(agent, KEY_STATE);
	if (agent->authority == AUTHORITY_LOADING)
		agent->authority = AUTHORITY_EXECUTING;
	json_replace(&agent->state, json_deep_copy(result));
	if (!agent->seen.observed && json_at(agent->state, "node"))
		json_object_set(agent->seen.earlier, "node", json_at(agent->state, "node"));
	/* The agent that executed before us has seen more of it. */
	if (json_at(agent->state, "given"))
		json_replace(&agent->given, json_incref(json_at(agent->state, "given")));
	addresses = json_at(agent->state, "addresses");
	if (addresses && !agent->addresses)
		hostd_set_node_addresses(agent->config.hostd, addresses);
	agent->doing = IDLE;
	agent_decide_desired(agent);
	agent->config.looked(agent->config.arg);
	deferred_run(agent->turn);
}

/* Now, or when the pause after a failure is over: nothing else may happen before. */
static void load_state(struct agent *agent)
{
	int64_t now = clock_ms();

	agent->doing = LOADING;
	if (!attempts_may_try(agent->attempts, KEY_STATE, now)) {
		timer_start(agent->due, attempts_next_ms(agent->attempts, now) - now);
		return;
	}
	timer_stop(agent->due);
	if (agent->authority == AUTHORITY_GIVEN)
		agent->authority = AUTHORITY_LOADING;
	hostd_load(agent->config.hostd, on_loaded, agent);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void agent_turn(void *arg)
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
	    (agent->doing == IDLE && agent->authority == AUTHORITY_GIVEN)) {
		load_state(agent);
		return;
	}
	if (agent->doing != IDLE)
		return;
	closely = agent->planned.must_replan || now >= agent->retry_ms;
	if (!closely && agent->seen.observed && now < agent->seen.look_ms &&
	    now < agent->seen.scan_ms) {
		agent_schedule(agent);
		return;
	}
	agent_start_look(agent, closely);
}

struct agent *agent_new(const struct agent_config *config)
{
	struct agent *agent = mem_new(struct agent);

	assert(config->looked && config->changed && config->emit && config->parallel > 0 &&
	       config->parallel <= HOSTD_PARALLEL_MAX);
	agent->config = *config;
	agent->attempts = attempts_new();
	agent->failures = json_array();
	agent->planned.skipped = json_object();
	agent->round.made = json_array();
	agent->seen.earlier = json_object();
	agent->seen.acted = json_object();
	agent->due = timer_new(config->loop, agent_turn, agent);
	agent->turn = deferred_new(config->loop, agent_turn, agent);
	agent->started_ms = clock_ms();
	agent->seen.look_ms = agent->seen.scan_ms = agent->retry_ms = INT64_MAX;
	agent->desired.again_ms = -1;
	agent->metrics.looks = metric_counter(config->metrics, "orbweaver_agent_looks_total",
					      "Looks at the host.", "how");
	agent->metrics.steps = metric_counter(config->metrics, "orbweaver_agent_steps_total",
					      "Steps executed on the host.", "step,result");
	agent->metrics.seconds = metric_histogram(config->metrics, "orbweaver_agent_step_seconds",
						  "Time that steps took.", "step", METRIC_SECONDS);
	agent->metrics.failed = metric_counter(config->metrics, "orbweaver_agent_failures_total",
					       "Looks, steps and saves that failed.", "reason");
	deferred_run(agent->turn);
	return agent;
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	timer_free(agent->due);
	deferred_free(agent->turn);
	attempts_free(agent->attempts);
	json_decref(agent->state);
	json_decref(agent->object);
	json_decref(agent->addresses);
	json_decref(agent->held);
	json_decref(agent->given);
	json_decref(agent->planned.held);
	json_decref(agent->planned.withdrawn);
	json_decref(agent->seen.earlier);
	json_decref(agent->seen.acted);
	json_decref(agent->seen.observed);
	parallel_nics_free(agent->planned.lanes);
	json_decref(agent->planned.plan);
	json_decref(agent->failures);
	json_decref(agent->planned.skipped);
	json_decref(agent->round.made);
	json_decref(agent->saving);
	mem_free(agent->report.activity);
	json_decref(agent->report.shown);
	json_decref(agent->report.waiting);
	mem_free(agent->report.text);
	mem_free(agent->report.doubted);
	mem_free(agent->report.uid);
	mem_free(agent);
}

/* ---- what comes from outside ----------------------------------------------------------------- */

/* What the plan of a reboot hangs on. */
static bool same_about_boots(const json_t *one, const json_t *other)
{
	static const char *const annotations[] = {AGENT_REBOOT_ANNOTATION, AGENT_RETRY_ANNOTATION};

	for (size_t i = 0; i < ARRAY_LEN(annotations); i++)
		if (!str_eq(json_str_at(one, "metadata", "annotations", annotations[i]),
			    json_str_at(other, "metadata", "annotations", annotations[i])))
			return false;
	/* That the record has arrived there matters only on the way to a reboot. */
	return !json_str_at(other, "metadata", "annotations", AGENT_REBOOT_ANNOTATION) ||
	       json_same(json_at(one, "status", "boots"), json_at(other, "status", "boots"));
}

void agent_set_node_state(struct agent *agent, const json_t *object)
{
	json_auto_t *now = object ? desired_read(object) : NULL;
	bool same =
		agent_has_heard(agent) &&
		json_same(json_at(agent->object, "spec"), json_at(now, "spec")) &&
		str_eq(agent->object ? json_uid(agent->object) : NULL, now ? json_uid(now) : NULL);
	bool same_drain = agent_is_vacating(agent->object) == agent_is_vacating(object);
	bool same_boots = same_about_boots(agent->object, object);

	if (!agent_has_heard(agent))
		agent->desired.source = DESIRED_WAITING;
	json_replace(&agent->object, take_ptr(now));
	agent_decide_desired(agent);
	take_earlier_report(agent);
	if (same && same_boots && same_drain &&
	    json_generation(object) == agent->planned.generation)
		return;
	/* What was refused may be good now. */
	if (!same)
		attempts_forget_all(agent->attempts);
	agent_want_round(agent);
}

void agent_set_reported(struct agent *agent, const char *uid)
{
	if (str_eq(agent->report.uid, uid))
		return;
	str_replace(&agent->report.uid, str_dup(uid));
	agent->report.at_ms = clock_ms();
	agent_decide_desired(agent);
	if (agent->doing == IDLE)
		agent_schedule(agent);
}

void agent_set_addresses(struct agent *agent, const json_t *addresses)
{
	if (json_same(agent->addresses, addresses))
		return;
	json_replace(&agent->addresses, json_incref((json_t *)addresses));
	hostd_set_node_addresses(agent->config.hostd, addresses);
	agent_want_round(agent);
}

void agent_set_held(struct agent *agent, const json_t *held)
{
	if (json_same(agent->held, held))
		return;
	json_replace(&agent->held, json_incref((json_t *)held));
	hostd_set_held(agent->config.hostd, held);
	agent_wake(agent);
}

void agent_set_given(struct agent *agent, const json_t *given)
{
	if (json_same(agent->given, given))
		return;
	json_replace(&agent->given, json_incref((json_t *)given));
	agent_wake(agent);
}

void agent_set_may_execute(struct agent *agent, bool may)
{
	if ((agent->authority != AUTHORITY_NONE) == may)
		return;
	agent->authority = may ? AUTHORITY_GIVEN : AUTHORITY_NONE;
	agent_want_round(agent);
}

void agent_wake(struct agent *agent)
{
	agent_look_at(agent, clock_ms() + AGENT_DEBOUNCE_MS);
}

void agent_set_link(struct agent *agent, const char *address, bool is_up, int64_t carrier_changes)
{
	if (!agent->seen.observed)
		return;
	agent_take_observed(
		agent, history_with_link(agent->seen.observed, address, is_up, carrier_changes));
	agent->config.looked(agent->config.arg);
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

	json_array_foreach (json_at(agent->seen.observed, "interfaces"), i, pf) {
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
	assert(done && !agent->stopping);
	agent->stopping = true;
	agent->stopped = done;
	agent->stopped_arg = arg;
	if (agent->doing == WITHDRAWING)
		agent->doing = IDLE;
	if (agent->doing != STEPPING && agent->doing != SAVING)
		deferred_run(agent->turn);
}

struct agent_view agent_view(struct agent *agent)
{
	return (struct agent_view){
		.generation = agent->report.shown_generation,
		.observed = agent->seen.observed,
		.plan = agent->report.shown,
		.failures = agent->failures,
		.activity = agent->report.activity,
		.withdrawn = agent_is_vacating(agent->object) &&
			     agent->planned.withdrawal == WITHDRAWAL_DONE,
		.given = agent->given,
		.acted = agent->seen.acted,
		.offered = agent->desired.offered,
	};
}

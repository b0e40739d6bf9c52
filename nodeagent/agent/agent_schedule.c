// SPDX-License-Identifier: Apache-2.0
/*
 * When the next look is due, which spec is in force then, and what a look means together with those
 * before it. Everything else of the machine calls this file; it calls none of them.
 */
#include "nodeagent/agent/agent_internal.h"

#include <assert.h>

/* ---- when ------------------------------------------------------------------------------------ */

void agent_schedule(struct agent *agent)
{
	int64_t now = clock_ms();
	int64_t next = agent_soonest(agent->seen.look_ms, agent->seen.scan_ms);

	assert(agent->doing == IDLE);
	/* One whose pause is over and that still waits for a stuck worker comes with the scan. */
	agent->retry_ms = attempts_next_ms(agent->attempts, now);
	if (agent->desired.again_ms >= 0)
		agent->retry_ms = agent_soonest(agent->retry_ms, now + agent->desired.again_ms + 1);
	next = agent_soonest(next, agent->retry_ms);
	timer_start(agent->due, next > now ? next - now : 0);
}

void agent_look_at(struct agent *agent, int64_t at_ms)
{
	agent->seen.look_ms = agent_soonest(agent->seen.look_ms, at_ms);
	if (agent->doing == IDLE)
		agent_schedule(agent);
}

void agent_want_round(struct agent *agent)
{
	agent->planned.must_replan = true;
	agent_look_at(agent, clock_ms());
}

/* ---- what a look is made of ------------------------------------------------------------------ */

void agent_decide_desired(struct agent *agent)
{
	int64_t now = clock_ms();
	bool reported = agent->object && str_eq(agent->report.uid, json_uid(agent->object));
	struct desired_input input = {
		.heard = agent_has_heard(agent),
		.object = agent->object,
		.kept = json_at(agent->state, "nodeState"),
		.waited_ms = now - agent->started_ms,
		.reported_ms = reported ? now - agent->report.at_ms : -1,
	};

	agent->desired = desired_spec(&input);
}

void agent_take_observed(struct agent *agent, json_t *observed)
{
	json_auto_t *owned = observed;
	struct history_input input = {
		.observed = owned,
		.before = agent->seen.observed ? agent->seen.observed : agent->seen.earlier,
		.spec = agent->desired.offered,
		.acted = agent->seen.acted,
		.now_ms = clock_ms(),
	};

	assert(observed && observed != agent->seen.observed);
	json_replace(&agent->seen.observed, history_merge(&input));
	json_object_clear(agent->seen.earlier);
}

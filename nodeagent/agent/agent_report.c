// SPDX-License-Identifier: Apache-2.0
/*
 * What failed, what a plan says cannot be done, and what was done: kept for the status, emitted as
 * events.
 */
#include "nodeagent/agent/agent_internal.h"

#include <assert.h>

#include "nodeagent/host_plan/change_summary.h"

/* ---- failures -------------------------------------------------------------------------------- */

/* Without what a request for a reboot says already. */
void agent_list_failures(struct agent *agent)
{
	json_t *list = attempts_failures(agent->attempts);

	for (size_t i = json_array_size(list); i-- > 0;)
		if (status_is_answered(agent->planned.plan, json_array_get(list, i)))
			json_array_remove(list, i);
	json_replace(&agent->failures, list);
}

static void report_failure(struct agent *agent, const char *where, const struct err *err,
			   bool is_news)
{
	metric_add(agent->metrics.failed, 1, err->reason);
	agent_list_failures(agent);
	if (!is_news)
		return;
	/* What passes by itself is not reported. */
	if (err->class == ERR_CONFLICT || err->class == ERR_TRANSIENT) {
		log_info("not done yet, trying again", F_STR("where", where), F_ERR(err));
		return;
	}
	log_error("failed", F_STR("where", where), F_STR("class", err_class_name(err->class)),
		  F_ERR(err));
	agent->config.emit(agent->config.arg, true, err->reason, err->text);
}

void agent_note_failure(struct agent *agent, const char *name, const struct err *err)
{
	bool is_news = attempts_failed(agent->attempts, name, err, clock_ms(), agent_chance());

	report_failure(agent, name, err, is_news);
}

void agent_note_failed_step(struct agent *agent, const json_t *entry, const struct err *err)
{
	bool is_news =
		attempts_step_failed(agent->attempts, entry, err, clock_ms(), agent_chance());

	report_failure(agent, agent_where(entry), err, is_news);
}

void agent_forget_failure(struct agent *agent, const char *name)
{
	attempts_forget(agent->attempts, name);
	agent_list_failures(agent);
}

/* ---- telling --------------------------------------------------------------------------------- */

static bool is_done(const struct agent *agent)
{
	return agent->planned.plan && json_array_size(agent_steps(agent)) == 0 &&
	       json_array_size(json_at(agent->planned.plan, "blocked")) == 0 &&
	       json_array_size(json_at(agent->planned.plan, "problems")) == 0 &&
	       !json_at(agent->planned.plan, "reboot") && json_array_size(agent->failures) == 0;
}

static void report_entry(struct agent *agent, const json_t *entry)
{
	const char *reason = json_str_at(entry, "reason"), *message = json_str_at(entry, "message");

	if (reason && message)
		agent->config.emit(agent->config.arg, true, reason, message);
}

static bool has_entry(const json_t *list, const json_t *value)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (json_same(item, value))
			return true;
	return false;
}

/* An administrator looks here for what is waited for. */
static void log_waiting(struct agent *agent)
{
	const json_t *now = json_at(agent->planned.plan, "blocked"), *entry;
	size_t i;

	json_array_foreach (now, i, entry)
		if (!has_entry(agent->report.waiting, entry))
			log_info("a change waits", F_STR("pf", agent_where(entry)),
				 F_STR("for", json_str_at(entry, "holder")),
				 F_STR("why", json_str_at(entry, "message")));
	json_array_foreach (agent->report.waiting, i, entry)
		if (!has_entry(now, entry))
			log_info("a change no longer waits", F_STR("pf", agent_where(entry)),
				 F_STR("for", json_str_at(entry, "holder")));
	json_replace(&agent->report.waiting, json_incref((json_t *)now));
}

/* What cannot be done, as text; NULL when there is nothing of it. New. */
static char *trouble_text(const json_t *plan)
{
	json_auto_t *trouble = json_object();

	if (json_array_size(json_at(plan, "blocked")) > 0)
		json_object_set(trouble, "blocked", json_at(plan, "blocked"));
	if (json_array_size(json_at(plan, "problems")) > 0)
		json_object_set(trouble, "problems", json_at(plan, "problems"));
	if (json_at(plan, "reboot"))
		json_object_set(trouble, "reboot", json_at(plan, "reboot"));
	if (json_at(plan, "nextBoot"))
		json_object_set(trouble, "nextBoot", json_at(plan, "nextBoot"));
	return json_object_size(trouble) ? json_text(trouble) : NULL;
}

static void set_shown(struct agent *agent, json_t *plan)
{
	json_replace(&agent->report.shown, plan);
	agent->report.shown_generation = agent->planned.generation;
	agent_list_failures(agent);
	agent->config.changed(agent->config.arg);
}

/* No trouble, one that was reported, or one that an earlier look saw too. */
static bool is_sure(struct agent *agent, const char *text)
{
	if (!text || str_eq(text, agent->report.text))
		return true;
	if (!str_eq(text, agent->report.doubted)) {
		str_replace(&agent->report.doubted, str_dup(text));
		agent->report.doubted_ms = clock_ms();
	}
	return clock_ms() - agent->report.doubted_ms >= AGENT_CONFIRM_MS;
}

void agent_show_plan(struct agent *agent)
{
	auto_free char *text = trouble_text(agent->planned.plan);
	json_t *steps;

	if (!is_sure(agent, text)) {
		agent->seen.look_ms = agent_soonest(agent->seen.look_ms,
						    agent->report.doubted_ms + AGENT_CONFIRM_MS);
		if (json_array_size(agent_steps(agent)) == 0)
			return;
		/* The steps are sure, the troubles not yet. */
		steps = json_copy(agent->planned.plan);
		json_object_del(steps, "blocked");
		json_object_del(steps, "problems");
		json_object_del(steps, "reboot");
		json_object_del(steps, "nextBoot");
		set_shown(agent, steps);
		return;
	}
	mem_free(take_ptr(agent->report.doubted));
	log_waiting(agent);
	if (text && !str_eq(text, agent->report.text)) {
		const json_t *entry;
		size_t i;

		json_array_foreach (json_at(agent->planned.plan, "problems"), i, entry)
			report_entry(agent, entry);
		json_array_foreach (json_at(agent->planned.plan, "blocked"), i, entry)
			report_entry(agent, entry);
		report_entry(agent, json_at(agent->planned.plan, "reboot"));
		report_entry(agent, json_at(agent->planned.plan, "nextBoot"));
	}
	str_replace(&agent->report.text, take_ptr(text));
	set_shown(agent, json_incref(agent->planned.plan));
}

void agent_begin_round(struct agent *agent, const json_t *entry)
{
	assert(entry && !agent->round.began);
	agent->round = (struct round){
		.began = true,
		.made = agent->round.made,
		.repairs = agent->done_generation == agent->planned.generation &&
			   agent->planned.generation > 0,
		.begin_ms = clock_ms(),
	};
	json_array_clear(agent->round.made);
	log_info(agent->round.repairs ? "host differs from what was done, repairing"
				      : "configuring the host",
		 F_STR("where", agent_where(entry)), F_STR("why", json_str_at(entry, "why")),
		 F_INT("generation", agent->planned.generation),
		 F_INT("steps", (int64_t)json_array_size(agent_steps(agent))));
}

void agent_end_round(struct agent *agent)
{
	auto_free char *made = NULL, *message = NULL;
	int64_t took = clock_ms() - agent->round.begin_ms;

	if (is_done(agent))
		agent->done_generation = agent->planned.generation;
	if (!agent->round.began)
		return;
	agent->round.began = false;
	made = change_summary_text(agent->round.made, agent->seen.observed);
	json_array_clear(agent->round.made);
	log_info(is_done(agent) ? "host is as wanted"
				: "host is as near to what is wanted as can be",
		 F_STR("made", made), F_INT("generation", agent->planned.generation),
		 F_INT("steps", (int64_t)agent->round.steps), F_INT("took_ms", took));
	if (!is_done(agent))
		return;
	message = str_printf("%s (%zu step%s, %lld ms)", made, agent->round.steps,
			     agent->round.steps == 1 ? "" : "s", (long long)took);
	agent->config.emit(agent->config.arg, false,
			   agent->round.repairs ? "Repaired" : "Configured", message);
}

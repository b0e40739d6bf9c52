// SPDX-License-Identifier: Apache-2.0
/* Ready and Degraded of an object, and events for conditions that changed. */
#include "reconcilers/core/conditions.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

void conditions_judge(json_t *list, const json_t *previous, const struct judgement *judgement,
		      int64_t generation, const char *now)
{
	bool warns = judgement->warnings && judgement->warnings->total > 0;
	bool fails = judgement->ready == CONDITION_FALSE && !judgement->waits;
	auto_free char *text = warns ? problems_text(judgement->warnings) : NULL;
	auto_strbuf struct strbuf message = {0};

	assert(json_is_array(list) && judgement->reason && judgement->message);
	condition_set(list, previous, "Ready", judgement->ready, judgement->reason,
		      judgement->message, generation, now);
	if (fails)
		strbuf_adds(&message, judgement->message);
	if (warns)
		strbuf_addf(&message, "%s%s", fails ? "; " : "", text);
	if (fails || warns)
		condition_set(list, previous, "Degraded", CONDITION_TRUE,
			      fails ? judgement->reason : problems_reason(judgement->warnings),
			      strbuf_str(&message), generation, now);
	else
		condition_set(list, previous, "Degraded", CONDITION_FALSE, "AsExpected",
			      "nothing is wrong", generation, now);
}

static bool is_wrong(const char *type, const char *status)
{
	if (str_eq(type, "Ready") || str_eq(type, "Injected"))
		return str_eq(status, "False");
	if (str_eq(type, "Degraded") || str_eq(type, "Blocked"))
		return str_eq(status, "True");
	return false;
}

static bool is_news(const json_t *old, const char *type, const char *status, const char *reason)
{
	if (str_eq(type, "Progressing"))
		return false;
	if (!old)
		return is_wrong(type, status);
	return !str_eq(json_str_at(old, "status"), status) ||
	       !str_eq(json_str_at(old, "reason"), reason);
}

/*
 * The event that the plan has for the same cause: Ready=False and Degraded=True mostly have one, of
 * which one says more, a count before it or warnings behind it.
 */
static json_t *find_told(const struct plan *plan, size_t from, bool warning, const char *reason,
			 const char *message)
{
	for (size_t i = from; i < json_array_size(plan->ops); i++) {
		json_t *event = json_array_get(plan->ops, i);
		const char *told = json_str_or(json_at(event, "message"), "");

		if (str_eq(json_str_at(event, "type"), warning ? "Warning" : "Normal") &&
		    str_eq(json_str_at(event, "reason"), reason) &&
		    (strstr(told, message) || strstr(message, told)))
			return event;
	}
	return NULL;
}

void conditions_emit(struct plan *plan, const char *kind, const char *key, const json_t *previous,
		     const json_t *list)
{
	bool passes = str_eq(condition_status_of(list, "Progressing"), "True");
	size_t before = json_array_size(plan->ops);
	json_t *condition;
	size_t i;

	assert(plan && kind && key);
	json_array_foreach (list, i, condition) {
		const char *type = json_str_or(json_at(condition, "type"), "");
		const char *status = json_str_or(json_at(condition, "status"), "");
		const char *reason = json_str_or(json_at(condition, "reason"), "");
		const char *message = json_str_or(json_at(condition, "message"), "");
		bool warning = is_wrong(type, status) && !(passes && str_eq(type, "Ready"));
		json_t *told;

		if (!is_news(condition_find(previous, type), type, status, reason))
			continue;
		told = find_told(plan, before, warning, reason, message);
		if (!told)
			plan_event(plan, kind, key, warning, reason, message);
		else if (strlen(message) > strlen(json_str_or(json_at(told, "message"), "")))
			json_put_str(told, "message", message);
	}
}

/*
 * Events for conditions that changed.
 */
#include "reconcilers/conditions.h"

#include "lib/json/json.h"

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

void conditions_tell(struct plan *plan, const char *kind, const char *key, const json_t *previous,
		     const json_t *list)
{
	bool passes = str_eq(condition_status_of(list, "Progressing"), "True");
	json_t *condition;
	size_t i;

	json_array_foreach (list, i, condition) {
		const char *type = json_str_or(json_at(condition, "type"), "");
		const char *status = json_str_or(json_at(condition, "status"), "");
		const char *reason = json_str_or(json_at(condition, "reason"), "");
		bool warning = is_wrong(type, status) && !(passes && str_eq(type, "Ready"));

		if (is_news(condition_find(previous, type), type, status, reason))
			plan_event(plan, kind, key, warning, reason,
				   json_str_or(json_at(condition, "message"), ""));
	}
}

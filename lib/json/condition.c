// SPDX-License-Identifier: Apache-2.0
/*
 * A list is built again on each decision, and the previous one gives the transition times of
 * conditions whose status is the same. Without a previous one the time is left to the writer, so
 * reconcilers need no clock.
 */
#include "lib/json/condition.h"

#include <assert.h>
#include <string.h>

#include "lib/base/rfc3339.h"
#include "lib/json/json.h"

static const char *status_text(enum condition_status status)
{
	switch (status) {
	case CONDITION_FALSE:
		return "False";
	case CONDITION_TRUE:
		return "True";
	case CONDITION_UNKNOWN:
		return "Unknown";
	}
	return "Unknown";
}

json_t *condition_message(const char *message)
{
	auto_strbuf struct strbuf line = {0};

	/*
	 * Repaired first: that makes it longer. What lies beyond the limit is cut off in any case.
	 */
	strbuf_add_utf8(&line, message, strnlen(message, CONDITION_MESSAGE_MAX + 4));
	strbuf_cut(&line, str_clip(line.data, line.len, CONDITION_MESSAGE_MAX));
	for (char *c = line.data; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	return json_fmt("%s", line.data);
}

/*
 * When the status last changed: what is on record, if the status is the same and the record can be
 * read.
 */
static const char *transition_time(const json_t *previous, const char *type, const char *status,
				   const char *now)
{
	const json_t *old = condition_find(previous, type);
	const char *since = json_str_or(json_at(old, "lastTransitionTime"), "");
	int64_t us;

	if (!str_eq(json_str_at(old, "status"), status) || !rfc3339_read(since, &us))
		return now;
	return since;
}

static void put_field(json_t *list, json_t *condition)
{
	const char *type = json_str_at(condition, "type");
	json_t *other;
	size_t i;

	json_array_foreach (list, i, other) {
		if (str_eq(json_str_at(other, "type"), type)) {
			(void)json_array_set_new(list, i, condition);
			return;
		}
	}
	(void)json_array_append_new(list, condition);
}

void condition_set(json_t *list, const json_t *previous, const char *type,
		   enum condition_status status, const char *reason, const char *message,
		   int64_t observed_generation, const char *now)
{
	json_t *condition = json_object();
	const char *text = status_text(status);

	assert(*type && *reason); /* the API server refuses empty ones */
	json_put_str(condition, "type", type);
	json_put_str(condition, "status", text);
	json_put_int(condition, "observedGeneration", observed_generation);
	json_put_str(condition, "lastTransitionTime", transition_time(previous, type, text, now));
	json_put_str(condition, "reason", reason);
	json_put(condition, "message", condition_message(message));
	put_field(list, condition);
}

const json_t *condition_find(const json_t *list, const char *type)
{
	assert(type);
	return json_find(list, "type", type);
}

bool condition_reason_is_good(const char *reason)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = reason ? strspn(reason, letters) : 0;

	return len > 0 && !reason[len] && len <= CONDITION_REASON_MAX &&
	       !strchr("0123456789", *reason);
}

bool condition_is_whole(const json_t *condition)
{
	const char *reason = json_str_at(condition, "reason");
	const char *message = json_str_at(condition, "message");
	const char *time = json_str_at(condition, "lastTransitionTime");
	int64_t ignored = 0;

	return condition_reason_is_good(reason) && message && !strpbrk(message, "\r\n") &&
	       json_str_at(condition, "status") && time && rfc3339_read(time, &ignored);
}

const char *condition_status_of(const json_t *list, const char *type)
{
	assert(type);
	return json_str_or(json_at(condition_find(list, type), "status"), "");
}

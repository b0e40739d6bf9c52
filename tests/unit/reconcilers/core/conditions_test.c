// SPDX-License-Identifier: Apache-2.0
/* Condition lists: transition times, messages, and which changes are worth an event. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"

#define BEFORE "2026-01-31T10:00:00Z"
#define NOW    "2026-02-01T00:00:00Z"

static json_t *list_of(const char *type, enum condition_status status, const char *reason)
{
	json_t *list = json_array();

	condition_set(list, NULL, type, status, reason, "m", 1, BEFORE);
	return list;
}

TEST(a_condition_has_all_fields_of_the_api)
{
	json_auto_t *list = json_array();
	auto_free char *text = NULL;

	condition_set(list, NULL, "Ready", CONDITION_UNKNOWN, "Waiting", "for the agent", 7, NOW);
	text = json_text(list);
	assert_string_equal(text,
			    "[{\"lastTransitionTime\":\"" NOW
			    "\",\"message\":\"for the agent\",\"observedGeneration\":7,"
			    "\"reason\":\"Waiting\",\"status\":\"Unknown\",\"type\":\"Ready\"}]");
	assert_string_equal(condition_status_of(list, "Ready"), "Unknown");
	assert_string_equal(condition_status_of(list, "Degraded"), "");
	assert_string_equal(condition_status_of(NULL, "Ready"), "");
	assert_null(condition_find(NULL, "Ready"));
}

TEST(setting_a_type_again_replaces_it_in_place)
{
	json_auto_t *list = list_of("Ready", CONDITION_TRUE, "Done");

	condition_set(list, NULL, "Degraded", CONDITION_FALSE, "Fine", "", 1, NOW);
	condition_set(list, NULL, "Ready", CONDITION_FALSE, "Broken", "", 1, NOW);
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_str_at(json_array_get(list, 0), "reason"), "Broken");
}

TEST(the_transition_time_follows_the_status_alone)
{
	static const struct {
		const char *type;
		enum condition_status status;
		const char *reason, *want;
	} cases[] = {
		{"Ready", CONDITION_TRUE, "Done", BEFORE},
		{"Ready", CONDITION_TRUE, "OtherReason", BEFORE},
		{"Ready", CONDITION_FALSE, "Done", NOW},
		{"Ready", CONDITION_UNKNOWN, "Done", NOW},
		{"Degraded", CONDITION_TRUE, "Done", NOW},
	};
	json_auto_t *previous = list_of("Ready", CONDITION_TRUE, "Done");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *list = json_array();

		condition_set(list, previous, cases[i].type, cases[i].status, cases[i].reason, "x",
			      2, NOW);
		assert_string_equal(json_str_at(json_array_get(list, 0), "lastTransitionTime"),
				    cases[i].want);
	}
}

TEST(an_unreadable_record_does_not_live_on)
{
	static const char *const times[] = {"null", "5", "\"yesterday\"", "\"\""};

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		auto_free char *text = str_printf("[5,{\"type\":\"Ready\",\"status\":\"True\","
						  "\"lastTransitionTime\":%s}]",
						  times[i]);
		json_auto_t *previous = json_parse(text, strlen(text), NULL);
		json_auto_t *list = json_array();

		condition_set(list, previous, "Ready", CONDITION_TRUE, "Done", "", 1, NOW);
		assert_string_equal(json_str_at(json_array_get(list, 0), "lastTransitionTime"),
				    NOW);
	}
}

TEST(a_message_is_one_short_line_of_utf8)
{
	json_auto_t *list = json_array();
	auto_strbuf struct strbuf b = {0};
	const char *message;

	condition_set(list, NULL, "Ready", CONDITION_TRUE, "R", "a\nb\tc\xff", 1, NOW);
	message = json_str_at(json_array_get(list, 0), "message");
	assert_string_equal(message, "a b c\xef\xbf\xbd");

	strbuf_addc(&b, 'x');
	for (int i = 0; i < 1000; i++)
		strbuf_adds(&b, "ä");
	condition_set(list, NULL, "Ready", CONDITION_TRUE, "R", b.data, 1, NOW);
	message = json_str_at(json_array_get(list, 0), "message");
	assert_int_equal(strlen(message), 1023);

	/* Repairing makes text longer: the limit is of what is kept. */
	strbuf_reset(&b);
	for (int i = 0; i < 2000; i++)
		strbuf_addc(&b, '\xff');
	condition_set(list, NULL, "Ready", CONDITION_TRUE, "R", b.data, 1, NOW);
	message = json_str_at(json_array_get(list, 0), "message");
	assert_true(strlen(message) <= 1024);
}

TEST(events_tell_what_changed_and_how_bad_it_is)
{
	static const struct {
		const char *old_type;
		enum condition_status old_status;
		const char *old_reason;
		const char *type;
		enum condition_status status;
		const char *reason;
		const char *want; /* the event's type; NULL: none */
	} cases[] = {
		{"Ready", CONDITION_TRUE, "A", "Ready", CONDITION_TRUE, "A", NULL},
		{"Ready", CONDITION_TRUE, "A", "Ready", CONDITION_TRUE, "B", "Normal"},
		{"Ready", CONDITION_TRUE, "A", "Ready", CONDITION_FALSE, "A", "Warning"},
		{"Ready", CONDITION_FALSE, "A", "Ready", CONDITION_FALSE, "B", "Warning"},
		{"Ready", CONDITION_FALSE, "A", "Ready", CONDITION_TRUE, "B", "Normal"},
		{"Ready", CONDITION_FALSE, "A", "Ready", CONDITION_UNKNOWN, "A", "Normal"},
		{"Degraded", CONDITION_TRUE, "A", "Degraded", CONDITION_FALSE, "B", "Normal"},
		{"Degraded", CONDITION_FALSE, "A", "Degraded", CONDITION_TRUE, "B", "Warning"},
		{"Progressing", CONDITION_FALSE, "A", "Progressing", CONDITION_TRUE, "A", NULL},
		/* New types. */
		{"X", CONDITION_TRUE, "A", "Ready", CONDITION_TRUE, "A", NULL},
		{"X", CONDITION_TRUE, "A", "Ready", CONDITION_FALSE, "A", "Warning"},
		{"X", CONDITION_TRUE, "A", "Ready", CONDITION_UNKNOWN, "A", NULL},
		{"X", CONDITION_TRUE, "A", "Degraded", CONDITION_TRUE, "A", "Warning"},
		{"X", CONDITION_TRUE, "A", "Degraded", CONDITION_FALSE, "A", NULL},
		{"X", CONDITION_TRUE, "A", "Blocked", CONDITION_TRUE, "A", "Warning"},
		{"X", CONDITION_TRUE, "A", "Blocked", CONDITION_FALSE, "A", NULL},
		{"X", CONDITION_TRUE, "A", "Progressing", CONDITION_TRUE, "A", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_plan struct plan plan = {0};
		json_auto_t *previous =
			list_of(cases[i].old_type, cases[i].old_status, cases[i].old_reason);
		json_auto_t *list = list_of(cases[i].type, cases[i].status, cases[i].reason);
		const json_t *event;

		conditions_emit(&plan, KIND_POLICY, "ns/p", previous, list);
		assert_int_equal(json_array_size(plan.ops), cases[i].want ? 1 : 0);
		if (!cases[i].want)
			continue;
		event = json_array_get(plan.ops, 0);
		assert_string_equal(json_str_at(event, "op"), "event");
		assert_string_equal(json_str_at(event, "kind"), KIND_POLICY);
		assert_string_equal(json_str_at(event, "key"), "ns/p");
		assert_string_equal(json_str_at(event, "type"), cases[i].want);
		assert_string_equal(json_str_at(event, "reason"), cases[i].reason);
		assert_string_equal(json_str_at(event, "message"), "m");
	}
}

TEST(one_cause_is_one_event)
{
	static const struct {
		const char *reason, *message;
		size_t want;
		const char *first; /* message of the first event */
	} cases[] = {
		{"Broken", "m", 1, "m"},
		{"Other", "m", 2, "m"},
		{"Broken", "another", 2, "m"},
		/* Of a policy the one counts, of a pool the other has warnings behind it. */
		{"Broken", "0 of 1 node ready: m", 1, "0 of 1 node ready: m"},
		{"Other", "0 of 1 node ready: m", 2, "m"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_plan struct plan plan = {0};
		json_auto_t *list = list_of("Ready", CONDITION_FALSE, "Broken");

		/* What others have planned does not count. */
		plan_event(&plan, KIND_POLICY, "ns/q", true, "Broken", "m");
		condition_set(list, NULL, "Degraded", CONDITION_TRUE, cases[i].reason,
			      cases[i].message, 1, NOW);
		conditions_emit(&plan, KIND_POLICY, "ns/p", NULL, list);
		assert_int_equal(json_array_size(plan.ops), 1 + cases[i].want);
		assert_string_equal(json_str_at(json_array_get(plan.ops, 1), "message"),
				    cases[i].first);
	}
}

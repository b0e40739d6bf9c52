// SPDX-License-Identifier: Apache-2.0
/* What may be sent again, and when. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/writer/revert_backoff.h"
#include "tests/support/yaml.h"

static struct revert_backoff *rewrites;
static int64_t now_ms;

static int set_up(void **state)
{
	rewrites = revert_backoff_new();
	now_ms = 1000;
	return 0;
}

static int tear_down(void **state)
{
	revert_backoff_free(rewrites);
	return 0;
}

static int64_t ask(const char *key, const char *patch)
{
	json_auto_t *value = yaml(patch);

	return revert_backoff_pause_ms(rewrites, "widgets", key, value, now_ms);
}

static void use_up_the_free_ones(const char *key, const char *patch)
{
	for (int i = 0; i < REVERT_BACKOFF_FREE; i++)
		assert_int_equal(ask(key, patch), 0);
}

static void the_same_patch_waits_longer_each_time(void **state)
{
	use_up_the_free_ones("a", "{spec: 1, metadata: {resourceVersion: '1'}}");
	assert_int_equal(ask("a", "{spec: 1, metadata: {resourceVersion: '2'}}"),
			 REVERT_BACKOFF_PAUSE_FIRST_MS);
	now_ms += REVERT_BACKOFF_PAUSE_FIRST_MS;
	assert_int_equal(ask("a", "{spec: 1, metadata: {}}"), 0);
	assert_int_equal(ask("a", "{spec: 1, metadata: {}}"), 2 * REVERT_BACKOFF_PAUSE_FIRST_MS);
	for (int i = 0; i < 20; i++)
		now_ms += ask("a", "{spec: 1, metadata: {}}");
	assert_int_equal(ask("a", "{spec: 1, metadata: {}}"), REVERT_BACKOFF_PAUSE_MAX_MS);
}

static void times_of_a_condition_make_no_other_patch(void **state)
{
	for (int i = 0; i < REVERT_BACKOFF_FREE; i++) {
		auto_free char *patch =
			str_printf("{status: {conditions: [{type: A, lastHeartbeatTime: '%d', "
				   "lastTransitionTime: '%d'}]}}",
				   i, i);

		assert_int_equal(ask("a", patch), 0);
	}
	assert_int_equal(ask("a", "{status: {conditions: [{type: A}]}}"),
			 REVERT_BACKOFF_PAUSE_FIRST_MS);
	assert_int_equal(ask("a", "{status: {conditions: [{type: A, status: 'True'}]}}"), 0);
}

static void another_patch_or_another_object_goes_at_once(void **state)
{
	use_up_the_free_ones("a", "{spec: 1}");
	assert_int_equal(ask("b", "{spec: 1}"), 0);
	assert_int_equal(ask("a", "{spec: 2}"), 0);
	assert_int_equal(ask("a", "{spec: 1}"), 0);
}

static void what_was_refused_does_not_count(void **state)
{
	for (int i = 0; i < 2 * REVERT_BACKOFF_FREE; i++) {
		assert_int_equal(ask("a", "{spec: 1}"), 0);
		revert_backoff_refused(rewrites, "widgets", "a");
	}
	use_up_the_free_ones("a", "{spec: 1}");
	assert_int_equal(ask("a", "{spec: 1}"), REVERT_BACKOFF_PAUSE_FIRST_MS);
}

static void an_hour_of_peace_is_a_new_beginning(void **state)
{
	use_up_the_free_ones("a", "{spec: 1}");
	now_ms += REVERT_BACKOFF_FORGET_MS;
	use_up_the_free_ones("a", "{spec: 1}");
	assert_true(ask("a", "{spec: 1}") > 0);
}

static void the_answer_says_who_else_writes(void **state)
{
	json_auto_t *answer =
		yaml("{metadata: {managedFields: ["
		     "{manager: kubectl, time: '2026-01-01T00:00:01Z'}, "
		     "{manager: enforcer, time: '2026-01-01T00:00:02Z'}, "
		     "{manager: kubelet, subresource: status, time: '2026-01-01T00:00:04Z'}, "
		     "{manager: orbweaver-operator, time: '2026-01-01T00:00:03Z'}]}}");
	json_auto_t *odd = yaml("{metadata: {managedFields: [1, {manager: 2}, null]}}");

	revert_backoff_answered(rewrites, "widgets", "a", answer);
	assert_string_equal(revert_backoff_other(rewrites, "widgets", "a"), "");
	(void)ask("a", "{spec: 1}");
	revert_backoff_answered(rewrites, "widgets", "a", answer);
	assert_string_equal(revert_backoff_other(rewrites, "widgets", "a"), "enforcer");
	revert_backoff_answered(rewrites, "widgets", "a", odd);
	assert_string_equal(revert_backoff_other(rewrites, "widgets", "a"), "");
}

static void memory_is_bounded(void **state)
{
	use_up_the_free_ones("a", "{spec: 1}");
	for (int i = 0; i < REVERT_BACKOFF_MAX; i++) {
		auto_free char *key = str_printf("other-%d", i);

		assert_int_equal(ask(key, "{spec: 1}"), 0);
	}
	assert_int_equal(ask("a", "{spec: 1}"), 0);
}

#define with_rewrites(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_rewrites(the_same_patch_waits_longer_each_time),
		with_rewrites(times_of_a_condition_make_no_other_patch),
		with_rewrites(another_patch_or_another_object_goes_at_once),
		with_rewrites(what_was_refused_does_not_count),
		with_rewrites(an_hour_of_peace_is_a_new_beginning),
		with_rewrites(the_answer_says_who_else_writes),
		with_rewrites(memory_is_bounded),
	};

	json_init();
	return cmocka_run_group_tests_name("operator/writer/revert_backoff", tests, NULL, NULL);
}

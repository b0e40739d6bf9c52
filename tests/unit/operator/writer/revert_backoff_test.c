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

TEST_WITH(the_same_patch_waits_longer_each_time, set_up, tear_down)
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

TEST_WITH(times_of_a_condition_make_no_other_patch, set_up, tear_down)
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

TEST_WITH(another_patch_or_another_object_goes_at_once, set_up, tear_down)
{
	use_up_the_free_ones("a", "{spec: 1}");
	assert_int_equal(ask("b", "{spec: 1}"), 0);
	assert_int_equal(ask("a", "{spec: 2}"), 0);
	assert_int_equal(ask("a", "{spec: 1}"), 0);
}

TEST_WITH(what_was_refused_does_not_count, set_up, tear_down)
{
	for (int i = 0; i < 2 * REVERT_BACKOFF_FREE; i++) {
		assert_int_equal(ask("a", "{spec: 1}"), 0);
		revert_backoff_refused(rewrites, "widgets", "a");
	}
	use_up_the_free_ones("a", "{spec: 1}");
	assert_int_equal(ask("a", "{spec: 1}"), REVERT_BACKOFF_PAUSE_FIRST_MS);
}

TEST_WITH(an_hour_of_peace_is_a_new_beginning, set_up, tear_down)
{
	use_up_the_free_ones("a", "{spec: 1}");
	now_ms += REVERT_BACKOFF_FORGET_MS;
	use_up_the_free_ones("a", "{spec: 1}");
	assert_true(ask("a", "{spec: 1}") > 0);
}

TEST_WITH(the_answer_says_who_else_writes, set_up, tear_down)
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

TEST_WITH(memory_is_bounded, set_up, tear_down)
{
	use_up_the_free_ones("a", "{spec: 1}");
	for (int i = 0; i < REVERT_BACKOFF_MAX; i++) {
		auto_free char *key = str_printf("other-%d", i);

		assert_int_equal(ask(key, "{spec: 1}"), 0);
	}
	assert_int_equal(ask("a", "{spec: 1}"), 0);
}

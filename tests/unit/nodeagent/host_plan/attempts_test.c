// SPDX-License-Identifier: Apache-2.0
/* What failed and when it is tried again; which spec is in force. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/attempts.h"
#include "nodeagent/host_plan/desired.h"

OWN_DEFINE(struct attempts, attempts_free)
#define auto_attempts auto_call(attempts_free_p)

static json_t *entry(const char *pf, int count)
{
	return json_pack("{s:s, s:{s:s, s:s, s:i}}", "pf", pf, "step", "step", "set-num-vfs", "pf",
			 pf, "count", count);
}

static struct err failure(enum err_class class, const char *reason)
{
	struct err err = {0};

	(void)err_set(&err, class, reason, "it did not work");
	return err;
}

TEST(pauses_grow_as_the_class_says)
{
	static const struct {
		enum err_class class;
		int64_t first, second, most;
	} cases[] = {
		{ERR_CONFLICT, 50, 100, 2000},
		{ERR_TRANSIENT, 250, 500, 30000},
		{ERR_HOST, 1000, 2000, ATTEMPTS_MAX_MS},
		{ERR_INVALID, ATTEMPTS_MAX_MS, ATTEMPTS_MAX_MS, ATTEMPTS_MAX_MS},
		{ERR_BUG, ATTEMPTS_MAX_MS, ATTEMPTS_MAX_MS, ATTEMPTS_MAX_MS},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_attempts struct attempts *a = attempts_new();
		json_auto_t *step = entry("0000:01:00.0", 4);
		struct err err = failure(cases[i].class, "Refused");

		assert_true(attempts_step_failed(a, step, &err, 1000, 0));
		assert_int_equal(attempts_next_ms(a, 1000), 1000 + cases[i].first);
		assert_false(attempts_step_failed(a, step, &err, 5000, 0));
		assert_int_equal(attempts_next_ms(a, 5000), 5000 + cases[i].second);
		for (int k = 0; k < 30; k++)
			(void)attempts_step_failed(a, step, &err, 5000, 0);
		assert_int_equal(attempts_next_ms(a, 5000), 5000 + cases[i].most);
		(void)attempts_step_failed(a, step, &err, 5000, 999);
		assert_in_range(attempts_next_ms(a, 5000), 5001 + cases[i].most,
				5000 + cases[i].most * 5 / 4);
	}
}

/* A driver that rounds does so again, and each try may take the link of all VFs. */
TEST(a_setting_that_a_driver_rounds_waits_for_long)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *rings = json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:i}}}", "pf", "0000:01:00.0",
				       "step", "step", "set-nic-setting", "pf", "0000:01:00.0",
				       "setting", "rings", "value", "rx", 1000);
	struct err err = failure(ERR_HOST, "NotAsAsked");

	(void)attempts_step_failed(a, rings, &err, 1000, 0);
	assert_int_equal(attempts_next_ms(a, 1000), 1000 + ATTEMPTS_ROUNDED_MS);
}

TEST(a_step_is_refused_while_it_waits)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4), *other = entry("0000:02:00.0", 4);
	struct err err = failure(ERR_HOST, "Refused");
	json_auto_t *during = NULL, *after = NULL;

	(void)attempts_step_failed(a, step, &err, 0, 0);
	during = attempts_refused(a, 999);
	assert_int_equal(json_array_size(during), 1);
	assert_true(json_same(json_array_get(during, 0), json_at(step, "step")));
	assert_false(json_same(json_array_get(during, 0), json_at(other, "step")));
	after = attempts_refused(a, 1000);
	assert_int_equal(json_array_size(after), 0);
	assert_true(attempts_has_steps(a));
}

TEST(a_busy_rdma_mode_is_never_tried_again_by_time)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4);
	struct err err = failure(ERR_HOST, "RdmaModeBusy");
	json_auto_t *refused = NULL;

	(void)attempts_step_failed(a, step, &err, 0, 0);
	assert_int_equal(attempts_next_ms(a, 0), INT64_MAX);
	refused = attempts_refused(a, INT64_MAX - 1);
	assert_int_equal(json_array_size(refused), 1);
	attempts_forget_all(a);
	assert_false(attempts_has_steps(a));
}

TEST(what_is_not_planned_any_more_is_made_good)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4), *other = entry("0000:02:00.0", 4);
	json_auto_t *planned = json_pack("[O]", other);
	struct err err = failure(ERR_HOST, "Refused");
	json_auto_t *failures = NULL;

	(void)attempts_step_failed(a, step, &err, 0, 0);
	(void)attempts_step_failed(a, other, &err, 0, 0);
	(void)attempts_failed(a, "state", &err, 0, 0);
	attempts_keep_steps(a, planned, 0);
	failures = attempts_failures(a);
	assert_int_equal(json_array_size(failures), 2);
	assert_null(json_str_at(json_array_get(failures, 0), "pf"));
	assert_string_equal(json_str_at(json_array_get(failures, 1), "pf"), "0000:02:00.0");
	assert_string_equal(json_str_at(json_array_get(failures, 1), "reason"), "Refused");
	assert_false(attempts_may_try(a, "state", 10));
	attempts_forget(a, "state");
	assert_true(attempts_may_try(a, "state", 10));
}

/* Else the planner, which asks with nothing refused, would try it again without a pause. */
TEST(the_other_order_of_a_planned_step_is_kept)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *after =
		json_pack("{s:s, s:{s:s, s:s, s:s, s:b}}", "pf", "0000:01:00.0", "step", "step",
			  "set-eswitch", "pf", "0000:01:00.0", "mode", "switchdev", "afterVfs", 1);
	json_auto_t *before = json_deep_copy(after), *planned = json_pack("[O]", before);
	json_auto_t *nothing = json_array();
	struct err err = failure(ERR_HOST, "ESwitchRefused");

	(void)json_object_del(json_at(before, "step"), "afterVfs");
	(void)attempts_step_failed(a, after, &err, 0, 0);
	attempts_keep_steps(a, planned, 0);
	assert_true(attempts_has_steps(a));
	attempts_keep_steps(a, nothing, 1000);
	assert_false(attempts_has_steps(a));
}

static size_t n_failures(const struct attempts *a)
{
	json_auto_t *failures = attempts_failures(a);

	return json_array_size(failures);
}

static size_t n_refused(const struct attempts *a, int64_t now_ms)
{
	json_auto_t *refused = attempts_refused(a, now_ms);

	return json_array_size(refused);
}

/* Else it would be tried, and fail, as often as the host can be looked at. */
TEST(a_step_that_is_needed_by_turns_keeps_its_pause)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4), *nothing = json_array();
	json_auto_t *planned = json_pack("[O]", step);
	struct err err = failure(ERR_INVALID, "VfUnknown");

	(void)attempts_step_failed(a, step, &err, 0, 0);
	attempts_keep_steps(a, nothing, 10);
	assert_int_equal(n_failures(a), 0);
	assert_true(attempts_next_ms(a, 10) == INT64_MAX);
	assert_int_equal(n_refused(a, 20), 1);
	attempts_keep_steps(a, planned, 20);
	assert_int_equal(n_failures(a), 1);
	assert_true(attempts_next_ms(a, 20) == 10 + ATTEMPTS_MENDED_MS);
	attempts_keep_steps(a, nothing, 30);
	(void)attempts_step_failed(a, step, &err, 6000, 0);
	attempts_keep_steps(a, nothing, 6000);
	assert_int_equal(n_refused(a, 5999 + 2 * ATTEMPTS_MENDED_MS), 1);
	/* It is no longer, however often that changes. */
	assert_int_equal(n_refused(a, 6000 + 2 * ATTEMPTS_MENDED_MS), 0);
	attempts_keep_steps(a, nothing, 6000 + 2 * ATTEMPTS_MENDED_MS);
	assert_false(attempts_has_steps(a));
}

static json_t *eswitch_entry(bool is_after)
{
	json_t *ret = json_pack("{s:s, s:{s:s, s:s, s:s}}", "pf", "0000:01:00.0", "step", "step",
				"set-eswitch", "pf", "0000:01:00.0", "mode", "switchdev");

	if (is_after)
		json_put_bool(json_at(ret, "step"), "afterVfs", true);
	return ret;
}

static bool is_refused(const struct attempts *a, const json_t *step, int64_t now_ms)
{
	json_auto_t *refused = attempts_refused(a, now_ms);
	json_t *one;
	size_t i;

	json_array_foreach (refused, i, one)
		if (json_same(one, json_at(step, "step")))
			return true;
	return false;
}

/* Each order undoes what the other one did to the VFs. */
TEST(one_order_waits_for_long_while_the_other_is_tried)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *before = eswitch_entry(false), *after = eswitch_entry(true);
	struct err err = failure(ERR_HOST, "ESwitchRefused");
	int64_t turn_ms = (int64_t)ATTEMPTS_OTHER_ORDER * 1000, now = 0;

	(void)attempts_step_failed(a, before, &err, now, 0);
	assert_true(is_refused(a, before, now));
	assert_false(is_refused(a, after, now));
	(void)attempts_step_failed(a, after, &err, now, 0);
	assert_true(is_refused(a, after, now));
	/* However often that fails, it puts off the other one no further. */
	while ((now = attempts_next_ms(a, now)) < turn_ms) {
		assert_true(is_refused(a, before, now));
		assert_false(is_refused(a, after, now));
		(void)attempts_step_failed(a, after, &err, now, 0);
	}
	assert_int_equal(now, turn_ms);
	assert_false(is_refused(a, before, now));
	assert_int_equal(n_failures(a), 2);
	/* Now it is the other way round, and for longer, within limits. */
	(void)attempts_step_failed(a, before, &err, now, 0);
	assert_true(is_refused(a, after, now + 10 * turn_ms));
	assert_false(is_refused(a, before, now + 2000));
	assert_false(is_refused(a, after, now + ATTEMPTS_OTHER_ORDER_MAX_MS));
}

TEST(remembers_the_pf_whose_step_hangs)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4);
	struct err err = failure(ERR_HOST, "HostHung");

	(void)attempts_step_failed(a, step, &err, 0, 0);
	assert_true(attempts_has_hung(a, "0000:01:00.0"));
	assert_false(attempts_has_hung(a, "0000:02:00.0"));
}

TEST(a_step_that_is_needed_again_and_again_does_not_last)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4), *other = entry("0000:01:00.0", 0);
	struct err err = {0};

	for (int i = 0; i < ATTEMPTS_SAME_MAX; i++)
		assert_int_equal(attempts_step_succeeded(a, step, i * 100, &err), 0);
	assert_int_equal(attempts_step_succeeded(a, other, 900, &err), 0);
	assert_int_equal(attempts_step_succeeded(a, step, 1000, &err), -1);
	assert_string_equal(err.reason, "StepDoesNotLast");
	assert_non_null(strstr(err.text, "0000:01:00.0"));
	/* An hour later it is a new story. */
	assert_int_equal(attempts_step_succeeded(a, step, 3600000, &err), 0);
}

TEST(what_does_not_last_pauses_although_nothing_is_to_be_done)
{
	auto_attempts struct attempts *a = attempts_new();
	json_auto_t *step = entry("0000:01:00.0", 4), *nothing = json_array();
	struct err err = failure(ERR_HOST, "StepDoesNotLast");

	(void)attempts_step_failed(a, step, &err, 0, 0);
	attempts_keep_steps(a, nothing, 999);
	assert_true(attempts_has_steps(a));
	attempts_keep_steps(a, nothing, 1000);
	assert_false(attempts_has_steps(a));
}

/* ---- which spec ------------------------------------------------------------------------------ */

static json_t *node_state(const char *uid, int generation, int interfaces)
{
	json_t *object = json_pack("{s:{s:s, s:i}, s:{}}", "metadata", "uid", uid, "generation",
				   generation, "spec");

	for (int i = 0; i < interfaces; i++) {
		if (i == 0)
			json_put(json_at(object, "spec"), "interfaces", json_array());
		json_array_append_new(json_at(object, "spec", "interfaces"),
				      json_pack("{s:s}", "pciAddress", "0000:01:00.0"));
	}
	return object;
}

TEST(the_nodestate_decides)
{
	json_auto_t *object = node_state("a", 3, 1);
	struct desired_input in = {.heard = true, .object = object, .reported_ms = -1};
	struct desired d = desired_spec(&in);

	assert_ptr_equal(d.spec, json_at(object, "spec"));
	assert_ptr_equal(d.offered, d.spec);
	assert_int_equal(d.generation, 3);
	assert_int_equal(d.source, DESIRED_SERVER);
	assert_int_equal(d.again_ms, -1);
}

TEST(nothing_is_done_before_the_server_had_its_time)
{
	json_auto_t *object = node_state("a", 3, 1), *kept = desired_kept(object);
	struct desired_input in = {.kept = kept, .waited_ms = 1000, .reported_ms = -1};
	struct desired d = desired_spec(&in);

	assert_null(d.spec);
	assert_non_null(d.offered);
	assert_int_equal(d.again_ms, DESIRED_WAIT_MS - 1000);
	in.waited_ms = DESIRED_WAIT_MS;
	d = desired_spec(&in);
	assert_true(json_same(d.spec, json_at(object, "spec")));
	assert_int_equal(d.generation, 3);
	assert_int_equal(d.source, DESIRED_KEPT);
	in.kept = NULL;
	assert_null(desired_spec(&in).spec);
}

TEST(a_deleted_nodestate_leaves_the_host_and_what_is_offered)
{
	json_auto_t *object = node_state("a", 3, 1), *kept = desired_kept(object);
	struct desired_input in = {
		.heard = true, .kept = kept, .waited_ms = 99999, .reported_ms = -1};
	struct desired d = desired_spec(&in);

	assert_null(d.spec);
	assert_true(json_same(d.offered, json_at(object, "spec")));
	assert_int_equal(d.generation, 0);
}

TEST(a_new_nodestate_that_is_empty_has_to_stay_so)
{
	json_auto_t *old = node_state("a", 3, 1), *kept = desired_kept(old);
	json_auto_t *object = node_state("b", 1, 0);
	struct desired_input in = {
		.heard = true, .object = object, .kept = kept, .reported_ms = -1};
	struct desired d;

	json_put(json_at(object, "spec"), "bridges", json_object());
	d = desired_spec(&in);
	assert_null(d.spec);
	assert_true(json_same(d.offered, json_at(old, "spec")));
	assert_int_equal(d.again_ms, -1);
	in.reported_ms = 1000;
	d = desired_spec(&in);
	assert_null(d.spec);
	assert_int_equal(d.again_ms, DESIRED_EMPTY_MS - 1000);
	in.reported_ms = DESIRED_EMPTY_MS;
	assert_non_null(desired_spec(&in).spec);
}

TEST(a_new_nodestate_that_nobody_has_decided_removes_nothing_ever)
{
	json_auto_t *old = node_state("a", 3, 1), *kept = desired_kept(old);
	json_auto_t *object = node_state("b", 1, 0);
	struct desired_input in = {.heard = true, .object = object, .kept = kept};
	static const int64_t reported_ms[] = {-1, 1000, DESIRED_EMPTY_MS, INT64_C(86400000)};

	for (size_t i = 0; i < ARRAY_LEN(reported_ms); i++) {
		struct desired d;

		in.reported_ms = reported_ms[i];
		d = desired_spec(&in);
		assert_null(d.spec);
		assert_true(json_same(d.offered, json_at(old, "spec")));
		assert_int_equal(d.again_ms, -1);
	}
	json_object_del(object, "spec");
	assert_null(desired_spec(&in).spec);
}

TEST(an_emptied_nodestate_counts_at_once)
{
	json_auto_t *old = node_state("a", 3, 1), *kept = desired_kept(old);
	json_auto_t *object = node_state("a", 4, 0);
	struct desired_input in = {
		.heard = true, .object = object, .kept = kept, .reported_ms = -1};

	assert_non_null(desired_spec(&in).spec);
	assert_int_equal(desired_spec(&in).generation, 4);
}

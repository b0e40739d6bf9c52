// SPDX-License-Identifier: Apache-2.0
/* The window of writes, against a server that is a formula: what is under way shares its time. */
#include "tests/support/test.h"

#include "operator/writer/write_limit.h"

enum { MAX = 64 };

static int64_t now_ms;

/*
 * `n` writes to a server that works on `lanes` of them at a time, `each_us` long, while others have
 * as many requests of their own under way. Always as many as the window allows.
 */
static void write_many(struct write_limit *pace, int n, unsigned int lanes, int64_t each_us,
		       unsigned int others)
{
	for (int i = 0; i < n; i++) {
		unsigned int under_way = write_limit_window(pace);
		unsigned int queue = under_way + others;
		int64_t took_us = queue > lanes ? each_us * queue / lanes : each_us;

		now_ms += 1;
		write_limit_answered(pace, "nads", "create", took_us, under_way, now_ms);
	}
}

static struct write_limit begin(unsigned int max)
{
	struct write_limit pace;

	now_ms = 1000;
	write_limit_init(&pace, max);
	return pace;
}

TEST(a_quick_server_gets_all_that_is_allowed)
{
	struct write_limit pace = begin(MAX);

	assert_int_equal(write_limit_window(&pace), WRITE_LIMIT_FIRST);
	write_many(&pace, 2000, 1000, 5000, 0);
	assert_int_equal(write_limit_window(&pace), MAX);
	assert_false(write_limit_is_pressed(&pace, now_ms));
}

TEST(a_bound_is_a_bound)
{
	struct write_limit pace = begin(2);

	write_many(&pace, 2000, 1000, 5000, 0);
	assert_int_equal(write_limit_window(&pace), 2);
}

TEST(a_small_server_is_not_flooded)
{
	struct write_limit pace = begin(MAX);

	/* Three times what it works on at once. */
	write_many(&pace, 5000, 4, 5000, 0);
	assert_in_range(write_limit_window(&pace), 8, 14);
	/* It is us who keep it busy. */
	assert_false(write_limit_is_pressed(&pace, now_ms));
}

TEST(whoever_else_loads_the_server_goes_first)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 2000, 16, 5000, 0);
	assert_true(write_limit_window(&pace) >= 16);
	write_many(&pace, 600, 16, 5000, 64);
	assert_int_equal(write_limit_window(&pace), 1);
	assert_true(write_limit_is_pressed(&pace, now_ms));
	/* They are gone. */
	write_many(&pace, 2000, 16, 5000, 0);
	assert_true(write_limit_window(&pace) >= 16);
	now_ms += WRITE_LIMIT_PRESSED_MS;
	assert_false(write_limit_is_pressed(&pace, now_ms));
}

/* As few as we have under way ourselves: not three times as slow, but more than is usual. */
TEST(a_few_others_are_noticed)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 5000, 4, 5000, 0);
	assert_true(write_limit_window(&pace) >= 8);
	write_many(&pace, 600, 4, 5000, 10);
	assert_in_range(write_limit_window(&pace), 1, WRITE_LIMIT_FEW);
	write_many(&pace, 2000, 4, 5000, 0);
	assert_true(write_limit_window(&pace) >= 8);
}

/* Minutes later we have our share, since nobody can tell others from a slow server. */
TEST(others_that_stay_are_shared_with)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 5000, 4, 5000, 0);
	for (int second = 0; second < 120; second++) {
		write_many(&pace, 50, 4, 5000, 10);
		now_ms += 950;
	}
	assert_true(write_limit_window(&pace) > WRITE_LIMIT_FEW);
}

TEST(a_server_that_became_slower_for_good_is_not_starved_for_ever)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 2000, 1000, 5000, 0);
	write_many(&pace, 600, 1000, 50000, 0);
	assert_int_equal(write_limit_window(&pace), 1);
	for (int i = 0; i < 3; i++) {
		now_ms += WRITE_LIMIT_MEMORY_MS;
		write_many(&pace, 2000, 1000, 50000, 0);
	}
	assert_int_equal(write_limit_window(&pace), MAX);
}

TEST(sorts_are_compared_with_themselves)
{
	struct write_limit pace = begin(MAX);

	for (int i = 0; i < 2000; i++) {
		write_limit_answered(&pace, "nads", "create", 3000, write_limit_window(&pace),
				     ++now_ms);
		write_limit_answered(&pace, "nodestates", "patch", 50000, write_limit_window(&pace),
				     ++now_ms);
	}
	assert_int_equal(write_limit_window(&pace), MAX);
}

TEST(a_refusal_counts_at_once_and_once)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 2000, 1000, 5000, 0);
	/* All that was under way is refused together. */
	for (int i = 0; i < MAX; i++)
		write_limit_refused(&pace, MAX, now_ms);
	assert_int_equal(write_limit_window(&pace), MAX / 2);
	assert_true(write_limit_is_pressed(&pace, now_ms));
}

/* `n` objects of users, so many in a second. */
static void users_write(struct write_limit *pace, int n, int in_a_second)
{
	for (int i = 0; i < n; i++) {
		now_ms += 1000 / in_a_second;
		write_limit_seen(pace, now_ms);
	}
}

TEST(a_crowd_of_users_objects_goes_first)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 2000, 1000, 5000, 0);
	users_write(&pace, 200, 100);
	assert_true(write_limit_steps_aside(&pace, now_ms));
	assert_true(write_limit_is_pressed(&pace, now_ms));
	/* One at a time, with a rest after it. */
	assert_true(write_limit_has_room(&pace, 0, 0, false, now_ms));
	write_limit_begun(&pace, now_ms);
	assert_false(write_limit_has_room(&pace, 0, 1, false, now_ms));
	/* Looks whether the crowd is still there. */
	assert_int_equal(write_limit_rest_ms(&pace, now_ms), WRITE_LIMIT_CROWD_MS);
	write_limit_rest(&pace, 10000, now_ms);
	assert_false(write_limit_has_room(&pace, 0, 0, false, now_ms));
	assert_int_equal(write_limit_rest_ms(&pace, now_ms), 10 * WRITE_LIMIT_REST);
	assert_true(
		write_limit_has_room(&pace, 0, 0, false, now_ms + (int64_t)10 * WRITE_LIMIT_REST));
	assert_true(write_limit_has_room(&pace, 1, 0, true, now_ms));
	/* However long a write took. */
	write_limit_rest(&pace, 60000000, now_ms);
	assert_int_equal(write_limit_rest_ms(&pace, now_ms), WRITE_LIMIT_REST_MAX_MS);

	/* The last of them has come: at full speed, as before, however slow the server was. */
	write_many(&pace, 200, 1, 50000, 0);
	now_ms += (int64_t)2 * WRITE_LIMIT_CROWD_MS;
	assert_false(write_limit_steps_aside(&pace, now_ms));
	assert_false(write_limit_is_pressed(&pace, now_ms));
	assert_int_equal(write_limit_rest_ms(&pace, now_ms), -1);
	assert_true(write_limit_has_room(&pace, 0, MAX - 1, false, now_ms));
}

TEST(a_write_that_hangs_does_not_hold_up_the_others)
{
	struct write_limit pace = begin(MAX);

	write_limit_begun(&pace, now_ms);
	users_write(&pace, 100, 100);
	assert_true(write_limit_steps_aside(&pace, now_ms));
	assert_true(write_limit_has_room(&pace, 0, 1, false, now_ms));
	write_limit_begun(&pace, now_ms);
	assert_false(write_limit_has_room(&pace, 0, 2, false, now_ms));
	users_write(&pace, 100, 100);
	assert_true(write_limit_has_room(&pace, 0, 2, false, now_ms));
	assert_false(write_limit_has_room(&pace, 0, WRITE_LIMIT_FIRST, false, now_ms));
}

TEST(a_few_objects_of_users_are_no_crowd)
{
	struct write_limit pace = begin(MAX);

	users_write(&pace, 1000, 20);
	assert_false(write_limit_steps_aside(&pace, now_ms));
}

TEST(a_crowd_without_end_shares)
{
	struct write_limit pace = begin(MAX);

	users_write(&pace, 100 * (WRITE_LIMIT_ASIDE_MAX_MS / 1000 - 1), 100);
	assert_true(write_limit_steps_aside(&pace, now_ms));
	users_write(&pace, 200, 100);
	assert_false(write_limit_steps_aside(&pace, now_ms));
	assert_true(write_limit_has_room(&pace, 0, 1, false, now_ms));
	/* The next one is another one. */
	now_ms += 1000;
	users_write(&pace, 100, 100);
	assert_true(write_limit_steps_aside(&pace, now_ms));
}

TEST(what_pods_wait_for_goes_at_any_pace_unless_refused)
{
	struct write_limit pace = begin(MAX);

	write_many(&pace, 200, 1, 1000, 0);
	write_many(&pace, 2000, 1, 20000, 40);
	assert_true(write_limit_window(&pace) < WRITE_LIMIT_FIRST);
	assert_false(write_limit_has_room(&pace, 0, WRITE_LIMIT_FIRST, false, now_ms));
	assert_true(write_limit_has_room(&pace, WRITE_LIMIT_AWAITED - 1, WRITE_LIMIT_FIRST, true,
					 now_ms));
	assert_false(
		write_limit_has_room(&pace, WRITE_LIMIT_AWAITED, WRITE_LIMIT_FIRST, true, now_ms));

	write_limit_refused(&pace, WRITE_LIMIT_AWAITED, now_ms);
	assert_false(write_limit_has_room(&pace, WRITE_LIMIT_FIRST, 0, true, now_ms));
	assert_true(write_limit_has_room(&pace, WRITE_LIMIT_FIRST, 0, true,
					 now_ms + WRITE_LIMIT_PRESSED_MS));
}

TEST(what_pods_wait_for_takes_no_place_of_the_rest)
{
	struct write_limit pace = begin(MAX);

	assert_true(write_limit_has_room(&pace, WRITE_LIMIT_AWAITED, WRITE_LIMIT_FIRST - 1, false,
					 now_ms));
	assert_false(
		write_limit_has_room(&pace, WRITE_LIMIT_AWAITED, WRITE_LIMIT_FIRST, false, now_ms));
}

TEST(what_pods_wait_for_has_the_same_bound)
{
	struct write_limit pace = begin(2);

	assert_true(write_limit_has_room(&pace, 1, 0, true, now_ms));
	assert_false(write_limit_has_room(&pace, 2, 0, true, now_ms));
	assert_false(write_limit_has_room(&pace, 2, 0, false, now_ms));
}

TEST(a_window_that_is_not_used_does_not_grow)
{
	struct write_limit pace = begin(MAX);

	for (int i = 0; i < 2000; i++)
		write_limit_answered(&pace, "nads", "create", 3000, 1, ++now_ms);
	assert_int_equal(write_limit_window(&pace), WRITE_LIMIT_FIRST);
}

TEST(more_sorts_than_there_is_room_for_are_passed_over)
{
	static char names[2 * WRITE_LIMIT_SORTS_MAX][2];
	struct write_limit pace = begin(MAX);

	for (int i = 0; i < 2 * WRITE_LIMIT_SORTS_MAX * WRITE_LIMIT_GROUP; i++) {
		names[i / WRITE_LIMIT_GROUP][0] = (char)(1 + i / WRITE_LIMIT_GROUP);
		write_limit_answered(&pace, names[i / WRITE_LIMIT_GROUP], "create", 3000, 1,
				     ++now_ms);
	}
	assert_int_equal(pace.n_sorts, WRITE_LIMIT_SORTS_MAX);
}

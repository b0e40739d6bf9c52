// SPDX-License-Identifier: Apache-2.0
/*
 * The queue: each key once, dirty keys again, failures later and later, the earliest of several
 * times, two lanes.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/kube/queue.h"
#include "tests/fakes/virtual_time.h"

static struct loop *loop;
static struct queue *queue;
static int ready;

static void on_ready(void *arg)
{
	ready++;
}

static int set_up(void **state)
{
	loop = loop_new();
	queue = queue_new(loop, on_ready, NULL);
	ready = 0;
	return 0;
}

static int tear_down(void **state)
{
	queue_free(queue);
	loop_free(loop);
	return 0;
}

static void turn_for(int64_t ms)
{
	for (int64_t until = clock_ms() + ms; clock_ms() < until;) {
		struct timespec pause = {.tv_nsec = 1000000};

		loop_turn(loop, false);
		(void)nanosleep(&pause, NULL);
	}
}

/* Take what there is: "a b ". */
static void assert_takes(const char *want)
{
	auto_strbuf struct strbuf got = {0};
	const char *key = NULL;

	while ((key = queue_take(queue, NULL)))
		strbuf_addf(&got, "%s ", key);
	assert_string_equal(strbuf_str(&got), want);
}

static const struct err failure = {.class = ERR_TRANSIENT, .reason = "Failed"};

TEST_WITH(each_key_is_in_it_once_in_its_order, set_up, tear_down)
{
	queue_add(queue, "a", QUEUE_MAIN);
	queue_add(queue, "b", QUEUE_MAIN);
	queue_add(queue, "a", QUEUE_MAIN);
	assert_int_equal(ready, 0);
	turn_for(5);
	assert_int_equal(ready, 1);
	assert_int_equal(queue_waiting(queue, QUEUE_MAIN), 2);
	assert_takes("a b ");
	assert_int_equal(queue_working(queue), 2);
	queue_done(queue, "a", NULL);
	queue_done(queue, "b", NULL);
	assert_int_equal(queue_working(queue), 0);
	assert_takes("");
}

TEST_WITH(a_key_added_while_in_work_runs_again, set_up, tear_down)
{
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_add(queue, "a", QUEUE_MAIN);
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes(""); /* never two workers on one key */
	queue_done(queue, "a", NULL);
	assert_takes("a ");
	queue_done(queue, "a", NULL);
	assert_takes("");
}

TEST_WITH(failures_wait_longer_each_time, set_up, tear_down)
{
	int64_t least = QUEUE_RETRY_FIRST_MS / 2;

	queue_add(queue, "a", QUEUE_MAIN);
	for (int i = 0; i < 3; i++, least *= 2) {
		int64_t failed = 0;

		assert_takes("a ");
		queue_done(queue, "a", &failure);
		failed = clock_ms();
		assert_int_equal(queue_delayed(queue), 1);
		while (queue_waiting(queue, QUEUE_MAIN) == 0)
			loop_turn(loop, true);
		assert_in_range(clock_ms() - failed, least, least * 2);
	}
	assert_takes("a ");
	queue_done(queue, "a", NULL); /* forgets the failures */
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_done(queue, "a", &failure);
	turn_for(QUEUE_RETRY_FIRST_MS + 20);
	assert_takes("a ");
}

TEST_WITH(a_key_waits_as_long_as_the_server_asks, set_up, tear_down)
{
	const struct err refused = {.class = ERR_TRANSIENT, .retry_after_ms = 400};

	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_done(queue, "a", &refused);
	turn_for(200); /* a first failure alone waits a quarter of that */
	assert_takes("");
	while (queue_waiting(queue, QUEUE_MAIN) == 0)
		loop_turn(loop, true);
	assert_takes("a ");
}

TEST_WITH(a_key_that_failed_comes_at_once_when_it_is_added, set_up, tear_down)
{
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_add(queue, "a", QUEUE_MAIN);
	queue_done(queue, "a", &failure);
	assert_takes("a ");
}

TEST_WITH(the_earliest_of_several_times_counts, set_up, tear_down)
{
	queue_add_after(queue, "a", 10000);
	queue_add_after(queue, "b", 60);
	queue_add_after(queue, "a", 30);
	queue_add_after(queue, "a", 20000);
	assert_int_equal(queue_delayed(queue), 2);
	turn_for(20);
	assert_takes("");
	turn_for(25);
	assert_takes("a ");
	turn_for(40);
	assert_takes("b ");
	assert_int_equal(queue_delayed(queue), 0);
}

TEST_WITH(many_delayed_keys_come_in_the_order_of_their_times, set_up, tear_down)
{
	auto_strbuf struct strbuf want = {0};
	int64_t began = clock_ms();

	/* 3 ms between two, so that the time it takes to add them does not matter. */
	for (int i = 0; i < 61; i++) {
		int at = i * 17 % 61;
		auto_free char *key = str_printf("k%02d", at);

		queue_add_after(queue, key, began + 100 + 3 * at - clock_ms());
	}
	for (int i = 0; i < 61; i++)
		strbuf_addf(&want, "k%02d ", i);
	turn_for(320);
	assert_takes(want.data);
}

TEST_WITH(the_later_lane_waits_for_the_main_one, set_up, tear_down)
{
	enum queue_lane lane = QUEUE_MAIN;

	queue_add(queue, "later", QUEUE_LATER);
	queue_add(queue, "both", QUEUE_LATER);
	queue_add(queue, "main", QUEUE_MAIN);
	queue_add(queue, "both", QUEUE_MAIN);  /* moves forward */
	queue_add(queue, "main", QUEUE_LATER); /* does not move back */
	assert_string_equal(queue_take(queue, &lane), "main");
	assert_string_equal(queue_take(queue, &lane), "both");
	assert_int_equal(lane, QUEUE_MAIN);
	assert_string_equal(queue_take(queue, &lane), "later");
	assert_int_equal(lane, QUEUE_LATER);
	queue_add(queue, "later", QUEUE_LATER);
	queue_add(queue, "later", QUEUE_MAIN);
	queue_done(queue, "later", NULL);
	assert_int_equal(queue_waiting(queue, QUEUE_MAIN), 1);
}

static double shown(struct metrics *metrics, const char *line)
{
	auto_strbuf struct strbuf text = {0};
	const char *at = NULL;

	metrics_render(metrics, &text);
	at = strstr(strbuf_str(&text), line);
	assert_non_null(at);
	return strtod(at + strlen(line), NULL);
}

TEST_WITH(how_long_keys_wait_and_work_shows_under_the_names_of_client_go, set_up, tear_down)
{
	struct metrics *metrics = metrics_new();

	queue_measure(queue, metrics, "q");
	queue_add(queue, "a", QUEUE_MAIN);
	queue_add(queue, "a", QUEUE_MAIN);
	virtual_time_leap_ms(3000);
	assert_takes("a ");
	assert_float_equal(shown(metrics, "workqueue_adds_total{name=\"q\"}"), 1, 0);
	assert_float_equal(shown(metrics, "workqueue_queue_duration_seconds_sum{name=\"q\"}"), 3,
			   0);

	queue_add(queue, "a", QUEUE_MAIN); /* dirty: it waits from now */
	virtual_time_leap_ms(2000);
	queue_add(queue, "b", QUEUE_MAIN);
	assert_takes("b ");
	virtual_time_leap_ms(500);
	assert_float_equal(shown(metrics, "workqueue_unfinished_work_seconds{name=\"q\"}"), 3, 0);
	assert_float_equal(
		shown(metrics, "workqueue_longest_running_processor_seconds{name=\"q\"}"), 2.5, 0);
	queue_done(queue, "a", &failure);
	assert_float_equal(shown(metrics, "workqueue_retries_total{name=\"q\"}"), 1, 0);
	assert_float_equal(shown(metrics, "workqueue_work_duration_seconds_sum{name=\"q\"}"), 2.5,
			   0);
	assert_float_equal(
		shown(metrics, "workqueue_longest_running_processor_seconds{name=\"q\"}"), 0.5, 0);

	/* Nobody was there who could have taken it. */
	queue_restart_waits(queue);
	assert_takes("a ");
	assert_float_equal(shown(metrics, "workqueue_queue_duration_seconds_sum{name=\"q\"}"), 3,
			   0);
	queue_done(queue, "a", NULL);
	queue_done(queue, "b", NULL);
	/* The registry outlives it, and does not ask it any more. */
	queue_free(take_ptr(queue));
	assert_float_equal(shown(metrics, "workqueue_adds_total{name=\"q\"}"), 3, 0);
	metrics_free(metrics);
}

TEST_WITH(it_goes_with_keys_in_every_state, set_up, tear_down)
{
	queue_add(queue, "work", QUEUE_MAIN);
	assert_takes("work ");
	queue_add(queue, "dirty", QUEUE_MAIN);
	assert_takes("dirty ");
	queue_add(queue, "dirty", QUEUE_MAIN);
	queue_add(queue, "wait", QUEUE_MAIN);
	queue_add_after(queue, "delay", 10000);
}

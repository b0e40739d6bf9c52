// SPDX-License-Identifier: Apache-2.0
/*
 * The loop's handles: each may be freed at any time, also from its own callback, and says nothing
 * afterwards.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "lib/loop/loop.h"

static struct loop *loop;
static int calls;

static int set_up(void **state)
{
	loop = loop_new();
	calls = 0;
	return 0;
}

static int tear_down(void **state)
{
	loop_free(loop);
	return 0;
}

static void count(void *arg)
{
	calls++;
}

TEST_WITH(a_timer_goes_off_once, set_up, tear_down)
{
	struct timer *timer = timer_new(loop, count, NULL);
	int64_t began = clock_ms();

	timer_start(timer, 30);
	assert_true(timer_is_active(timer));
	loop_run(loop); /* until nothing is left */
	assert_int_equal(calls, 1);
	assert_int_equal(clock_ms() - began, 30);
	assert_false(timer_is_active(timer));
	timer_free(timer);
}

TEST_WITH(a_timer_can_be_moved_and_stopped, set_up, tear_down)
{
	struct timer *timer = timer_new(loop, count, NULL);
	int64_t began = clock_ms();

	timer_start(timer, 10000);
	timer_start(timer, 10);
	loop_run(loop);
	assert_int_equal(clock_ms() - began, 10);
	timer_start(timer, -5); /* due already */
	timer_stop(timer);
	loop_run(loop);
	assert_int_equal(calls, 1);
	timer_free(timer);
}

static struct timer *self;

static void free_self(void *arg)
{
	calls++;
	timer_free(self);
}

TEST_WITH(a_timer_may_free_itself, set_up, tear_down)
{
	self = timer_new(loop, free_self, NULL);
	timer_start(self, 0);
	loop_run(loop);
	assert_int_equal(calls, 1);
}

TEST_WITH(a_deferred_call_comes_once_and_not_from_inside, set_up, tear_down)
{
	struct deferred *deferred = deferred_new(loop, count, NULL);

	deferred_run(deferred);
	deferred_run(deferred);
	assert_int_equal(calls, 0);
	loop_turn(loop, true); /* does not wait */
	loop_turn(loop, false);
	assert_int_equal(calls, 1);
	deferred_run(deferred);
	deferred_free(deferred);
	loop_run(loop);
	assert_int_equal(calls, 1);
}

static struct deferred *again;

static void run_again(void *arg)
{
	if (++calls < 3)
		deferred_run(again);
}

TEST_WITH(a_deferred_call_may_ask_for_itself, set_up, tear_down)
{
	again = deferred_new(loop, run_again, NULL);
	deferred_run(again);
	loop_turn(loop, false);
	assert_int_equal(calls, 1);
	loop_run(loop);
	assert_int_equal(calls, 3);
	deferred_free(again);
}

static int seen_events;

static void on_events(void *arg, int events)
{
	char byte = 0;
	int *fds = arg;

	calls++;
	seen_events = events;
	if (events & POLL_READ)
		(void)!read(fds[0], &byte, 1);
}

TEST_WITH(a_poller_tells_what_is_ready, set_up, tear_down)
{
	int fds[2];
	struct poller *poller = NULL;

	assert_int_equal(pipe(fds), 0);
	poller = poller_new(loop, fds[0], on_events, fds);
	poller_want(poller, POLL_READ);
	loop_turn(loop, false);
	assert_int_equal(calls, 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	loop_turn(loop, true);
	assert_int_equal(calls, 1);
	assert_true(seen_events & POLL_READ);
	assert_int_equal(write(fds[1], "x", 1), 1);
	poller_want(poller, 0);
	loop_turn(loop, false);
	assert_int_equal(calls, 1);
	poller_want(poller, POLL_READ);
	poller_free(poller);
	close(fds[0]); /* may be used again at once */
	loop_turn(loop, false);
	assert_int_equal(calls, 1);
	close(fds[1]);
}

/*
 * One that ends with something unread leaves an error; what it said before is there all the same.
 */
TEST_WITH(after_an_error_a_poller_goes_on, set_up, tear_down)
{
	int fds[2];
	struct poller *poller;
	char byte = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(write(fds[0], "x", 1), 1);
	assert_int_equal(write(fds[1], "yz", 2), 2);
	close(fds[1]);
	poller = poller_new(loop, fds[0], on_events, fds);
	poller_want(poller, POLL_READ);
	for (int i = 1; i <= 2; i++) {
		loop_turn(loop, false);
		assert_int_equal(calls, i);
		assert_int_equal(read(fds[0], &byte, 1), 1);
	}
	loop_turn(loop, false);
	assert_int_equal(calls, 3);
	poller_free(poller);
	close(fds[0]);
}

TEST_WITH(a_signal_is_told_on_the_loop, set_up, tear_down)
{
	struct signal_watch *watch = signal_watch_new(loop, SIGUSR1, count, NULL);

	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(calls, 0);
	loop_turn(loop, true);
	assert_int_equal(calls, 1);
	signal_watch_free(watch);
	(void)loop_uv(loop);
}

static void stop_loop(void *arg)
{
	loop_stop(loop);
}

TEST_WITH(the_loop_can_be_stopped_and_run_again, set_up, tear_down)
{
	struct timer *stop = timer_new(loop, stop_loop, NULL);
	struct timer *late = timer_new(loop, count, NULL);

	timer_start(stop, 5);
	timer_start(late, 3600000);
	loop_run(loop);
	assert_int_equal(calls, 0);
	timer_start(late, 1);
	loop_run(loop);
	assert_int_equal(calls, 1);
	timer_free(stop);
	timer_free(late);
}

/* Closed handles are still freed by the loop's end: the next run is that of loop_free. */
TEST_WITH(a_loop_that_is_stopped_before_it_runs_can_be_freed, set_up, tear_down)
{
	struct timer *timer = timer_new(loop, count, NULL);

	loop_stop(loop);
	timer_free(timer);
}

TEST_WITH(a_turn_is_measured_without_the_wait_before_it, set_up, tear_down)
{
	struct metrics *metrics = metrics_new();
	auto_strbuf struct strbuf text = {0};
	struct timer *timer = timer_new(loop, count, NULL);

	loop_measure_turns(loop, metrics);
	timer_start(timer, 60000);
	loop_run(loop);
	assert_int_equal(calls, 1);
	metrics_render(metrics, &text);
	assert_non_null(strstr(strbuf_str(&text), "orbweaver_loop_turn_seconds_count"));
	assert_null(strstr(strbuf_str(&text), "orbweaver_loop_turn_seconds_count 0"));
	assert_non_null(strstr(strbuf_str(&text), "orbweaver_loop_turn_seconds_sum 0\n"));
	timer_free(timer);
	loop_free(loop);
	loop = loop_new();
	metrics_free(metrics);
}

/*
 * The queue: each key once, dirty keys again, failures later and later, the earliest of several times, two lanes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/kube/queue.h"

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

static void each_key_is_in_it_once_in_its_order(void **state)
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
	queue_done(queue, "a", false);
	queue_done(queue, "b", false);
	assert_int_equal(queue_working(queue), 0);
	assert_takes("");
}

static void a_key_added_while_in_work_runs_again(void **state)
{
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_add(queue, "a", QUEUE_MAIN);
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes(""); /* never two workers on one key */
	queue_done(queue, "a", false);
	assert_takes("a ");
	queue_done(queue, "a", false);
	assert_takes("");
}

static void failures_wait_longer_each_time(void **state)
{
	int64_t least = QUEUE_RETRY_FIRST_MS / 2;

	queue_add(queue, "a", QUEUE_MAIN);
	for (int i = 0; i < 3; i++, least *= 2) {
		int64_t failed = 0;

		assert_takes("a ");
		queue_done(queue, "a", true);
		failed = clock_ms();
		assert_int_equal(queue_delayed(queue), 1);
		while (queue_waiting(queue, QUEUE_MAIN) == 0)
			loop_turn(loop, true);
		assert_in_range(clock_ms() - failed, least, least * 2 + 100);
	}
	assert_takes("a ");
	queue_done(queue, "a", false); /* forgets the failures */
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_done(queue, "a", true);
	turn_for(QUEUE_RETRY_FIRST_MS + 20);
	assert_takes("a ");
}

static void a_key_that_failed_comes_at_once_when_it_is_added(void **state)
{
	queue_add(queue, "a", QUEUE_MAIN);
	assert_takes("a ");
	queue_add(queue, "a", QUEUE_MAIN);
	queue_done(queue, "a", true);
	assert_takes("a ");
}

static void the_earliest_of_several_times_counts(void **state)
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

static void many_delayed_keys_come_in_the_order_of_their_times(void **state)
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

static void the_later_lane_waits_for_the_main_one(void **state)
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
	queue_done(queue, "later", false);
	assert_int_equal(queue_waiting(queue, QUEUE_MAIN), 1);
}

static void it_goes_with_keys_in_every_state(void **state)
{
	queue_add(queue, "work", QUEUE_MAIN);
	assert_takes("work ");
	queue_add(queue, "dirty", QUEUE_MAIN);
	assert_takes("dirty ");
	queue_add(queue, "dirty", QUEUE_MAIN);
	queue_add(queue, "wait", QUEUE_MAIN);
	queue_add_after(queue, "delay", 10000);
}

#define fresh(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fresh(each_key_is_in_it_once_in_its_order),
		fresh(a_key_added_while_in_work_runs_again),
		fresh(failures_wait_longer_each_time),
		fresh(a_key_that_failed_comes_at_once_when_it_is_added),
		fresh(the_earliest_of_several_times_counts),
		fresh(many_delayed_keys_come_in_the_order_of_their_times),
		fresh(the_later_lane_waits_for_the_main_one),
		fresh(it_goes_with_keys_in_every_state),
	};

	return cmocka_run_group_tests_name("lib/kube/queue", tests, NULL, NULL);
}

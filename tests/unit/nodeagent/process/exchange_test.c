// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side against a supervisor and workers that the test plays itself: what real ones
 * hardly ever do.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/packet.h"
#include "lib/json/ask.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/process/exchange.h"
#include "nodeagent/process/protocol.h"
#include "nodeagent/process/workers.h"

#define LONG_MS 600000

struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct orders *line;
	struct exchange *exchange;
	int orders; /* our end */
	int worker; /* our end of the last worker's socket */
	json_t *message;
	int done, lost;
	json_t *result;
	struct err err;
};

static void on_done(void *arg, const json_t *result, const struct err *err)
{
	struct fixture *f = arg;

	f->done++;
	json_decref(f->result);
	f->result = json_deep_copy(result);
	f->err = err ? *err : (struct err){0};
}

static void on_lost(void *arg)
{
	((struct fixture *)arg)->lost++;
}

static int set_up_with(void **state, int64_t rest_ms)
{
	struct fixture *f = mem_new(struct fixture);
	const struct exchange_hooks hooks = {.done = on_done, .arg = f, .rest_ms = rest_ms};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	f->loop = loop_new();
	f->metrics = metrics_new();
	f->orders = pair[0];
	f->worker = -1;
	f->line = orders_new(f->loop, pair[1], on_lost, f);
	f->exchange = exchange_new(f->loop, f->line, &hooks, f->metrics);
	f->message = json_pack("{s:i, s:s, s:{s:s}}", "id", 7, "kind", "step", "step", "step",
			       "link-up");
	*state = f;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(state, LONG_MS);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	exchange_free(f->exchange);
	orders_free(f->line);
	loop_free(f->loop);
	metrics_free(f->metrics);
	(void)close(f->orders);
	if (f->worker >= 0)
		(void)close(f->worker);
	json_decref(f->message);
	json_decref(f->result);
	mem_free(f);
	return 0;
}

static void begin(struct fixture *f, int64_t deadline_ms)
{
	exchange_begin(f->exchange, f->message, 7, deadline_ms);
}

static void turn(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_turn(f->loop, false);
}

static void wait_done(struct fixture *f, int n)
{
	while (f->done < n)
		loop_turn(f->loop, true);
	assert_int_equal(f->done, n);
}

static void tell(struct fixture *f, uint32_t kind, int pid, int value, int fd)
{
	struct workers_event event = {.kind = kind, .pid = pid, .value = value};

	assert_int_equal(packet_send(f->orders, &event, sizeof(event), fd, 0), 0);
}

/* The next order that the supervisor got; kind 0: none. */
static struct workers_order order(struct fixture *f)
{
	struct workers_order got = {0};

	(void)recv(f->orders, &got, sizeof(got), MSG_DONTWAIT);
	return got;
}

static void start_worker(struct fixture *f, int pid)
{
	int pair[2];

	assert_int_equal(order(f).kind, WORKERS_START);
	if (f->worker >= 0)
		(void)close(f->worker);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	f->worker = pair[0];
	tell(f, WORKERS_STARTED, pid, 0, pair[1]);
	(void)close(pair[1]);
	turn(f);
}

static void say(struct fixture *f, const void *bytes, size_t len)
{
	assert_int_equal(send(f->worker, bytes, len, MSG_NOSIGNAL), len);
}

static void reply(struct fixture *f, int64_t id)
{
	json_auto_t *request = ask_new(id, "step");
	json_auto_t *message = ask_reply_new(request, json_pack("{s:b}", "changed", 1), NULL);
	auto_strbuf struct strbuf out = {0};

	(void)json_frame_write(message, &out, NULL);
	say(f, out.data, out.len);
}

static void expect_killed(struct fixture *f, int pid)
{
	struct workers_order got = order(f);

	assert_int_equal(got.kind, WORKERS_KILL);
	assert_int_equal(got.pid, pid);
}

static double stuck_gauge(struct fixture *f)
{
	return metric_get(metric_gauge(f->metrics, "orbweaver_hostd_stuck_workers", "", ""));
}

/* ---- */

TEST_WITH(a_worker_that_cannot_be_killed_is_left_behind_until_it_ends, set_up, tear_down)
{
	struct fixture *f = *state;
	const json_t *what = NULL;

	begin(f, 1);
	start_worker(f, 100);
	wait_done(f, 1);
	expect_killed(f, 100);
	assert_string_equal(f->err.reason, "HostHung");
	assert_int_equal(f->err.class, ERR_HOST);
	assert_non_null(strstr(f->err.text, "link-up: no answer for 1 ms"));
	assert_non_null(strstr(f->err.text, "process 100 is asleep in the kernel"));
	assert_int_equal(exchange_stuck(f->exchange, &what), 1);
	assert_true(json_same(what, f->message));
	assert_true(stuck_gauge(f) == 1);

	begin(f, LONG_MS);
	start_worker(f, 101);
	reply(f, 7);
	wait_done(f, 2);
	assert_true(json_is_true(json_at(f->result, "changed")));

	tell(f, WORKERS_ENDED, 100, 9, -1);
	turn(f);
	assert_int_equal(exchange_stuck(f->exchange, &what), 0);
	assert_null(what);
	assert_true(stuck_gauge(f) == 0);
}

TEST_WITH(nothing_is_told_of_a_hang_before_the_worker_is_gone, set_up, tear_down)
{
	struct fixture *f = *state;

	begin(f, 1);
	start_worker(f, 100);
	while (recv(f->orders, &(struct workers_order){0}, 8, MSG_DONTWAIT | MSG_PEEK) < 0)
		loop_turn(f->loop, true);
	expect_killed(f, 100);
	assert_int_equal(f->done, 0);
	tell(f, WORKERS_ENDED, 100, 9, -1);
	wait_done(f, 1);
	assert_string_equal(f->err.reason, "HostHung");
	assert_int_equal(exchange_stuck(f->exchange, NULL), 0);
}

TEST_WITH(a_worker_that_talks_nonsense_is_replaced, set_up, tear_down)
{
	static const struct {
		const char *bytes;
		size_t len;
	} nonsense[] = {
		{"HTTP/1.1 200 OK\r\n", 17},
		{"\x00\x00\x00\x02{}", 6},
		{"\x00\x00\x00\x14{\"id\":8,\"result\":{}}", 24},
		{"\x00\x00\x00\x14{\"id\":7,\"result\":[]}", 24},
		{"\x00\x00\x00\x14{\"id\":7,\"result\":{}}more", 28},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
		int pid = 100 + (int)i;

		begin(f, LONG_MS);
		start_worker(f, pid);
		say(f, nonsense[i].bytes, nonsense[i].len);
		turn(f);
		expect_killed(f, pid);
		tell(f, WORKERS_ENDED, pid, 9, -1);
		wait_done(f, (int)i + 1);
		assert_null(f->result);
		assert_int_equal(f->err.class, ERR_BUG);
		assert_string_equal(f->err.reason, "BadReply");
	}
}

TEST_WITH(a_worker_that_speaks_unasked_is_replaced, set_up, tear_down)
{
	struct fixture *f = *state;

	begin(f, LONG_MS);
	start_worker(f, 100);
	reply(f, 7);
	wait_done(f, 1);
	say(f, "x", 1);
	turn(f);
	expect_killed(f, 100);
	tell(f, WORKERS_ENDED, 100, 9, -1);
	begin(f, LONG_MS);
	start_worker(f, 101);
	reply(f, 7);
	wait_done(f, 2);
	assert_non_null(f->result);
}

TEST_WITH(last_words_count, set_up, tear_down)
{
	struct fixture *f = *state;

	begin(f, LONG_MS);
	start_worker(f, 100);
	reply(f, 7);
	/* Both are there when the loop looks. */
	tell(f, WORKERS_ENDED, 100, 0, -1);
	wait_done(f, 1);
	assert_non_null(f->result);
	turn(f);
	begin(f, LONG_MS);
	start_worker(f, 101);
	tell(f, WORKERS_ENDED, 101, 3 << 8, -1);
	wait_done(f, 2);
	assert_string_equal(f->err.reason, "HostdDied");
	assert_non_null(strstr(f->err.text, "link-up: the worker ended with status 3"));
}

TEST_WITH(a_worker_that_cannot_be_started_is_told_with_the_reason, set_up, tear_down)
{
	struct fixture *f = *state;

	begin(f, LONG_MS);
	assert_int_equal(order(f).kind, WORKERS_START);
	tell(f, WORKERS_NOT_STARTED, 0, ENOMEM, -1);
	wait_done(f, 1);
	assert_string_equal(f->err.reason, "HostdNotStarted");
	assert_int_equal(f->err.sys, ENOMEM);
	begin(f, LONG_MS);
	start_worker(f, 100);
	reply(f, 7);
	wait_done(f, 2);
	assert_non_null(f->result);
}

TEST_WITH(a_supervisor_that_talks_nonsense_is_lost, set_up, tear_down)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++) {
		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		begin(f, LONG_MS);
		/* One more than it was asked for. */
		if (i == 4) {
			start_worker(f, 100);
			tell(f, WORKERS_STARTED, 101, 0, f->worker);
		} else if (i == 0)
			tell(f, 99, 1, 1, -1);
		else if (i == 1)
			tell(f, WORKERS_STARTED, 1, 1, -1);
		else if (i == 2)
			assert_int_equal(send(f->orders, "x", 1, 0), 1);
		else
			assert_int_equal(shutdown(f->orders, SHUT_RDWR), 0);
		turn(f);
		assert_int_equal(f->lost, 1);
		assert_int_equal(f->done, 0);
	}
}

/* Two that share the supervisor: each has its own worker, and hears of that one's end alone. */
TEST_WITH(exchanges_side_by_side_do_not_mix, set_up, tear_down)
{
	struct fixture *f = *state, other = {0};
	const struct exchange_hooks hooks = {.done = on_done, .arg = &other, .rest_ms = LONG_MS};
	int first;

	other.exchange = exchange_new(f->loop, f->line, &hooks, NULL);
	begin(f, LONG_MS);
	exchange_begin(other.exchange, f->message, 7, LONG_MS);
	/* The first that asked is the first that gets one. */
	start_worker(f, 100);
	first = f->worker;
	f->worker = -1;
	start_worker(f, 101);
	reply(f, 7);
	turn(f);
	assert_int_equal(f->done, 0);
	assert_int_equal(other.done, 1);
	assert_non_null(other.result);
	exchange_begin(other.exchange, f->message, 7, LONG_MS);
	tell(f, WORKERS_ENDED, 100, 9, -1);
	turn(f);
	assert_int_equal(f->done, 1);
	assert_string_equal(f->err.reason, "HostdDied");
	assert_int_equal(other.done, 1);
	/* A refusal is for the one that asked. */
	begin(f, LONG_MS);
	assert_int_equal(order(f).kind, WORKERS_START);
	tell(f, WORKERS_NOT_STARTED, 0, EAGAIN, -1);
	turn(f);
	assert_int_equal(f->done, 2);
	assert_int_equal(other.done, 1);
	/* Both are lost at once. */
	assert_int_equal(shutdown(f->orders, SHUT_RDWR), 0);
	turn(f);
	assert_int_equal(f->lost, 1);
	assert_int_equal(other.done, 1);
	exchange_free(other.exchange);
	json_decref(other.result);
	(void)close(first);
}

TEST_WITH(a_spare_worker_has_the_message_at_once, set_up, tear_down)
{
	struct fixture *f = *state;

	orders_keep_spare(f->line);
	start_worker(f, 100);
	begin(f, LONG_MS);
	reply(f, 7);
	wait_done(f, 1);
	assert_true(json_is_true(json_at(f->result, "changed")));
}

TEST_WITH(a_worker_that_rests_ends_and_is_not_missed, set_up, tear_down)
{
	struct fixture *f;
	char bytes[4096];

	(void)tear_down(state);
	(void)set_up_with(state, 50);
	f = *state;
	begin(f, LONG_MS);
	start_worker(f, 100);
	reply(f, 7);
	wait_done(f, 1);
	/* Its request, then the end. */
	while (recv(f->worker, bytes, sizeof(bytes), MSG_DONTWAIT) != 0)
		loop_turn(f->loop, true);
	tell(f, WORKERS_ENDED, 100, 0, -1);
	turn(f);
	assert_int_equal(order(f).kind, 0);
	begin(f, LONG_MS);
	start_worker(f, 101);
	reply(f, 7);
	wait_done(f, 2);
	assert_non_null(f->result);
	assert_true(metric_get(metric_counter(f->metrics, "orbweaver_hostd_restarts_total", "",
					      "")) == 0);
}

TEST_WITH(may_be_freed_at_any_time, set_up, tear_down)
{
	struct fixture *f = *state;

	for (int i = 0; i < 4; i++) {
		if (i > 0)
			begin(f, i == 3 ? 1 : LONG_MS);
		if (i > 1)
			start_worker(f, 100);
		if (i > 2)
			while (order(f).kind != WORKERS_KILL)
				loop_turn(f->loop, true);
		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
	}
	assert_int_equal(f->done, 0);
}

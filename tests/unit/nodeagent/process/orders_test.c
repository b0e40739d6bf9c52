// SPDX-License-Identifier: Apache-2.0
/* Spare workers: which user gets one, and what becomes of it. The test plays the supervisor. */
#include "tests/support/test.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/packet.h"
#include "nodeagent/process/orders.h"
#include "nodeagent/process/workers.h"

struct fixture {
	struct loop *loop;
	struct orders *orders;
	int supervisor; /* the other end of the line for orders */
	struct orders_user users[2];
	pid_t got[2]; /* the last worker of each user; -1: it was refused */
};

static void on_started(void *arg, pid_t pid, int fd)
{
	*(pid_t *)arg = pid;
	(void)close(fd);
}

static void on_not_started(void *arg, int number)
{
	*(pid_t *)arg = -1;
}

static bool on_ended(void *arg, pid_t pid, int status)
{
	return *(pid_t *)arg == pid;
}

static void on_lost(void *arg)
{
}

static int set_up(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	f->supervisor = pair[0];
	f->loop = loop_new();
	f->orders = orders_new(f->loop, pair[1], on_lost, f);
	for (size_t i = 0; i < ARRAY_LEN(f->users); i++) {
		f->users[i] = (struct orders_user){
			.started = on_started,
			.not_started = on_not_started,
			.ended = on_ended,
			.lost = on_lost,
			.arg = &f->got[i],
		};
		orders_join(f->orders, &f->users[i]);
	}
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	orders_free(f->orders);
	loop_free(f->loop);
	(void)close(f->supervisor);
	mem_free(f);
	return 0;
}

static void tell(struct fixture *f, uint32_t kind, pid_t pid, int fd)
{
	struct workers_event event = {.kind = kind, .pid = pid};

	assert_int_equal(packet_send(f->supervisor, &event, sizeof(event), fd, 0), 0);
	for (int i = 0; i < 5; i++)
		loop_turn(f->loop, false);
}

/* Orders to start workers that came since. */
static int count_orders(struct fixture *f)
{
	struct workers_order got;
	int n = 0;

	while (recv(f->supervisor, &got, sizeof(got), MSG_DONTWAIT) == sizeof(got))
		n += got.kind == WORKERS_START;
	return n;
}

/* The worker's end of its line. */
static int start_worker(struct fixture *f, pid_t pid)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	tell(f, WORKERS_STARTED, pid, pair[1]);
	(void)close(pair[1]);
	return pair[0];
}

static bool is_closed(int worker)
{
	struct pollfd fd = {.fd = worker, .events = POLLIN};

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLHUP;
}

TEST_WITH(a_user_gets_the_spare_worker_at_once_and_the_next_is_ordered, set_up, tear_down)
{
	struct fixture *f = *state;
	int worker;

	orders_keep_spare(f->orders);
	assert_int_equal(count_orders(f), 1);
	worker = start_worker(f, 100);
	assert_false(is_closed(worker));
	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(f->got[0], 100);
	assert_false(f->users[0].is_asking);
	assert_int_equal(count_orders(f), 1);
	(void)close(worker);
}

TEST_WITH(a_worker_that_is_on_its_way_is_for_the_first_who_asks, set_up, tear_down)
{
	struct fixture *f = *state;
	int first, second, third;

	orders_keep_spare(f->orders);
	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(orders_ask(f->orders, &f->users[1]), 0);
	assert_int_equal(count_orders(f), 3);
	first = start_worker(f, 100);
	assert_int_equal(f->got[0], 100);
	second = start_worker(f, 101);
	assert_int_equal(f->got[1], 101);
	third = start_worker(f, 102);
	assert_false(is_closed(third));
	(void)close(first);
	(void)close(second);
	(void)close(third);
}

TEST_WITH(a_spare_worker_that_ends_is_not_given, set_up, tear_down)
{
	struct fixture *f = *state;
	int worker;

	orders_keep_spare(f->orders);
	worker = start_worker(f, 100);
	tell(f, WORKERS_ENDED, 100, -1);
	assert_true(is_closed(worker));
	(void)close(worker);
	(void)count_orders(f);
	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(f->got[0], 0);
	assert_int_equal(count_orders(f), 2);
	worker = start_worker(f, 101);
	assert_int_equal(f->got[0], 101);
	(void)close(worker);
}

TEST_WITH(one_whose_end_is_not_heard_of_yet_is_not_given, set_up, tear_down)
{
	struct fixture *f = *state;
	int worker;

	orders_keep_spare(f->orders);
	(void)close(start_worker(f, 100));
	(void)count_orders(f);
	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(f->got[0], 0);
	assert_int_equal(count_orders(f), 2);
	tell(f, WORKERS_ENDED, 100, -1);
	worker = start_worker(f, 101);
	assert_int_equal(f->got[0], 101);
	(void)close(worker);
}

TEST_WITH(a_refusal_of_a_spare_worker_is_no_users, set_up, tear_down)
{
	struct fixture *f = *state;

	orders_keep_spare(f->orders);
	tell(f, WORKERS_NOT_STARTED, 0, -1);
	assert_int_equal(f->got[0], 0);
	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(count_orders(f), 3);
	tell(f, WORKERS_NOT_STARTED, 0, -1);
	assert_int_equal(f->got[0], -1);
}

TEST_WITH(without_spare_workers_one_is_ordered_for_each_who_asks, set_up, tear_down)
{
	struct fixture *f = *state;
	int worker;

	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(orders_ask(f->orders, &f->users[0]), 0);
	assert_int_equal(count_orders(f), 1);
	/* Its user has left: its line is closed, which ends it. */
	orders_leave(f->orders, &f->users[0]);
	worker = start_worker(f, 100);
	assert_int_equal(f->got[0], 0);
	assert_true(is_closed(worker));
	(void)close(worker);
}

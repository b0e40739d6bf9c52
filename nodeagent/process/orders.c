// SPDX-License-Identifier: Apache-2.0
/*
 * Orders go out and are answered in order, so a queue says for whom the next answer is; a spare
 * worker is one that no user has asked for. Between exchange.c,
 * nodeagent/cni/server/worker_process.c and the supervisor.
 */
#include "nodeagent/process/orders.h"

#include <poll.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "nodeagent/process/workers.h"

/* An order that is not answered yet. */
struct asking {
	struct asking *next;
	struct orders_user *user; /* NULL: it has left, or the worker is to be a spare one */
};

struct orders {
	int socket;
	struct poller *poller;
	struct orders_user *users;
	struct asking *first, **last;
	bool keeps_spare;
	pid_t spare;  /* 0: none has started */
	int spare_fd; /* its line */
	void (*lost)(void *arg);
	void *arg;
};

/* Of a worker for which no user waits; NULL: none is on its way. */
static struct asking *find_unclaimed(const struct orders *orders)
{
	struct asking *asking = orders->first;

	while (asking && asking->user)
		asking = asking->next;
	return asking;
}

/* For no user yet; NULL with errno set. */
static struct asking *send_order(struct orders *orders)
{
	struct asking *asking;

	if (workers_send(orders->socket, WORKERS_START, 0) < 0)
		return NULL;
	asking = mem_new(struct asking);
	*orders->last = asking;
	orders->last = &asking->next;
	return asking;
}

/* Where this fails the next user waits for its own. */
static void order_spare(struct orders *orders)
{
	if (orders->keeps_spare && !orders->spare && !find_unclaimed(orders))
		(void)send_order(orders);
}

static void drop_spare(struct orders *orders)
{
	if (orders->spare)
		(void)close(orders->spare_fd);
	orders->spare = 0;
}

/*
 * It says nothing until it has work: what can be read is its end, of which the supervisor's word is
 * still on its way.
 */
static bool spare_lives(const struct orders *orders)
{
	struct pollfd fd = {.fd = orders->spare_fd, .events = POLLIN};

	return orders->spare && poll(&fd, 1, 0) == 0;
}

/* Takes the oldest order away. False: nothing was asked. *ret: who asked; NULL: it has left. */
static bool take_asker(struct orders *orders, struct orders_user **ret)
{
	struct asking *asking = orders->first;

	if (!asking)
		return false;
	orders->first = asking->next;
	if (!orders->first)
		orders->last = &orders->first;
	*ret = asking->user;
	if (*ret)
		(*ret)->is_asking = false;
	mem_free(asking);
	return true;
}

static void lose(struct orders *orders)
{
	poller_want(orders->poller, 0);
	for (struct orders_user *user = orders->users, *next; user; user = next) {
		next = user->next;
		user->lost(user->arg);
	}
	orders->lost(orders->arg);
}

/* The callback may have freed us. */
static void tell_end(struct orders *orders, pid_t pid, int status)
{
	if (pid == orders->spare) {
		drop_spare(orders);
		return;
	}
	for (struct orders_user *user = orders->users; user; user = user->next)
		if (user->ended(user->arg, pid, status))
			return;
}

/* One event at a time: each may be the last one. */
static void on_event(void *arg, int events)
{
	struct orders *orders = arg;
	struct workers_event event = {0};
	int fd = -1, got = workers_receive(orders->socket, &event, &fd);
	bool is_start = got > 0 && event.kind == WORKERS_STARTED && fd >= 0;
	bool is_refusal = got > 0 && event.kind == WORKERS_NOT_STARTED;
	struct orders_user *user = NULL;
	bool is_answer = (is_start || is_refusal) && take_asker(orders, &user);

	if (got == 0)
		return;
	if (is_start && user) {
		user->started(user->arg, event.pid, fd);
		return;
	}
	if (is_start && is_answer && orders->keeps_spare && !orders->spare) {
		orders->spare = event.pid;
		orders->spare_fd = fd;
		return;
	}
	/* Without its line a worker ends. */
	if (fd >= 0)
		(void)close(fd);
	if (user)
		user->not_started(user->arg, event.value);
	else if (got > 0 && event.kind == WORKERS_ENDED)
		tell_end(orders, event.pid, event.value);
	else if (!is_answer)
		lose(orders);
}

/* ---- the interface --------------------------------------------------------------------------- */

void orders_join(struct orders *orders, struct orders_user *user)
{
	user->next = orders->users;
	orders->users = user;
}

void orders_leave(struct orders *orders, struct orders_user *user)
{
	struct orders_user **at = &orders->users;

	while (*at && *at != user)
		at = &(*at)->next;
	if (*at)
		*at = user->next;
	for (struct asking *asking = orders->first; asking; asking = asking->next)
		if (asking->user == user)
			asking->user = NULL;
}

int orders_ask(struct orders *orders, struct orders_user *user)
{
	struct asking *asking;
	pid_t pid;

	if (user->is_asking)
		return 0;
	if (!spare_lives(orders))
		drop_spare(orders);
	pid = orders->spare;
	if (pid) {
		orders->spare = 0;
		order_spare(orders);
		user->started(user->arg, pid, orders->spare_fd);
		return 0;
	}
	asking = orders->keeps_spare ? find_unclaimed(orders) : NULL;
	if (!asking && !(asking = send_order(orders)))
		return -1;
	asking->user = user;
	user->is_asking = true;
	order_spare(orders);
	return 0;
}

void orders_keep_spare(struct orders *orders)
{
	orders->keeps_spare = true;
	order_spare(orders);
}

void orders_kill(const struct orders *orders, pid_t pid)
{
	(void)workers_send(orders->socket, WORKERS_KILL, pid);
}

struct orders *orders_new(struct loop *loop, int socket, void (*lost)(void *arg), void *arg)
{
	struct orders *orders = mem_new(struct orders);

	orders->socket = socket;
	orders->last = &orders->first;
	orders->lost = lost;
	orders->arg = arg;
	orders->poller = poller_new(loop, socket, on_event, orders);
	poller_want(orders->poller, POLL_READ);
	return orders;
}

void orders_free(struct orders *orders)
{
	if (!orders)
		return;
	while (orders->first) {
		struct asking *asking = orders->first;

		orders->first = asking->next;
		mem_free(asking);
	}
	drop_spare(orders);
	poller_free(orders->poller);
	(void)close(orders->socket);
	mem_free(orders);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/process/orders.h"

#include <unistd.h>

#include "lib/base/mem.h"
#include "nodeagent/process/workers.h"

struct orders {
	int socket;
	struct poller *poller;
	struct orders_user *users, *first, **last; /* first, last: who waits for a worker */
	void (*lost)(void *arg);
	void *arg;
};

/* Who has waited longest; NULL: nobody does. */
static struct orders_user *take_asker(struct orders *orders)
{
	struct orders_user *user = orders->first;

	if (!user)
		return NULL;
	orders->first = user->asker;
	if (!orders->first)
		orders->last = &orders->first;
	user->asker = NULL;
	user->is_asking = false;
	return user;
}

static void lose(struct orders *orders)
{
	poller_want(orders->poller, 0);
	for (struct orders_user *user = orders->users; user; user = user->next)
		user->lost(user->arg);
	orders->lost(orders->arg);
}

/* Whoever it concerned may have freed us. */
static void tell_end(const struct orders *orders, pid_t pid, int status)
{
	for (struct orders_user *user = orders->users; user; user = user->next)
		if (user->ended(user->arg, pid, status))
			return;
}

/* One event at a time: each may be the last that we hear of. */
static void on_event(void *arg, int events)
{
	struct orders *orders = arg;
	struct workers_event event = {0};
	int fd = -1, got = workers_receive(orders->socket, &event, &fd);
	bool is_start = got > 0 && event.kind == WORKERS_STARTED && fd >= 0;
	bool is_refusal = got > 0 && event.kind == WORKERS_NOT_STARTED;
	struct orders_user *user;

	if (got == 0)
		return;
	user = is_start || is_refusal ? take_asker(orders) : NULL;
	if (is_start && user) {
		user->started(user->arg, event.pid, fd);
		return;
	}
	if (fd >= 0)
		(void)close(fd);
	if (user)
		user->not_started(user->arg, event.value);
	else if (got > 0 && event.kind == WORKERS_ENDED)
		tell_end(orders, event.pid, event.value);
	else
		lose(orders);
}

/* ---- the interface --------------------------------------------------------------------------- */

void orders_join(struct orders *orders, struct orders_user *user)
{
	user->next = orders->users;
	orders->users = user;
}

int orders_ask(struct orders *orders, struct orders_user *user)
{
	if (user->is_asking)
		return 0;
	if (workers_send(orders->socket, WORKERS_START, 0) < 0)
		return -1;
	user->is_asking = true;
	*orders->last = user;
	orders->last = &user->asker;
	return 0;
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
	poller_free(orders->poller);
	(void)close(orders->socket);
	mem_free(orders);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One exchange with one worker. Whatever goes wrong ends the worker, and the next request orders
 * another one. Between client.c and orders.c.
 *
 *	IDLE → STARTING (a worker was asked for) → TALKING → IDLE
 *	                                           TALKING → ENDING (the worker was killed) → IDLE
 *
 * Every path out of a callback ends with the call of a hook or with none: the hook may free us.
 */
#include "nodeagent/process/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/mem.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "lib/loop/stream.h"
#include "nodeagent/process/protocol.h"

/* A fork takes milliseconds; a machine without free memory may need some time for it. */
#define START_MS 10000
/* From SIGKILL to the end of a process that is not asleep in the kernel. */
#define KILL_MS 2000

/* A worker that was killed in vain. */
struct stuck {
	struct stuck *next;
	pid_t pid;
	json_t *message;
};

struct exchange {
	struct loop *loop;
	struct exchange_hooks hooks;
	struct orders *orders;
	struct orders_user user;

	/* The worker in service; pid 0: none. */
	pid_t pid;
	struct stream *stream;
	bool was_one; /* before this one, and it did not end because it rested */

	enum state { IDLE, STARTING, TALKING, ENDING } state;
	struct timer *timer;
	json_t *message;
	int64_t id, deadline_ms;
	struct strbuf out; /* until the worker is there */

	/*
	 * ENDING: who, and what to say then. `died`: it is the worker's end that has to be
	 * reported.
	 */
	pid_t ending;
	bool died;
	struct err why;

	struct stuck *stuck; /* oldest first */

	struct metric *restarts, *stuck_workers;
};

/* ---- how it ends ----------------------------------------------------------------------------- */

/* The last thing that a callback does. */
static void finish(struct exchange *x, const json_t *result, const struct err *err)
{
	json_decref(take_ptr(x->message));
	x->state = IDLE;
	timer_start(x->timer, x->hooks.rest_ms);
	strbuf_done(&x->out);
	x->hooks.done(x->hooks.arg, result, err);
}

/* With an error of ours: the worker did not get to say what it was doing. */
static void fail(struct exchange *x, const struct err *why)
{
	const char *step = json_str_at(x->message, "step", "step");
	struct err err = *why;

	(void)err_in(&err, "%s", step ? step : json_str_or(json_at(x->message, "kind"), "request"));
	finish(x, NULL, &err);
}

static void drop_worker(struct exchange *x)
{
	if (!x->pid)
		return;
	stream_free(take_ptr(x->stream));
	x->pid = 0;
}

static void kill_worker(struct exchange *x)
{
	orders_kill(x->orders, x->pid);
	drop_worker(x);
}

/*
 * Kill the worker; what to say is known when it has ended, or when it turns out that it does not.
 * `why` NULL: it has ended by itself.
 */
static void give_up(struct exchange *x, const struct err *why)
{
	x->ending = x->pid;
	x->died = !why;
	if (why)
		x->why = *why;
	else
		(void)err_set(
			&x->why, ERR_HOST, "HostdDied",
			"the worker closed its socket; what was asked for may be done in part");
	kill_worker(x);
	x->state = ENDING;
	timer_start(x->timer, KILL_MS);
}

static void say_death(int status, struct err *err)
{
	if (WIFSIGNALED(status))
		(void)err_set(
			err, ERR_HOST, "HostdDied",
			"the worker was ended by signal %d (%s); what was asked for may be done "
			"in part",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		(void)err_set(
			err, ERR_HOST, "HostdDied",
			"the worker ended with status %d; what was asked for may be done in part",
			WEXITSTATUS(status));
}

static void leave_behind(struct exchange *x)
{
	struct stuck *stuck = mem_new(struct stuck), **end = &x->stuck;

	stuck->pid = x->ending;
	stuck->message = json_incref(x->message);
	while (*end)
		end = &(*end)->next;
	*end = stuck;
	metric_add(x->stuck_workers, 1);
}

static void free_stuck(struct stuck *stuck)
{
	json_decref(stuck->message);
	mem_free(stuck);
}

size_t exchange_stuck(const struct exchange *x, const json_t **ret_message)
{
	size_t n = 0;

	if (ret_message)
		*ret_message = x->stuck ? x->stuck->message : NULL;
	for (const struct stuck *stuck = x->stuck; stuck; stuck = stuck->next)
		n++;
	return n;
}

static void on_timer(void *arg)
{
	struct exchange *x = arg;
	struct err err = {0};

	switch (x->state) {
	case IDLE:
		/* It reads the end of its socket, and nothing of ours can be on its way to it. */
		drop_worker(x);
		x->was_one = false;
		return;
	case STARTING:
		(void)err_set(&err, ERR_HOST, "HostdNotStarted",
			      "hostd has not started a worker for %d s: is the node out of memory?",
			      START_MS / 1000);
		fail(x, &err);
		return;
	case TALKING:
		(void)err_set(&err, ERR_HOST, "HostHung",
			      "no answer for %lld ms; what was asked for may still happen",
			      (long long)x->deadline_ms);
		give_up(x, &err);
		return;
	case ENDING:
		leave_behind(x);
		err = x->why;
		(void)err_set(&err, err.class, err.reason,
			      "%s; process %d is asleep in the kernel and cannot be ended",
			      x->why.text, (int)x->ending);
		fail(x, &err);
		return;
	}
}

/* ---- talking to the worker ------------------------------------------------------------------- */

/* The reply that we wait for, and nothing behind it. */
static int read_reply(const struct exchange *x, const json_t *message, const struct strbuf *behind,
		      const json_t **ret_result, struct err *ret_error, struct err *err)
{
	if (behind->len > 0)
		return err_set(err, ERR_BUG, "BadReply", "more than one reply");
	return protocol_reply_read(message, x->id, ret_result, ret_error, err);
}

/* Any path out of here may have freed us. */
static bool on_heard(void *arg, struct strbuf *in)
{
	struct exchange *x = arg;
	json_auto_t *message = NULL;
	const json_t *result = NULL;
	struct err error = {0}, bad = {0};

	if (x->state != TALKING) {
		/* It speaks without being asked: the next request gets another one. */
		kill_worker(x);
	} else if (json_frame_read(in, &message, &bad) < 0) {
		(void)err_set(&error, ERR_BUG, "BadReply", "%s", bad.text);
		give_up(x, &error);
	} else if (message) {
		if (read_reply(x, message, in, &result, &error, &bad) < 0)
			give_up(x, &bad);
		else
			finish(x, result, result ? NULL : &error);
	}
	return false;
}

static void on_lost_worker(void *arg, const struct err *err)
{
	struct exchange *x = arg;

	if (x->state == TALKING)
		give_up(x, NULL);
	else
		kill_worker(x);
}

static void talk(struct exchange *x)
{
	x->state = TALKING;
	timer_start(x->timer, x->deadline_ms);
	stream_send(x->stream, x->out.data, x->out.len);
	strbuf_done(&x->out);
}

/* ---- the supervisor -------------------------------------------------------------------------- */

static void on_started(void *arg, pid_t pid, int fd)
{
	struct exchange *x = arg;

	x->pid = pid;
	x->stream = stream_new(&(struct stream_config){
		.loop = x->loop,
		.fd = fd,
		.take = on_heard,
		.lost = on_lost_worker,
		.arg = x,
	});
	if (x->was_one)
		metric_add(x->restarts, 1);
	x->was_one = true;
	/* Else no request waits any more; it is there for the next one. */
	if (x->state == STARTING)
		talk(x);
	else if (x->state == IDLE)
		timer_start(x->timer, x->hooks.rest_ms);
}

static void on_not_started(void *arg, int number)
{
	struct exchange *x = arg;
	struct err err = {0};

	if (x->state != STARTING)
		return;
	errno = number;
	(void)err_sys(&err, "HostdNotStarted", "hostd cannot start a worker");
	fail(x, &err);
}

/* Its last words may be the reply. */
static void on_end_of_worker(struct exchange *x, int status)
{
	json_auto_t *message = NULL;
	const json_t *result = NULL;
	struct err error = {0};
	struct strbuf *in;

	if (x->state != TALKING) {
		drop_worker(x);
		return;
	}
	in = stream_rest(x->stream);
	if (json_frame_read(in, &message, NULL) == 0 && message &&
	    read_reply(x, message, in, &result, &error, NULL) == 0) {
		drop_worker(x);
		finish(x, result, result ? NULL : &error);
		return;
	}
	drop_worker(x);
	say_death(status, &error);
	fail(x, &error);
}

static bool on_ended(void *arg, pid_t pid, int status)
{
	struct exchange *x = arg;
	struct err err = x->why;

	if (x->state == ENDING && pid == x->ending) {
		if (x->died)
			say_death(status, &err);
		fail(x, &err);
		return true;
	}
	if (x->pid && pid == x->pid) {
		on_end_of_worker(x, status);
		return true;
	}
	for (struct stuck **at = &x->stuck; *at; at = &(*at)->next) {
		struct stuck *stuck = *at;

		if (stuck->pid != pid)
			continue;
		*at = stuck->next;
		free_stuck(stuck);
		metric_add(x->stuck_workers, -1);
		return true;
	}
	return false;
}

static void on_lost(void *arg)
{
	struct exchange *x = arg;

	drop_worker(x);
	json_decref(take_ptr(x->message));
	timer_stop(x->timer);
	x->state = IDLE;
}

/* ---- the interface --------------------------------------------------------------------------- */

void exchange_begin(struct exchange *x, const json_t *message, int64_t id, int64_t deadline_ms)
{
	struct err err = {0};

	assert(x->state == IDLE);
	x->message = json_incref((json_t *)message);
	x->id = id;
	x->deadline_ms = deadline_ms;
	if (json_frame_write(message, &x->out, &err) < 0) {
		finish(x, NULL, &err);
		return;
	}
	if (x->pid) {
		talk(x);
		return;
	}
	/* A spare worker comes before this returns. */
	x->state = STARTING;
	timer_start(x->timer, START_MS);
	if (orders_ask(x->orders, &x->user) < 0) {
		(void)err_sys(&err, "HostdNotStarted", "ask hostd for a worker");
		fail(x, &err);
	}
}

struct exchange *exchange_new(struct loop *loop, struct orders *orders,
			      const struct exchange_hooks *hooks, struct metrics *metrics)
{
	struct exchange *x = mem_new(struct exchange);

	x->loop = loop;
	x->hooks = *hooks;
	if (!x->hooks.rest_ms)
		x->hooks.rest_ms = EXCHANGE_REST_MS;
	x->orders = orders;
	x->user = (struct orders_user){.started = on_started,
				       .not_started = on_not_started,
				       .ended = on_ended,
				       .lost = on_lost,
				       .arg = x};
	orders_join(orders, &x->user);
	x->timer = timer_new(loop, on_timer, x);
	x->restarts = metric_counter(metrics, "orbweaver_hostd_restarts_total",
				     "Workers started in place of one that was lost.", "");
	x->stuck_workers = metric_gauge(
		metrics, "orbweaver_hostd_stuck_workers",
		"Workers that were killed and do not end: they are asleep in the kernel.", "");
	return x;
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	drop_worker(x);
	timer_free(x->timer);
	while (x->stuck) {
		struct stuck *stuck = x->stuck;

		x->stuck = stuck->next;
		free_stuck(stuck);
	}
	json_decref(x->message);
	strbuf_done(&x->out);
	mem_free(x);
}

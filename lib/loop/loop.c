// SPDX-License-Identifier: Apache-2.0
/*
 * libuv handles with one owner each. Every handle struct starts with its uv handle, so that the
 * close callback, which is the only place where memory goes, is the same for all.
 */
#include "lib/loop/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <uv.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/own.h"

struct loop {
	uv_loop_t uv;
	uv_prepare_t before_wait; /* with `turns` only */
	struct metric *turns;     /* NULL: they are not measured */
	uint64_t began_ns, idle_ns;
};

struct timer {
	uv_timer_t uv; /* first: see free_closed */
	loop_fn *fn;
	void *arg;
};

struct deferred {
	uv_idle_t uv;
	loop_fn *fn;
	void *arg;
};

struct poller {
	uv_poll_t uv;
	poll_fn *fn;
	void *arg;
	int wanted; /* as libuv names it */
};

struct signal_watch {
	uv_signal_t uv;
	loop_fn *fn;
	void *arg;
};

static void free_closed(uv_handle_t *handle)
{
	mem_free(handle);
}

/*
 * The only errors these calls have are a bad argument and a lack of memory or descriptors at
 * start-up.
 */
static void must(int result)
{
	if (result == 0)
		return;
	log_error("the event loop refused a call", F_STR("error", uv_strerror(result)));
	abort();
}

struct loop *loop_new(void)
{
	struct loop *loop = mem_new(struct loop);

	must(uv_loop_init(&loop->uv));
	return loop;
}

void loop_run(struct loop *loop)
{
	assert(loop);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_turn(struct loop *loop, bool wait)
{
	assert(loop);
	uv_run(&loop->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

void loop_stop(struct loop *loop)
{
	assert(loop);
	uv_stop(&loop->uv);
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->turns)
		uv_close((uv_handle_t *)&loop->before_wait, NULL);
	/* Close callbacks; a loop_stop() that no run has met ends the first at once. */
	for (int i = 0; i < 2; i++)
		uv_run(&loop->uv, UV_RUN_NOWAIT);
	must(uv_loop_close(&loop->uv));
	mem_free(loop);
}

/* From one wait to the next, without what the waits took. */
static void on_before_wait(uv_prepare_t *uv)
{
	struct loop *loop = uv->data;
	uint64_t now_ns = uv_hrtime(), idle_ns = uv_metrics_idle_time(&loop->uv);
	uint64_t waited_ns = idle_ns - loop->idle_ns;

	metric_observe(loop->turns, (double)(now_ns - loop->began_ns - waited_ns) / 1e9);
	loop->began_ns = now_ns;
	loop->idle_ns = idle_ns;
}

void loop_measure_turns(struct loop *loop, struct metrics *metrics)
{
	static const double bounds[] = {0.001, 0.005, 0.02, 0.1, 0.5, 2};

	assert(loop && metrics && !loop->turns);
	loop->turns = metric_histogram(metrics, "orbweaver_loop_turn_seconds",
				       "Time between two waits of the event loop.", "", bounds,
				       ARRAY_LEN(bounds));
	must(uv_loop_configure(&loop->uv, UV_METRICS_IDLE_TIME));
	must(uv_prepare_init(&loop->uv, &loop->before_wait));
	loop->before_wait.data = loop;
	must(uv_prepare_start(&loop->before_wait, on_before_wait));
	uv_unref((uv_handle_t *)&loop->before_wait);
	loop->began_ns = uv_hrtime();
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
	assert(loop);
	return &loop->uv;
}

static void on_timer(uv_timer_t *uv)
{
	struct timer *timer = (struct timer *)uv;

	timer->fn(timer->arg);
}

struct timer *timer_new(struct loop *loop, loop_fn *fn, void *arg)
{
	struct timer *timer = mem_new(struct timer);

	assert(loop && fn);
	must(uv_timer_init(&loop->uv, &timer->uv));
	timer->fn = fn;
	timer->arg = arg;
	return timer;
}

void timer_start(struct timer *timer, int64_t after_ms)
{
	assert(timer);
	/*
	 * libuv counts from the time of the turn; after long work in a callback that time is old.
	 */
	uv_update_time(timer->uv.loop);
	must(uv_timer_start(&timer->uv, on_timer, after_ms > 0 ? (uint64_t)after_ms : 0, 0));
}

void timer_stop(struct timer *timer)
{
	assert(timer);
	must(uv_timer_stop(&timer->uv));
}

bool timer_is_active(const struct timer *timer)
{
	assert(timer);
	return uv_is_active((const uv_handle_t *)&timer->uv);
}

void timer_free(struct timer *timer)
{
	if (timer)
		uv_close((uv_handle_t *)&timer->uv, free_closed);
}

/*
 * An active idle handle makes the loop poll without waiting: the call comes in this turn or the
 * next.
 */
static void on_idle(uv_idle_t *uv)
{
	struct deferred *deferred = (struct deferred *)uv;

	must(uv_idle_stop(uv));
	deferred->fn(deferred->arg);
}

struct deferred *deferred_new(struct loop *loop, loop_fn *fn, void *arg)
{
	struct deferred *deferred = mem_new(struct deferred);

	assert(loop && fn);
	must(uv_idle_init(&loop->uv, &deferred->uv));
	deferred->fn = fn;
	deferred->arg = arg;
	return deferred;
}

void deferred_run(struct deferred *deferred)
{
	assert(deferred);
	must(uv_idle_start(&deferred->uv, on_idle));
}

void deferred_free(struct deferred *deferred)
{
	if (deferred)
		uv_close((uv_handle_t *)&deferred->uv, free_closed);
}

static void on_poll(uv_poll_t *uv, int status, int events)
{
	struct poller *poller = (struct poller *)uv;
	int ready = status < 0 ? POLL_ERROR : 0;

	/* libuv has stopped watching, although there may be more to read, and more to come. */
	if (status < 0)
		must(uv_poll_start(uv, poller->wanted, on_poll));
	if (events & UV_READABLE)
		ready |= POLL_READ;
	if (events & UV_WRITABLE)
		ready |= POLL_WRITE;
	poller->fn(poller->arg, ready);
}

struct poller *poller_new(struct loop *loop, int fd, poll_fn *fn, void *arg)
{
	struct poller *poller = mem_new(struct poller);

	assert(loop && fd >= 0 && fn);
	must(uv_poll_init(&loop->uv, &poller->uv, fd));
	poller->fn = fn;
	poller->arg = arg;
	return poller;
}

void poller_want(struct poller *poller, int events)
{
	int uv_events = 0;

	assert(poller && (events & ~(POLL_READ | POLL_WRITE)) == 0);
	if (events & POLL_READ)
		uv_events |= UV_READABLE;
	if (events & POLL_WRITE)
		uv_events |= UV_WRITABLE;
	poller->wanted = uv_events;
	must(uv_events ? uv_poll_start(&poller->uv, uv_events, on_poll)
		       : uv_poll_stop(&poller->uv));
}

void poller_free(struct poller *poller)
{
	if (poller)
		uv_close((uv_handle_t *)&poller->uv, free_closed);
}

static void on_signal(uv_signal_t *uv, int signum)
{
	struct signal_watch *watch = (struct signal_watch *)uv;

	watch->fn(watch->arg);
}

struct signal_watch *signal_watch_new(struct loop *loop, int signum, loop_fn *fn, void *arg)
{
	struct signal_watch *watch = mem_new(struct signal_watch);

	assert(loop && signum > 0 && fn);
	must(uv_signal_init(&loop->uv, &watch->uv));
	must(uv_signal_start(&watch->uv, on_signal, signum));
	watch->fn = fn;
	watch->arg = arg;
	return watch;
}

void signal_watch_free(struct signal_watch *watch)
{
	if (watch)
		uv_close((uv_handle_t *)&watch->uv, free_closed);
}

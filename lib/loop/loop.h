// SPDX-License-Identifier: Apache-2.0
/*
 * The event loop of a process: thin glue over libuv for what its guests need.
 *
 * libuv closes handles asynchronously. That pattern is written once, here: x_free() may be called
 * at any time, also from the handle's own callback; no callback comes after it, and the memory goes
 * in libuv's close callback. Callbacks return quickly; nothing here blocks and the thread pool
 * stays unused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct metrics;
struct uv_loop_s;

struct loop *loop_new(void);
/* Run until loop_stop, or until nothing is left that could call back. */
void loop_run(struct loop *loop);
/* Run one turn: whatever is ready now or, with `wait`, the next event. */
void loop_turn(struct loop *loop, bool wait);
void loop_stop(struct loop *loop);
/*
 * Metric orbweaver_loop_turn_seconds: how long each turn takes from one wait to the next. As long
 * as a turn takes, no other request is answered. Once; metrics is borrowed and has to outlive the
 * loop.
 */
void loop_measure_turns(struct loop *loop, struct metrics *metrics);
/* Every handle must have been freed before; pending closes are carried out here. */
void loop_free(struct loop *loop);
/* For libraries that are guests of libuv themselves. */
struct uv_loop_s *loop_uv(struct loop *loop);

typedef void loop_fn(void *arg);

/* One-shot timer. Starting it again replaces the earlier time. */
struct timer;
struct timer *timer_new(struct loop *loop, loop_fn *fn, void *arg);
void timer_start(struct timer *timer, int64_t after_ms);
void timer_stop(struct timer *timer);
bool timer_is_active(const struct timer *timer);
void timer_free(struct timer *timer);

/* Run fn(arg) once, in the next turn of the loop, before it waits for anything. */
struct deferred;
struct deferred *deferred_new(struct loop *loop, loop_fn *fn, void *arg);
void deferred_run(struct deferred *deferred); /* asking twice before it ran is asking once */
void deferred_free(struct deferred *deferred);

enum {
	POLL_READ = 1,
	POLL_WRITE = 2,
	POLL_ERROR = 4, /* only reported, never asked for; until it was read off the descriptor */
};

/* Readiness of a descriptor that belongs to the caller and must outlive the poller. */
struct poller;
typedef void poll_fn(void *arg, int events);
struct poller *poller_new(struct loop *loop, int fd, poll_fn *fn, void *arg);
/* 0 stops it. */
void poller_want(struct poller *poller, int events);
void poller_free(struct poller *poller);

/* fn(arg) for each delivery of a signal, on the loop. */
struct signal_watch;
struct signal_watch *signal_watch_new(struct loop *loop, int signum, loop_fn *fn, void *arg);
void signal_watch_free(struct signal_watch *watch);

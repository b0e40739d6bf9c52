// SPDX-License-Identifier: Apache-2.0
/*
 * A queue of keys: where to look, never what happened.
 *
 * Each key is in it once. A key that is added while it is in work runs again afterwards.
 * Failed keys wait longer each time, or as long as the server asks; delayed keys wait for their
 * delay; keys of the later lane wait for the main one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"

enum {
	QUEUE_RETRY_FIRST_MS = 50,
	QUEUE_RETRY_MAX_MS = 60000,
};

enum queue_lane {
	QUEUE_MAIN,
	QUEUE_LATER, /* only when the main lane is empty */
};

struct queue;

/*
 * ready(arg) is called, from the loop, once after keys have come to a lane and once after
 * queue_done: a key may be ready and a worker free.
 */
struct queue *queue_new(struct loop *loop, loop_fn *ready, void *arg);
void queue_free(struct queue *queue);

/*
 * Count, from now on, under client-go's names (k8s.io/component-base/metrics/prometheus/workqueue)
 * and with the label name="NAME": workqueue_adds_total, workqueue_queue_duration_seconds,
 * workqueue_work_duration_seconds, workqueue_retries_total, workqueue_unfinished_work_seconds,
 * workqueue_longest_running_processor_seconds. Not workqueue_depth: what waits for whom is the
 * caller's to say. Once; metrics are borrowed and may be NULL.
 */
void queue_measure(struct queue *queue, struct metrics *metrics, const char *name);

/* Measure the wait of all waiting keys from now: no worker could have taken them before. */
void queue_restart_waits(struct queue *queue);

/* Nothing happens when it waits in a lane already, except that MAIN moves it forward. */
void queue_add(struct queue *queue, const char *key, enum queue_lane lane);

/* Add to the main lane once the time is over; the earliest of several times counts. */
void queue_add_after(struct queue *queue, const char *key, int64_t after_ms);

/*
 * Take the next key, which is then in work until queue_done; NULL when there is none. *ret_lane
 * (may be NULL) is its lane. The string is valid until queue_done.
 */
const char *queue_take(struct queue *queue, enum queue_lane *ret_lane);

/* The same from one lane, whatever waits in the other. */
const char *queue_take_from(struct queue *queue, enum queue_lane lane);

/* How often the work on a key failed in a row; 0 also for keys that are not known. */
unsigned int queue_failures(const struct queue *queue, const char *key);

/*
 * The work on a key is over. err NULL: earlier failures are forgotten, and the key returns only if
 * it was added meanwhile. Else it returns after a pause that doubles with each failure in a row,
 * with jitter, and is not shorter than err->retry_after_ms.
 */
void queue_done(struct queue *queue, const char *key, const struct err *err);

/* Waiting in the lane / in work / waiting for their time. */
size_t queue_waiting(const struct queue *queue, enum queue_lane lane);
size_t queue_working(const struct queue *queue);
size_t queue_delayed(const struct queue *queue);

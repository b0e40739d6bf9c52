// SPDX-License-Identifier: Apache-2.0
/*
 * Which lane of the queues goes next: what users wait for, or what follows from our own writes
 * (conditions, above all).
 *
 * With 5,000 new configs, first every pod can have its network, then the conditions say so. But a
 * key that never rests must not keep all conditions waiting: after QUEUE_PRIORITY_LATER_MS, or
 * QUEUE_PRIORITY_PATIENT_MS, both lanes take turns, until the later one is empty.
 *
 * Pure: time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	/* The later lane waits for a quiet moment this long, … */
	QUEUE_PRIORITY_QUIET_MS = 250,
	/* … but not longer than this in all. */
	QUEUE_PRIORITY_LATER_MS = 10000,
	/* How long it is patient while others load the API server, or many main keys wait. */
	QUEUE_PRIORITY_PATIENT_MS = 60000,
};

/* All zero at first. Times are clock_ms(). */
struct queue_priority {
	int64_t last_main_ms;   /* when a decision on a main key last wrote */
	int64_t later_since_ms; /* since when the later lane is not empty; 0: it is */
	bool later_was_last;    /* in a time when they take turns */
};

enum queue_priority_next {
	QUEUE_PRIORITY_NOTHING, /* at present; *ret_wait_ms is when to ask again, -1: when a key comes */
	QUEUE_PRIORITY_MAIN,
	QUEUE_PRIORITY_LATER,
};

/* A decision wrote what users wait for. One that found nothing to do disturbs nobody's quiet. */
void queue_priority_wrote(struct queue_priority *lanes, int64_t now_ms);

/*
 * Decide. The caller takes a key from that lane now. patient: later keys can wait for
 * QUEUE_PRIORITY_PATIENT_MS.
 */
enum queue_priority_next queue_priority_next(struct queue_priority *lanes, bool has_main,
					     bool has_later, bool patient, int64_t now_ms,
					     int64_t *ret_wait_ms);

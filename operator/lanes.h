// SPDX-License-Identifier: Apache-2.0
/*
 * Which lane of the queues goes next: what users wait for, or what follows from our own writes
 * (conditions, above all).
 *
 * With 5,000 new configs, first every pod can have its network, then the conditions say so. But a
 * key that never rests must not keep all conditions waiting: after LANES_LATER_MS, or
 * LANES_PATIENT_MS, both lanes take turns, until the later one is empty.
 *
 * Pure: time is an argument.
 */
#ifndef ORBWEAVER_OPERATOR_LANES_H
#define ORBWEAVER_OPERATOR_LANES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* The later lane waits for a quiet moment this long, … */
	LANES_QUIET_MS = 250,
	/* … but not longer than this in all. */
	LANES_LATER_MS = 10000,
	/* How long it is patient while others load the API server, or many main keys wait. */
	LANES_PATIENT_MS = 60000,
};

/* All zero at first. Times are clock_ms(). */
struct lanes {
	int64_t last_main_ms;   /* when a decision on a main key last wrote */
	int64_t later_since_ms; /* since when the later lane is not empty; 0: it is */
	bool later_was_last;    /* in a time when they take turns */
};

enum lanes_next {
	LANES_NOTHING, /* at present; *ret_wait_ms is when to ask again, -1: when a key comes */
	LANES_MAIN,
	LANES_LATER,
};

/* A decision wrote what users wait for. One that found nothing to do disturbs nobody's quiet. */
void lanes_wrote(struct lanes *lanes, int64_t now_ms);

/*
 * Decide. The caller takes a key from that lane now. patient: later keys can wait for
 * LANES_PATIENT_MS.
 */
enum lanes_next lanes_next(struct lanes *lanes, bool has_main, bool has_later, bool patient,
			   int64_t now_ms, int64_t *ret_wait_ms);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Waiting in tests that turn a loop themselves. */
#pragma once

#include "lib/base/clock.h"
#include "lib/loop/loop.h"

/* So long that a busy machine gets there, too. */
#define UNTIL_PATIENCE_MS 60000

static void until_tick(void *arg)
{
}

/* Turn the loop until the condition holds; fail_msg() is cmocka's. */
#define until(loop, condition)                                                                     \
	do {                                                                                       \
		int64_t give_up_ = clock_ms() + UNTIL_PATIENCE_MS;                                 \
		struct timer *tick_ = timer_new((loop), until_tick, NULL);                         \
		while (!(condition)) {                                                             \
			if (clock_ms() > give_up_)                                                 \
				fail_msg("never: %s", #condition);                                 \
			timer_start(tick_, 10);                                                    \
			loop_turn((loop), true);                                                   \
		}                                                                                  \
		timer_free(tick_);                                                                 \
	} while (0)

/* Let pass some time in which something should not happen. */
static inline void pass(struct loop *loop, int64_t ms)
{
	int64_t end = clock_ms() + ms;

	until(loop, clock_ms() >= end);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Time. Whatever decides gets time as an argument; only the shell around it asks here. clock_us and
 * clock_wall_us, which the others are built on, are weak symbols: a test that defines them has its
 * own time.
 *
 * Durations are measured with CLOCK_BOOTTIME: it never jumps, and it counts while the machine
 * sleeps, which a lease needs. Wall time is for what people read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds since boot, suspend included. */
int64_t clock_ms(void);
/* Microseconds since boot, for measurements. */
int64_t clock_us(void);
/* Microseconds of CPU that this thread has used: what others on the machine do is not in it. */
int64_t clock_cpu_us(void);
/* Microseconds since the epoch. */
int64_t clock_wall_us(void);

/* A number in [0, bound) for jitter; not for secrets. 0 when bound is 0. */
uint64_t clock_jitter(uint64_t bound);

// SPDX-License-Identifier: Apache-2.0
/* Wall time as text: RFC 3339, as Kubernetes writes it. Pure; lib/base/clock.h reads the clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RFC3339_SIZE 32

/* Write microseconds since the epoch as "2026-01-31T10:00:00Z" (metav1.Time). */
void rfc3339_write(int64_t wall_us, char out[RFC3339_SIZE]);
/* The same as "2026-01-31T10:00:00.000000Z" (metav1.MicroTime). */
void rfc3339_write_micro(int64_t wall_us, char out[RFC3339_SIZE]);

/*
 * Read RFC 3339 with any number of fraction digits (those beyond the microsecond are dropped) and
 * any offset; a leap second is the first of the next minute. Return false for other text, and leave
 * *ret_wall_us untouched then.
 */
bool rfc3339_read(const char *s, int64_t *ret_wall_us);

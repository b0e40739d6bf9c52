/*
 * Time. Whatever decides gets time as an argument; only the shell around it asks here. clock_us and clock_wall_us, which
 * the others are built on, are weak symbols: a test that defines them has its own time.
 *
 * Durations are measured with CLOCK_BOOTTIME: it never jumps, and it counts while the machine sleeps, which a lease
 * needs. Wall time is for what people read.
 */
#ifndef ORBWEAVER_LIB_BASE_CLOCK_H
#define ORBWEAVER_LIB_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds since boot, suspend included. */
int64_t clock_ms(void);
/* Microseconds since boot, for measurements. */
int64_t clock_us(void);
/* Microseconds since the epoch. */
int64_t clock_wall_us(void);

#define CLOCK_RFC3339_SIZE 32

/* "2026-01-31T10:00:00Z" (metav1.Time) and "2026-01-31T10:00:00.000000Z" (metav1.MicroTime). */
void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_SIZE]);
void clock_rfc3339_micro(int64_t wall_us, char out[CLOCK_RFC3339_SIZE]);

/*
 * RFC 3339 with any number of fraction digits (those beyond the microsecond are dropped) and any offset; a leap second
 * is the first of the next minute. False when it is not one; *ret_wall_us is untouched then.
 */
bool clock_parse_rfc3339(const char *s, int64_t *ret_wall_us);

/* A number in [0, bound) for jitter; not for secrets. 0 when bound is 0. */
uint64_t clock_jitter(uint64_t bound);

#endif

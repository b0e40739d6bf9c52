// SPDX-License-Identifier: Apache-2.0
/* Time. clock_us and clock_wall_us are weak, so that a test can link its own. */
#include "lib/base/clock.h"

#include <time.h>

#include "lib/base/random.h"

#define US_PER_S 1000000

static int64_t read_us(clockid_t id)
{
	struct timespec ts = {0};

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

__attribute__((weak)) int64_t clock_us(void)
{
	return read_us(CLOCK_BOOTTIME);
}

__attribute__((weak)) int64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

int64_t clock_cpu_us(void)
{
	return read_us(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_ms(void)
{
	return clock_us() / 1000;
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next_random(void)
{
	static uint64_t state;
	static bool seeded;
	uint64_t z;

	if (!seeded) {
		random_bytes(&state, sizeof(state));
		seeded = true;
	}
	z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t clock_jitter(uint64_t bound)
{
	/* The high half of the product: no division, and a bias of bound / 2^64. */
	return (uint64_t)((unsigned __int128)next_random() * bound >> 64);
}

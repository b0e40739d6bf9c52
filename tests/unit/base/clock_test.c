// SPDX-License-Identifier: Apache-2.0
/* Jitter, and a clock that does not run backwards. */
#include "tests/support/test.h"

#include "lib/base/clock.h"
#include "lib/base/own.h"

#define S INT64_C(1000000)

TEST(clocks_run_forward)
{
	int64_t us = clock_us();
	int64_t ms = clock_ms();

	assert_true(us > 0);
	assert_true(ms >= us / 1000);
	assert_true(clock_us() >= us);
	assert_true(clock_cpu_us() > 0 && clock_cpu_us() < clock_us());
	/* After this was written. */
	assert_true(clock_wall_us() > 1769853600 * S);
}

TEST(jitter_stays_below_its_bound_and_reaches_all_of_it)
{
	bool seen[10] = {false};

	assert_int_equal(clock_jitter(0), 0);
	assert_int_equal(clock_jitter(1), 0);
	/* A value is missed with a probability of 0.9^10000. */
	for (int i = 0; i < 10000; i++) {
		uint64_t n = clock_jitter(ARRAY_LEN(seen));

		assert_true(n < ARRAY_LEN(seen));
		seen[n] = true;
	}
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		assert_true(seen[i]);
}

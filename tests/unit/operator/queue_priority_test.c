// SPDX-License-Identifier: Apache-2.0
/* Which lane goes next, with a clock of the test's own. */
#include "tests/support/test.h"

#include "operator/queue_priority.h"

#define NOW INT64_C(1000000)

TEST(main_keys_go_first)
{
	struct queue_priority lanes = {0};
	int64_t wait_ms = 0;

	assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
	assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
	assert_int_equal(queue_priority_next(&lanes, false, false, false, NOW, &wait_ms),
			 QUEUE_PRIORITY_NOTHING);
	assert_int_equal(wait_ms, -1);
}

TEST(later_keys_wait_for_a_quiet_moment)
{
	struct queue_priority lanes = {0};
	int64_t wait_ms = 0;

	assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
	queue_priority_wrote(&lanes, NOW);
	assert_int_equal(queue_priority_next(&lanes, false, true, false, NOW + 50, &wait_ms),
			 QUEUE_PRIORITY_NOTHING);
	assert_int_equal(wait_ms, QUEUE_PRIORITY_QUIET_MS - 50);
	assert_int_equal(queue_priority_next(&lanes, false, true, false,
					     NOW + QUEUE_PRIORITY_QUIET_MS, &wait_ms),
			 QUEUE_PRIORITY_LATER);
	assert_int_equal(queue_priority_next(&lanes, false, true, false,
					     NOW + QUEUE_PRIORITY_QUIET_MS, &wait_ms),
			 QUEUE_PRIORITY_LATER);
}

/* The watch brings back what a later key wrote, and there is nothing to do. */
TEST(a_main_key_that_needs_nothing_leaves_the_moment_quiet)
{
	struct queue_priority lanes = {0};
	int64_t wait_ms = 0;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(queue_priority_next(&lanes, false, true, true, NOW + i, &wait_ms),
				 QUEUE_PRIORITY_LATER);
		assert_int_equal(queue_priority_next(&lanes, true, true, true, NOW + i, &wait_ms),
				 QUEUE_PRIORITY_MAIN);
	}
}

TEST(a_key_that_never_rests_does_not_starve_later_ones)
{
	struct queue_priority lanes = {0};
	int64_t wait_ms = 0;
	int later = 0;

	for (int64_t ms = 0; ms < QUEUE_PRIORITY_LATER_MS; ms += 10)
		assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW + ms, &wait_ms),
				 QUEUE_PRIORITY_MAIN);
	/* From now on they take turns. */
	for (int i = 0; i < 10; i++)
		later += queue_priority_next(&lanes, true, true, false,
					     NOW + QUEUE_PRIORITY_LATER_MS + i,
					     &wait_ms) == QUEUE_PRIORITY_LATER;
	assert_int_equal(later, 5);
	/* Once nothing is left to do later, the time counts anew. */
	assert_int_equal(queue_priority_next(&lanes, true, false, false, NOW + 20000, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
	assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW + 20001, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
	assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW + 20002, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
}

TEST(a_moment_that_is_not_quiet_does_not_count_beyond_the_limit)
{
	struct queue_priority lanes = {0};
	int64_t wait_ms = 0;

	assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW, &wait_ms),
			 QUEUE_PRIORITY_MAIN);
	for (int64_t ms = 0; ms < QUEUE_PRIORITY_LATER_MS; ms += 100) {
		assert_int_equal(queue_priority_next(&lanes, true, true, false, NOW + ms, &wait_ms),
				 QUEUE_PRIORITY_MAIN);
		queue_priority_wrote(&lanes, NOW + ms);
	}
	assert_int_equal(queue_priority_next(&lanes, false, true, false,
					     NOW + QUEUE_PRIORITY_LATER_MS, &wait_ms),
			 QUEUE_PRIORITY_LATER);
}

TEST(later_keys_can_be_patient)
{
	struct queue_priority lanes = {0};
	int64_t wait_ms = 0;

	for (int64_t ms = 0; ms < QUEUE_PRIORITY_PATIENT_MS; ms += 10)
		assert_int_equal(queue_priority_next(&lanes, true, true, true, NOW + ms, &wait_ms),
				 QUEUE_PRIORITY_MAIN);
	assert_int_equal(queue_priority_next(&lanes, true, true, true,
					     NOW + QUEUE_PRIORITY_PATIENT_MS, &wait_ms),
			 QUEUE_PRIORITY_LATER);
	/* When nothing else waits, they need not. */
	assert_int_equal(
		queue_priority_next(&lanes, false, true, true,
				    NOW + QUEUE_PRIORITY_PATIENT_MS + QUEUE_PRIORITY_QUIET_MS,
				    &wait_ms),
		QUEUE_PRIORITY_LATER);
}

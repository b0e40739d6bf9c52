// SPDX-License-Identifier: Apache-2.0
/*
 * The hash map: compared with a plain array over many random steps, and its hash with SipHash's own
 * values.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "lib/base/map.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

#define KEYS 200

static int frees;

static void count_free(void *value)
{
	frees++;
	free(value);
}

TEST(a_zeroed_map_is_empty)
{
	struct map m = {0};
	const char *key;
	void *value;
	size_t i = 0;

	assert_null(map_get(&m, "a"));
	assert_null(map_take(&m, "a"));
	assert_false(map_del(&m, "a"));
	assert_false(map_next(&m, &i, &key, &value));
	map_done(&m);
}

TEST(values_are_found_replaced_and_removed)
{
	struct map m = {0};
	int one, two;

	map_set(&m, "a", &one);
	map_set(&m, "", &two);
	assert_ptr_equal(map_get(&m, "a"), &one);
	assert_ptr_equal(map_get(&m, ""), &two);
	map_set(&m, "a", &two);
	assert_ptr_equal(map_get(&m, "a"), &two);
	assert_int_equal(m.len, 2);
	assert_true(map_del(&m, "a"));
	assert_false(map_del(&m, "a"));
	assert_null(map_get(&m, "a"));
	assert_int_equal(m.len, 1);
	map_done(&m);
	assert_int_equal(m.len, 0);
	map_set(&m, "a", &one);
	assert_ptr_equal(map_get(&m, "a"), &one);
	map_done(&m);
}

TEST(keys_are_copied)
{
	struct map m = {0};
	char key[] = "abc";

	map_set(&m, key, key);
	key[0] = 'x';
	assert_ptr_equal(map_get(&m, "abc"), key);
	assert_null(map_get(&m, "xbc"));
	map_done(&m);
}

TEST(the_destructor_runs_once_for_each_value_that_goes)
{
	struct map m = {.free_value = count_free};
	void *value = malloc(1);

	frees = 0;
	map_set(&m, "a", malloc(1));
	map_set(&m, "a", value);
	assert_int_equal(frees, 1);
	map_set(&m, "a", value); /* the same again: not freed */
	assert_int_equal(frees, 1);
	map_set(&m, "b", malloc(1));
	assert_ptr_equal(map_take(&m, "a"), value);
	assert_int_equal(frees, 1);
	free(value);
	map_set(&m, "c", malloc(1));
	assert_true(map_del(&m, "c"));
	assert_int_equal(frees, 2);
	map_done(&m);
	assert_int_equal(frees, 3);
}

TEST(many_random_steps_agree_with_a_plain_array)
{
	struct map m = {0};
	int values[KEYS];
	bool present[KEYS] = {false};
	size_t len = 0;
	unsigned int seed = 1;

	for (int step = 0; step < 50000; step++) {
		/*
		 * Phases of mostly adding and mostly removing, so that the table grows and shrinks.
		 */
		bool add = rand_r(&seed) % 8 != 0 ? step / 2000 % 2 == 0 : step / 2000 % 2 != 0;
		unsigned int k = (unsigned int)rand_r(&seed) % KEYS;
		auto_free char *key = str_printf("ns/object-%u", k);

		if (add) {
			map_set(&m, key, &values[k]);
			len += !present[k];
		} else {
			assert_ptr_equal(map_take(&m, key), present[k] ? &values[k] : NULL);
			len -= present[k];
		}
		present[k] = add;
		assert_int_equal(m.len, len);
		assert_true(m.used * 4 <= m.cap * 3 || m.cap == 0);
		assert_true(m.cap <= 1024);
		k = (unsigned int)rand_r(&seed) % KEYS;
		free(take_ptr(key));
		key = str_printf("ns/object-%u", k);
		assert_ptr_equal(map_get(&m, key), present[k] ? &values[k] : NULL);
	}
	map_done(&m);
}

TEST(a_visit_sees_each_entry_once_and_may_remove_it)
{
	struct map m = {0};
	int seen[KEYS] = {0};
	const char *key;
	void *value;
	size_t i = 0;

	for (int k = 0; k < KEYS; k++) {
		auto_free char *name = str_printf("%d", k);

		map_set(&m, name, &seen[k]);
	}
	while (map_next(&m, &i, &key, &value)) {
		int *hits = value;

		(*hits)++;
		if ((hits - seen) % 2 == 0)
			assert_true(map_del(&m, key));
	}
	for (int k = 0; k < KEYS; k++)
		assert_int_equal(seen[k], 1);
	assert_int_equal(m.len, KEYS / 2);
	map_done(&m);
}

/*
 * Key 00 01 … 0f, data of n bytes 00 01 …: published with the reference implementation, and by Rust
 * and Swift.
 */
TEST(hashes_are_those_of_siphash_1_3)
{
	static const uint64_t want[] = {
		0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb,
		0xcf75576088d38328, 0xdef9d52f49533b67, 0xc50d2b50c59f22a7, 0xd3927d989bb11140,
		0x369095118d299a8e, 0x25a48eb36c063de4, 0x79de85ee92ff097f, 0x70c118c1f94dc352,
	};
	static const uint64_t seed[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	unsigned char data[ARRAY_LEN(want)];

	for (size_t n = 0; n < ARRAY_LEN(want); n++) {
		data[n] = (unsigned char)n;
		assert_int_equal(map_siphash13(seed, data, n), want[n]);
	}
}

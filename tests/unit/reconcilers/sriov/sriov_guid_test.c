// SPDX-License-Identifier: Apache-2.0
/* GUIDs of InfiniBand VFs: what a pool may hold, and that no two VFs get the same one. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/sriov/sriov_guid.h"
#include "tests/support/yaml.h"

TEST(text_and_number_are_the_same_guid)
{
	char text[GUID_TEXT_SIZE];
	uint64_t guid = 0;

	assert_true(guid_parse("02:0C:42:a1:00:00:01:fF", &guid));
	assert_true(guid == UINT64_C(0x020c42a1000001ff));
	guid_text(guid, text);
	assert_string_equal(text, "02:0c:42:a1:00:00:01:ff");
}

TEST(nothing_else_is_a_guid)
{
	static const char *const texts[] = {
		"",
		"02",
		"02:00:00:00:00:00:00",
		"02:00:00:00:00:00:00:",
		"02:00:00:00:00:00:00:0",
		"02:00:00:00:00:00:00:00:00",
		"02-00-00-00-00-00-00-00",
		"0200:0000:0000:0000",
		" 02:00:00:00:00:00:00:00",
		"02:00:00:00:00:00:00:0g",
		"02:00:00:00:00:00:00:00 ",
		":",
		"2:0:0:0:0:0:0:0",
	};
	uint64_t guid = 7;

	assert_false(guid_parse(NULL, &guid));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (guid_parse(texts[i], &guid))
			fail_msg("%s", texts[i]);
	assert_true(guid == 7);
}

#define START "rangeStart: '02:00:00:00:00:00:00:00'"
#define END   "rangeEnd: '02:ff:ff:ff:ff:ff:ff:ff'"

TEST(a_pool_is_a_block)
{
	static const struct {
		const char *pool;
		int block;
	} rows[] = {
		{"{" START ", " END "}", 0x02},
		{"{rangeStart: '06:00:00:00:00:00:00:00', rangeEnd: '06:FF:FF:FF:FF:FF:FF:FF'}",
		 0x06},
		/* The first whole block that is neither a group's nor of the devices. */
		{"{rangeStart: '00:00:00:00:00:00:00:00', rangeEnd: 'ff:ff:ff:ff:ff:ff:ff:ff'}",
		 0x02},
		{"{rangeStart: '02:00:00:00:00:00:00:01', rangeEnd: 'ff:ff:ff:ff:ff:ff:ff:ff'}",
		 0x06},
		{"{rangeStart: 'fb:00:00:00:00:00:00:00', rangeEnd: 'ff:ff:ff:ff:ff:ff:ff:ff'}",
		 0xfe},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pool = yaml(rows[i].pool);
		auto_problems struct problems problems = {0};
		int block = -1;

		assert_true(guid_pool_block(pool, &block, &problems));
		assert_int_equal(block, rows[i].block);
		assert_int_equal(problems.total, 0);
	}
}

TEST(no_pool_is_no_block)
{
	json_auto_t *null = json_null();
	int block = -1;

	assert_true(guid_pool_block(NULL, &block, NULL));
	assert_int_equal(block, GUID_BLOCK_NONE);
	block = -1;
	assert_true(guid_pool_block(null, &block, NULL));
	assert_int_equal(block, GUID_BLOCK_NONE);
}

TEST(a_bad_pool_says_what_would_be_right)
{
	static const struct {
		const char *pool, *text;
	} rows[] = {
		{"7", "spec.guidPool: an integer, must be an object with rangeStart and rangeEnd"},
		{"{}",
		 "spec.guidPool.rangeStart: missing, must be eight octets like "
		 "02:00:00:00:00:00:00:00; spec.guidPool.rangeEnd: missing, must be eight octets "
		 "like 02:00:00:00:00:00:00:00"},
		{"{" START ", rangeEnd: '02:ff'}",
		 "spec.guidPool.rangeEnd: \"02:ff\", must be eight octets like "
		 "02:00:00:00:00:00:00:00"},
		{"{" END ", rangeStart: 2}",
		 "spec.guidPool.rangeStart: an integer, must be eight octets like "
		 "02:00:00:00:00:00:00:00"},
		{"{rangeStart: '02:ff:ff:ff:ff:ff:ff:ff', rangeEnd: '02:00:00:00:00:00:00:00'}",
		 "spec.guidPool: rangeEnd is lower than rangeStart, exchange them"},
		{"{" START ", rangeEnd: '02:00:00:00:00:00:0f:ff'}",
		 "spec.guidPool: 4096 GUIDs are available, a whole block of 72057594037927936 is "
		 "needed, for each PF takes its own by its MAC address; give it all that begins "
		 "with one octet of 02, 06, 0a, 0e, 12, ..., fe, for example "
		 "02:00:00:00:00:00:00:00 to 02:ff:ff:ff:ff:ff:ff:ff"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pool = yaml(rows[i].pool);
		auto_problems struct problems problems = {0};
		int block = -1;

		assert_false(guid_pool_block(pool, &block, &problems));
		assert_int_equal(block, GUID_BLOCK_NONE);
		auto_free char *text = problems_text(&problems);
		assert_string_equal(text, rows[i].text);
		assert_false(guid_pool_block(pool, &block, NULL));
	}
}

TEST(blocks_of_groups_and_of_devices_are_no_pools)
{
	for (unsigned int octet = 0; octet <= UINT8_MAX; octet++) {
		auto_free char *text = str_printf("{rangeStart: '%02x:00:00:00:00:00:00:00',"
						  " rangeEnd: '%02x:ff:ff:ff:ff:ff:ff:ff'}",
						  octet, octet);
		json_auto_t *pool = yaml(text);
		int block = 0;

		assert_int_equal(guid_pool_block(pool, &block, NULL), (octet & 3) == 2);
	}
}

TEST(a_pf_is_known_by_its_mac_address)
{
	static const struct {
		const char *mac, *guid;
	} rows[] = {
		{"0c:42:a1:66:a1:b2", "02:0c:42:a1:66:a1:b2:00"},
		/* IPoIB: queue pair, GID prefix, GUID. */
		{"00:00:10:87:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:66:a1:b2",
		 "02:0c:42:a1:66:a1:b2:00"},
		{"00:00:10:87:fe:80:00:00:00:00:00:00:0c:42:a1:ff:fe:66:a1:b2",
		 "02:0c:42:a1:66:a1:b2:00"},
		{"00:00:10:87:fe:80:00:00:00:00:00:00:0c:42:a1:03:01:66:a1:b2", NULL},
		{"00:00:10:87:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00", NULL},
		{"00:00:10:87:fe:80:00:00:00:00:00:00:00:00:00:03:00:00:00:00", NULL},
		{"00:00:00:00:00:00", NULL},
		{"0c:42:a1:03:00:66:a1:b2", NULL},
		{"", NULL},
		{NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[GUID_TEXT_SIZE];
		uint64_t guid;

		if (guid_first_of_pf(2, rows[i].mac, &guid) != (rows[i].guid != NULL))
			fail_msg("%s", rows[i].mac);
		if (!rows[i].guid)
			continue;
		guid_text(guid, text);
		assert_string_equal(text, rows[i].guid);
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Neighbouring MAC addresses, as one card or one delivery has them: the worst case for anything but
 * a sum of distinct places.
 */
TEST(no_two_vfs_of_ten_thousand_pfs_share_a_guid)
{
	const size_t pfs = 10000, vfs = GUID_VFS_MAX;
	auto_free uint64_t *all = mem_calloc(pfs * vfs, sizeof(*all));

	for (size_t pf = 0; pf < pfs; pf++) {
		auto_free char *mac =
			str_printf("0c:42:a1:%02zx:%02zx:%02zx", pf % 3 ? (size_t)0 : 0xff,
				   pf >> 8 & 0xff, pf & 0xff);
		uint64_t first = 0;

		assert_true(guid_first_of_pf(0x06, mac, &first));
		for (size_t vf = 0; vf < vfs; vf++)
			all[pf * vfs + vf] = first + vf;
	}
	qsort(all, pfs * vfs, sizeof(*all), by_value);
	for (size_t i = 0; i < pfs * vfs; i++) {
		assert_true(all[i] >> 56 == 0x06);
		assert_true(i == 0 || all[i] != all[i - 1]);
	}
}

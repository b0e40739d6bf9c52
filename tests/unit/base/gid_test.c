// SPDX-License-Identifier: Apache-2.0
/* Addresses and their GIDs. */
#include "tests/support/test.h"

#include "lib/base/gid.h"
#include "lib/base/str.h"

TEST(an_address_has_one_gid)
{
	static const struct {
		const char *address, *gid;
	} cases[] = {
		{"10.6.0.1", "0000:0000:0000:0000:0000:ffff:0a06:0001"},
		{"fd00::AB:1", "fd00:0000:0000:0000:0000:0000:00ab:0001"},
		{"::ffff:10.6.0.1", "0000:0000:0000:0000:0000:ffff:0a06:0001"},
		{"10.6.0.1/16", ""},
		{"10.06.0.1", ""},
		{"fe80::1%net1", ""},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char gid[GID_TEXT_SIZE] = "before";

		assert_int_equal(gid_of_address(cases[i].address, gid), *cases[i].gid != '\0');
		assert_string_equal(gid, cases[i].gid);
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Lists of rails in labels. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/base/rail_list.h"

TEST(a_list_is_ranges_and_dots)
{
	static const struct {
		const char *text;
		uint32_t rails;
		const char *again; /* as it is written; NULL: not a list */
	} cases[] = {
		{"0", 1, "0"},
		{"0-3.6", 0x4f, "0-3.6"},
		{"7.1.0.007", 0x83, "0-1.7"},
		{"0-31", UINT32_MAX, "0-31"},
		{"32", 0, NULL},
		{"4294967296", 0, NULL},
		{"3-1", 0, NULL},
		{"1-", 0, NULL},
		{"1.", 0, NULL},
		{"1..2", 0, NULL},
		{"1,2", 0, NULL},
		{"1-2-3", 0, NULL},
		{"-1", 0, NULL},
		{"", 0, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = rail_list_text(rail_list_parse(cases[i].text));

		assert_int_equal(rail_list_parse(cases[i].text), cases[i].rails);
		assert_string_equal(text, cases[i].again ? cases[i].again : "none");
	}
}

TEST(a_group_begins_with_another_character)
{
	assert_true(rail_list_is("0-40"));
	assert_false(rail_list_is("train"));
	assert_false(rail_list_is(""));
	assert_false(rail_list_is(NULL));
}

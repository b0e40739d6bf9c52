// SPDX-License-Identifier: Apache-2.0
/* The weight of JSON texts. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"

TEST(counts_what_parts_values_outside_of_strings)
{
	static const struct {
		const char *text;
		size_t weight;
	} cases[] = {
		{"", 0},
		{"1", 0},
		{"{}", 2},
		{"{\"a\":[1,2,{}]}", 8},
		{"\"[,]{}\"", 0},
		{"\"\\\"[\",[]", 3},
		{"\"\\\\\",[]", 3},
		{"\"[[[", 0},
		{"\"\\", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (json_weight(cases[i].text, strlen(cases[i].text), 100) != cases[i].weight)
			fail_msg("%s", cases[i].text);
}

TEST(ends_where_it_is_too_much)
{
	assert_int_equal(json_weight("[[[[[", 5, 0), 1);
	assert_int_equal(json_weight("[[[[[", 5, 3), 4);
	assert_int_equal(json_weight("[[[[[", 5, 5), 5);
}

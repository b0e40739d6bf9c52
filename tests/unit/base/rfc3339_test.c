// SPDX-License-Identifier: Apache-2.0
/* RFC 3339 in and out. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/base/rfc3339.h"

#define S INT64_C(1000000)

TEST(times_are_read)
{
	static const struct {
		const char *text;
		int64_t want_us;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1969-12-31T23:59:59.5Z", -S / 2},
		{"2026-01-31T10:00:00Z", 1769853600 * S},
		{"2026-01-31t10:00:00z", 1769853600 * S},
		{"2026-01-31T10:00:00.000001Z", 1769853600 * S + 1},
		{"2026-01-31T10:00:00.1234567891Z", 1769853600 * S + 123456},
		{"2026-01-31T12:30:00+02:30", 1769853600 * S},
		{"2026-01-30T22:00:00-12:00", 1769853600 * S},
		{"2000-02-29T00:00:00Z", 951782400 * S},
		{"2016-12-31T23:59:60Z", 1483228800 * S},
		{"0000-01-01T00:00:00Z", INT64_C(-62167219200) * S},
		{"9999-12-31T23:59:59Z", INT64_C(253402300799) * S},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t us = 0;

		assert_true(rfc3339_read(cases[i].text, &us));
		assert_int_equal(us, cases[i].want_us);
	}
}

TEST(other_text_is_refused)
{
	static const char *const cases[] = {
		"",
		"2026",
		"2026-01-31",
		"2026-01-31T10:00:00",
		"2026-01-31 10:00:00Z",
		"2026-01-31T10:00:00Z ",
		" 2026-01-31T10:00:00Z",
		"2026-01-31T10:00:00.Z",
		"2026-01-31T10:00:00+0230",
		"2026-01-31T10:00:00+24:00",
		"2026-01-31T24:00:00Z",
		"2026-01-31T10:60:00Z",
		"2026-01-31T10:00:61Z",
		"2026-13-01T10:00:00Z",
		"2026-00-01T10:00:00Z",
		"2026-01-00T10:00:00Z",
		"2026-02-29T10:00:00Z",
		"1900-02-29T10:00:00Z",
		"2026-04-31T10:00:00Z",
		"2026-1-31T10:00:00Z",
		"-026-01-31T10:00:00Z",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t us = 5;

		assert_false(rfc3339_read(cases[i], &us));
		assert_int_equal(us, 5);
	}
}

TEST(times_are_written_and_read_back)
{
	char text[RFC3339_SIZE];
	int64_t us;

	rfc3339_write(1769853600 * S + 999999, text);
	assert_string_equal(text, "2026-01-31T10:00:00Z");
	rfc3339_write_micro(1769853600 * S + 42, text);
	assert_string_equal(text, "2026-01-31T10:00:00.000042Z");
	rfc3339_write_micro(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999999Z");

	for (int64_t day = -100000; day < 100000; day += 37) {
		rfc3339_write_micro(day * 86400 * S + day, text);
		assert_true(rfc3339_read(text, &us));
		assert_int_equal(us, day * 86400 * S + day);
	}
}

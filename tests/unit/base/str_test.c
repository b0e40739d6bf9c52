// SPDX-License-Identifier: Apache-2.0
/* Strings, numbers, UTF-8 and the growable buffer. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"

TEST(comparisons_take_null)
{
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq(NULL, ""));
	assert_false(str_eq("a", NULL));
	assert_true(str_eq("a", "a"));
	assert_true(str_starts("sriov0", "sriov"));
	assert_false(str_starts("sri", "sriov"));
	assert_false(str_starts(NULL, "x"));
	assert_true(str_ends("watch.c", ".c"));
	assert_false(str_ends("c", ".c"));
	assert_false(str_ends("x", NULL));
	assert_true(str_empty(NULL));
	assert_true(str_empty(""));
	assert_false(str_empty(" "));
	assert_null(str_dup(NULL));
}

TEST(numbers_are_whole_decimal_texts_within_bounds)
{
	static const struct {
		const char *text;
		int64_t min, max;
		bool ok;
		int64_t want;
	} cases[] = {
		{"0", 0, 10, true, 0},
		{"10", 0, 10, true, 10},
		{"11", 0, 10, false, 0},
		{"-1", 0, 10, false, 0},
		{"-1", -1, 10, true, -1},
		{"007", 0, 10, true, 7},
		{"9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX},
		{"9223372036854775808", INT64_MIN, INT64_MAX, false, 0},
		{"-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN},
		{"-9223372036854775809", INT64_MIN, INT64_MAX, false, 0},
		{"99999999999999999999999", INT64_MIN, INT64_MAX, false, 0},
		{"", INT64_MIN, INT64_MAX, false, 0},
		{"-", INT64_MIN, INT64_MAX, false, 0},
		{"+1", INT64_MIN, INT64_MAX, false, 0},
		{" 1", INT64_MIN, INT64_MAX, false, 0},
		{"1 ", INT64_MIN, INT64_MAX, false, 0},
		{"0x1", INT64_MIN, INT64_MAX, false, 0},
		{"--1", INT64_MIN, INT64_MAX, false, 0},
		{NULL, INT64_MIN, INT64_MAX, false, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t n = 4711;

		assert_int_equal(str_to_int(cases[i].text, cases[i].min, cases[i].max, &n),
				 cases[i].ok);
		assert_int_equal(n, cases[i].ok ? cases[i].want : 4711);
	}
}

/* Values of the reference implementation: http://www.isthe.com/chongo/tech/comp/fnv/ */
TEST(hashes_are_those_of_fnv_1a)
{
	assert_int_equal(str_hash("", 0), 0xcbf29ce484222325);
	assert_int_equal(str_hash("a", 1), 0xaf63dc4c8601ec8c);
	assert_int_equal(str_hash("foobar", 6), 0x85944171f73967e8);
}

TEST(utf8_characters_are_measured_and_malformed_ones_refused)
{
	static const struct {
		const char *text;
		size_t len, want;
	} cases[] = {
		{"", 0, 0},
		{"a", 1, 1},
		{"\0", 1, 1},
		{"ä", 2, 2},
		{"ä", 1, 0},
		{"€", 3, 3},
		{"€", 2, 0},
		{"😀", 4, 4},
		{"😀", 3, 0},
		{"\x80", 1, 0},
		{"\xc0\x80", 2, 0},         /* overlong NUL */
		{"\xe0\x9f\xbf", 3, 0},     /* overlong */
		{"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
		{"\xed\xa0\x80", 3, 0},     /* surrogate */
		{"\xed\x9f\xbf", 3, 3},
		{"\xf4\x8f\xbf\xbf", 4, 4}, /* U+10FFFF */
		{"\xf4\x90\x80\x80", 4, 0}, /* one more */
		{"\xf5\x80\x80\x80", 4, 0},
		{"\xe2\x28\xa1", 3, 0},
		{"\xe2\x82\x28", 3, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(str_utf8_len(cases[i].text, cases[i].len), cases[i].want);
}

TEST(clipping_never_leaves_a_part_of_a_character)
{
	const char *text = "a😀b";

	assert_int_equal(str_clip(text, 6, 100), 6);
	assert_int_equal(str_clip(text, 6, 6), 6);
	assert_int_equal(str_clip(text, 6, 5), 5);
	for (size_t max = 1; max < 5; max++)
		assert_int_equal(str_clip(text, 6, max), 1);
	assert_int_equal(str_clip(text, 6, 0), 0);
	/* Cut before: the text itself ends within a character. */
	assert_int_equal(str_clip(text, 3, 3), 1);
	/* Not UTF-8 anyway: nothing to protect. */
	assert_int_equal(str_clip("\x80\x80\x80\x80\x80", 5, 4), 4);
	assert_int_equal(str_clip("", 0, 4), 0);
}

TEST(a_buffer_grows_and_stays_terminated)
{
	auto_strbuf struct strbuf b = {0};

	assert_string_equal(strbuf_str(&b), "");
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&b, "%d,", i);
	assert_int_equal(b.len, 3890);
	assert_int_equal(strlen(b.data), b.len);
	assert_true(str_ends(b.data, "998,999,"));

	strbuf_consume(&b, b.len - 4);
	assert_string_equal(b.data, "999,");
	strbuf_cut(&b, 3);
	strbuf_addc(&b, '!');
	strbuf_add(&b, "", 0);
	assert_string_equal(b.data, "999!");
	strbuf_reset(&b);
	assert_string_equal(strbuf_str(&b), "");
	strbuf_consume(&b, 0);
}

TEST(a_buffer_is_exactly_full_before_it_grows)
{
	for (size_t len = 0; len < 300; len++) {
		auto_strbuf struct strbuf b = {0};

		for (size_t i = 0; i < len; i++)
			strbuf_addc(&b, 'x');
		assert_int_equal(b.len, len);
		assert_int_equal(strlen(strbuf_str(&b)), len);
	}
}

TEST(taking_the_text_empties_the_buffer)
{
	auto_strbuf struct strbuf b = {0};
	auto_free char *empty = strbuf_take(&b);
	auto_free char *text = NULL;

	strbuf_adds(&b, "text");
	text = strbuf_take(&b);
	assert_string_equal(empty, "");
	assert_string_equal(text, "text");
	assert_null(b.data);
	assert_int_equal(b.len, 0);
}

TEST(control_characters_are_covered)
{
	char text[] = "a\033[2J\tb\n\x7f\xc2\x80\xc2\x9f\xc2\xa0ä\xc2";

	str_cover_controls(text, "\n", '?');
	assert_string_equal(text, "a?[2J?b\n?????\xc2\xa0ä\xc2");
}

TEST(foreign_text_is_made_utf8)
{
	auto_strbuf struct strbuf b = {0};

	strbuf_add_utf8(&b, "\xffz\xc3\xa4\xc3", 5);
	assert_string_equal(b.data, "\xef\xbf\xbd"
				    "zä\xef\xbf\xbd");
}

TEST(new_strings_come_from_formats)
{
	auto_free char *empty = str_printf("%s", "");
	auto_free char *text = str_printf("%s/%d", "ns", 5);
	auto_free char *part = str_ndup("abc", 2);

	assert_string_equal(empty, "");
	assert_string_equal(text, "ns/5");
	assert_string_equal(part, "ab");
}

TEST(paths_are_put_together_with_one_slash)
{
	static const struct {
		const char *dir, *path, *want;
	} cases[] = {
		{"/var/lib/kubelet", "device-plugins", "/var/lib/kubelet/device-plugins"},
		{"/host/", "dev", "/host/dev"},
		{"/", "run/x", "/run/x"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *path = str_below(cases[i].dir, cases[i].path);

		assert_string_equal(path, cases[i].want);
	}
}

TEST(reads_hexadecimal_digits)
{
	static const char digits[] = "0123456789abcdef", upper[] = "ABCDEF", others[] = "g`@/:G ";

	for (int i = 0; digits[i]; i++)
		assert_int_equal(str_hex_digit(digits[i]), i);
	for (int i = 0; upper[i]; i++)
		assert_int_equal(str_hex_digit(upper[i]), 10 + i);
	for (const char *c = others; *c; c++)
		assert_int_equal(str_hex_digit(*c), -1);
}

TEST(a_slip_is_told_from_another_word)
{
	static const char *const known[] = {"resourceName", "resourcePrefix", "rdmaHcaMax",
					    "selectors",    "devices",        NULL};
	static const struct {
		const char *text, *nearest;
	} rows[] = {
		{"rdmaHcaMaxx", "rdmaHcaMax"},
		{"rdmaHcMax", "rdmaHcaMax"},
		{"RDMAHCAMAKS", "rdmaHcaMax"},
		{"rdmaMax", "rdmaHcaMax"},
		{"device", "devices"},
		{"resourcesName", "resourceName"},
		{"resourcePrefux", "resourcePrefix"},
		{"devices", "devices"},
		{"comment", NULL},
		{"_", NULL},
		{"", NULL},
		{"rdmaHcaMaxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *nearest = str_nearest(known, rows[i].text);

		if (!str_eq(nearest, rows[i].nearest))
			fail_msg("%s: %s", rows[i].text, nearest ? nearest : "none");
	}
}

TEST(blanks_at_both_ends_are_cut_off)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""}, {" \t\r\n", ""}, {"a", "a"}, {" a b\n", "a b"}, {"a\t", "a"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_dup(cases[i].text);

		assert_string_equal(str_trim(text), cases[i].want);
	}
}

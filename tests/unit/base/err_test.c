// SPDX-License-Identifier: Apache-2.0
/* Errors: one line of valid text, cut where it must be, context in front. */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"

TEST(setting_an_error_fills_all_fields_and_returns_minus_one)
{
	struct err err = {.sys = 7};

	assert_int_equal(err_set(&err, ERR_CONFLICT, "SomeoneWrote", "pool %s", "a"), -1);
	assert_int_equal(err.class, ERR_CONFLICT);
	assert_int_equal(err.sys, 0);
	assert_string_equal(err.reason, "SomeoneWrote");
	assert_string_equal(err.text, "pool a");
}

TEST(a_system_error_keeps_and_describes_errno)
{
	struct err err = {0};

	errno = ENOENT;
	assert_int_equal(err_sys(&err, "FileUnreadable", "open %s", "x"), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.text, "open x: No such file or directory");
	assert_int_equal(errno, ENOENT);
}

TEST(context_goes_in_front_and_class_and_reason_stay)
{
	struct err err = {0};

	(void)err_set(&err, ERR_INVALID, "BadField", "vfs: too many");
	assert_int_equal(err_in(&err, "policy %s", "a"), -1);
	assert_string_equal(err.text, "policy a: vfs: too many");
	assert_string_equal(err.reason, "BadField");
	assert_int_equal(err.class, ERR_INVALID);
}

TEST(arguments_may_point_into_the_error_itself)
{
	struct err err = {0};

	(void)err_set(&err, ERR_INVALID, "Inner", "inner");
	(void)err_set(&err, ERR_TRANSIENT, err.reason, "outer (%s)", err.text);
	assert_string_equal(err.text, "outer (inner)");
	assert_string_equal(err.reason, "Inner");
	(void)err_in(&err, "%s", err.text);
	assert_string_equal(err.text, "outer (inner): outer (inner)");
}

TEST(nobody_has_to_want_the_error)
{
	assert_int_equal(err_set(NULL, ERR_BUG, "X", "x"), -1);
	assert_int_equal(err_sys(NULL, "X", "x"), -1);
	assert_int_equal(err_in(NULL, "x"), -1);
}

TEST(the_text_is_one_line_of_utf8)
{
	struct err err = {0};

	(void)err_set(&err, ERR_INVALID, "X", "a\nb\r\tc%cd\xff\x65\xc3", 0x7f);
	assert_string_equal(err.text, "a b  c d?e");
	(void)err_set(&err, ERR_INVALID, "X", "\xc2\x9bJ ä \xc2\xa0");
	assert_string_equal(err.text, "  J ä \xc2\xa0");
}

TEST(a_long_text_is_cut_between_characters)
{
	struct err err = {0};
	char umlauts[2 * sizeof(err.text) + 1] = "";

	for (size_t i = 0; i + 2 < sizeof(umlauts); i += 2)
		memcpy(umlauts + i, "ä", 3);
	(void)err_set(&err, ERR_INVALID, "X", "%s", umlauts);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 2);
	(void)err_in(&err, "x");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "x: ä", 5);
}

TEST(a_long_reason_is_cut)
{
	struct err err = {0};

	(void)err_set(&err, ERR_BUG, "AReasonThatIsLongerThanItsFieldCanHold", "x");
	assert_int_equal(strlen(err.reason), sizeof(err.reason) - 1);
}

TEST(every_class_has_a_name_of_its_own)
{
	for (int a = ERR_NONE; a <= ERR_BUG; a++)
		for (int b = ERR_NONE; b < a; b++)
			assert_string_not_equal(err_class_name(a), err_class_name(b));
	assert_string_equal(err_class_name(ERR_INVALID), "Invalid");
}

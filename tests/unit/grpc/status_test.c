// SPDX-License-Identifier: Apache-2.0
/* Codes, texts and time limits as header values. */
#include "tests/support/test.h"

#include "lib/grpc/status.h"

#include <nghttp2/nghttp2.h>

TEST(reads_time_limits_in_all_units)
{
	static const struct {
		const char *value;
		int64_t ms;
	} table[] = {
		{"1H", 3600000},
		{"2M", 120000},
		{"3S", 3000},
		{"4m", 4},
		{"29999986u", 30000},
		{"999935u", 1000},
		{"4999991u", 5000},
		{"1u", 1},
		{"1n", 1},
		{"1000001n", 2},
		{"0m", 0},
		{"99999999H", 359999996400000},
		{"00000001S", 1000},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		int64_t ms = -1;

		assert_true(grpc_timeout_parse(table[i].value, &ms));
		assert_int_equal(ms, table[i].ms);
	}
}

TEST(refuses_malformed_time_limits)
{
	static const char *const table[] = {"",    "1",   "S",    "1s",         "-1S", "+1S",
					    " 1S", "1S ", "1.5S", "100000000m", "1mm", "0x1S"};
	int64_t ms = 42;

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_false(grpc_timeout_parse(table[i], &ms));
	assert_false(grpc_timeout_parse(NULL, &ms));
	assert_int_equal(ms, 42);
}

TEST(writes_time_limits_in_the_finest_unit_that_fits)
{
	static const struct {
		int64_t ms;
		const char *value;
	} table[] = {
		{1, "1m"},
		{15000, "15000m"},
		{99999999, "99999999m"},
		{100000000, "100000S"},
		{100000001, "100001S"},
		{99999999000, "99999999S"},
		{99999999001, "1666667M"},
		{INT64_MAX, "99999999H"},
	};
	char value[GRPC_TIMEOUT_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		grpc_timeout_format(table[i].ms, value);
		assert_string_equal(value, table[i].value);
	}
}

TEST(escapes_texts_for_a_header)
{
	static const struct {
		const char *text;
		const char *value;
	} table[] = {
		{"", ""},
		{"plain text, ~!", "plain text, ~!"},
		{"100%", "100%25"},
		{"a\nb\tc\x7f", "a%0Ab%09c%7F"},
		{"Stra\xc3\x9f"
		 "e",
		 "Stra%C3%9Fe"},
		{" edges ", "%20edges%20"},
		{" ", "%20"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		auto_strbuf struct strbuf value = {0}, text = {0};

		grpc_text_encode(table[i].text, &value);
		assert_string_equal(strbuf_str(&value), table[i].value);
		grpc_text_decode(table[i].value, &text);
		assert_string_equal(strbuf_str(&text), table[i].text);
	}
}

TEST(keeps_malformed_escapes_and_mends_bytes_that_are_no_text)
{
	static const struct {
		const char *value;
		const char *text;
	} table[] = {
		{"%", "%"},
		{"%4", "%4"},
		{"%zz", "%zz"},
		{"%4z", "%4z"},
		{"%%41", "%A"},
		{"%c3%9f", "\xc3\x9f"},
		{"%00x", "%00x"},
		{"%ff", "\xef\xbf\xbd"},
		{"\xfe", "\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		auto_strbuf struct strbuf text = {0};

		grpc_text_decode(table[i].value, &text);
		assert_string_equal(strbuf_str(&text), table[i].text);
	}
}

TEST(reads_a_status)
{
	struct grpc_status status;

	grpc_status_parse("0", NULL, &status);
	assert_int_equal(status.code, GRPC_OK);
	assert_string_equal(status.text, "");
	grpc_status_parse("16", "who%20are you%3F", &status);
	assert_int_equal(status.code, GRPC_UNAUTHENTICATED);
	assert_string_equal(status.text, "who are you?");
	grpc_status_parse("17", NULL, &status);
	assert_int_equal(status.code, GRPC_UNKNOWN);
	assert_string_equal(status.text, "the peer sent grpc-status \"17\"");
	grpc_status_parse("ok", "said the peer", &status);
	assert_int_equal(status.code, GRPC_UNKNOWN);
	assert_string_equal(status.text, "said the peer");
}

TEST(cuts_long_texts_between_characters)
{
	auto_strbuf struct strbuf text = {0};
	struct grpc_status status;

	strbuf_addc(&text, 'x');
	for (int i = 0; i < GRPC_STATUS_TEXT_MAX; i++)
		strbuf_adds(&text, "\xc3\x9f");
	assert_int_equal(grpc_status_set(&status, GRPC_INTERNAL, "%s", strbuf_str(&text)), -1);
	assert_int_equal(strlen(status.text), GRPC_STATUS_TEXT_MAX - 1);
	assert_int_equal(str_utf8_len(status.text + GRPC_STATUS_TEXT_MAX - 3, 2), 2);
}

TEST(names_every_code)
{
	for (int code = GRPC_OK; code <= GRPC_UNAUTHENTICATED; code++)
		assert_true(strlen(grpc_code_name((enum grpc_code)code)) > 1);
	assert_string_equal(grpc_code_name(GRPC_DEADLINE_EXCEEDED), "DeadlineExceeded");
}

TEST(maps_codes_of_http)
{
	assert_int_equal(grpc_code_from_http("404"), GRPC_UNIMPLEMENTED);
	assert_int_equal(grpc_code_from_http("503"), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_code_from_http("418"), GRPC_UNKNOWN);
	assert_int_equal(grpc_code_from_http(NULL), GRPC_UNKNOWN);
	assert_int_equal(grpc_code_from_h2(NGHTTP2_CANCEL), GRPC_CANCELLED);
	assert_int_equal(grpc_code_from_h2(NGHTTP2_REFUSED_STREAM), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_code_from_h2(NGHTTP2_PROTOCOL_ERROR), GRPC_INTERNAL);
}

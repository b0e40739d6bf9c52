// SPDX-License-Identifier: Apache-2.0
/* Base64: the vectors of RFC 4648 section 10, and what must be refused. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/base64.h"

static const struct {
	const char *plain, *text;
} vectors[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
};

TEST(encodes_the_vectors_of_the_rfc)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		auto_strbuf struct strbuf b = {0};

		base64_encode(vectors[i].plain, strlen(vectors[i].plain), &b);
		assert_string_equal(strbuf_str(&b), vectors[i].text);
	}
}

TEST(decodes_the_vectors_of_the_rfc)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		auto_strbuf struct strbuf b = {0};

		assert_int_equal(base64_decode(vectors[i].text, strlen(vectors[i].text), &b, NULL),
				 0);
		assert_string_equal(strbuf_str(&b), vectors[i].plain);
	}
}

TEST(every_byte_survives_at_every_position)
{
	for (size_t len = 1; len <= 6; len++)
		for (int byte = 0; byte < 256; byte++)
			for (size_t at = 0; at < len; at++) {
				auto_strbuf struct strbuf text = {0};
				auto_strbuf struct strbuf back = {0};
				uint8_t data[6] = {0x55, 0xaa, 0x00, 0xff, 0x10, 0x81};

				data[at] = (uint8_t)byte;
				base64_encode(data, len, &text);
				assert_int_equal(base64_decode(text.data, text.len, &back, NULL),
						 0);
				assert_int_equal(back.len, len);
				assert_memory_equal(back.data, data, len);
			}
}

TEST(line_breaks_are_passed_over)
{
	auto_strbuf struct strbuf b = {0};
	const char *text = "Zm9v\r\nYm\nE=\n";

	assert_int_equal(base64_decode(text, strlen(text), &b, NULL), 0);
	assert_string_equal(strbuf_str(&b), "fooba");
}

TEST(refuses_what_has_another_spelling)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"Z", "not base64: it ends in the middle of a group of four"},
		{"Zg", "not base64: it ends in the middle of a group of four"},
		{"Zg=", "not base64: it ends in the middle of a group of four"},
		{"Zm9vY", "not base64: it ends in the middle of a group of four"},
		{"Zg===", "not base64: padding at byte 5 is out of place"},
		{"=", "not base64: padding at byte 1 is out of place"},
		{"Z===", "not base64: padding at byte 2 is out of place"},
		{"Zm9v====", "not base64: padding at byte 5 is out of place"},
		{"Zg==Zg==", "not base64: byte 5 comes after the padding"},
		{"Zg=v", "not base64: byte 4 comes after the padding"},
		{"Zh==", "not base64: bits behind the last byte are set"},
		{"Zm9=", "not base64: bits behind the last byte are set"},
		{"Zm9v Zm9v", "not base64: byte 5 is outside the alphabet"},
		{"Zm-_", "not base64: byte 3 is outside the alphabet"},
		{"Zm\xc3\xa4", "not base64: byte 3 is outside the alphabet"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strbuf struct strbuf b = {0};
		struct err err = {0};

		strbuf_adds(&b, "before");
		assert_int_equal(base64_decode(cases[i].text, strlen(cases[i].text), &b, &err), -1);
		assert_string_equal(err.text, cases[i].want);
		assert_string_equal(err.reason, "BadBase64");
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(strbuf_str(&b), "before");
	}
}

TEST(refuses_a_nul_inside)
{
	auto_strbuf struct strbuf b = {0};

	assert_int_equal(base64_decode("Zg\0=", 4, &b, NULL), -1);
}

// SPDX-License-Identifier: Apache-2.0
/* JSON objects between two processes of ours. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"

TEST(takes_a_frame_in_any_pieces)
{
	json_auto_t *message = json_pack("{s:s, s:[i,i]}", "text", "…", "list", 1, 2);
	auto_strbuf struct strbuf out = {0};

	assert_int_equal(json_frame_write(message, &out, NULL), 0);
	for (size_t piece = 1; piece <= out.len; piece++) {
		auto_strbuf struct strbuf in = {0};
		json_auto_t *got = NULL;

		for (size_t at = 0; at < out.len; at += piece) {
			assert_null(got);
			strbuf_add(&in, out.data + at, out.len - at < piece ? out.len - at : piece);
			assert_int_equal(json_frame_read(&in, &got, NULL), 0);
		}
		assert_true(json_same(got, message));
		assert_int_equal(in.len, 0);
	}
}

TEST(refuses_what_is_no_frame)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"\x00\x80\x00\x01", 4}, /* one byte more than the most: refused before it comes */
		{"\xff\xff\xff\xff{}", 6},     /* */
		{"\x00\x00\x00\x00", 4},       /* nothing is no JSON */
		{"\x00\x00\x00\x02[]", 6},     /* no object */
		{"\x00\x00\x00\x01{}", 6},     /* cut off */
		{"\x00\x00\x00\x03{}\x00", 7}, /* a NUL byte */
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_strbuf struct strbuf in = {0};
		json_t *got = NULL;
		struct err err = {0};

		strbuf_add(&in, bad[i].bytes, bad[i].len);
		assert_int_equal(json_frame_read(&in, &got, &err), -1);
		assert_null(got);
		assert_int_equal(err.class, ERR_BUG);
		assert_string_equal(err.reason, "BadFrame");
	}
}

TEST(does_not_write_what_the_other_side_would_refuse)
{
	auto_free char *long_text = mem_zalloc(JSON_FRAME_MAX + 1);
	json_auto_t *message = json_object();
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};

	memset(long_text, 'x', JSON_FRAME_MAX);
	json_put_str(message, "text", long_text);
	strbuf_adds(&out, "before");
	assert_int_equal(json_frame_write(message, &out, &err), -1);
	assert_string_equal(err.reason, "MessageTooLarge");
	assert_string_equal(strbuf_str(&out), "before");
}

// SPDX-License-Identifier: Apache-2.0
/* Bodies in chunks, as they come in pieces of any size. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/http/chunks.h"

/* Feed text in pieces of `step` bytes; the status. */
static int feed(const char *text, size_t step, size_t max, struct chunks *chunks, struct strbuf *in,
		struct strbuf *body)
{
	size_t len = strlen(text);
	int status = 0;

	*chunks = (struct chunks){0};
	for (size_t at = 0; at < len && status == 0; at += step) {
		strbuf_add(in, text + at, len - at < step ? len - at : step);
		status = chunks_take(chunks, in, body, max);
	}
	return status;
}

TEST(joins_chunks_however_they_arrive)
{
	static const char text[] = "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nnext";

	for (size_t step = 1; step <= sizeof(text); step++) {
		auto_strbuf struct strbuf in = {0}, body = {0};
		struct chunks chunks;

		assert_int_equal(feed(text, step, 13, &chunks, &in, &body), 0);
		assert_int_equal(chunks.state, CHUNKS_DONE);
		assert_string_equal(strbuf_str(&body), "abc0123456789");
		assert_string_equal(strbuf_str(&in), "next");
	}
}

TEST(waits_for_the_end)
{
	static const char *const texts[] = {
		"", "3", "3\r", "3\r\nab", "3\r\nabc\r\n0\r\n", "3\r\nabc\r\n0\r\nTrailer: x\r\n"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		auto_strbuf struct strbuf in = {0}, body = {0};
		struct chunks chunks;

		assert_int_equal(feed(texts[i], 64, 16, &chunks, &in, &body), 0);
		assert_int_not_equal(chunks.state, CHUNKS_DONE);
	}
}

TEST(refuses_what_is_no_chunk_or_too_long)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{"x\r\n", 400},
		{"\r\n", 400},
		{"-1\r\n", 400},
		{"0x3\r\nabc\r\n", 400},
		{"3\nabc\r\n", 400},
		{"3\r\nabcd\r\n", 400},
		{"000000003\r\nabc\r\n", 400},
		{"11\r\n", 413},
		{"ffffffff\r\n", 413},
		{"8\r\n01234567\r\n9\r\n", 413},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strbuf struct strbuf in = {0}, body = {0};
		struct chunks chunks;

		assert_int_equal(feed(cases[i].text, 64, 16, &chunks, &in, &body), cases[i].status);
	}
}

TEST(bounds_lines_and_trailers)
{
	auto_strbuf struct strbuf in = {0}, body = {0}, text = {0};
	struct chunks chunks;

	for (int i = 0; i < CHUNKS_LINE_MAX; i++)
		strbuf_addc(&text, '0');
	strbuf_addc(&text, '0');
	assert_int_equal(feed(text.data, 1, 16, &chunks, &in, &body), 400);
	strbuf_reset(&text);
	strbuf_reset(&in);
	strbuf_adds(&text, "0\r\n");
	for (int i = 0; i <= CHUNKS_TRAILERS; i++)
		strbuf_adds(&text, "a: b\r\n");
	assert_int_equal(feed(text.data, 16, 16, &chunks, &in, &body), 400);
}

// SPDX-License-Identifier: Apache-2.0
/* Messages come out the same however their bytes arrive. */
#include "tests/support/test.h"

#include "lib/grpc/frame.h"

#include "lib/base/mem.h"

struct log {
	struct strbuf text; /* each message as "[...]" */
	int left;           /* messages until no more is wanted; -1: all are */
};

static bool note(void *arg, const void *data, size_t len)
{
	struct log *log = arg;

	assert_true(data || len == 0);
	strbuf_addc(&log->text, '[');
	strbuf_add(&log->text, data ? data : "", len);
	strbuf_addc(&log->text, ']');
	return log->left < 0 || --log->left > 0;
}

static void add_message(struct strbuf *bytes, const char *text)
{
	uint8_t head[GRPC_FRAME_HEAD];

	grpc_frame_head(head, (uint32_t)strlen(text));
	strbuf_add(bytes, head, sizeof(head));
	strbuf_adds(bytes, text);
}

/* Feed in pieces of `step` bytes, each of them in memory of its own size. */
static int feed(struct grpc_frames *frames, const char *bytes, size_t len, size_t step,
		struct log *log, struct grpc_status *status)
{
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;
		auto_free void *piece = mem_dup(bytes + at, n);

		if (grpc_frames_feed(frames, piece, n, note, log, status) < 0)
			return -1;
	}
	return 0;
}

TEST(cuts_messages_in_pieces_of_all_sizes)
{
	auto_strbuf struct strbuf bytes = {0};

	add_message(&bytes, "one");
	add_message(&bytes, "");
	add_message(&bytes, "a longer message, of forty-two characters.");
	add_message(&bytes, "");
	add_message(&bytes, "x");
	for (size_t step = 1; step <= bytes.len; step++) {
		struct log log = {.left = -1};
		struct grpc_frames frames;
		struct grpc_status status;

		grpc_frames_init(&frames, 42);
		assert_int_equal(feed(&frames, bytes.data, bytes.len, step, &log, &status), 0);
		assert_false(grpc_frames_is_partial(&frames));
		assert_string_equal(strbuf_str(&log.text),
				    "[one][][a longer message, of forty-two characters.][][x]");
		strbuf_done(&log.text);
		grpc_frames_done(&frames);
	}
}

TEST(knows_a_message_that_is_cut_short)
{
	auto_strbuf struct strbuf bytes = {0};

	add_message(&bytes, "abc");
	for (size_t len = 1; len < bytes.len; len++) {
		struct log log = {.left = -1};
		struct grpc_frames frames;
		struct grpc_status status;

		grpc_frames_init(&frames, 42);
		assert_int_equal(feed(&frames, bytes.data, len, 2, &log, &status), 0);
		assert_true(grpc_frames_is_partial(&frames));
		assert_int_equal(log.text.len, 0);
		grpc_frames_done(&frames);
	}
}

TEST(refuses_what_it_cannot_read)
{
	static const struct {
		const char head[GRPC_FRAME_HEAD + 1];
		enum grpc_code code;
		const char *text;
	} table[] = {
		{"\1\0\0\0\1", GRPC_UNIMPLEMENTED, "compressed messages are not supported"},
		{"\2\0\0\0\1", GRPC_INTERNAL, "a message starts with flag 2; there are 0 and 1"},
		{"\377\0\0\0\1", GRPC_INTERNAL,
		 "a message starts with flag 255; there are 0 and 1"},
		{"\0\0\0\0\x2b", GRPC_RESOURCE_EXHAUSTED,
		 "a message of 43 bytes; at most 42 are taken"},
		{"\0\377\377\377\377", GRPC_RESOURCE_EXHAUSTED,
		 "a message of 4294967295 bytes; at most 42 are taken"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		for (size_t step = 1; step <= GRPC_FRAME_HEAD; step++) {
			struct log log = {.left = -1};
			struct grpc_frames frames;
			struct grpc_status status;

			grpc_frames_init(&frames, 42);
			assert_int_equal(
				feed(&frames, table[i].head, GRPC_FRAME_HEAD, step, &log, &status),
				-1);
			assert_int_equal(status.code, table[i].code);
			assert_string_equal(status.text, table[i].text);
			/* What comes after is passed over. */
			assert_int_equal(
				grpc_frames_feed(&frames, "\0\0\0\0\1x", 6, note, &log, &status),
				0);
			assert_int_equal(log.text.len, 0);
			grpc_frames_done(&frames);
		}
	}
}

TEST(stops_when_no_more_is_wanted)
{
	auto_strbuf struct strbuf bytes = {0};
	struct log log = {.left = 2};
	struct grpc_frames frames;
	struct grpc_status status;

	for (int i = 0; i < 4; i++)
		add_message(&bytes, "m");
	grpc_frames_init(&frames, 42);
	assert_int_equal(feed(&frames, bytes.data, bytes.len, 4, &log, &status), 0);
	assert_string_equal(strbuf_str(&log.text), "[m][m]");
	strbuf_done(&log.text);
	grpc_frames_done(&frames);
}

/* A length alone takes no memory. */
TEST(grows_with_what_has_arrived)
{
	struct log log = {.left = -1};
	struct grpc_frames frames;
	struct grpc_status status;

	grpc_frames_init(&frames, UINT32_MAX);
	assert_int_equal(grpc_frames_feed(&frames, "\0\377\377\377\377abc", 8, note, &log, &status),
			 0);
	assert_true(frames.body.cap < 1024);
	grpc_frames_done(&frames);
}

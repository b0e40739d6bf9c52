/* Frames, requests and replies between agent and hostd. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/hostd/protocol.h"

static void takes_a_frame_in_any_pieces(void **state)
{
	json_auto_t *message = json_pack("{s:s, s:[i,i]}", "text", "…", "list", 1, 2);
	auto_strbuf struct strbuf out = {0};

	assert_int_equal(protocol_write(message, &out, NULL), 0);
	for (size_t piece = 1; piece <= out.len; piece++) {
		auto_strbuf struct strbuf in = {0};
		json_auto_t *got = NULL;

		for (size_t at = 0; at < out.len; at += piece) {
			assert_null(got);
			strbuf_add(&in, out.data + at, out.len - at < piece ? out.len - at : piece);
			assert_int_equal(protocol_read(&in, &got, NULL), 0);
		}
		assert_true(json_same(got, message));
		assert_int_equal(in.len, 0);
	}
}

static void takes_one_frame_after_the_other(void **state)
{
	json_auto_t *first = json_pack("{s:i}", "n", 1), *second = json_pack("{s:i}", "n", 2);
	auto_strbuf struct strbuf bytes = {0};

	(void)protocol_write(first, &bytes, NULL);
	(void)protocol_write(second, &bytes, NULL);
	for (int i = 1; i <= 2; i++) {
		json_auto_t *got = NULL;

		assert_int_equal(protocol_read(&bytes, &got, NULL), 0);
		assert_int_equal(json_integer_value(json_at(got, "n")), i);
	}
	assert_int_equal(bytes.len, 0);
}

static void refuses_what_is_no_frame(void **state)
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
		assert_int_equal(protocol_read(&in, &got, &err), -1);
		assert_null(got);
		assert_int_equal(err.class, ERR_BUG);
		assert_string_equal(err.reason, "BadFrame");
	}
}

static void does_not_write_what_the_other_side_would_refuse(void **state)
{
	auto_free char *long_text = mem_zalloc(PROTOCOL_FRAME_MAX + 1);
	json_auto_t *message = json_object();
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};

	memset(long_text, 'x', PROTOCOL_FRAME_MAX);
	json_put_str(message, "text", long_text);
	strbuf_adds(&out, "before");
	assert_int_equal(protocol_write(message, &out, &err), -1);
	assert_string_equal(err.reason, "MessageTooLarge");
	assert_string_equal(strbuf_str(&out), "before");
}

static void requests_arrive_as_they_were_sent(void **state)
{
	json_auto_t *addresses = json_pack("[s]", "192.0.2.1"), *body = json_pack("{s:i}", "a", 1);

	for (int kind = 0; kind < PROTOCOL_KINDS; kind++) {
		struct protocol_request sent = {.id = 7,
						.kind = (enum protocol_kind)kind,
						.flags = 3,
						.addresses = addresses,
						.body = body},
					got = {0};
		json_auto_t *message = protocol_request_new(&sent);

		assert_int_equal(protocol_request_read(message, &got, NULL), 0);
		assert_int_equal(got.id, 7);
		assert_int_equal(got.kind, kind);
		assert_int_equal(got.flags, kind == PROTOCOL_OBSERVE ? 3 : 0);
		assert_true(json_same(got.addresses,
				      kind == PROTOCOL_OBSERVE || kind == PROTOCOL_STEP ? addresses
											: NULL));
		assert_true(json_same(
			got.body, kind == PROTOCOL_STEP || kind == PROTOCOL_SAVE ? body : NULL));
	}
}

static void refuses_what_is_no_request(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"kind\": \"reboot\"}",
		"{\"kind\": 1}",
		"{\"kind\": \"step\"}",
		"{\"kind\": \"step\", \"step\": []}",
		"{\"kind\": \"save\"}",
		"{\"kind\": \"load\", \"id\": -1}",
		"{\"kind\": \"observe\", \"flags\": 65536}",
		"{\"kind\": \"observe\", \"addresses\": [1]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_auto_t *message = json_parse(bad[i], strlen(bad[i]), NULL);
		struct protocol_request request = {0};
		struct err err = {0};

		assert_int_equal(protocol_request_read(message, &request, &err), -1);
		assert_int_equal(err.class, ERR_BUG);
		assert_string_equal(err.reason, "BadRequest");
	}
}

static void errors_arrive_with_all_they_have(void **state)
{
	static const enum err_class classes[] = {ERR_INVALID, ERR_CONFLICT, ERR_TRANSIENT, ERR_HOST,
						 ERR_BUG};

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct err sent = {0}, got = {0};
		json_auto_t *message = NULL;
		const json_t *result = NULL;

		(void)err_set(&sent, classes[i], "RdmaModeBusy", "set-rdma-netns-mode: „busy“");
		sent.sys = EBUSY;
		message = protocol_reply_new(9, NULL, &sent);
		assert_int_equal(protocol_reply_read(message, 9, &result, &got, NULL), 0);
		assert_null(result);
		assert_int_equal(got.class, classes[i]);
		assert_int_equal(got.sys, EBUSY);
		assert_string_equal(got.reason, sent.reason);
		assert_string_equal(got.text, sent.text);
	}
}

static void results_arrive_as_they_were_sent(void **state)
{
	json_auto_t *message = protocol_reply_new(1, json_pack("{s:b}", "changed", 1), NULL);
	const json_t *result = NULL;
	struct err error = {0};

	assert_int_equal(protocol_reply_read(message, 1, &result, &error, NULL), 0);
	assert_true(json_is_true(json_at(result, "changed")));
	assert_int_equal(error.class, ERR_NONE);
}

static void refuses_what_is_no_answer_to_this_request(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"result\": {}}",
		"{\"id\": 6, \"result\": {}}",
		"{\"id\": 7}",
		"{\"id\": 7, \"result\": []}",
		"{\"id\": 7, \"result\": {}, \"error\": {}}",
		"{\"id\": 7, \"error\": {}}",
		"{\"id\": 7, \"error\": \"no\"}",
		"{\"id\": 7, \"error\": {\"class\": \"None\", \"reason\": \"A\", \"text\": \"t\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"reason\": \"a b\", \"text\": "
		"\"t\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"reason\": \"A\", \"text\": \"\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"sys\": 5000, \"reason\": \"A\", "
		"\"text\": \"t\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"reason\": "
		"\"A2345678901234567890123456789012\", \"text\": \"t\"}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_auto_t *message = json_parse(bad[i], strlen(bad[i]), NULL);
		const json_t *result = NULL;
		struct err error = {0}, err = {0};

		if (protocol_reply_read(message, 7, &result, &error, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_null(result);
		assert_string_equal(err.reason, "BadReply");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_a_frame_in_any_pieces),
		cmocka_unit_test(takes_one_frame_after_the_other),
		cmocka_unit_test(refuses_what_is_no_frame),
		cmocka_unit_test(does_not_write_what_the_other_side_would_refuse),
		cmocka_unit_test(requests_arrive_as_they_were_sent),
		cmocka_unit_test(refuses_what_is_no_request),
		cmocka_unit_test(errors_arrive_with_all_they_have),
		cmocka_unit_test(results_arrive_as_they_were_sent),
		cmocka_unit_test(refuses_what_is_no_answer_to_this_request),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Requests, replies and errors between processes. */
#include "tests/support/test.h"

#include <errno.h>

#include "lib/json/ask.h"
#include "lib/json/json.h"

TEST(errors_arrive_with_all_they_have)
{
	static const enum err_class classes[] = {ERR_INVALID, ERR_CONFLICT, ERR_TRANSIENT, ERR_HOST,
						 ERR_BUG};

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct err sent = {0}, got = {0};
		json_auto_t *request = ask_new(9, "step"), *reply = NULL;
		const json_t *result = NULL;

		(void)err_set(&sent, classes[i], "RdmaModeBusy", "set-rdma-netns-mode: „busy“");
		sent.sys = EBUSY;
		reply = ask_reply_new(request, NULL, &sent);
		assert_int_equal(json_integer_value(json_at(reply, "id")), 9);
		assert_int_equal(ask_reply_read(reply, &result, &got, NULL), 0);
		assert_null(result);
		assert_int_equal(got.class, classes[i]);
		assert_int_equal(got.sys, EBUSY);
		assert_string_equal(got.reason, sent.reason);
		assert_string_equal(got.text, sent.text);
	}
}

TEST(results_arrive_as_they_were_sent)
{
	json_auto_t *request = json_pack("{s:s}", "id", "a-uid");
	json_auto_t *reply = ask_reply_new(request, json_pack("{s:b}", "changed", 1), NULL);
	const json_t *result = NULL;
	struct err error = {0};

	assert_string_equal(json_str_at(reply, "id"), "a-uid");
	assert_int_equal(ask_reply_read(reply, &result, &error, NULL), 0);
	assert_true(json_is_true(json_at(result, "changed")));
	assert_int_equal(error.class, ERR_NONE);
}

TEST(who_passes_messages_on_gives_them_ids_of_its_own)
{
	json_auto_t *request = ask_new(3, "addresses"), *passed = ask_with_id(request, 41);

	assert_int_equal(json_integer_value(json_at(passed, "id")), 41);
	assert_string_equal(json_str_at(passed, "kind"), "addresses");
	assert_int_equal(json_integer_value(json_at(request, "id")), 3);
}

TEST(what_is_no_reply_changes_nothing)
{
	static const char *const bad[] = {
		"{}",
		"{\"id\": 7, \"result\": []}",
		"{\"id\": 7, \"result\": {}, \"error\": {}}",
		"{\"id\": 7, \"error\": {\"class\": 4, \"reason\": \"A\", \"text\": \"t\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"None\", \"reason\": \"A\", \"text\": \"t\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"text\": \"t\"}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"reason\": \"A\", \"text\": \"\"}}",
		"{\"id\": 7, \"error\": \"no\"}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"sys\": 5000, \"reason\": \"A\", "
		"\"text\": \"t\"}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_auto_t *reply = json_parse(bad[i], strlen(bad[i]), NULL);
		const json_t *result = NULL;
		struct err error = {0}, err = {0};

		if (ask_reply_read(reply, &result, &error, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_null(result);
		assert_int_equal(error.class, ERR_NONE);
		assert_string_equal(err.reason, "BadAnswer");
	}
}

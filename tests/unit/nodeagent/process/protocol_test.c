// SPDX-License-Identifier: Apache-2.0
/* Requests and replies between agent and hostd. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/process/protocol.h"

TEST(requests_arrive_as_they_were_sent)
{
	json_auto_t *addresses = json_pack("[s]", "192.0.2.1"), *body = json_pack("{s:i}", "a", 1);
	json_auto_t *held = json_pack("{s:s}", "0000:3b:00.2", "ns/pod");

	for (int kind = 0; kind < PROTOCOL_KINDS; kind++) {
		struct protocol_request sent = {.id = 7,
						.kind = (enum protocol_kind)kind,
						.flags = 3,
						.addresses = addresses,
						.held = held,
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
		assert_true(json_same(got.held, kind == PROTOCOL_STEP ? held : NULL));
		assert_true(json_same(got.body, kind == PROTOCOL_OBSERVE || kind == PROTOCOL_LOAD ||
								kind == PROTOCOL_INSPECT
							? NULL
							: body));
	}
}

TEST(refuses_what_is_no_request)
{
	static const char *const bad[] = {
		"{}",
		"{\"kind\": \"reboot\"}",
		"{\"kind\": 1}",
		"{\"kind\": \"step\"}",
		"{\"kind\": \"step\", \"step\": []}",
		"{\"kind\": \"save\"}",
		"{\"kind\": \"load\", \"id\": -1}",
		"{\"kind\": \"devices\"}",
		"{\"kind\": \"counters\", \"device\": \"mlx5_0\"}",
		"{\"kind\": \"counters\", \"device\": {}, \"of\": {}}",
		"{\"kind\": \"observe\", \"flags\": 65536}",
		"{\"kind\": \"observe\", \"addresses\": [1]}",
		"{\"kind\": \"step\", \"step\": {}, \"held\": [\"0000:3b:00.2\"]}",
		"{\"kind\": \"step\", \"step\": {}, \"held\": {\"0000:3b:00.2\": 1}}",
		"{\"kind\": \"load\", \"addresses\": []}",
		"{\"kind\": \"save\", \"state\": {}, \"path\": \"/etc/passwd\"}",
		"{\"kind\": \"step\", \"step\": {}, \"force\": true}",
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

TEST(refuses_what_is_no_answer_to_this_request)
{
	static const char *const bad[] = {
		"{}",
		"{\"result\": {}}",
		"{\"id\": 6, \"result\": {}}",
		"{\"id\": 7}",
		"{\"id\": 7, \"result\": []}",
		"{\"id\": 7, \"error\": {}}",
		"{\"id\": 7, \"error\": {\"class\": \"Host\", \"reason\": \"a b\", \"text\": "
		"\"t\"}}",
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

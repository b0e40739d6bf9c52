// SPDX-License-Identifier: Apache-2.0
/*
 * What one side of hostd may hear from the other: any pieces of the bytes give the same messages;
 * what is taken for a request or a reply is written and read again as the same.
 */
#include <stdint.h>
#include <string.h>

#include "lib/json/ask.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/process/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* All messages, one a line; '!' where reading gives up. */
static char *read_all(const uint8_t *data, size_t size, size_t piece)
{
	auto_strbuf struct strbuf in = {0};
	struct strbuf out = {0};

	for (size_t at = 0; at < size; at += piece) {
		json_t *message = NULL;
		struct err err = {0};

		strbuf_add(&in, data + at, size - at < piece ? size - at : piece);
		while (json_frame_read(&in, &message, &err) == 0 && message) {
			auto_free char *text = json_text(message);

			strbuf_addf(&out, "%s\n", text);
			json_decref(message);
		}
		if (err.class) {
			strbuf_addc(&out, '!');
			break;
		}
	}
	return strbuf_take(&out);
}

static void check_request(const json_t *message)
{
	struct protocol_request request = {0}, again = {0};
	json_auto_t *written = NULL;
	struct err err = {0};

	if (protocol_request_read(message, &request, &err) < 0) {
		check(err.class == ERR_BUG && str_eq(err.reason, "BadRequest"));
		return;
	}
	written = protocol_request_new(&request);
	check(protocol_request_read(written, &again, NULL) == 0);
	check(again.id == request.id && again.kind == request.kind &&
	      again.flags == request.flags && json_same(again.addresses, request.addresses) &&
	      json_same(again.body, request.body));
}

static void check_reply(const json_t *message)
{
	int64_t id = json_integer_value(json_at(message, "id"));
	const json_t *result = NULL, *result_again = NULL;
	struct err error = {0}, error_again = {0}, err = {0};
	json_auto_t *written = NULL;

	if (protocol_reply_read(message, id, &result, &error, &err) < 0) {
		check(!result && err.class == ERR_BUG && str_eq(err.reason, "BadReply"));
		return;
	}
	check(!result == (error.class != ERR_NONE));
	written = ask_reply_new(message, json_incref((json_t *)result), &error);
	check(protocol_reply_read(written, id, &result_again, &error_again, NULL) == 0);
	check(json_same(result_again, result));
	check(error_again.class == error.class && error_again.sys == error.sys &&
	      str_eq(error_again.reason, error.reason) && str_eq(error_again.text, error.text));
	check(protocol_reply_read(written, id ^ 1, &result_again, &error_again, NULL) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *whole = read_all(data, size, size ? size : 1);
	auto_free char *pieces = read_all(data, size, 3);

	check(str_eq(whole, pieces));
	for (const char *line = whole; *line && *line != '!'; line = strchr(line, '\n') + 1) {
		json_auto_t *message = json_parse(line, (size_t)(strchr(line, '\n') - line), NULL);

		check(json_is_object(message));
		check_request(message);
		check_reply(message);
	}
	return 0;
}

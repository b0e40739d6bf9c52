// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets as API servers speak them, and what the messages of an exec mean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/exec_stream.h"
#include "lib/kube/pod_exec.h"
#include "lib/kube/status.h"
#include "lib/kube/websocket.h"

#define UPGRADE "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nconnection: Upgrade\r\n"
/* Of the key that fill() leads to. */
#define ACCEPT   "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n"
#define PROTOCOL "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
#define GOOD     UPGRADE ACCEPT PROTOCOL "\r\n"
/* A literal with NUL bytes in it, and its length. */
#define BYTES(s) (s), sizeof(s) - 1

static void fill(void *bytes, size_t len)
{
	memset(bytes, 0, len);
}

struct stand {
	struct websocket ws;
	struct exec_stream stream;
	struct strbuf sent;
	struct err err;
};

static void stand_open(struct stand *s)
{
	*s = (struct stand){.ws = {.random = fill, .protocols = EXEC_STREAM_PROTOCOLS}};
	websocket_ask(&s->ws,
		      &(struct websocket_request){.target = "/x?command=ls",
						  .host = "h:6443",
						  .agent = "me",
						  .authorization = "Bearer secret"},
		      &s->sent);
}

static void stand_close(struct stand *s)
{
	websocket_done(&s->ws);
	exec_stream_done(&s->stream);
	strbuf_done(&s->sent);
}

static int feed(struct stand *s, const char *bytes, size_t len)
{
	return websocket_feed(&s->ws, bytes, len, &s->sent, exec_stream_message, &s->stream,
			      &s->err);
}

static void asks_for_the_protocols_of_an_exec(void **state)
{
	struct stand s;

	stand_open(&s);
	assert_string_equal(strbuf_str(&s.sent),
			    "GET /x?command=ls HTTP/1.1\r\nHost: h:6443\r\nUser-Agent: me\r\n"
			    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
			    "Sec-WebSocket-Version: 13\r\n"
			    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
			    "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n"
			    "Authorization: Bearer secret\r\n\r\n");
	stand_close(&s);
}

/* Fragments, a ping within, both outputs, the status, and the end. */
#define CONVERSATION                                                                               \
	GOOD "\x82\x01\x01"                                                                        \
	     "\x02\x03\x01he"                                                                      \
	     "\x89\x02hi"                                                                          \
	     "\x80\x03llo"                                                                         \
	     "\x82\x04\x02oh!"                                                                     \
	     "\x82\x03\x09??"                                                                      \
	     "\x82\x15\x03{\"status\":\"Success\"}"                                                \
	     "\x88\x02\x03\xe8"

static void reads_outputs_and_status_however_bytes_are_cut(void **state)
{
	for (size_t piece = 1; piece < sizeof(CONVERSATION); piece++) {
		struct stand s;
		int code = -1;
		size_t asked;

		stand_open(&s);
		asked = s.sent.len;
		for (size_t at = 0; at < sizeof(CONVERSATION) - 1; at += piece) {
			size_t len = sizeof(CONVERSATION) - 1 - at;
			auto_free char *copy =
				mem_dup(CONVERSATION + at, len < piece ? len : piece);

			assert_int_equal(feed(&s, copy, len < piece ? len : piece), 0);
		}
		assert_string_equal(strbuf_str(&s.stream.out), "hello");
		assert_string_equal(strbuf_str(&s.stream.errors), "oh!");
		assert_int_equal(s.ws.state, WEBSOCKET_CLOSED);
		assert_int_equal(websocket_end(&s.ws, &s.err), 0);
		assert_int_equal(exec_stream_end(&s.stream, &code, &s.err), 0);
		assert_int_equal(code, 0);
		/* A pong and a close, masked (with zeros). */
		assert_int_equal(s.sent.len - asked, 8 + 8);
		assert_memory_equal(s.sent.data + asked,
				    "\x8a\x82\0\0\0\0hi\x88\x82\0\0\0\0\x03\xe8", 16);
		stand_close(&s);
	}
}

static void reads_long_frames(void **state)
{
	struct strbuf frame = {0};
	struct stand s;

	stand_open(&s);
	strbuf_add(&frame, BYTES(GOOD));
	strbuf_add(&frame, BYTES("\x82\x7e\x01\x01\x01"));
	for (int i = 0; i < 256; i++)
		strbuf_addc(&frame, 'a');
	strbuf_add(&frame, BYTES("\x82\x7f\0\0\0\0\0\x01\0\0\x01"));
	for (int i = 0; i < 65535; i++)
		strbuf_addc(&frame, 'b');
	assert_int_equal(feed(&s, frame.data, frame.len), 0);
	assert_int_equal(s.stream.out.len, 256 + 65535);
	strbuf_done(&frame);
	stand_close(&s);
}

static void refuses_what_is_no_websocket(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} rows[] = {
		{BYTES("SSH-2.0-OpenSSH_9.2\r\n\r\n"), "the answer is not HTTP/1"},
		{BYTES("HTTP/1.1 x01 Hm\r\n\r\n"), "no status"},
		{BYTES("HTTP/1.1 101 Hm\r\n\r\n"), "does not upgrade"},
		{BYTES("HTTP/1.1 101 Hm\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
		 "does not upgrade"},
		{BYTES(UPGRADE PROTOCOL "\r\n"), "Sec-WebSocket-Accept"},
		{BYTES(UPGRADE "Sec-WebSocket-Accept: AAAA\r\n" PROTOCOL "\r\n"),
		 "Sec-WebSocket-Accept"},
		{BYTES(UPGRADE ACCEPT "\r\n"), "none of the protocols"},
		{BYTES(UPGRADE ACCEPT "Sec-WebSocket-Protocol: soap\r\n\r\n"),
		 "none of the protocols"},
		{BYTES(UPGRADE ACCEPT PROTOCOL "Sec-WebSocket-Extensions: zip\r\n\r\n"),
		 "an extension"},
		{BYTES(GOOD "\xc2\x01\x01"), "bits that must not"},
		{BYTES(GOOD "\x82\x81\0\0\0\0\x01"), "bits that must not"},
		{BYTES(GOOD "\x80\x01\x01"), "a continuation of nothing"},
		{BYTES(GOOD "\x02\x01\x01\x82\x01\x01"), "a message within another"},
		{BYTES(GOOD "\x09\x01\x01"), "a control frame"},
		{BYTES(GOOD "\x89\x7e\0\x7e"), "a control frame"},
		{BYTES(GOOD "\x83\x01\x01"), "unknown kind"},
		{BYTES(GOOD "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"),
		 "a frame that is too long"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stand s;
		struct strbuf padded = {0};

		stand_open(&s);
		strbuf_add(&padded, rows[i].bytes, rows[i].len);
		/* What a control frame of that length would have. */
		for (int n = 0; n < 126; n++)
			strbuf_addc(&padded, '\0');
		assert_int_equal(feed(&s, padded.data, padded.len), -1);
		assert_string_equal(s.err.reason, "BadWebSocket");
		if (!strstr(s.err.text, rows[i].text))
			fail_msg("row %zu: %s", i, s.err.text);
		strbuf_done(&padded);
		stand_close(&s);
	}
}

static void has_a_limit_for_everything(void **state)
{
	struct strbuf bytes = {0};
	struct stand s;

	stand_open(&s);
	for (int i = 0; i <= WEBSOCKET_HEAD_MAX; i++)
		strbuf_addc(&bytes, 'x');
	assert_int_equal(feed(&s, bytes.data, bytes.len), -1);
	assert_non_null(strstr(s.err.text, "a head without end"));
	stand_close(&s);

	/* Fragments, none of which is too long. */
	stand_open(&s);
	assert_int_equal(feed(&s, BYTES(GOOD "\x02\x00")), 0);
	strbuf_reset(&bytes);
	strbuf_add(&bytes, BYTES("\0\x7e\xff\xff"));
	for (int i = 0; i < 65535; i++)
		strbuf_addc(&bytes, 'x');
	for (int i = 0; i < 16; i++)
		assert_int_equal(feed(&s, bytes.data, bytes.len), 0);
	assert_int_equal(feed(&s, bytes.data, bytes.len), -1);
	assert_non_null(strstr(s.err.text, "a message that is too long"));
	stand_close(&s);

	/* Pings whose answers nobody takes. */
	stand_open(&s);
	assert_int_equal(feed(&s, BYTES(GOOD)), 0);
	while (feed(&s, BYTES("\x89\x04ping")) == 0)
		assert_true(s.sent.len < 2 * WEBSOCKET_REPLIES_MAX);
	assert_non_null(strstr(s.err.text, "more pings"));
	stand_close(&s);

	/* Outputs. */
	stand_open(&s);
	assert_int_equal(feed(&s, BYTES(GOOD)), 0);
	memcpy(bytes.data, "\x82\x7e\xff\xff\x01", 5);
	for (int i = 0; i < 16; i++)
		assert_int_equal(feed(&s, bytes.data, bytes.len), 0);
	assert_int_equal(feed(&s, bytes.data, bytes.len), -1);
	assert_string_equal(s.err.reason, "OutputTooLong");
	strbuf_done(&bytes);
	stand_close(&s);
}

#define FORBIDDEN                                                                                  \
	"{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\",\"details\":{\"name\":"  \
	"\"p\"}}"

static void a_refusal_is_the_servers_own(void **state)
{
	auto_free char *answer =
		str_printf("HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n"
			   "Content-Length: %zu\r\n\r\n" FORBIDDEN,
			   strlen(FORBIDDEN));
	struct stand s;
	size_t at = 0;

	stand_open(&s);
	for (; answer[at + 1]; at++)
		assert_int_equal(feed(&s, answer + at, 1), 0);
	assert_int_equal(feed(&s, answer + at, 1), -1);
	assert_true(kube_err_is(&s.err, "Forbidden"));
	assert_string_equal(s.err.text, "no (HTTP 403)");
	assert_int_equal(s.ws.status, 403);
	stand_close(&s);

	/* Without a length it ends with the connection. */
	stand_open(&s);
	assert_int_equal(feed(&s, BYTES("HTTP/1.0 503 Hm\r\n\r\nbusy")), 0);
	assert_int_equal(websocket_end(&s.ws, &s.err), -1);
	assert_string_equal(s.err.text, "the server answered HTTP 503: busy");
	stand_close(&s);

	stand_open(&s);
	assert_int_equal(websocket_end(&s.ws, &s.err), -1);
	assert_true(kube_err_is(&s.err, "ConnectionLost"));
	stand_close(&s);
}

static void how_a_command_ended(void **state)
{
	static const struct {
		const char *status;
		int code;         /* -1: an error */
		const char *text; /* what it has */
	} rows[] = {
		{"{\"status\":\"Success\"}", 0, NULL},
		{"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":"
		 "[{\"reason\":\"ExitCode\",\"message\":\"7\"}]}}",
		 7, NULL},
		{"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"message\":\"odd\","
		 "\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"0\"}]}}",
		 -1, "odd"},
		{"{\"status\":\"Failure\",\"message\":\"no such\\u001b[31m\\nfile\"}", -1,
		 "no such [31m file"},
		{"{}", -1, "no reason was given"},
		{"[1]", -1, "does not say"},
		{"", -1, "does not say"},
		{"{", -1, "does not say"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct exec_stream stream = {0};
		struct err err = {0};
		int code = -1;

		strbuf_adds(&stream.status, rows[i].status);
		assert_int_equal(exec_stream_end(&stream, &code, &err), rows[i].code < 0 ? -1 : 0);
		assert_int_equal(code, rows[i].code);
		if (rows[i].text && !strstr(err.text, rows[i].text))
			fail_msg("row %zu: %s", i, err.text);
		if (code < 0)
			assert_string_equal(err.reason, strstr(err.text, "does not say")
								? "ConnectionLost"
								: "ExecFailed");
		exec_stream_done(&stream);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_for_the_protocols_of_an_exec),
		cmocka_unit_test(reads_outputs_and_status_however_bytes_are_cut),
		cmocka_unit_test(reads_long_frames),
		cmocka_unit_test(refuses_what_is_no_websocket),
		cmocka_unit_test(has_a_limit_for_everything),
		cmocka_unit_test(a_refusal_is_the_servers_own),
		cmocka_unit_test(how_a_command_ended),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

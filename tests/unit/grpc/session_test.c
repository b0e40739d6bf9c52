// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes of HTTP/2 against a server's calls: what kubelets of all ages send, what others should not.
 */
#include "tests/support/test.h"

#include "lib/grpc/session.h"

#include <nghttp2/nghttp2.h>

#include "lib/base/mem.h"
#include "lib/grpc/frame.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "tests/support/grpc_wire.h"
#include "tests/unit/grpc/hex.h"

#define PREFACE "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a 000000 04 00 00000000"

struct seen {
	int calls;
	struct strbuf resource;
	struct grpc_call *watch;
	int ended;
	enum grpc_code why;
};

static void handle_register(struct grpc_call *call, const struct ProtobufCMessage *request,
			    void *arg)
{
	const DevicePlugin__RegisterRequest *req = (const void *)request;
	DevicePlugin__Empty empty = DEVICE_PLUGIN__EMPTY__INIT;
	struct seen *seen = arg;

	seen->calls++;
	strbuf_addf(&seen->resource, "%s %s %s.", req->version, req->endpoint, req->resource_name);
	grpc_call_reply(call, &empty.base);
}

static void handle_options(struct grpc_call *call, const struct ProtobufCMessage *request,
			   void *arg)
{
	DevicePlugin__DevicePluginOptions options = DEVICE_PLUGIN__DEVICE_PLUGIN_OPTIONS__INIT;
	struct seen *seen = arg;

	seen->calls++;
	options.get_preferred_allocation_available = true;
	grpc_call_reply(call, &options.base);
}

static void on_watch_end(void *arg, enum grpc_code why)
{
	struct seen *seen = arg;

	seen->watch = NULL;
	seen->ended++;
	seen->why = why;
}

static void handle_watch(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	DevicePlugin__ListAndWatchResponse none = DEVICE_PLUGIN__LIST_AND_WATCH_RESPONSE__INIT;
	struct seen *seen = arg;

	seen->calls++;
	seen->watch = call;
	grpc_call_on_end(call, on_watch_end, seen);
	assert_int_equal(grpc_call_send_latest(call, &none.base, NULL), 0);
}

static const struct grpc_method methods[] = {
	{"/v1beta1.Registration/Register", &device_plugin__register_request__descriptor,
	 handle_register},
	{"/v1beta1.DevicePlugin/GetDevicePluginOptions", &device_plugin__empty__descriptor,
	 handle_options},
	{"/v1beta1.DevicePlugin/ListAndWatch", &device_plugin__empty__descriptor, handle_watch},
};

struct fixture {
	struct wire wire;
	struct seen seen;
	nghttp2_hd_deflater *deflater;
	struct strbuf said; /* the server's frames, as text */
	nghttp2_hd_inflater *inflater;
};

/* ---- reading what the server says ------------------------------------------------------------ */

static void say_headers(struct fixture *f, const uint8_t *block, size_t len)
{
	for (;;) {
		int flags = 0;
		nghttp2_nv nv;
		ssize_t used = nghttp2_hd_inflate_hd2(f->inflater, &nv, &flags, block, len, 1);

		assert_true(used >= 0);
		block += used;
		len -= (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			strbuf_addf(&f->said, " %s=%s", (char *)nv.name, (char *)nv.value);
		if (flags & NGHTTP2_HD_INFLATE_FINAL)
			break;
	}
	nghttp2_hd_inflate_end_headers(f->inflater);
}

static void say_frame(struct fixture *f, int type, int flags, uint32_t stream,
		      const uint8_t *payload, size_t len)
{
	static const char *const names[] = {"DATA",       "HEADERS",  "PRIORITY",
					    "RST_STREAM", "SETTINGS", "PUSH",
					    "PING",       "GOAWAY",   "WINDOW_UPDATE"};
	auto_free char *hex = to_hex(payload, len);

	assert_true((size_t)type < ARRAY_LEN(names));
	if (type == NGHTTP2_WINDOW_UPDATE || type == NGHTTP2_SETTINGS)
		return;
	strbuf_addf(&f->said, "%s%s/%u", f->said.len ? "\n" : "", names[type], stream);
	if (type == NGHTTP2_HEADERS)
		say_headers(f, payload, len);
	else if (len)
		strbuf_addf(&f->said, " %s", hex);
	if ((type == NGHTTP2_HEADERS || type == NGHTTP2_DATA) && flags & NGHTTP2_FLAG_END_STREAM)
		strbuf_adds(&f->said, " END");
	if (type == NGHTTP2_PING && flags & NGHTTP2_FLAG_ACK)
		strbuf_adds(&f->said, " ACK");
}

/* The frames since the last time, one in a line; SETTINGS and WINDOW_UPDATE are passed over. */
static const char *said(struct fixture *f)
{
	const uint8_t *at = (const uint8_t *)f->wire.out.data;
	size_t left = f->wire.out.len;

	strbuf_reset(&f->said);
	while (left > 0) {
		size_t len;

		assert_true(left >= 9);
		len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
		assert_true(left >= 9 + len);
		say_frame(f, at[3], at[4],
			  (uint32_t)at[5] << 24 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 8 |
				  at[8],
			  at + 9, len);
		at += 9 + len;
		left -= 9 + len;
	}
	strbuf_reset(&f->wire.out);
	return strbuf_str(&f->said);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void push_hex(struct fixture *f, const char *hex)
{
	auto_strbuf struct strbuf bytes = from_hex(hex);

	assert_true(wire_push(&f->wire, bytes.data, bytes.len));
}

static void push_frame(struct fixture *f, int type, int flags, uint32_t stream, const void *payload,
		       size_t len)
{
	auto_strbuf struct strbuf frame = {0};
	const uint8_t head[9] = {
		(uint8_t)(len >> 16),    (uint8_t)(len >> 8),    (uint8_t)len,
		(uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
		(uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream,
	};

	strbuf_add(&frame, head, sizeof(head));
	strbuf_add(&frame, payload, len);
	(void)wire_push(&f->wire, frame.data, frame.len);
}

/* fields: name, value, name, value, …, NULL */
static void push_headers(struct fixture *f, uint32_t stream, int flags, const char *const *fields)
{
	nghttp2_nv nva[32];
	uint8_t block[16384];
	ssize_t len;
	size_t n = 0;

	for (; fields[2 * n]; n++)
		nva[n] = (nghttp2_nv){(uint8_t *)fields[2 * n], (uint8_t *)fields[2 * n + 1],
				      strlen(fields[2 * n]), strlen(fields[2 * n + 1]),
				      NGHTTP2_NV_FLAG_NONE};
	len = nghttp2_hd_deflate_hd(f->deflater, block, sizeof(block), nva, n);
	assert_true(len > 0);
	push_frame(f, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream, block,
		   (size_t)len);
}

#define GRPC_FIELDS                                                                                \
	":method", "POST", ":scheme", "http", "content-type", "application/grpc", "te", "trailers"
#define REGISTER ":path", "/v1beta1.Registration/Register"

#define push_fields(f_, stream_, flags_, ...)                                                      \
	push_headers(f_, stream_, flags_, (const char *const[]){__VA_ARGS__, NULL})

static void push_data(struct fixture *f, uint32_t stream, int flags, const char *hex)
{
	auto_strbuf struct strbuf bytes = from_hex(hex);

	push_frame(f, NGHTTP2_DATA, flags, stream, bytes.data, bytes.len);
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	wire_open(&f->wire, methods, ARRAY_LEN(methods), 1000, &f->seen);
	assert_int_equal(nghttp2_hd_deflate_new(&f->deflater, 4096), 0);
	assert_int_equal(nghttp2_hd_inflate_new(&f->inflater), 0);
	*state = f;
	return 0;
}

static int setup_connected(void **state)
{
	struct fixture *f;

	setup(state);
	f = *state;
	push_hex(f, PREFACE);
	assert_string_equal(said(f), "");
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	wire_close(&f->wire);
	nghttp2_hd_deflate_del(f->deflater);
	nghttp2_hd_inflate_del(f->inflater);
	strbuf_done(&f->said);
	strbuf_done(&f->seen.resource);
	mem_free(f);
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_WITH(speaks_first, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *hex = NULL;

	/*
	 * Kubelets send no request before they have seen our SETTINGS: 100 streams, 16384 bytes of
	 * header fields.
	 */
	assert_true(wire_pull(&f->wire));
	hex = to_hex(f->wire.out.data, f->wire.out.len);
	assert_string_equal(hex, "00000c040000000000"
				 "000300000064"
				 "000600004000");
}

#define WHOLE_REGISTER_CALL                                                                        \
	PREFACE "00004d 01 04 00000001 83 86 04 1e "                                               \
		"2f763162657461312e526567697374726174696f6e2f5265676973746572"                     \
		"01 09 6c6f63616c686f7374 0f10 10 6170706c69636174696f6e2f67727063 00 02 7465 08 " \
		"747261696c657273"                                                                 \
		"000026 00 01 00000001 0000000021"                                                 \
		"0a07 76316265746131 120a 6863615f612e736f636b 1a0a 72646d612f6863615f61"

#define REGISTER_ANSWER                                                                            \
	"HEADERS/1 :status=200 content-type=application/grpc\nDATA/1 0000000000\nHEADERS/1 "       \
	"grpc-status=0 END"

TEST_WITH(answers_the_register_call_of_the_reference, setup, teardown)
{
	struct fixture *f = *state;

	push_hex(f, WHOLE_REGISTER_CALL);
	assert_string_equal(strbuf_str(&f->seen.resource), "v1beta1 hca_a.sock rdma/hca_a.");
	assert_string_equal(said(f), REGISTER_ANSWER);
}

TEST(answers_the_same_however_bytes_arrive)
{
	auto_strbuf struct strbuf bytes = from_hex(WHOLE_REGISTER_CALL);

	for (size_t step = 1; step < bytes.len; step++) {
		struct fixture *f;
		void *mine = NULL;

		setup(&mine);
		f = mine;
		for (size_t at = 0; at < bytes.len; at += step)
			assert_true(wire_push(&f->wire, bytes.data + at,
					      bytes.len - at < step ? bytes.len - at : step));
		assert_string_equal(said(f), REGISTER_ANSWER);
		teardown(&mine);
	}
}

/*
 * grpc-go 1.72.1, with the dynamic table of HPACK: the second call refers to fields of the first.
 */
TEST_WITH(answers_what_a_kubelet_sends, setup_connected, teardown)
{
	struct fixture *f = *state;

	push_hex(f, "000050010400000001 "
		    "838645a063b8632a4615ef97b9885d745b31aa6311537cbdcc42eba2d98d56aad263d48f"
		    "4186a0e41d139d095f8b1d75d0620d263d4c4d65647a8a9acac8b4c7602bba25c340027465864d"
		    "833505b11f");
	push_hex(f, "000005000100000001 0000000000");
	assert_string_equal(said(f), "HEADERS/1 :status=200 content-type=application/grpc\n"
				     "DATA/1 00000000021001\n"
				     "HEADERS/1 grpc-status=0 END");
	push_hex(f, "000021010400000003 "
		    "8386459963b8632a4615ef97b9885d745b31aa633990986a9390d249ffc2c1c0bf");
	push_hex(f, "000005000100000003 0000000000");
	assert_non_null(f->seen.watch);
	assert_string_equal(
		said(f), "HEADERS/3 :status=200 content-type=application/grpc\nDATA/3 0000000000");
	/* Its bandwidth estimator pings. */
	push_hex(f, "000008 06 00 00000000 02041010090e0707");
	assert_string_equal(said(f), "PING/0 02041010090e0707 ACK");
	push_hex(f, "000004 03 00 00000003 00000008");
	assert_int_equal(f->seen.ended, 1);
	assert_int_equal(f->seen.why, GRPC_CANCELLED);
	assert_int_equal(f->seen.calls, 2);
}

/*
 * Kubelets up to 1.25: the path of the socket, which is no authority; from 1.29 in the watcher:
 * the same, escaped.
 */
TEST_WITH(does_not_mind_the_authority, setup_connected, teardown)
{
	static const char *const authorities[] = {
		"/var/lib/kubelet/device-plugins/x.sock",
		"%2Fvar%2Flib%2Fkubelet%2Fplugins_registry%2Fx.sock",
		"localhost",
		"",
	};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(authorities); i++) {
		push_fields(f, 2 * i + 1, 0, GRPC_FIELDS, ":path",
			    "/v1beta1.DevicePlugin/GetDevicePluginOptions", ":authority",
			    authorities[i]);
		push_data(f, 2 * i + 1, NGHTTP2_FLAG_END_STREAM, "0000000000");
		assert_non_null(strstr(said(f), "grpc-status=0"));
	}
	assert_int_equal(f->seen.calls, ARRAY_LEN(authorities));
}

TEST_WITH(takes_a_request_in_many_frames, setup_connected, teardown)
{
	struct fixture *f = *state;

	push_fields(f, 1, 0, GRPC_FIELDS, REGISTER);
	push_data(f, 1, 0, "00");
	push_data(f, 1, 0, "");
	push_data(f, 1, 0, "000000");
	push_data(f, 1, 0, "030a0161");
	push_data(f, 1, NGHTTP2_FLAG_END_STREAM, "");
	assert_string_equal(strbuf_str(&f->seen.resource), "a  .");
	assert_string_equal(said(f), REGISTER_ANSWER);
}

TEST_WITH(ends_a_request_with_trailers_too, setup_connected, teardown)
{
	struct fixture *f = *state;

	push_fields(f, 1, 0, GRPC_FIELDS, REGISTER);
	push_data(f, 1, 0, "0000000000");
	push_fields(f, 1, NGHTTP2_FLAG_END_STREAM, "x-checksum", "1");
	assert_string_equal(said(f), REGISTER_ANSWER);
}

#define ERROR(status_, text_)                                                                      \
	"HEADERS/1 :status=200 content-type=application/grpc grpc-status=" status_                 \
	" grpc-message=" text_ " END"

/*
 * Messages that are wrong; the answer is trailers only. Those that are still on their way are
 * asked not to come.
 */
TEST(refuses_messages_that_are_wrong)
{
	static const struct {
		const char *data;
		bool is_last;
		const char *answer;
	} table[] = {
		{"", true, ERROR("12", "no message; the method takes one")},
		{"00000000", true, ERROR("13", "the stream ends within a message")},
		{"00000000030a01", true, ERROR("13", "the stream ends within a message")},
		{"0000000000 0000000000", true,
		 ERROR("12", "more than one message; the method takes one")},
		{"0100000000", true, ERROR("12", "compressed messages are not supported")},
		{"0700000000", true,
		 ERROR("13", "a message starts with flag 7; there are 0 and 1")},
		{"00000003e9", true, ERROR("8", "a message of 1001 bytes; at most 1000 are taken")},
		{"00000003e9", false,
		 ERROR("8", "a message of 1001 bytes; at most 1000 are taken") "\nRST_STREAM/1 "
									       "00000000"},
		{"0000000001 0a", true, ERROR("13", "1 bytes that are no RegisterRequest message")},
		{"0000000001 0a", false,
		 ERROR("13",
		       "1 bytes that are no RegisterRequest message") "\nRST_STREAM/1 00000000"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct fixture *f;
		void *mine = NULL;

		setup_connected(&mine);
		f = mine;
		push_fields(f, 1, 0, GRPC_FIELDS, REGISTER);
		push_data(f, 1, table[i].is_last ? NGHTTP2_FLAG_END_STREAM : 0, table[i].data);
		assert_string_equal(said(f), table[i].answer);
		assert_int_equal(f->seen.calls, 0);
		/* The connection goes on. */
		push_fields(f, 3, 0, GRPC_FIELDS, REGISTER);
		push_data(f, 3, NGHTTP2_FLAG_END_STREAM, "0000000000");
		assert_non_null(strstr(said(f), "HEADERS/3 grpc-status=0 END"));
		teardown(&mine);
	}
}

TEST(refuses_header_fields_that_are_wrong)
{
	static const struct {
		const char *fields[16];
		const char *status;
		const char *text;
	} table[] = {
		{{":method", "GET", ":scheme", "http", REGISTER},
		 ":status=405",
		 "the HTTP method is POST, not \"GET\""},
		{{":method", "POST", REGISTER, "content-type", "text/html"},
		 ":status=415",
		 "the content type is application/grpc, not \"text/html\""},
		{{":method", "POST", REGISTER, "content-type", "application/grpcx"},
		 ":status=415",
		 "the content type is application/grpc, not \"application/grpcx\""},
		{{":method", "POST", REGISTER},
		 ":status=415",
		 "the content type is application/grpc, not \"\""},
		{{GRPC_FIELDS},
		 ":status=400",
		 "malformed request: a header field is missing or there twice"},
		{{GRPC_FIELDS, REGISTER, REGISTER},
		 ":status=400",
		 "malformed request: a header field is missing or there twice"},
		{{GRPC_FIELDS, REGISTER, "grpc-timeout", "5"},
		 "grpc-status=13",
		 "malformed grpc-timeout \"5\""},
		{{GRPC_FIELDS, REGISTER, "grpc-encoding", "gzip"},
		 "grpc-status=12",
		 "compression \"gzip\" is not supported"},
		{{GRPC_FIELDS, ":path", "/v1beta1.DevicePlugin/Fly"},
		 "grpc-status=12",
		 "unknown method \"/v1beta1.DevicePlugin/Fly\""},
		{{GRPC_FIELDS, ":path", ""}, "grpc-status=12", "unknown method \"\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct fixture *f;
		const char *answer;
		void *mine = NULL;

		setup_connected(&mine);
		f = mine;
		push_headers(f, 1, 0, table[i].fields);
		answer = said(f);
		if (!strstr(answer, table[i].status) || !strstr(answer, table[i].text) ||
		    !strstr(answer, "END\nRST_STREAM/1 00000000"))
			fail_msg("case %zu: %s", i, answer);
		teardown(&mine);
	}
}

TEST_WITH(takes_content_types_with_an_encoding, setup_connected, teardown)
{
	struct fixture *f = *state;

	push_fields(f, 1, 0, ":method", "POST", ":scheme", "http", "content-type",
		    "application/grpc+proto", REGISTER, "grpc-encoding", "identity");
	push_data(f, 1, NGHTTP2_FLAG_END_STREAM, "0000000000");
	assert_string_equal(said(f), REGISTER_ANSWER);
}

TEST_WITH(refuses_too_many_header_fields, setup_connected, teardown)
{
	struct fixture *f = *state;
	auto_free char *value = mem_zalloc(4001);
	const char *fields[32] = {GRPC_FIELDS, REGISTER};

	memset(value, 'a', 4000);
	for (int i = 0; i < 5; i++) {
		fields[10 + 2 * i] = "x-large";
		fields[11 + 2 * i] = value;
	}
	push_headers(f, 1, 0, fields);
	assert_non_null(strstr(said(f), "grpc-status=8 grpc-message=header fields of 20"));
	assert_int_equal(f->seen.calls, 0);
}

TEST_WITH(bounds_what_all_streams_have_begun, setup_connected, teardown)
{
	struct fixture *f = *state;
	auto_free char *part = mem_zalloc(16384);
	static const uint8_t head[5] = {0, 0x00, 0x80, 0, 0}; /* 8 MiB */
	uint32_t refused = 0;

	wire_close(&f->wire);
	wire_open(&f->wire, methods, ARRAY_LEN(methods), 8 * 1024 * 1024, &f->seen);
	push_hex(f, PREFACE);
	for (uint32_t stream = 1; stream < 9 && !refused; stream += 2) {
		push_fields(f, stream, 0, GRPC_FIELDS, REGISTER);
		push_frame(f, NGHTTP2_DATA, 0, stream, head, sizeof(head));
		for (int i = 0; i < 511; i++)
			push_frame(f, NGHTTP2_DATA, 0, stream, part, 16384);
		if (strstr(said(f), "grpc-status=8"))
			refused = stream;
	}
	assert_int_equal(refused, 5);
}

TEST_WITH(a_deadline_of_zero_is_over, setup_connected, teardown)
{
	struct fixture *f = *state;

	push_fields(f, 1, 0, GRPC_FIELDS, ":path", "/v1beta1.DevicePlugin/ListAndWatch",
		    "grpc-timeout", "0m");
	push_data(f, 1, NGHTTP2_FLAG_END_STREAM, "0000000000");
	assert_int_equal(f->seen.calls, 1);
	loop_turn(f->wire.loop, true);
	assert_true(wire_pull(&f->wire));
	assert_int_equal(f->seen.ended, 1);
	assert_int_equal(f->seen.why, GRPC_DEADLINE_EXCEEDED);
	assert_non_null(strstr(
		said(f),
		"HEADERS/1 grpc-status=4 grpc-message=the deadline of the call has passed END"));
}

TEST_WITH(a_peer_that_does_not_speak_http2_is_cut_off, setup, teardown)
{
	struct fixture *f = *state;
	struct err err = {0};

	assert_int_equal(grpc_session_receive(f->wire.session, "GET / HTTP/1.1\r\n\r\n", 18, &err),
			 -1);
	assert_string_equal(err.reason, "BadHttp2");
}

/* Frames that ask for answers, from a peer that takes none. */
TEST_WITH(a_peer_that_floods_is_cut_off, setup_connected, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf ping = from_hex("000008 06 00 00000000 0000000000000000");
	int sent = 0;

	while (sent < 100000 &&
	       grpc_session_receive(f->wire.session, ping.data, ping.len, NULL) == 0)
		sent++;
	assert_in_range(sent, 100, 2 * GRPC_OUTBOUND_FRAMES_MAX);
}

/* Requests of a peer that takes no answer. */
TEST_WITH(a_peer_that_does_not_read_is_cut_off, setup_connected, teardown)
{
	struct fixture *f = *state;
	struct err err = {0};
	unsigned int stream = 1;

	for (; stream < 20000; stream += 2) {
		auto_free char *hex = str_printf("000003 01 05 %08x 838684", stream);
		auto_strbuf struct strbuf request = from_hex(hex);

		if (grpc_session_receive(f->wire.session, request.data, request.len, &err) < 0)
			break;
	}
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "PeerDoesNotRead");
}

/* As grpc-go from 1.65 on says goodbye: the number of a stream that is not ours. */
TEST_WITH(an_odd_goodbye_is_a_goodbye, setup_connected, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf goaway = from_hex("000008 07 00 00000000 00000001 00000000");

	assert_false(wire_push(&f->wire, goaway.data, goaway.len));
}

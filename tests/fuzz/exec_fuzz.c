// SPDX-License-Identifier: Apache-2.0
/*
 * What an API server answers to an exec: whatever it is, it ends in outputs within their limit and
 * an exit code, or in an error that says why; and how its bytes are cut does not matter.
 *
 * Input: the bytes of the connection. The key of the request has zeros, so corpora have the answer
 * to that one.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/exec_stream.h"
#include "lib/kube/pod_exec.h"
#include "lib/kube/websocket.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void fill(void *bytes, size_t len)
{
	memset(bytes, 0, len);
}

struct reader {
	struct websocket ws;
	struct exec_stream stream;
	struct strbuf sent;
	struct err err;
	int result, code;
};

static void read_all(struct reader *r, const char *bytes, size_t len, size_t piece)
{
	r->ws = (struct websocket){.random = fill, .protocols = EXEC_STREAM_PROTOCOLS};
	websocket_ask(&r->ws, &(struct websocket_request){.target = "/", .host = "h", .agent = "a"},
		      &r->sent);
	for (size_t at = 0; at < len && r->result == 0 && r->ws.state != WEBSOCKET_CLOSED;
	     at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		auto_free char *copy = mem_dup(bytes + at, n);

		r->result = websocket_feed(&r->ws, copy, n, &r->sent, exec_stream_message,
					   &r->stream, &r->err);
	}
	if (r->result == 0)
		r->result = websocket_end(&r->ws, &r->err);
	if (r->result == 0)
		r->result = exec_stream_end(&r->stream, &r->code, &r->err);
}

static void check(const struct reader *r)
{
	fuzz_check(r->stream.out.len + r->stream.errors.len <= POD_EXEC_MAX_OUTPUT,
		   "outputs have a limit");
	fuzz_check(r->sent.len <= 2 * WEBSOCKET_REPLIES_MAX, "answers have a limit");
	fuzz_check(r->result < 0 || (r->code >= 0 && r->code <= 255), "an exit code is one");
	fuzz_check(r->result == 0 || (r->err.reason[0] && r->err.text[0]), "an error says why");
}

static void done(struct reader *r)
{
	websocket_done(&r->ws);
	exec_stream_done(&r->stream);
	strbuf_done(&r->sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader whole = {0}, pieces = {0};

	read_all(&whole, (const char *)data, size, size ? size : 1);
	read_all(&pieces, (const char *)data, size, 3);
	check(&whole);
	check(&pieces);
	/* Of a refusal that goes on after its end, the rest may be looked at or not. */
	if (whole.ws.status == 101) {
		fuzz_check(whole.result == pieces.result && whole.code == pieces.code,
			   "any pieces, same end");
		fuzz_check(str_eq(strbuf_str(&whole.stream.out), strbuf_str(&pieces.stream.out)),
			   "any pieces, same output");
	}
	done(&whole);
	done(&pieces);
	return 0;
}

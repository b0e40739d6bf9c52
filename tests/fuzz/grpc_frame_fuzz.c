// SPDX-License-Identifier: Apache-2.0
/*
 * gRPC messages within bytes. First byte: the size of the pieces that the rest is fed in, to check
 * that the same messages come out however they arrive.
 */
#include <stdint.h>

#include "lib/base/mem.h"
#include "lib/grpc/frame.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGE_MAX 4096

struct log {
	struct strbuf text;
	size_t bytes;
};

static bool note(void *arg, const void *data, size_t len)
{
	struct log *log = arg;

	if (len > MESSAGE_MAX || (len > 0) != (data != NULL))
		abort();
	strbuf_addf(&log->text, "%zu:", len);
	strbuf_add(&log->text, data ? data : "", len);
	log->bytes += GRPC_FRAME_HEAD + len;
	return true;
}

static void feed(const uint8_t *data, size_t size, size_t step, struct log *log)
{
	struct grpc_status status = {0};
	struct grpc_frames frames;
	int result = 0;

	grpc_frames_init(&frames, MESSAGE_MAX);
	for (size_t at = 0; at < size && result == 0; at += step) {
		size_t n = size - at < step ? size - at : step;
		void *piece = mem_dup(data + at, n);

		result = grpc_frames_feed(&frames, piece, n, note, log, &status);
		mem_free(piece);
	}
	if (result == 0 && grpc_frames_is_partial(&frames) != (log->bytes < size))
		abort();
	if (result < 0 && status.code == GRPC_OK)
		abort();
	strbuf_addf(&log->text, "%d %d %s", result, (int)status.code, status.text);
	grpc_frames_done(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log whole = {0}, pieces = {0};

	if (size < 2)
		return 0;
	feed(data + 1, size - 1, size - 1, &whole);
	feed(data + 1, size - 1, (size_t)data[0] + 1, &pieces);
	if (!str_eq(whole.text.data, pieces.text.data) || whole.text.len != pieces.text.len ||
	    memcmp(whole.text.data, pieces.text.data, whole.text.len) != 0)
		abort();
	strbuf_done(&whole.text);
	strbuf_done(&pieces.text);
	return 0;
}

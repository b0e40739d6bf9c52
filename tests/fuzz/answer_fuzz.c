// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of answers: whatever they are, warnings are whole lines of text without control
 * characters, not too many, and the wish to wait is an hour at most.
 *
 * Input: header lines, each with its end, of one answer.
 */
#include <stdint.h>
#include <string.h>

#include "lib/kube/answer.h"
#include "tests/fuzz/fuzz.h"

static void feed(struct answer *answer, const char *bytes, size_t len)
{
	while (len > 0) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) + 1 : len;

		answer_header(answer, bytes, n, 200);
		bytes += n;
		len -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kube_request request = {.method = "GET", .path = "/"};
	struct answer answer = {0};
	const char *lines;

	answer_begin(&answer, &request);
	feed(&answer, (const char *)data, size);
	lines = strbuf_str(&answer.warnings);
	fuzz_check(answer.warnings.len < ANSWER_WARNINGS_MAX, "there is a limit");
	fuzz_check(answer.warnings.len == 0 || lines[answer.warnings.len - 1] == '\n',
		   "whole lines");
	for (size_t i = 0; i < answer.warnings.len; i++)
		fuzz_check((unsigned char)lines[i] >= ' ' ||
				   (lines[i] == '\n' && i > 0 && lines[i - 1] != '\n'),
			   "text in each line, and no control characters");
	fuzz_check(answer.retry_after_ms >= -1 && answer.retry_after_ms <= 3600 * 1000,
		   "no longer than an hour");
	answer_done(&answer);
	return 0;
}

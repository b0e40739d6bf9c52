// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/kube/answer.h"

struct seen {
	unsigned int opened;
	size_t bytes;
	bool refuse;
};

static void on_open(void *arg)
{
	((struct seen *)arg)->opened++;
}

static int on_bytes(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct seen *seen = arg;

	seen->bytes += len;
	return seen->refuse ? err_set(err, ERR_TRANSIENT, "BadStream", "enough") : 0;
}

static bool header(struct answer *answer, const char *line, int status)
{
	return answer_header(answer, line, strlen(line), status);
}

TEST(collects_a_body_and_reads_the_wish_to_wait)
{
	const struct kube_request request = {.method = "GET", .path = "/"};
	struct answer answer = {0};

	answer_begin(&answer, &request);
	assert_true(header(&answer, "HTTP/2 429 \r\n", 429));
	assert_false(header(&answer, "Retry-After: 7 \r\n", 429));
	assert_false(header(&answer, "retry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n", 429));
	assert_false(header(&answer, "\r\n", 429));
	assert_true(answer_body(&answer, "slow", 4));
	assert_true(answer_body(&answer, "ly", 2));
	assert_int_equal(answer.status, 429);
	assert_int_equal(answer.retry_after_ms, 7000);
	assert_string_equal(strbuf_str(&answer.body), "slowly");
	answer_begin(&answer, &request);
	assert_int_equal(answer.retry_after_ms, -1);
	assert_int_equal(answer.body.len, 0);
	answer_done(&answer);
}

TEST(collects_what_the_server_warns_of)
{
	const struct kube_request request = {.method = "GET", .path = "/"};
	struct answer answer = {0};
	char line[3000];

	answer_begin(&answer, &request);
	(void)header(&answer, "HTTP/2 201 \r\n", 201);
	(void)header(&answer, "warning: 299 - \"unknown field \\\"spec.vlanId\\\"\"\r\n", 201);
	(void)header(&answer, "Warning: 299 - \"one\ttwo\" \"Sat, 25 Aug 2012 23:34:45 GMT\"\r\n",
		     201);
	assert_string_equal(strbuf_str(&answer.warnings),
			    "unknown field \"spec.vlanId\"\none two\n");
	(void)header(&answer, "warning: 299 - none\r\n", 201);
	(void)header(&answer, "warning: 299 - \"\"\r\n", 201);
	(void)header(&answer, "warning: 299 - \"no end\\\"\r\n", 201);
	(void)header(&answer, "warning:\r\n", 201);
	assert_string_equal(strbuf_str(&answer.warnings),
			    "unknown field \"spec.vlanId\"\none two\n");
	(void)snprintf(line, sizeof(line), "warning: 299 - \"%02900d\"\r\n", 0);
	(void)header(&answer, line, 201);
	(void)header(&answer, line, 201);
	assert_true(answer.warnings.len > 2900 && answer.warnings.len < ANSWER_WARNINGS_MAX);
	answer_begin(&answer, &request);
	assert_int_equal(answer.warnings.len, 0);
	answer_done(&answer);
}

TEST(opens_a_stream_once_and_hands_on_what_comes)
{
	struct seen seen = {0};
	const struct kube_request request = {.method = "GET",
					     .path = "/",
					     .on_open = on_open,
					     .on_bytes = on_bytes,
					     .arg = &seen};
	struct answer answer = {0};

	answer_begin(&answer, &request);
	(void)header(&answer, "HTTP/2 200 \r\n", 200);
	(void)header(&answer, "\r\n", 200);
	(void)header(&answer, "\r\n", 200); /* of trailers */
	assert_int_equal(seen.opened, 1);
	assert_true(answer_body(&answer, "12345", 5));
	assert_true(answer.delivered);
	assert_int_equal(seen.bytes, 5);
	assert_int_equal(answer.body.len, 0);
	seen.refuse = true;
	assert_false(answer_body(&answer, "6", 1));
	assert_string_equal(answer.err.reason, "BadStream");
	answer_done(&answer);
}

TEST(an_error_is_not_the_stream_and_its_page_is_cut)
{
	static char page[100 * 1024];
	struct seen seen = {0};
	const struct kube_request request = {.method = "GET",
					     .path = "/",
					     .on_open = on_open,
					     .on_bytes = on_bytes,
					     .arg = &seen};
	struct answer answer = {0};

	answer_begin(&answer, &request);
	(void)header(&answer, "HTTP/2 410 \r\n", 410);
	(void)header(&answer, "\r\n", 410);
	assert_true(answer_body(&answer, page, sizeof(page)));
	assert_true(answer_body(&answer, page, sizeof(page)));
	assert_int_equal(seen.opened + seen.bytes, 0);
	assert_false(answer.delivered);
	assert_int_equal(answer.body.len, 64 * 1024);
	answer_done(&answer);
}

TEST(a_body_beyond_the_most_is_refused_by_name)
{
	const struct kube_request request = {.method = "GET", .path = "/api/v1/pods"};
	size_t len = KUBE_MAX_BODY / 2;
	auto_free char *half = mem_alloc(len);
	struct answer answer = {0};

	memset(half, 'x', len);
	answer_begin(&answer, &request);
	(void)header(&answer, "HTTP/2 200 \r\n", 200);
	assert_true(answer_body(&answer, half, len));
	assert_true(answer_body(&answer, half, len));
	assert_false(answer_body(&answer, half, 1));
	assert_string_equal(answer.err.reason, "BodyTooLarge");
	assert_int_equal(answer.err.class, ERR_TRANSIENT);
	assert_non_null(
		strstr(answer.err.text, "GET /api/v1/pods: the answer has more than 33554432"));
	answer_done(&answer);
}

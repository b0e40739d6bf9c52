// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"

#include "lib/http/request.h"

/* Parse the text as a whole head; the strings of ret live until the next call. */
static int parse(const char *text, struct request *ret)
{
	static char head[HTTP_HEADERS_MAX];
	size_t len = strlen(text);

	assert_int_equal(request_head_len(text, len), len);
	memcpy(head, text, len + 1);
	return request_parse(head, len, ret);
}

TEST(reads_a_whole_head)
{
	struct request req;

	assert_int_equal(
		parse("POST /a%2Fb/c?x=1&y=%3D+z&&flag HTTP/1.1\r\nhost: h\r\nCONTENT-TYPE:\t "
		      "application/json \r\n"
		      "Content-Length: 17\r\nConnection: x, Close\r\nExpect: 100-Continue\r\n\r\n",
		      &req),
		0);
	assert_int_equal(req.method, HTTP_POST);
	assert_false(req.is_head);
	assert_string_equal(req.path, "/a/b/c");
	assert_int_equal(req.n_query, 3);
	assert_string_equal(req.query[0], "x=1");
	assert_string_equal(req.query[1], "y== z");
	assert_string_equal(req.query[2], "flag");
	assert_string_equal(req.content_type, "application/json");
	assert_int_equal(req.body_len, 17);
	assert_true(req.wants_close);
	assert_true(req.has_expect);
}

TEST(a_plain_get_has_no_body_and_keeps_the_connection)
{
	struct request req;

	assert_int_equal(parse("GET / HTTP/1.1\r\nHost:\r\n\r\n", &req), 0);
	assert_int_equal(req.body_len, 0);
	assert_false(req.wants_close);
	assert_false(req.has_expect);
	assert_string_equal(req.content_type, "");
	assert_int_equal(req.n_query, 0);
	assert_int_equal(parse("HEAD / HTTP/1.0\r\n\r\n", &req), 0);
	assert_true(req.is_head);
	assert_true(req.wants_close);
}

TEST(keeps_who_is_asked_from_where_and_for_which_protocol)
{
	struct request req;

	assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a:1\r\norigin: http://b\r\n"
			       "Upgrade: websocket\r\n\r\n",
			       &req),
			 0);
	assert_string_equal(req.host, "a:1");
	assert_string_equal(req.origin, "http://b");
	assert_string_equal(req.upgrade, "websocket");
	assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n", &req), 0);
	assert_string_equal(req.host, "");
	assert_string_equal(req.origin, "");
	assert_string_equal(req.upgrade, "");
	assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nOrigin: b\r\nOrigin: b\r\n\r\n", &req),
			 400);
}

TEST(takes_a_target_in_absolute_form)
{
	struct request req;

	assert_int_equal(parse("GET http://host:80/metrics?a HTTP/1.1\r\nHost: x\r\n\r\n", &req),
			 0);
	assert_string_equal(req.path, "/metrics");
	assert_int_equal(req.n_query, 1);
	assert_int_equal(parse("GET https://host HTTP/1.1\r\nHost: x\r\n\r\n", &req), 400);
}

TEST(finds_the_end_of_the_head_and_no_earlier)
{
	assert_int_equal(request_head_len("", 0), 0);
	assert_int_equal(request_head_len("GET / HTTP/1.1\r\n", 16), 0);
	assert_int_equal(request_head_len("GET / HTTP/1.1\r\n\r\nGET", 21), 18);
	assert_int_equal(request_head_len("a\n\nb", 4), 0);
	assert_int_equal(request_skip_blank("\r\n\r\nGET", 7), 4);
	assert_int_equal(request_skip_blank("\r", 1), 0);
	assert_int_equal(request_skip_blank("G", 1), 0);
}

TEST(refuses_what_is_malformed)
{
	static const struct {
		const char *head;
		int status;
	} cases[] = {
		{" / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET\r\nHost: x\r\n\r\n", 400},
		{"GET /\r\nHost: x\r\n\r\n", 400},
		{"GET / \r\nHost: x\r\n\r\n", 400},
		{"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
		{"G@T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET / HTTP/1\r\nHost: x\r\n\r\n", 400},
		{"GET / HTTP/1.\r\nHost: x\r\n\r\n", 400},
		{"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
		{"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /\t HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /% HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET /?a=%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nA : y\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\n b: y\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nA: b\nContent-Length: 3\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1,1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 411},
		{"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
		 "1\r\n\r\n",
		 400},
		{"GET / HTTP/1.1\r\nHost: x\r\nExpect: rain\r\n\r\n", 417},
		{"GET / HTTP/1.1\r\nHost: x\r\nExpect: rain\r\nnonsense\r\n\r\n", 400},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct request req;
		int status = parse(cases[i].head, &req);

		if (status != cases[i].status)
			fail_msg("%d instead of %d: %s", status, cases[i].status, cases[i].head);
		assert_non_null(req.path);
		assert_non_null(req.content_type);
	}
}

TEST(refuses_a_nul)
{
	char head[] = "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n";
	struct request req;

	assert_int_equal(request_parse(head, sizeof(head) - 1, &req), 400);
}

TEST(a_method_that_is_none_of_ours_is_not_an_error_here)
{
	struct request req;

	assert_int_equal(parse("BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", &req), 0);
	assert_int_equal(req.method, 0);
	assert_string_equal(request_method_name(&req), "other");
	assert_int_equal(parse("get / HTTP/1.1\r\nHost: x\r\n\r\n", &req), 0);
	assert_int_equal(req.method, 0);
}

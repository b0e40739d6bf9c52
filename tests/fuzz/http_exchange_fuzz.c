// SPDX-License-Identifier: Apache-2.0
/*
 * The bytes of one connection. First byte: how the rest is cut into pieces, to check that the
 * answers are the same however the bytes arrive.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/http/exchange.h"
#include "tests/fuzz/fuzz.h"

static int streams;
static struct http_stream *woken;

/* Answers carry the date. */
int64_t clock_wall_us(void)
{
	return 0;
}

static void answered(struct exchange *x)
{
	if (x->out.len == 0)
		abort();
}

static void sum(const struct http_request *req, struct http_response *resp, void *arg)
{
	if (req->path[0] != '/' || strlen(req->body) > req->body_len)
		abort();
	strbuf_addf(&resp->body, "%s %zu %zu %llx\n", req->path, req->n_query, req->body_len,
		    (unsigned long long)str_hash(req->body, req->body_len));
}

/* Three fills, the second of them empty. */
static bool fill(struct strbuf *out, void *arg)
{
	int *n = arg;

	if (*n != 1)
		strbuf_addf(out, "fill %d\n", *n);
	return ++*n < 3;
}

static void ended(void *arg)
{
	streams--;
}

static void stream(const struct http_request *req, struct http_response *resp, void *arg)
{
	static const struct http_source source = {.fill = fill, .ended = ended};
	static int n;

	n = 0;
	streams++;
	woken = http_response_stream(resp, &source, &n);
}

static const struct http_route routes[] = {
	{.path = "/sum",
	 .methods = HTTP_GET | HTTP_POST,
	 .body_max = 1024 * 1024,
	 .takes_chunks = true,
	 .handle = sum},
	{.path = "/stream", .methods = HTTP_GET, .handle = stream},
	{.path = "/small", .methods = HTTP_POST, .body_max = 16, .handle = sum},
};

/*
 * What goes out for these bytes; "100 Continue" left out, which depends on what has come already.
 */
static void answers(const uint8_t *data, size_t size, size_t step, struct strbuf *ret)
{
	struct exchange_site site = {.name = "fuzz",
				     .routes = routes,
				     .n_routes = ARRAY_LEN(routes),
				     .answered = answered};
	struct in6_addr peer = {0};
	struct exchange x;

	exchange_init(&x, &site, &peer);
	for (size_t at = 0; at < size; at += step) {
		exchange_received(&x, data + at, size - at < step ? size - at : step);
		while (x.out.len > 0) {
			if (x.state != EXCHANGE_BODY)
				strbuf_add(ret, x.out.data, x.out.len);
			else if (!str_eq(x.out.data, "HTTP/1.1 100 Continue\r\n\r\n"))
				abort();
			exchange_sent(&x);
			if (x.state == EXCHANGE_STREAMING && x.out.len == 0)
				http_stream_wake(woken);
		}
		if (x.state == EXCHANGE_SENDING || (x.state == EXCHANGE_IDLE && x.in.len > 1))
			abort(); /* something was left to do */
		if (x.state == EXCHANGE_OVER)
			break;
	}
	if (x.state == EXCHANGE_HEAD || x.state == EXCHANGE_BODY) {
		exchange_timeout(&x);
		strbuf_add(ret, x.out.data, x.out.len);
	}
	exchange_done(&x);
	if (site.large || streams != 0)
		abort(); /* room was kept, or a stream */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_strbuf struct strbuf whole = {0};
	auto_strbuf struct strbuf pieces = {0};

	if (size < 2)
		return 0;
	answers(data + 1, size - 1, size - 1, &whole);
	answers(data + 1, size - 1, (size_t)data[0] + 1, &pieces);
	if (!str_eq(strbuf_str(&whole), strbuf_str(&pieces)))
		abort();
	return 0;
}

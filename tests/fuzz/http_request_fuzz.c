// SPDX-License-Identifier: Apache-2.0
/*
 * The head of an HTTP request. First byte: how the rest is cut in two, to check that a head is
 * found at the same place however it arrives.
 */
#include <stdint.h>

#include "lib/base/mem.h"
#include "lib/http/request.h"
#include "tests/fuzz/fuzz.h"

static void check_string(const char *s, const char *head, size_t len)
{
	/* "" of an absent value lies elsewhere */
	if (*s && (s < head || s + strlen(s) >= head + len))
		abort();
}

static void check_parsed(const struct request *req, const char *head, size_t len)
{
	check_string(req->path, head, len);
	check_string(req->content_type, head, len);
	check_string(req->host, head, len);
	check_string(req->origin, head, len);
	check_string(req->upgrade, head, len);
	if (req->n_query > HTTP_QUERY_MAX || req->body_len > INT64_MAX)
		abort();
	for (size_t i = 0; i < req->n_query; i++)
		check_string(req->query[i], head, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct request a, b;
	size_t len, skipped, part;
	char *head, *again;

	if (size < 2 || size > HTTP_HEADERS_MAX)
		return 0;
	size--;
	skipped = request_skip_blank(text, size);
	if (skipped > size)
		abort();
	text += skipped;
	size -= skipped;
	len = request_head_len(text, size);
	part = size * data[0] / 256;
	if (part < len && request_head_len(text, part) != 0)
		abort();
	if (len == 0)
		return 0;
	if (len > size || memcmp(text + len - 4, "\r\n\r\n", 4) != 0)
		abort();

	head = mem_alloc(len + 1);
	memcpy(head, text, len);
	head[len] = '\0';
	again = mem_dup(head, len + 1);
	int status = request_parse(head, len, &a);

	if (status != 0 && status != 400 && status != 411 && status != 417 && status != 505)
		abort();
	check_parsed(&a, head, len + 1);
	if (status == 0 && a.path[0] != '/')
		abort();
	if (request_parse(again, len, &b) != status || strcmp(a.path, b.path) != 0 ||
	    a.n_query != b.n_query || a.body_len != b.body_len || memcmp(head, again, len) != 0)
		abort(); /* not pure */
	mem_free(head);
	mem_free(again);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a request for the live report. Nothing gets in without the token and a Host of the
 * loopback, and no WebSocket without an Origin.
 */
#include <string.h>

#include "cli/live/ticket.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/request.h"
#include "tests/fuzz/fuzz.h"

#define TOKEN "00112233445566778899aabbccddeeff"
#define OTHER "10112233445566778899aabbccddeeff"

static bool has(const char *head, size_t len, const char *word)
{
	return memmem(head, len, word, strlen(word)) != NULL;
}

/* What libwebsockets gets is a request of its own, without what is not for it. */
static void check_upgrade(const char *head, size_t len)
{
	auto_strbuf struct strbuf out = {0}, cut = {0};
	struct request req;

	ticket_upgrade(head, len, &out);
	fuzz_check(out.len <= len + strlen("GET /live HTTP/1.1"), "it is not longer");
	fuzz_check(request_head_len(out.data, out.len) == out.len, "it is one request");
	strbuf_add(&cut, out.data, out.len);
	fuzz_check(request_parse(cut.data, cut.len, &req) == 0 && strcmp(req.path, "/live") == 0 &&
			   *req.host && req.body_len == 0,
		   "it is a good one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size > 0 ? request_head_len((const char *)data, size) : 0;
	char *head, *again;
	int status = 0, other = 0;
	enum ticket ticket;

	if (len == 0 || len > HTTP_HEADERS_MAX)
		return 0;
	head = mem_alloc(len + 1);
	memcpy(head, data, len);
	head[len] = '\0';
	again = mem_dup(head, len + 1);
	ticket = ticket_check(head, len, TOKEN, &status);
	if (ticket == TICKET_REFUSED) {
		fuzz_check(status >= 400 && status <= 505, "a refusal has a status of HTTP");
	} else {
		fuzz_check(status == 0, "what gets in has no status");
		fuzz_check(has((const char *)data, len, "127.0.0.1") ||
				   has((const char *)data, len, "[::1]") ||
				   strcasestr(again, "localhost"),
			   "the Host is of the loopback");
		fuzz_check(ticket == TICKET_PAGE || strcasestr(again, "origin:"),
			   "a WebSocket has an Origin");
		check_upgrade(again, len);
		fuzz_check(ticket_check(again, len, OTHER, &other) == TICKET_REFUSED &&
				   other == 404,
			   "another token is refused");
	}
	mem_free(head);
	mem_free(again);
	return 0;
}

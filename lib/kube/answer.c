// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/answer.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"

enum {
	/* Of an answer that is an error only this much is worth reading. */
	ERROR_BODY_MAX = 64 * 1024,
};

void answer_begin(struct answer *answer, const struct kube_request *request)
{
	answer->request = request;
	answer->opened = false;
	answer->status = 0;
	answer->retry_after_ms = -1;
	answer->err = (struct err){0};
	strbuf_reset(&answer->body);
	strbuf_reset(&answer->warnings);
}

void answer_done(struct answer *answer)
{
	strbuf_done(&answer->body);
	strbuf_done(&answer->warnings);
}

/*
 * `299 - "text"`, RFC 7234, 5.5, as API servers send it: one to a header. Others, and a text that
 * would take more than its line, are passed over.
 */
static void add_warning(struct strbuf *warnings, const char *value, size_t len)
{
	auto_strbuf struct strbuf text = {0};
	const char *end = value + len;
	const char *p = memchr(value, '"', len);

	for (p = p ? p + 1 : end; p < end && *p != '"'; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		strbuf_addc(&text, (char)((unsigned char)*p < ' ' ? ' ' : *p));
	}
	if (p == end || text.len == 0 || warnings->len + text.len >= ANSWER_WARNINGS_MAX)
		return;
	strbuf_addf(warnings, "%s\n", strbuf_str(&text));
}

/* The value of a header line, if it is that header; NULL if not. */
static const char *value_of(const char *line, size_t *len, const char *name)
{
	size_t n = strlen(name);

	if (*len <= n || strncasecmp(line, name, n) != 0)
		return NULL;
	*len -= n;
	return line + n;
}

bool answer_header(struct answer *answer, const char *bytes, size_t len, int status)
{
	const char *value;

	assert(answer->request);
	if (len == 2) {
		const struct kube_request *request = answer->request;

		if (request->on_bytes && answer->status / 100 == 2 && !answer->opened) {
			answer->opened = true;
			if (request->on_open)
				request->on_open(request->arg);
		}
	}
	/* A new header block starts (after an interim answer, too). */
	if (len > 5 && memcmp(bytes, "HTTP/", 5) == 0) {
		answer->status = status;
		return true;
	}
	value = value_of(bytes, &len, "retry-after:");
	if (value) {
		auto_free char *text = str_ndup(value, len);
		char *start = text + strspn(text, " \t");
		int64_t seconds = 0;

		start[strcspn(start, " \t\r\n")] = '\0';
		/* API servers do not use the date form. */
		answer->retry_after_ms = str_to_int(start, 0, 3600, &seconds)
						 ? seconds * 1000
						 : answer->retry_after_ms;
	}
	value = value_of(bytes, &len, "warning:");
	if (value)
		add_warning(&answer->warnings, value, len);
	return false;
}

bool answer_body(struct answer *answer, const char *bytes, size_t len)
{
	const struct kube_request *request = answer->request;

	assert(request);
	if (answer->status / 100 != 2) {
		size_t room = ERROR_BODY_MAX - answer->body.len;

		/* The rest of a long error page is of no use. */
		strbuf_add(&answer->body, bytes, len < room ? len : room);
		return true;
	}
	if (request->on_bytes) {
		answer->delivered = true;
		return request->on_bytes(request->arg, bytes, len, &answer->err) == 0;
	}
	if (len > KUBE_MAX_BODY - answer->body.len) {
		err_set(&answer->err, ERR_TRANSIENT, "BodyTooLarge",
			"%s %s: the answer has more than %d bytes", request->method, request->path,
			KUBE_MAX_BODY);
		return false;
	}
	strbuf_add(&answer->body, bytes, len);
	return true;
}

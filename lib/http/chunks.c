// SPDX-License-Identifier: Apache-2.0
/*
 * One state for each kind of line, one for data. The bytes that were used are dropped once per
 * call. Called by exchange.c as bytes arrive.
 */
#include "lib/http/chunks.h"

#include <assert.h>
#include <string.h>

/*
 * The line at `at`, its CRLF included: its length; 0: its end has not come yet; -1: it is too long,
 * or holds a CR or LF where none may be.
 */
static int line_len(const struct strbuf *in, size_t at)
{
	size_t have = in->len - at;
	const char *end = have > 0 ? memchr(in->data + at, '\n', have) : NULL;
	size_t len = end ? (size_t)(end - (in->data + at)) + 1 : have;

	if (len > CHUNKS_LINE_MAX)
		return -1;
	if (!end)
		return 0;
	return len >= 2 && end[-1] == '\r' ? (int)len : -1;
}

/* "1a;name=value": false for no number, or one of more than 8 digits. */
static bool read_size(const char *line, int len, uint64_t *ret)
{
	int digits = 0;

	*ret = 0;
	while (digits < len && str_hex_digit(line[digits]) >= 0) {
		*ret = *ret << 4 | (uint64_t)str_hex_digit(line[digits]);
		if (++digits > 8)
			return false;
	}
	return digits > 0 && (line[digits] == '\r' || line[digits] == ';' || line[digits] == ' ' ||
			      line[digits] == '\t');
}

/* A whole line; 0 or a status. */
static int take_line(struct chunks *chunks, const char *line, int len, size_t room)
{
	switch (chunks->state) {
	case CHUNKS_SIZE:
		if (!read_size(line, len, &chunks->left))
			return 400;
		if (chunks->left > room)
			return 413;
		chunks->state = chunks->left > 0 ? CHUNKS_DATA : CHUNKS_TRAILER;
		return 0;
	case CHUNKS_DATA_END:
		chunks->state = CHUNKS_SIZE;
		return len == 2 ? 0 : 400;
	case CHUNKS_TRAILER:
		if (len == 2)
			chunks->state = CHUNKS_DONE;
		return ++chunks->trailers > CHUNKS_TRAILERS ? 400 : 0;
	case CHUNKS_DATA:
	case CHUNKS_DONE:
		break;
	}
	return 0;
}

int chunks_take(struct chunks *chunks, struct strbuf *in, struct strbuf *body, size_t max)
{
	size_t at = 0;
	int status = 0;

	assert(in && body && max > 0);
	while (status == 0 && chunks->state != CHUNKS_DONE && at < in->len) {
		size_t n = in->len - at;
		int len;

		if (chunks->state == CHUNKS_DATA) {
			n = n < chunks->left ? n : (size_t)chunks->left;
			strbuf_add(body, in->data + at, n);
			at += n;
			chunks->left -= n;
			if (chunks->left == 0)
				chunks->state = CHUNKS_DATA_END;
			continue;
		}
		len = line_len(in, at);
		if (len == 0)
			break;
		status = len < 0 ? 400 : take_line(chunks, in->data + at, len, max - body->len);
		at += len > 0 ? (size_t)len : 0;
	}
	strbuf_consume(in, at);
	return status;
}

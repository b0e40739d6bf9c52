// SPDX-License-Identifier: Apache-2.0
/*
 * The head of an HTTP/1.1 request: pure parsing, RFC 9110 and RFC 9112. For lib/http and the live
 * report.
 *
 * Stricter than the RFC where it allows to be: lines end with CRLF, no folded headers, no transfer
 * coding but chunked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/http/server.h"

/* The strings lie in the head that was parsed. */
struct request {
	enum http_method method; /* HTTP_GET also for HEAD; 0 for a method that is none of ours */
	bool is_head;
	const char *path; /* decoded */
	const char *query[HTTP_QUERY_MAX];
	size_t n_query;
	const char *content_type;  /* "" when there is none */
	const char *authorization; /* "" when there is none */
	const char *host;          /* "" when there is none, which HTTP/1.0 allows */
	const char *origin;        /* "" when there is none */
	const char *upgrade;       /* "" when there is none */
	const char *accept;        /* of several, the last; "" when there is none */
	const char *user_agent;    /* likewise */
	uint64_t body_len;
	bool is_chunked; /* the body's length is in its chunks; body_len is 0 */
	bool has_expect; /* waits for "100 Continue" before it sends the body */
	bool wants_close;
	bool is_old; /* HTTP/1.0, which knows no chunks */
};

/*
 * The length of the head at the start of data, its empty line included; 0 when its end has not come
 * yet. data does not start with an empty line (request_skip_blank).
 */
size_t request_head_len(const char *data, size_t len);

/*
 * How many bytes of empty lines data starts with: clients may send one after a body (RFC 9112
 * section 2.2).
 */
size_t request_skip_blank(const char *data, size_t len);

/*
 * Parse a head of len bytes in place, with a NUL behind it: it is cut into strings, and ret points
 * into it. Returns 0, or the status with which the request has to be refused; then it is unknown
 * where its body ends, and ret has only what was parsed until then (never NULL strings).
 */
int request_parse(char *head, size_t len, struct request *ret);

/* "GET", …, "HEAD"; "other" for a method that is none of ours. */
const char *request_method_name(const struct request *req);

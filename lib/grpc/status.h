// SPDX-License-Identifier: Apache-2.0
/*
 * How a call ended: the code and text that travel as "grpc-status" and "grpc-message", and the
 * time limit that travels as "grpc-timeout". Pure.
 *
 * Formats: gRPC over HTTP/2 (grpc/grpc, doc/PROTOCOL-HTTP2.md); meaning of the codes:
 * doc/statuscodes.md; mapping of HTTP codes: doc/http-grpc-status-mapping.md.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

/* Longer texts are cut, on a character boundary. */
#define GRPC_STATUS_TEXT_MAX 512

struct grpc_status {
	enum grpc_code code;
	char text[GRPC_STATUS_TEXT_MAX]; /* UTF-8; "" when there is nothing to say */
};

/* Fill *status and return -1, or 0 for GRPC_OK. */
int grpc_status_set(struct grpc_status *status, enum grpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int grpc_status_vset(struct grpc_status *status, enum grpc_code code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* "OK", "Unavailable", "DeadlineExceeded", …: for texts, reasons and metric labels. */
const char *grpc_code_name(enum grpc_code code);

/*
 * Read the values of grpc-status and grpc-message; message may be NULL. A value that is not a known
 * code is GRPC_UNKNOWN, as the specification wants.
 */
void grpc_status_parse(const char *code, const char *message, struct grpc_status *ret);

/* What a response without grpc-status means, from its ":status" (NULL: it had none). */
enum grpc_code grpc_code_from_http(const char *http_status);
/*
 * What the end of a stream by RST_STREAM means to a client (HTTP/2 error codes, RFC 9113 section
 * 7).
 */
enum grpc_code grpc_code_from_h2(uint32_t h2_error);

/*
 * Append text as a value of grpc-message: bytes outside 0x20-0x7e and '%' as "%XX", so are blanks
 * at both ends.
 */
void grpc_text_encode(const char *text, struct strbuf *ret);
/*
 * Append what such a value says; malformed escapes stay as they are, bytes that are not UTF-8
 * become U+FFFD.
 */
void grpc_text_decode(const char *value, struct strbuf *ret);

/*
 * grpc-timeout: at most 8 digits and one of H M S m u n. Parsing rounds up to milliseconds; false,
 * and *ret_ms as it was, for anything else. Formatting takes the finest unit from milliseconds up
 * that 8 digits can hold; timeout_ms > 0.
 */
#define GRPC_TIMEOUT_SIZE 24
bool grpc_timeout_parse(const char *value, int64_t *ret_ms);
void grpc_timeout_format(int64_t timeout_ms, char out[GRPC_TIMEOUT_SIZE]);

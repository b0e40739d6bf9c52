// SPDX-License-Identifier: Apache-2.0
/*
 * The chunked transfer coding of request bodies, RFC 9112 section 7.1: bytes in, body out. Pure.
 * Internal to lib/http.
 *
 * Stricter than the RFC where it allows to be: lines end with CRLF; extensions and trailers are
 * passed over, and bounded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/* A line with a size, or one of a trailer. */
#define CHUNKS_LINE_MAX 256
#define CHUNKS_TRAILERS 32

/* All zero: the beginning. */
struct chunks {
	enum chunks_state {
		CHUNKS_SIZE,
		CHUNKS_DATA,
		CHUNKS_DATA_END,
		CHUNKS_TRAILER,
		CHUNKS_DONE,
	} state;
	uint64_t left; /* of the chunk's data */
	unsigned int trailers;
};

/*
 * Take from the front of `in` what belongs to the body, and append its data to `body`, at most max
 * bytes in all. What follows the body stays in `in`. Returns 0: look at the state, CHUNKS_DONE or
 * more has to come; else the status to refuse with: 400 malformed, 413 too long.
 */
int chunks_take(struct chunks *chunks, struct strbuf *in, struct strbuf *body, size_t max);

// SPDX-License-Identifier: Apache-2.0
/*
 * JSON between two processes of ours on a stream socket: frames of four bytes of length, most
 * significant first, and so many bytes of text, an object.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* Bytes of JSON in one frame. */
#define JSON_FRAME_MAX (8U << 20)

/*
 * Append a frame. ERR_BUG "MessageTooLarge" when it is larger than the other side would take; `out`
 * is unchanged then.
 */
int json_frame_write(const json_t *message, struct strbuf *out, struct err *err);

/*
 * Take the first whole frame out of `in`. *ret is the object, new, or NULL when more bytes are
 * needed. -1 with err ERR_BUG "BadFrame" when this is not a frame; what follows cannot be read
 * either.
 */
int json_frame_read(struct strbuf *in, json_t **ret, struct err *err);

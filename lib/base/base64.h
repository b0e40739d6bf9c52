// SPDX-License-Identifier: Apache-2.0
/*
 * Base64 with the standard alphabet (RFC 4648 section 4), as Kubernetes writes bytes in JSON and
 * YAML.
 *
 * Decoding is strict: padding is required, bits behind the last byte are zero, so each value has
 * one spelling. Line breaks are passed over wherever they are, as Go's encoding/base64 does and as
 * YAML block scalars need.
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Append the decoded bytes to ret; unchanged on failure. Error: ERR_INVALID "BadBase64", which
 * names the byte's position and never its value: the text may be secret.
 */
int base64_decode(const char *text, size_t len, struct strbuf *ret, struct err *err);

/* Append the text, padded, without line breaks. */
void base64_encode(const void *data, size_t len, struct strbuf *ret);

// SPDX-License-Identifier: Apache-2.0
/* Bytes written as hexadecimal digits; blanks are for the reader. */
#pragma once

#include <assert.h>
#include <stdio.h>

#include "lib/base/str.h"

static inline struct strbuf from_hex(const char *text)
{
	struct strbuf bytes = {0};

	while (*text) {
		unsigned int byte = 0;

		if (*text == ' ') {
			text++;
			continue;
		}
		if (sscanf(text, "%2x", &byte) != 1 || !text[1])
			assert(!"pairs of hexadecimal digits");
		strbuf_addc(&bytes, (char)byte);
		text += 2;
	}
	return bytes;
}

static inline char *to_hex(const void *data, size_t len)
{
	struct strbuf text = {0};

	for (size_t i = 0; i < len; i++)
		strbuf_addf(&text, "%02x", ((const uint8_t *)data)[i]);
	return strbuf_take(&text);
}

// SPDX-License-Identifier: Apache-2.0
/* Inputs of several JSON documents with NUL bytes between them. */
#pragma once

#include <string.h>

#include "lib/json/json.h"

/* Take the next document. Returns new; NULL when there is none, or it is not JSON. */
static inline json_t *next_document(const uint8_t **data, size_t *size)
{
	const uint8_t *nul = *size ? memchr(*data, '\0', *size) : NULL;
	size_t len = nul ? (size_t)(nul - *data) : *size;
	json_t *value = json_parse((const char *)*data, len, NULL);

	*data += len + (nul != NULL);
	*size -= len + (nul != NULL);
	return value;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Columns for people: as wide as their longest entry, two blanks between them, no line longer than
 * it must be.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/str.h"

struct column {
	const char *title;  /* "POOL" */
	const char *member; /* of each row; a string or an integer; absent shows as "-" */
};

/* Append a line of titles and one for each row. */
void table_print(struct strbuf *out, const struct column *columns, size_t n, const json_t *rows);

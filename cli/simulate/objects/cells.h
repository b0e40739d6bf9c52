// SPDX-License-Identifier: Apache-2.0
/*
 * Columns and cells of built-in kinds. A part of table.c, apart because it is all kinds and fields.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct cells_column {
	const char *name, *type, *format;
	int priority; /* 1: with -o wide only */
};

struct cells_kind {
	const char *group, *kind;
	struct cells_column columns[12]; /* ends with a name of NULL */
	/* Appends the cells after the name. */
	void (*add)(const json_t *object, int64_t now_us, json_t *cells);
};

/* NULL for a kind that is not in the table. */
const struct cells_kind *cells_find(const char *group, const char *kind);

/* The age of an RFC 3339 time; "<unknown>" without one, "<invalid>" for other text. Returns new. */
json_t *cells_age(const json_t *time, int64_t now_us);

// SPDX-License-Identifier: Apache-2.0
/*
 * Types and bounds of the fields of a block, as a table: what the CRD's schema says, for a server
 * or an object that never saw that schema.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "reconcilers/core/problems.h"

struct field {
	const char *name;
	enum field_type {
		FIELD_TYPE_TEXT,
		FIELD_TYPE_INT,
		FIELD_TYPE_BOOL,
		FIELD_TYPE_TEXTS, /* an array of strings */
		FIELD_TYPE_OBJECT,
		FIELD_TYPE_ARRAY,
	} type;
	int64_t min, max;   /* of an integer */
	const char *one_of; /* of a text: the words allowed, with blanks between; NULL: any */
};

#define FIELD_TEXT(name_)                                                                          \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_TEXT                                           \
	}
#define FIELD_WORD(name_, words_)                                                                  \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_TEXT, .one_of = (words_)                       \
	}
#define FIELD_INT(name_, min_, max_)                                                               \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_INT, .min = (min_), .max = (max_)              \
	}
#define FIELD_BOOL(name_)                                                                          \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_BOOL                                           \
	}
#define FIELD_TEXTS(name_)                                                                         \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_TEXTS                                          \
	}
#define FIELD_OBJECT(name_)                                                                        \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_OBJECT                                         \
	}
#define FIELD_ARRAY(name_)                                                                         \
	{                                                                                          \
		.name = (name_), .type = FIELD_TYPE_ARRAY                                          \
	}
#define FIELDS_END                                                                                 \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/*
 * Check the fields that are given; the table ends with a NULL name. `where` is the block's path.
 * False when something was wrong, which is then in problems ("BadField").
 */
bool fields_check(const json_t *block, const char *where, const struct field *fields,
		  struct problems *problems);

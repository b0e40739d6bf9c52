/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of API servers whose size users choose. 1.5 MiB in etcd can be 390,000 empty objects, which
 * take 88 MB as values. What is read here takes some 4 MB for each object, whatever it says.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

enum {
	/* Values of one object. */
	PARSE_WITHIN_MAX = 16384,
	/* Of all objects of a list, in objects of that size. */
	PARSE_WITHIN_OBJECTS = 32,
};

/*
 * As json_parse() of an object, or of a list: an object with objects in "items". In the place of an
 * array or object that is too large stands how many elements it has, a number: of spec.a or what is
 * in it, not of spec itself.
 */
json_t *json_parse_within(const char *text, size_t len, bool is_list, struct err *err);

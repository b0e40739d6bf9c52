// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of an API server's objects share: JSON from text with ' for ", and comparison as
 * text.
 */
#pragma once

#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"

/* Parse JSON in which ' stands for ". Returns new. */
static inline json_t *parse(const char *text)
{
	auto_free char *copy = str_dup(text);
	struct err err = {0};
	json_t *value = NULL;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	value = json_parse(copy, strlen(copy), &err);
	assert_string_equal(err.text, "");
	assert_non_null(value);
	return value;
}

/* Two values are the same; the failure shows both. */
static inline void assert_same(const json_t *is, const json_t *want)
{
	auto_free char *is_text = is ? json_text(is) : str_dup("absent");
	auto_free char *want_text = want ? json_text(want) : str_dup("absent");

	assert_string_equal(is_text, want_text);
}

static inline void assert_json(const json_t *is, const char *want)
{
	json_auto_t *value = parse(want);

	assert_same(is, value);
}

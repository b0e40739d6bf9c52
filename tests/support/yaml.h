// SPDX-License-Identifier: Apache-2.0
/* Documents of tests, as text. */
#pragma once

#include <string.h>

#include "lib/json/yaml.h"

/*
 * One document, new; NULL for NULL. Fails the test when it cannot be read; fail_msg() is cmocka's.
 */
static inline json_t *yaml(const char *text)
{
	struct err err = {0};
	json_t *value = text ? yaml_parse(text, strlen(text), &err) : NULL;

	if (text && !value)
		fail_msg("%s: %s", text, err.text);
	return value;
}

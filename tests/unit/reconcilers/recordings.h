// SPDX-License-Identifier: Apache-2.0
/* Recordings for a unit test, which fails without them. Include it after cmocka.h. */
#pragma once

#include "tests/support/conformance.h"

static inline json_t *recordings_need(const char *name)
{
	struct err err = {0};
	json_t *value = conformance_read(name, &err);

	if (!value)
		fail_msg("%s", err.text);
	return value;
}

static inline json_t *recordings_differences(const char *name)
{
	struct err err = {0};
	json_t *differences = conformance_differences(name, &err);

	if (!differences)
		fail_msg("%s", err.text);
	return differences;
}

// SPDX-License-Identifier: Apache-2.0
/* The part of JSONPath that printer columns use: table.h says which. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* 0, or -1 with ERR_INVALID "Invalid": syntax, longer than 1 KiB. */
int jsonpath_check(const char *path, struct err *err);

/* The first value that the path finds; borrowed. NULL: none, or the path is malformed. */
const json_t *jsonpath_first(const json_t *value, const char *path);

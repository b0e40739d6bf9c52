// SPDX-License-Identifier: Apache-2.0
/*
 * Bounds on foreign input. Parsing bounds depth (JSON_MAX_DEPTH), but a patch can nest deeper than
 * either of its inputs, and a schema can be larger than any object.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

enum {
	/* Values in one object, all members and items counted. */
	OBJECT_MAX_VALUES = 100000,
	/* Operations of one JSON patch; kube-apiserver has the same bound. */
	PATCH_MAX_OPERATIONS = 10000,
	/* Causes in one answer; the rest are dropped. */
	CAUSES_MAX = 100,
	/* Managers of updates in metadata.managedFields; the oldest become "ancient-changes". */
	UPDATE_MANAGERS_MAX = 10,
	/* Requirements in one label or field selector. */
	SELECTOR_MAX = 256,
};

/*
 * Check a value against JSON_MAX_DEPTH and OBJECT_MAX_VALUES; stops looking where one is exceeded.
 * Returns 0, or -1 with
 *
 *   ERR_INVALID "RequestEntityTooLarge"  names the bound.
 */
int object_check_size(const json_t *value, struct err *err);

/*
 * The same for a value that becomes a part of an object: it lies `depth` levels down, and *count
 * values are there already. Adds to *count.
 */
int object_count(const json_t *value, size_t depth, size_t *count, struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * Bounds on foreign values. Everything that walks a value may recurse once it has been here: after
 * a patch or an apply, which can build more than a parser lets through.
 */
#include "cli/simulate/objects/limits.h"

#include "lib/json/json.h"

int object_count(const json_t *value, size_t depth, size_t *count, struct err *err)
{
	const char *key = NULL;
	json_t *item = NULL;
	size_t i = 0;

	if (++*count > OBJECT_MAX_VALUES)
		return err_set(err, ERR_INVALID, "RequestEntityTooLarge",
			       "the object has more than %d values", OBJECT_MAX_VALUES);
	if (!json_is_object(value) && !json_is_array(value))
		return 0;
	if (depth >= JSON_MAX_DEPTH)
		return err_set(err, ERR_INVALID, "RequestEntityTooLarge",
			       "the object is nested deeper than %d", JSON_MAX_DEPTH);
	json_each (value, key, item)
		if (object_count(item, depth + 1, count, err))
			return -1;
	json_array_foreach (value, i, item)
		if (object_count(item, depth + 1, count, err))
			return -1;
	return 0;
}

int object_check_size(const json_t *value, struct err *err)
{
	size_t count = 0;

	return object_count(value, 0, &count, err);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Objects keep the order of insertion. What has to give equal bytes for equal objects, such as the
 * order of writes, asks for the keys here first.
 */
#include "lib/json/keys.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

const char **json_sorted_keys(const json_t *object, size_t *ret_n)
{
	const char **keys = mem_calloc(json_object_size(object) + 1, sizeof(*keys));
	const char *key;
	json_t *value;
	size_t n = 0;

	json_each (object, key, value)
		keys[n++] = key;
	qsort(keys, n, sizeof(*keys), str_compare);
	*ret_n = n;
	return keys;
}

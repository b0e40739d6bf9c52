// SPDX-License-Identifier: Apache-2.0
/*
 * The one door through which names and values of drivers' counters come in: rdma.c, ethtool.c and
 * counters.c add here, so that what a driver calls a counter is checked in one place.
 */
#include "nodeagent/host/counted.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static bool is_counter_name(const char *name)
{
	size_t len = strnlen(name, COUNTED_NAME_SIZE);

	if (len == 0 || len == COUNTED_NAME_SIZE || !isalpha((unsigned char)name[0]))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_-. ", *name))
			return false;
	return true;
}

void counted_add(json_t *counters, const char *name, uint64_t value)
{
	const json_t *before;
	uint64_t sum;

	assert(json_is_object(counters));
	if (!is_counter_name(name))
		return;
	before = json_object_get(counters, name);
	if (!before && json_object_size(counters) == COUNTED_MAX)
		return;
	sum = (uint64_t)json_integer_value(before);
	if (value > (uint64_t)INT64_MAX - sum)
		return;
	sum += value;
	(void)json_object_set_new(counters, name, json_integer((json_int_t)sum));
}

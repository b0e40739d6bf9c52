// SPDX-License-Identifier: Apache-2.0
/* What a text will cost, before anything is built from it. */
#include "lib/json/json.h"

#include <assert.h>

size_t json_weight(const char *text, size_t len, size_t max)
{
	bool in_string = false;
	size_t weight = 0;

	assert(text || len == 0);
	for (size_t i = 0; i < len && weight <= max; i++) {
		char c = text[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string)
			weight += c == ',' || c == '[' || c == ']' || c == '{' || c == '}';
	}
	return weight;
}

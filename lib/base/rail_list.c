// SPDX-License-Identifier: Apache-2.0
/* Lists of rails in labels of pods: the webhook, the agent and the command line read the same. */
#include "lib/base/rail_list.h"

#include "lib/base/str.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool rail_list_is(const char *text)
{
	return text && is_digit(*text);
}

static bool read_rail(const char **at, unsigned int *ret)
{
	if (!is_digit(**at))
		return false;
	for (*ret = 0; is_digit(**at); (*at)++) {
		*ret = *ret * 10 + (unsigned int)(**at - '0');
		if (*ret >= RAIL_LIST_MAX)
			return false;
	}
	return true;
}

uint32_t rail_list_parse(const char *text)
{
	unsigned int first, last;
	uint32_t rails = 0;

	for (;; text++) {
		if (!read_rail(&text, &first))
			return 0;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_rail(&text, &last) || last < first)
				return 0;
		}
		for (; first <= last; first++)
			rails |= UINT32_C(1) << first;
		if (*text != '.')
			return *text ? 0 : rails;
	}
}

char *rail_list_text(uint32_t rails)
{
	struct strbuf text = {0};

	for (unsigned int i = 0; i < RAIL_LIST_MAX; i++) {
		unsigned int last = i;

		if (!(rails >> i & 1))
			continue;
		while (last + 1 < RAIL_LIST_MAX && (rails >> (last + 1) & 1))
			last++;
		strbuf_addf(&text, "%s%u", text.len > 0 ? "." : "", i);
		if (last > i)
			strbuf_addf(&text, "-%u", last);
		i = last;
	}
	return text.len > 0 ? strbuf_take(&text) : str_dup("none");
}

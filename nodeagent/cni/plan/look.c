// SPDX-License-Identifier: Apache-2.0
/*
 * Linear searches in lists of tens of entries: planners ask them of a snapshot that netns_observe.c
 * made, so that each question has the same answer within one plan.
 */
#include "nodeagent/cni/plan/look.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

const json_t *look_link(const json_t *look, const char *name)
{
	return json_find(json_at(look, "links"), "name", name);
}

const json_t *look_link_by_index(const json_t *look, int64_t index)
{
	size_t i;
	json_t *link;

	json_array_foreach (json_at(look, "links"), i, link)
		if (look_number(link, "index") == index)
			return link;
	return NULL;
}

unsigned int look_family_bit(int64_t family)
{
	return family == 6 ? LOOK_V6 : LOOK_V4;
}

unsigned int look_family_of(const char *address)
{
	return strchr(address, ':') ? LOOK_V6 : LOOK_V4;
}

void look_addresses(const json_t *look, const char *dev, unsigned int families, json_t *ret)
{
	size_t i;
	json_t *item;

	assert((families & ~(unsigned int)(LOOK_V4 | LOOK_V6)) == 0);
	json_array_foreach (json_at(look, "addresses"), i, item) {
		struct addr address;

		if (!str_eq(json_str_at(item, "dev"), dev) ||
		    !addr_parse_prefix(json_str_at(item, "address"), &address) ||
		    addr_is_link_local(&address) || addr_is_multicast(&address) ||
		    !(families & look_family_bit(address.family)))
			continue;
		json_array_append(ret, json_at(item, "address"));
	}
}

char *look_first_address(const json_t *look, const char *dev, int family)
{
	json_auto_t *list = json_array();
	char text[ADDR_TEXT_SIZE];
	struct addr address;

	assert(family == 4 || family == 6);
	look_addresses(look, dev, look_family_bit(family), list);
	if (!addr_parse_prefix(json_string_value(json_array_get(list, 0)), &address))
		return NULL;
	addr_print(&address, text);
	return str_dup(text);
}

void look_leave_out(json_t *look, const json_t *names)
{
	static const struct {
		const char *list, *key;
	} parts[] = {
		{"links", "name"}, {"addresses", "dev"}, {"routes", "dev"}, {"neighbours", "dev"}};

	for (size_t i = 0; names && i < ARRAY_LEN(parts); i++) {
		json_t *list = json_at(look, parts[i].list);

		for (size_t k = json_array_size(list); k-- > 0;) {
			const char *dev = json_str_at(json_array_get(list, k), parts[i].key);

			if (dev && json_list_has(names, dev))
				json_array_remove(list, k);
		}
	}
}

int64_t look_number(const json_t *object, const char *key)
{
	return json_integer_value(json_at(object, key));
}

// SPDX-License-Identifier: Apache-2.0
/* Differences: each place once, items of lists by what they are. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/differences.h"

static json_t *parse(const char *text)
{
	return *text ? json_parse(text, strlen(text), NULL) : NULL;
}

/* "path: before -> after; " */
static char *text_of(const json_t *list)
{
	auto_strbuf struct strbuf out = {0};
	json_t *line;
	size_t i;

	json_array_foreach (list, i, line)
		strbuf_addf(&out, "%s: %s -> %s; ", json_str_at(line, "path"),
			    json_str_or(json_at(line, "before"), "-"),
			    json_str_or(json_at(line, "after"), "-"));
	return strbuf_take(&out);
}

TEST(each_place_that_differs_is_there_once)
{
	static const struct {
		const char *before, *after, *want;
	} cases[] = {
		{"", "", ""},
		{"{\"a\":1}", "{\"a\":1}", ""},
		{"{\"a\":null}", "{}", ""},
		{"{\"a\":1,\"b\":{\"c\":\"x\"}}", "{\"a\":2,\"b\":{\"c\":\"y\"}}",
		 "a: 1 -> 2; b.c: \"x\" -> \"y\"; "},
		{"", "{\"a\":{\"b\":1},\"c\":{}}", "a.b: - -> 1; c: - -> {}; "},
		{"{\"a\":{\"b\":1}}", "{}", "a.b: 1 -> -; "},
		{"{\"a\":[1,2]}", "{\"a\":[1,3,4]}", "a[1]: 2 -> 3; a[2]: - -> 4; "},
		{"{\"a\":[1]}", "{\"a\":{\"b\":1}}", "a: [1] -> {\"b\":1}; "},
		{"{\"a\":[]}", "{\"a\":{}}", "a: [] -> {}; "},
		{"{\"l\":[{\"type\":\"A\",\"s\":1},{\"type\":\"B\",\"s\":1}]}",
		 "{\"l\":[{\"type\":\"B\",\"s\":2},{\"type\":\"C\"}]}",
		 "l[A].type: \"A\" -> -; l[A].s: 1 -> -; l[B].s: 1 -> 2; "
		 "l[C].type: - -> \"C\"; "},
		{"{\"l\":[{\"name\":\"a\",\"pciAddress\":\"1\"},{\"name\":\"a\",\"pciAddress\":"
		 "\"2\"}]}",
		 "{\"l\":[{\"name\":\"b\",\"pciAddress\":\"2\"}]}",
		 "l[1].name: \"a\" -> -; l[1].pciAddress: \"1\" -> -; l[2].name: \"a\" -> \"b\"; "},
		/* Two of one name are told apart by their place. */
		{"{\"l\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "{\"l\":[{\"name\":\"a\"}]}",
		 "l[1].name: \"a\" -> -; "},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *before = parse(cases[i].before), *after = parse(cases[i].after);
		json_auto_t *list = differences(before, after);
		auto_free char *text = text_of(list);

		assert_string_equal(text, cases[i].want);
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Merge patches: the table of RFC 7386, and that a diff carried out gives what was wanted. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"

static json_t *parse(const char *text)
{
	json_t *value = json_parse(text, strlen(text), NULL);

	assert_non_null(value);
	return value;
}

/* Appendix A, those with an object as target and as patch. */
TEST(patches_apply_as_the_rfc_says)
{
	static const struct {
		const char *target, *patch, *want;
	} cases[] = {
		{"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
		{"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
		{"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
		{"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
		{"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
		{"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
		{"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
		 "{\"a\":{\"b\":\"d\"}}"},
		{"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
		{"{\"e\":null}", "{\"a\":1}", "{\"a\":1,\"e\":null}"},
		{"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
		{"{\"a\":1}", "{\"a\":{\"b\":null}}", "{\"a\":{}}"},
		{"{}", "{\"a\":[null,{\"b\":null}]}", "{\"a\":[null,{\"b\":null}]}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *target = parse(cases[i].target);
		json_auto_t *patch = parse(cases[i].patch);
		auto_free char *before = json_text(patch);
		auto_free char *text = NULL;
		auto_free char *after = NULL;

		json_merge_patch(target, patch);
		text = json_text(target);
		after = json_text(patch);
		assert_string_equal(text, cases[i].want);
		assert_string_equal(after, before);
	}
}

TEST(a_patched_object_shares_nothing_with_the_patch)
{
	json_auto_t *target = json_object();
	json_auto_t *patch = parse("{\"a\":[1],\"b\":{\"c\":[2]}}");
	auto_free char *text = NULL;

	json_merge_patch(target, patch);
	(void)json_array_clear(json_object_get(patch, "a"));
	(void)json_object_clear(json_object_get(patch, "b"));
	text = json_text(target);
	assert_string_equal(text, "{\"a\":[1],\"b\":{\"c\":[2]}}");
}

TEST(a_diff_is_the_smallest_patch)
{
	static const struct {
		const char *from, *to, *want; /* want NULL: nothing to change */
	} cases[] = {
		{"{}", "{}", NULL},
		{NULL, "{}", NULL},
		{NULL, "{\"a\":{\"b\":null}}", "{\"a\":{}}"},
		{"{\"a\":1}", "{\"a\":1}", NULL},
		{"{\"a\":1}", "{\"a\":1.0}", "{\"a\":1.0}"},
		{"{\"a\":1,\"b\":2}", "{\"b\":3}", "{\"a\":null,\"b\":3}"},
		{"{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"x\":1,\"y\":3}}", "{\"a\":{\"y\":3}}"},
		{"{\"a\":{\"x\":1}}", "{\"a\":{}}", "{\"a\":{\"x\":null}}"},
		{"{\"a\":{}}", "{\"a\":{}}", NULL},
		{"{\"a\":1}", "{\"a\":{}}", "{\"a\":{}}"},
		{"{}", "{\"a\":{}}", "{\"a\":{}}"},
		{"{\"a\":[1,2]}", "{\"a\":[1]}", "{\"a\":[1]}"},
		{"{\"a\":[{\"b\":null}]}", "{\"a\":[{}]}", "{\"a\":[{}]}"},
		{"{\"a\":null}", "{}", NULL},
		{"{}", "{\"a\":null}", NULL},
		{"{\"a\":null}", "{\"a\":1}", "{\"a\":1}"},
		{"{\"a\":1}", "{\"a\":null}", "{\"a\":null}"},
		{"{\"a\":null}", "{\"a\":{\"b\":null}}", "{\"a\":{}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *from = cases[i].from ? parse(cases[i].from) : NULL;
		json_auto_t *to = parse(cases[i].to);
		json_auto_t *patch = json_merge_diff(from, to);
		json_auto_t *again = NULL;
		auto_free char *text = NULL;

		if (from)
			assert_int_equal(json_merge_same(from, to), !cases[i].want);
		if (!cases[i].want) {
			assert_null(patch);
			continue;
		}
		assert_non_null(patch);
		text = json_text(patch);
		assert_string_equal(text, cases[i].want);
		assert_true(json_merge_changes(from, patch));
		if (!from)
			continue;
		json_merge_patch(from, patch);
		assert_false(json_merge_changes(from, patch));
		again = json_merge_diff(from, to);
		assert_null(again);
	}
}

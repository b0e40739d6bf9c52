// SPDX-License-Identifier: Apache-2.0
/* YAML as kubectl reads it, and what we refuse. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "lib/json/yaml.h"

/* The document as canonical JSON text. */
static void reads(const char *yaml, const char *want)
{
	struct err err = {0};
	json_auto_t *value = yaml_parse(yaml, strlen(yaml), &err);
	auto_free char *text = NULL;

	assert_string_equal(err.text, "");
	assert_non_null(value);
	text = json_text(value);
	assert_string_equal(text, want);
}

static void refuses(const char *yaml, size_t len, const char *want)
{
	struct err err = {0};

	assert_null(yaml_parse_all(yaml, len, &err));
	assert_int_equal(err.class, ERR_INVALID);
	assert_string_equal(err.reason, "BadYaml");
	assert_string_equal(err.text, want);
}

/*
 * Each compared with what `kubectl label --local -f … -o json` prints for a field of that value
 * (1.20 and 1.32).
 */
TEST(plain_scalars_have_the_types_that_kubectl_sees)
{
	static const struct {
		const char *yaml, *want;
	} cases[] = {
		{"true", "true"},
		{"True", "true"},
		{"TRUE", "true"},
		{"tRUE", "\"tRUE\""},
		{"yes", "true"},
		{"No", "false"},
		{"on", "true"},
		{"OFF", "false"},
		{"y", "true"},
		{"N", "false"},
		{"\"yes\"", "\"yes\""},
		{"'1'", "\"1\""},
		{"0", "0"},
		{"-0", "0"},
		{"+12", "12"},
		{"-12", "-12"},
		{"1_000", "1000"},
		{"0x1F", "31"},
		{"-0x1F", "-31"},
		{"0o17", "15"},
		{"0b101", "5"},
		{"017", "15"},
		{"00", "0"},
		{"08", "8"}, /* no octal digit: a float, then */
		{"0x", "\"0x\""},
		{"0b12", "\"0b12\""},
		{"15b3", "\"15b3\""},
		{"1017", "1017"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"1.5", "1.5"},
		{"-.5", "-0.5"},
		{".5", "0.5"},
		{".5_0", "0.5"},
		{".5_", "\".5_\""},
		{"5.", "5"},
		{"1e3", "1000"},
		{"1E-1", "0.10000000000000001"},
		{"2.0", "2"},
		{"-0.0", "-0.0"},
		{"1e", "\"1e\""},
		{"1e999", "\"1e999\""},
		{".", "\".\""},
		{"-", "[null]"},
		{"+", "\"+\""},
		{"_1", "\"_1\""},
		{"1.2.3", "\"1.2.3\""},
		{"172.16.0.0/16", "\"172.16.0.0/16\""},
		{"0000:af:00.0", "\"0000:af:00.0\""},
		{"190:20:30", "\"190:20:30\""},
		{"2026-01-31", "\"2026-01-31\""},
		{"2026-01-31T10:00:00Z", "\"2026-01-31T10:00:00Z\""},
		{"nan", "\"nan\""},
		{"ä😀", "\"ä😀\""},
		{"|\n  a\n  b", "\"a\\nb\""},
		{">\n  a\n  b\n", "\"a b\\n\""},
		{"\"\\u00e4\\t\"", "\"ä\\t\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		reads(cases[i].yaml, cases[i].want);
	reads("[~, null, Null, NULL, '', ]", "[null,null,null,null,\"\"]");
}

TEST(tags_say_the_type)
{
	reads("!!str 5", "\"5\"");
	reads("! 5", "\"5\"");
	reads("!!int \"5\"", "5");
	reads("!!float 5", "5");
	reads("!!float '1.5'", "1.5");
	reads("!!bool \"yes\"", "true");
	reads("- !!null ''", "[null]");
	reads("!!timestamp 2026-01-31", "\"2026-01-31\"");
	reads("!!map {a: !!seq []}", "{\"a\":[]}");
	refuses("!!int x", 7, "line 1, column 1: \"x\" does not fit its tag !!int");
	refuses("!!bool 1", 8, "line 1, column 1: \"1\" does not fit its tag !!bool");
	refuses("- a\n- !!binary aGk=", 19,
		"line 2, column 3: tag tag:yaml.org,2002:binary is not supported for a scalar");
	refuses("!x 1", 4, "line 1, column 1: tag !x is not supported for a scalar");
	refuses("!!set {a}", 9,
		"line 1, column 1: tag tag:yaml.org,2002:set is not supported for an object");
}

TEST(collections_nest_and_keys_become_strings)
{
	reads("a:\n- b: 1\n  c: {d: [2, 3]}\n- x\ne:\n",
	      "{\"a\":[{\"b\":1,\"c\":{\"d\":[2,3]}},\"x\"],"
	      "\"e\":null}");
	reads("1: a\n0x10: b\non: c\n'<<': d\n", "{\"1\":\"a\",\"16\":\"b\",\"<<\":\"d\","
						 "\"true\":\"c\"}");
}

TEST(json_is_read_as_json)
{
	reads(" {\"a\": 1.0,\n\t\"b\": \"\\ud83d\\ude00\\/\"}\n", "{\"a\":1.0,\"b\":\"😀/\"}");
	reads("[1.0]", "[1.0]");
	/* Looks like it, but is not. */
	reads("{a: 1.0}", "{\"a\":1}");
	reads("[a, b] # c", "[\"a\",\"b\"]");
}

TEST(all_documents_are_returned_without_the_empty_ones)
{
	const char *text = "# only a comment\n---\n---\na: 1\n---\nnull\n---\n# x\n---\n- b\n...\n";
	json_auto_t *all = yaml_parse_all(text, strlen(text), NULL);
	json_auto_t *none = yaml_parse_all("", 0, NULL);
	auto_free char *got = json_text(all);
	struct err err = {0};

	assert_string_equal(got, "[{\"a\":1},[\"b\"]]");
	assert_int_equal(json_array_size(none), 0);
	assert_true(json_is_array(none));
	assert_null(yaml_parse(text, strlen(text), &err));
	assert_string_equal(err.text, "there are 2 documents, there must be exactly one");
	assert_null(yaml_parse("", 0, &err));
	assert_string_equal(err.text, "there are 0 documents, there must be exactly one");
}

TEST(aliases_are_copies)
{
	const char *text = "a: &x {b: [1]}\nc: *x\nd: &x 5\ne: *x\n";
	json_auto_t *value = yaml_parse(text, strlen(text), NULL);
	auto_free char *got = NULL;

	(void)json_array_clear(json_at(value, "a", "b"));
	got = json_text(value);
	assert_string_equal(got, "{\"a\":{\"b\":[]},\"c\":{\"b\":[1]},\"d\":5,\"e\":5}");
	reads("- &k name\n- *k : 1\n", "[\"name\",{\"name\":1}]");
}

TEST(aliases_need_a_complete_value_of_the_same_document)
{
	refuses("*x", 2, "line 1, column 1: alias *x: no complete value has this anchor before");
	refuses("a: &x [*x]", 10,
		"line 1, column 8: alias *x: no complete value has this anchor before");
	refuses("- &x 1\n- &x [*x]", 16,
		"line 2, column 7: alias *x: no complete value has this anchor before");
	refuses("- &x 1\n---\n- *x", 15,
		"line 3, column 3: alias *x: no complete value has this anchor before");
}

TEST(what_json_cannot_say_is_refused_with_its_place)
{
	static const struct {
		const char *yaml, *want;
	} cases[] = {
		{"a: 1\nb: 2\na: 3", "line 3, column 1: duplicate key \"a\""},
		{"{1: a, '1': b}", "line 1, column 8: duplicate key \"1\""},
		{"a: .inf", "line 1, column 4: .inf is not a number that JSON has"},
		{"a: .NaN", "line 1, column 4: .NaN is not a number that JSON has"},
		{"9223372036854775808",
		 "line 1, column 1: integer 9223372036854775808 does not fit "
		 "into 64 bits; if it is text, quote it"},
		{"-9223372036854775809", "line 1, column 1: integer -9223372036854775809 does not "
					 "fit into 64 bits; if it is text, quote it"},
		{"~: 1", "line 1, column 1: null cannot be a key; if it is text, quote it"},
		{"1.5: 1", "line 1, column 1: a number with a fraction cannot be a key; if it is "
			   "text, quote it"},
		{"{[a]: 1}", "line 1, column 2: an array cannot be a key"},
		{"? {a: 1}\n: 2", "line 1, column 3: an object cannot be a key"},
		{"- &x [a]\n- *x : 1", "line 2, column 3: an array cannot be a key; if it is text, "
				       "quote it"},
		{"a: &x {b: 1}\nc:\n  <<: *x\n",
		 "line 3, column 3: merge keys (<<) are not supported, write the fields out"},
		{"\"a\\0b\"", "line 1, column 1: NUL characters are not supported"},
		{"a: b: c", "line 1, column 5: mapping values are not allowed in this context"},
		{"a: [1", "line 2, column 1: while parsing a flow sequence: did not find expected "
			  "',' or ']'"},
		{"a: \xff", "byte 4: invalid leading UTF-8 octet"},
		{"\"\\ud800\"", NULL},
		{"%YAML 9.9\n---\na", NULL},
		{"\t- a", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		if (cases[i].want)
			refuses(cases[i].yaml, strlen(cases[i].yaml), cases[i].want);
		assert_null(yaml_parse_all(cases[i].yaml, strlen(cases[i].yaml), &err));
		assert_string_equal(err.reason, "BadYaml");
	}
	refuses("a\0b", 3, "byte 2: control characters are not allowed");
}

static char *nested(size_t depth)
{
	struct strbuf b = {0};

	for (size_t i = 0; i < depth; i++)
		strbuf_addc(&b, '[');
	strbuf_addc(&b, 'x');
	for (size_t i = 0; i < depth; i++)
		strbuf_addc(&b, ']');
	return strbuf_take(&b);
}

TEST(nesting_ends_at_the_limit)
{
	auto_free char *most = nested(JSON_MAX_DEPTH);
	auto_free char *more = nested(JSON_MAX_DEPTH + 1);
	auto_free char *quoted =
		str_printf("%.*s\"x\"%s", JSON_MAX_DEPTH, most, most + JSON_MAX_DEPTH + 1);

	reads(most, quoted);
	refuses(more, strlen(more), "line 1, column 65: nested deeper than 64 levels");
}

TEST(aliases_do_not_get_around_the_limit_of_nesting)
{
	auto_strbuf struct strbuf b = {0};

	strbuf_adds(&b, "- &a0 []\n");
	for (int i = 1; i < 64; i++)
		strbuf_addf(&b, "- &a%d [*a%d]\n", i, i - 1);
	refuses(b.data, b.len, "line 64, column 9: nested deeper than 64 levels");
}

TEST(a_small_text_cannot_grow_without_end)
{
	auto_strbuf struct strbuf b = {0};

	strbuf_adds(&b, "- &a0 x\n");
	for (int i = 1; i < 60; i++)
		strbuf_addf(&b, "- &a%d [*a%d, *a%d]\n", i, i - 1, i - 1);
	refuses(b.data, b.len, "line 19, column 15: more than 1000000 values, aliases included");
}

TEST(copies_of_a_long_string_count_by_its_length)
{
	auto_strbuf struct strbuf b = {0};
	struct err err = {0};

	strbuf_adds(&b, "- &a \"");
	for (int i = 0; i < 320000; i++)
		strbuf_addc(&b, 'x');
	strbuf_adds(&b, "\"\n");
	for (int i = 0; i < 110; i++)
		strbuf_adds(&b, "- *a\n");
	assert_null(yaml_parse_all(b.data, b.len, &err));
	assert_non_null(strstr(err.text, "more than 1000000 values, aliases included"));
}

TEST(what_is_written_is_easy_to_read)
{
	static const char json[] =
		"{\"kind\": \"Ledger\", \"items\": [{\"pod\": \"ml/w-0\", \"vfs\": 2,"
		"\"in\": {\"a\": true}}, [1, [2]], \"x\"], \"none\": [], \"o\": {}}";
	static const char yaml[] = "kind: Ledger\n"
				   "items:\n"
				   "- pod: ml/w-0\n"
				   "  vfs: 2\n"
				   "  in:\n"
				   "    a: true\n"
				   "- - 1\n"
				   "  - - 2\n"
				   "- x\n"
				   "none: []\n"
				   "o: {}\n";
	json_auto_t *value = json_parse(json, strlen(json), NULL);
	auto_strbuf struct strbuf out = {0};

	yaml_write(value, &out);
	assert_string_equal(strbuf_str(&out), yaml);
}

TEST(strings_are_written_so_that_nothing_else_is_read)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"ml/w-0", "ml/w-0\n"},
		{"has its addresses", "has its addresses\n"},
		{"yes", "\"yes\"\n"},
		{"null", "\"null\"\n"},
		{"", "\"\"\n"},
		{"10.6.0.1", "\"10.6.0.1\"\n"},
		{"2026-11-23", "\"2026-11-23\"\n"},
		{"a: b", "\"a: b\"\n"},
		{"a #b", "\"a #b\"\n"},
		{"ends with:", "\"ends with:\"\n"},
		{"- a", "\"- a\"\n"},
		{"two\nlines", "\"two\\nlines\"\n"},
		{"\"\\", "\"\\\"\\\\\"\n"},
		{"caf\xc3\xa9", "\"caf\xc3\xa9\"\n"},
		{"\x1b[31m\x7f\xc2\x80\xe2\x80\xa8",
		 "\"\\U0000001B[31m\\U0000007F\\U00000080\\U00002028\"\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *value = json_string(cases[i].text);
		auto_strbuf struct strbuf out = {0};
		json_auto_t *again = NULL;

		yaml_write(value, &out);
		assert_string_equal(strbuf_str(&out), cases[i].want);
		again = yaml_parse(strbuf_str(&out), out.len, NULL);
		assert_true(json_same(value, again));
	}
}

static int init(void **state)
{
	json_init();
	return 0;
}

/* As `kubectl create --dry-run=client -o json` prints it. */
TEST(as_kubectl_duplicates_and_merge_keys_are_taken)
{
	static const struct {
		const char *yaml, *want, *warning;
	} cases[] = {
		{"a: 1\nb: 2\na: 3", "[{\"a\":3,\"b\":2}]",
		 "line 3, column 1: duplicate key \"a\", the last one counts"},
		{"{\"a\": 1, \"a\": {}}", "[{\"a\":{}}]",
		 "line 1, column 10: duplicate key \"a\", the last one counts"},
		{"x: {a: 1, a: 2}", "[{\"x\":{\"a\":2}}]",
		 "line 1, column 11: duplicate key \"a\", the last one counts"},
		{"a: &x {b: 1, d: 2}\nc:\n  <<: *x\n  d: 3",
		 "[{\"a\":{\"b\":1,\"d\":2},\"c\":{\"b\":1,\"d\":3}}]", NULL},
		{"a: &x {d: 2}\nc:\n  d: 3\n  <<: *x", "[{\"a\":{\"d\":2},\"c\":{\"d\":2}}]", NULL},
		{"a: &x {b: 1}\ne: &y {b: 2, f: 3}\nc: {<<: [*x, *y]}",
		 "[{\"a\":{\"b\":1},\"c\":{\"b\":1,\"f\":3},\"e\":{\"b\":2,\"f\":3}}]", NULL},
		{"c: {<<: {b: {c: [1]}}, d: 1}", "[{\"c\":{\"b\":{\"c\":[1]},\"d\":1}}]", NULL},
		{"- &x {b: 1}\n- &y {<<: *x, c: 2}\n- {<<: *y}",
		 "[[{\"b\":1},{\"b\":1,\"c\":2},{\"b\":1,\"c\":2}]]", NULL},
		{"c: {!!merge <<: {b: 1}}", "[{\"c\":{\"b\":1}}]", NULL},
		{"'<<': d\n", "[{\"<<\":\"d\"}]", NULL},
		{"<<: {}\na: 1", "[{\"a\":1}]", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *warnings = json_array(), *got = NULL;
		struct err err = {0};
		auto_free char *text = NULL;

		got = yaml_parse_as_kubectl(cases[i].yaml, strlen(cases[i].yaml), warnings, &err);
		text = got ? json_text(got) : str_dup(err.text);
		if (!str_eq(text, cases[i].want) ||
		    json_array_size(warnings) != (cases[i].warning != NULL) ||
		    !str_eq(json_string_value(json_array_get(warnings, 0)), cases[i].warning))
			fail_msg("case %zu: %s (%zu warnings)", i, text, json_array_size(warnings));
	}
}

TEST(a_merge_key_needs_a_mapping)
{
	static const char *const cases[] = {"a: {<<: 1}", "a: {<<: [1]}", "a: {<<: [[{}]]}",
					    "a: {<<: ~}", "a:\n  <<:\n"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(yaml_parse_as_kubectl(cases[i], strlen(cases[i]), NULL, &err));
		assert_non_null(strstr(err.text, "must be a mapping or a list of them"));
	}
}

TEST_GROUP(init, NULL)

// SPDX-License-Identifier: Apache-2.0
/* Parsing, text, equality, typed fields. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"
#include "lib/json/parse_within.h"

static json_t *parse(const char *text)
{
	struct err err = {0};
	json_t *value = json_parse(text, strlen(text), &err);

	assert_string_equal(err.text, "");
	assert_non_null(value);
	return value;
}

TEST(any_value_is_a_document)
{
	static const char *const texts[] = {
		"null",           "true", "-1", "1.5",
		"\"a\\n\\\"ä😀\"", "[]",   "{}", "{\"a\":[1,{\"b\":null}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_auto_t *value = parse(texts[i]);
		auto_free char *text = json_text(value);

		assert_string_equal(text, texts[i]);
	}
}

/* In memory, not in what they mean. */
TEST(equal_short_strings_are_one_value)
{
	static const char text[] = "[{\"a\":\"mlx5_core\"},\"mlx5_core\",\"mlx5_cord\",\"\",\"\","
				   "\"mlx5\\u005fcore\",\"a string of more than thirty-two bytes\","
				   "\"a string of more than thirty-two bytes\"]";
	json_t *list = parse(text), *first = json_incref(json_array_get(list, 1));
	auto_free char *again = NULL;

	assert_ptr_equal(json_at(json_array_get(list, 0), "a"), first);
	assert_ptr_equal(json_array_get(list, 5), first);
	assert_ptr_not_equal(json_array_get(list, 2), first);
	assert_string_equal(json_string_value(json_array_get(list, 2)), "mlx5_cord");
	assert_ptr_equal(json_array_get(list, 3), json_array_get(list, 4));
	assert_ptr_not_equal(json_array_get(list, 6), json_array_get(list, 7));
	/* One place changes, or all go: the others do not notice. */
	json_object_set_new(json_array_get(list, 0), "a", json_string("ice"));
	assert_string_equal(json_string_value(json_array_get(list, 1)), "mlx5_core");
	json_decref(list);
	again = json_text(first);
	assert_string_equal(again, "\"mlx5_core\"");
	json_decref(first);
}

TEST(what_is_not_strict_json_is_refused_with_its_place)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} cases[] = {
		{"", 0, "line 1, column 1: value expected, the text ends"},
		{"{\"a\":1} x", 9, "line 1, column 9: "},
		{"{\"a\":1,\n\"a\":2}", 14, "line 2, column 1: duplicate object key"},
		{"{\"a\":\n\n tru}", 12, "line 3, column 2: value expected"},
		{"[1,]", 4, "line 1, column 4: value expected"},
		{"{a:1}", 5, "line 1, column 2: quoted key expected"},
		{"{\"\\u0000\":1}", 12, "line 1, column 2: NUL character in a key"},
		{"\"\0\"", 3, "line 1, column 2: NUL byte"},
		{"1\0", 2, "line 1, column 2: NUL byte"},
		{"\"\\\0\"", 4, "line 1, column 3: NUL byte"},
		{"\"\xff\"", 3, "line 1, column 2: not UTF-8"},
		{"\"\\ud800\"", 8, "line 1, column 2: not an escape that JSON has"},
		{"9223372036854775808", 19, "line 1, column 1: too big integer"},
		{"1e999", 5, "line 1, column 1: real number overflow"},
		{"\"a\nb\"", 5, "line 1, column 3: control character in a string"},
		{"-9223372036854775809", 20, "line 1, column 1: too big integer"},
		{"[1 2]", 5, "line 1, column 4: comma or ] expected"},
		{"{\"a\" 1}", 7, "line 1, column 6: colon expected"},
		{"{\"a\":1 2}", 9, "line 1, column 8: comma or } expected"},
		{"\"abc", 4, "line 1, column 5: closing quote expected, the text ends"},
		{"\"abc\\", 5, "line 1, column 6: escape expected, the text ends"},
		{"\"\\x\"", 4, "line 1, column 2: not an escape that JSON has"},
		{"\"\\ud800\\u0041\"", 14, "line 1, column 2: not an escape that JSON has"},
		{"\"\\u12\"", 6, "line 1, column 2: not an escape that JSON has"},
		{"-", 1, "line 1, column 2: digit expected, the text ends"},
		{"01", 2, "line 1, column 2: end of text expected"},
		{"1.", 2, "line 1, column 3: digit expected, the text ends"},
		{"1e+", 3, "line 1, column 4: digit expected, the text ends"},
		{"+1", 2, "line 1, column 1: value expected"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(json_parse(cases[i].text, cases[i].len, &err));
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadJson");
		if (!str_starts(err.text, cases[i].want))
			assert_string_equal(err.text, cases[i].want);
		assert_null(strchr(err.text, '\n'));
	}
}

TEST(strings_and_numbers_are_what_they_say)
{
	json_auto_t *strings =
		parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\","
		      "\"0123456789\\n0123456789\xE2\x82\xAC\",\"\"]");
	json_auto_t *numbers =
		parse(" [ -9223372036854775808 , 9223372036854775807,-0,0.5,-1.25e2,1E-2 ]\n");

	assert_string_equal(json_string_value(json_array_get(strings, 0)), "\"\\/\b\f\n\r\t");
	assert_string_equal(json_string_value(json_array_get(strings, 1)),
			    "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	assert_string_equal(json_string_value(json_array_get(strings, 2)),
			    "0123456789\n0123456789\xE2\x82\xAC");
	assert_string_equal(json_string_value(json_array_get(strings, 3)), "");
	assert_true(json_integer_value(json_array_get(numbers, 0)) == INT64_MIN);
	assert_true(json_integer_value(json_array_get(numbers, 1)) == INT64_MAX);
	assert_true(json_is_integer(json_array_get(numbers, 2)));
	assert_float_equal(json_real_value(json_array_get(numbers, 3)), 0.5, 0);
	assert_float_equal(json_real_value(json_array_get(numbers, 4)), -125, 0);
	assert_float_equal(json_real_value(json_array_get(numbers, 5)), 0.01, 0);
}

TEST(what_is_written_is_what_jansson_writes)
{
	static const char *const texts[] = {
		"[]",
		"{}",
		"[{},[],\"\"]",
		"null",
		"true",
		"[false,null]",
		"[-9223372036854775808,9223372036854775807,0,-1,10]",
		"[0.5,-1.25e300,1e-7,100.0]",
		"\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xE2\x82\xAC\"",
		"{\"b\":{\"c\":[1,\"\\n\"]},\"a\\\"\":1}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_auto_t *value = parse(texts[i]);
		auto_free char *want = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		auto_strbuf struct strbuf out = {0};

		json_write(value, &out);
		assert_string_equal(strbuf_str(&out), want);
	}
}

static size_t allocations;

static void *count_alloc(size_t size)
{
	allocations++;
	return mem_alloc(size);
}

/* What a text costs follows from its values, not from its length: strangers choose both. */
TEST(a_long_string_costs_no_more_work_than_a_short_one)
{
	static const char *const fillings[] = {"x", "\\n", "\xE2\x82\xAC", "\\u20ac"};

	for (size_t i = 0; i < ARRAY_LEN(fillings); i++) {
		auto_strbuf struct strbuf text = {0};
		json_auto_t *value = NULL;
		struct err err = {0};

		strbuf_addc(&text, '"');
		while (text.len < 4 * 1024 * 1024)
			strbuf_adds(&text, fillings[i]);
		strbuf_addc(&text, '"');
		json_set_alloc_funcs(count_alloc, mem_free);
		allocations = 0;
		value = json_parse(text.data, text.len, &err);
		json_init();
		assert_non_null(value);
		assert_int_equal(allocations, 2); /* the value, and its text */
	}
}

TEST(a_nul_in_a_string_becomes_a_character_that_c_strings_can_hold)
{
	json_auto_t *value =
		parse("{\"a\":\"x\\u0000y\",\"b\":[\"\\u0000\",{\"c\":\"\\\\u0000\"}]}");
	auto_free char *text = json_text(value);

	assert_string_equal(
		text, "{\"a\":\"x\xEF\xBF\xBDy\",\"b\":[\"\xEF\xBF\xBD\",{\"c\":\"\\\\u0000\"}]}");
	assert_int_equal(json_string_length(json_at(value, "a")), strlen(json_str_at(value, "a")));
}

static char *nested(size_t depth, const char *open, const char *close)
{
	struct strbuf b = {0};

	for (size_t i = 0; i < depth; i++)
		strbuf_adds(&b, open);
	for (size_t i = 0; i < depth; i++)
		strbuf_adds(&b, close);
	return strbuf_take(&b);
}

TEST(nesting_ends_at_the_limit)
{
	auto_free char *most = nested(JSON_MAX_DEPTH, "[", "]");
	auto_free char *more = nested(JSON_MAX_DEPTH + 1, "[", "]");
	auto_free char *far_more = nested(1000000, "{\"a\":", "}");
	json_auto_t *value = parse(most);
	struct err err = {0};

	assert_int_equal(json_array_size(value), 1);
	assert_null(json_parse(more, strlen(more), &err));
	assert_string_equal(err.text, "line 1, column 65: nested deeper than 64 levels");
	assert_null(json_parse(far_more, strlen(far_more), &err));
	assert_string_equal(err.text, "line 1, column 321: nested deeper than 64 levels");
}

TEST(brackets_side_by_side_or_in_strings_are_no_nesting)
{
	auto_free char *siblings = nested(1000, "", ",[]");
	auto_free char *quoted = nested(1000, "[{", "");
	auto_free char *text = str_printf("[\"\\\"%s\\\\\"%s]", quoted, siblings);
	json_auto_t *value = parse(text);

	assert_int_equal(json_array_size(value), 1001);
	assert_int_equal(json_string_length(json_array_get(value, 0)), 2002);
}

TEST(text_does_not_depend_on_the_order_of_keys)
{
	json_auto_t *a = parse("{\"b\":1,\"a\":{\"d\":1.0,\"c\":[]}}");
	json_auto_t *b = parse("{\"a\":{\"c\":[],\"d\":1.0},\"b\":1}");
	auto_free char *text_a = json_text(a);
	auto_free char *text_b = json_text(b);
	auto_strbuf struct strbuf out = {0};

	assert_string_equal(text_a, text_b);
	assert_true(json_same(a, b));
	strbuf_addc(&out, ':');
	json_write(a, &out);
	assert_string_equal(out.data, ":{\"b\":1,\"a\":{\"d\":1.0,\"c\":[]}}");
}

TEST(keys_are_sorted_by_their_bytes)
{
	json_auto_t *object = parse("{\"b\": 1, \"10.6.0.9\": 2, \"10.6.0.10\": 3, \"B\": 4}");
	static const char *const want[] = {"10.6.0.10", "10.6.0.9", "B", "b"};
	size_t n = 0;
	auto_free const char **keys = json_sorted_keys(object, &n);
	auto_free const char **none = NULL;

	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(keys[i], want[i]);
	none = json_sorted_keys(NULL, &n);
	assert_int_equal(n, 0);
}

TEST(sameness_is_deep_and_strict)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{"1", "1", true},          {"1", "1.0", false},
		{"[1,2]", "[2,1]", false}, {"{\"a\":null}", "{}", false},
		{"\"1\"", "1", false},     {"{\"a\":{\"b\":[]}}", "{\"a\":{\"b\":[]}}", true},
		{"null", "null", true},    {"true", "false", false},
		{"{}", "[]", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *a = parse(cases[i].a);
		json_auto_t *b = parse(cases[i].b);

		assert_int_equal(json_same(a, b), cases[i].same);
		assert_false(json_same(a, NULL));
		assert_false(json_same(NULL, a));
	}
	assert_true(json_same(NULL, NULL));
}

TEST(walking_down_survives_whatever_is_in_the_way)
{
	json_auto_t *o = parse("{\"a\":{\"b\":\"x\",\"n\":null,\"i\":5,\"l\":[1]}}");

	assert_string_equal(json_str_at(o, "a", "b"), "x");
	assert_null(json_at(o, "a", "n"));
	assert_null(json_at(o, "a", "n", "x"));
	assert_null(json_at(o, "a", "b", "x"));
	assert_null(json_at(o, "a", "l", "x"));
	assert_null(json_at(o, "z", "b"));
	assert_null(json_at(NULL, "a"));
	assert_null(json_str_at(o, "a", "i"));
	assert_string_equal(json_str_or(json_at(o, "a", "i"), "-"), "-");
	assert_string_equal(json_str_or(json_at(o, "a", "b"), "-"), "x");
}

TEST(finds_the_first_item_whose_member_is_the_text)
{
	json_auto_t *list = parse("[\"b\",5,null,[\"b\"],{\"k\":5},{\"k\":null},{\"j\":\"b\"},"
				  "{\"k\":\"a\"},{\"k\":\"b\",\"n\":1},{\"k\":\"b\",\"n\":2}]");

	assert_ptr_equal(json_find(list, "k", "b"), json_array_get(list, 8));
	assert_ptr_equal(json_find(list, "k", "a"), json_array_get(list, 7));
	assert_ptr_equal(json_find(list, "j", "b"), json_array_get(list, 6));
	assert_null(json_find(list, "k", "c"));
	assert_null(json_find(list, "k", ""));
	assert_null(json_find(list, "z", "b"));
	assert_null(json_find(list, "k", NULL));
	assert_null(json_find(json_array_get(list, 8), "k", "b"));
	assert_null(json_find(NULL, "k", "b"));
}

TEST(absent_and_null_fields_get_the_default)
{
	json_auto_t *o = parse("{\"a\":null}");
	static const char *const keys[] = {"a", "b"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const char *s = NULL;
		int64_t n = 0;
		bool flag = false;
		const json_t *value = o;

		assert_int_equal(json_get_str(o, "", keys[i], "d", &s, NULL), 0);
		assert_string_equal(s, "d");
		assert_int_equal(json_get_int(o, "", keys[i], 0, 1, 42, &n, NULL), 0);
		assert_int_equal(n, 42);
		assert_int_equal(json_get_bool(o, "", keys[i], true, &flag, NULL), 0);
		assert_true(flag);
		assert_int_equal(json_get_object(o, "", keys[i], &value, NULL), 0);
		assert_null(value);
		value = o;
		assert_int_equal(json_get_array(o, "", keys[i], &value, NULL), 0);
		assert_null(value);
		value = o;
		assert_int_equal(json_get_strings(o, "", keys[i], &value, NULL), 0);
		assert_null(value);
	}
}

TEST(fields_of_the_right_type_are_read)
{
	json_auto_t *o =
		parse("{\"s\":\"\",\"i\":-5,\"b\":false,\"o\":{},\"l\":[1],\"w\":[\"x\"]}");
	const char *s = NULL;
	int64_t n = 0;
	bool flag = true;
	const json_t *value = NULL;

	assert_int_equal(json_get_str(o, "", "s", "d", &s, NULL), 0);
	assert_string_equal(s, "");
	assert_int_equal(json_get_int(o, "", "i", -5, -5, 0, &n, NULL), 0);
	assert_int_equal(n, -5);
	assert_int_equal(json_get_bool(o, "", "b", true, &flag, NULL), 0);
	assert_false(flag);
	assert_int_equal(json_get_object(o, "", "o", &value, NULL), 0);
	assert_true(json_is_object(value));
	assert_int_equal(json_get_array(o, "", "l", &value, NULL), 0);
	assert_true(json_is_array(value));
	assert_int_equal(json_get_strings(o, "", "w", &value, NULL), 0);
	assert_string_equal(json_string_value(json_array_get(value, 0)), "x");
}

TEST(wrong_fields_are_named_with_value_and_remedy)
{
	json_auto_t *o =
		parse("{\"vlanID\":\"x\",\"mtu\":9001,\"n\":-1,\"r\":1.5,\"s\":5,\"b\":\"yes\","
		      "\"o\":[1,2],\"l\":{\"a\":\"b\"},\"w\":[\"x\",null],\"v\":[\"x\",[]]}");
	struct err err = {0};
	const char *s = "untouched";
	int64_t n = 4711;
	bool flag = true;
	const json_t *value = o;

#define fails(call_, text_)                                                                        \
	do {                                                                                       \
		err = (struct err){0};                                                             \
		assert_int_equal(call_, -1);                                                       \
		assert_int_equal(err.class, ERR_INVALID);                                          \
		assert_string_equal(err.reason, "BadField");                                       \
		assert_string_equal(err.text, text_);                                              \
	} while (0)

	fails(json_get_int(o, "spec.sriov", "vlanID", 0, 4094, 0, &n, &err),
	      "spec.sriov.vlanID: \"x\" is a string, must be an integer from 0 to 4094");
	fails(json_get_int(o, "", "mtu", 0, 9000, 0, &n, &err),
	      "mtu: 9001 is too large, must be an integer from 0 to 9000");
	fails(json_get_int(o, "", "n", 0, INT64_MAX, 0, &n, &err),
	      "n: -1 is too small, must be an integer, at least 0");
	fails(json_get_int(o, "", "n", INT64_MIN, -2, 0, &n, &err),
	      "n: -1 is too large, must be an integer, at most -2");
	fails(json_get_int(o, "", "r", INT64_MIN, INT64_MAX, 0, &n, &err),
	      "r: 1.5 is a number with a fraction, must be an integer");
	fails(json_get_str(o, "spec", "s", NULL, &s, &err),
	      "spec.s: 5 is an integer, must be a string");
	fails(json_get_bool(o, "spec", "b", false, &flag, &err),
	      "spec.b: \"yes\" is a string, must be true or false");
	fails(json_get_object(o, "spec", "o", &value, &err),
	      "spec.o: [1,2] is an array, must be an object");
	fails(json_get_array(o, "spec", "l", &value, &err),
	      "spec.l: {\"a\":\"b\"} is an object, must be an array");
	fails(json_get_strings(o, "spec", "l", &value, &err),
	      "spec.l: {\"a\":\"b\"} is an object, must be an array");
	fails(json_get_strings(o, "spec", "w", &value, &err),
	      "spec.w[1]: null is not allowed here, must be a string");
	fails(json_get_strings(o, "", "v", &value, &err), "v[1]: [] is an array, must be a string");

	assert_string_equal(s, "untouched");
	assert_int_equal(n, 4711);
	assert_true(flag);
	assert_ptr_equal(value, o);
}

TEST(long_values_are_quoted_in_part_and_on_one_line)
{
	json_auto_t *o = json_object();
	auto_strbuf struct strbuf b = {0};
	struct err err = {0};
	int64_t n;

	for (int i = 0; i < 500; i++)
		strbuf_adds(&b, "ä\n");
	json_put_str(o, "n", b.data);
	assert_int_equal(json_get_int(o, "", "n", 0, 1, 0, &n, &err), -1);
	assert_null(strchr(err.text, '\n'));
	assert_non_null(strstr(err.text, "ä\\nä"));
	assert_non_null(strstr(err.text, "… is a string, must be an integer from 0 to 1"));
	assert_true(strlen(err.text) < 140);
	assert_int_equal(str_utf8_len(strstr(err.text, "…"), 3), 3);
}

TEST(put_skips_what_is_not_there_and_repairs_text)
{
	json_auto_t *o = json_object();
	auto_free char *text = NULL;

	json_put(o, "a", NULL);
	json_put_str(o, "b", NULL);
	json_put_str(o, "c", "x\xffy");
	json_put_int(o, "d", INT64_MAX);
	json_put_bool(o, "e", true);
	json_put(o, "f", json_fmt("%d\xff", 5));
	json_put_int(json_need_object(o, "g"), "h", 1);
	json_put_int(json_need_object(o, "g"), "i", 2);
	json_put_int(json_need_object(o, "d"), "j", 3);
	text = json_text(o);
	assert_string_equal(text, "{\"c\":\"x\xef\xbf\xbdy\",\"d\":{\"j\":3},\"e\":true,"
				  "\"f\":\"5\xef\xbf\xbd\",\"g\":{\"h\":1,\"i\":2}}");
}

TEST(objects_have_keys)
{
	json_auto_t *node =
		parse("{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"generation\":3}}");
	json_auto_t *pool = parse("{\"metadata\":{\"name\":\"p\",\"namespace\":\"lab\"}}");
	json_auto_t *odd = parse("{\"metadata\":[{\"name\":5}]}");
	auto_free char *node_key = json_key(node);
	auto_free char *pool_key = json_key(pool);
	auto_free char *odd_key = json_key(odd);

	assert_string_equal(node_key, "n1");
	assert_string_equal(pool_key, "lab/p");
	assert_string_equal(odd_key, "");
	assert_string_equal(json_uid(node), "u");
	assert_int_equal(json_generation(node), 3);
	assert_int_equal(json_generation(pool), 0);
	assert_string_equal(json_name(NULL), "");
	assert_string_equal(json_namespace(node), "");
}

static size_t count_values(const json_t *value)
{
	size_t n = 1, i;
	const char *key;
	json_t *part;

	json_each (value, key, part)
		n += count_values(part);
	json_array_foreach ((json_t *)value, i, part)
		n += count_values(part);
	return n;
}

/* "LIST,LIST,…" with n times the element. */
static void add_many(struct strbuf *text, const char *element, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_addf(text, "%s%s", i ? "," : "", element);
}

/* API servers store what users write: 390,000 empty objects in one list, or spread over many. */
TEST(of_an_object_that_is_too_large_the_small_parts_are_read)
{
	static const struct {
		const char *element, *begin, *end;
		size_t n;
	} cases[] = {
		{"{}", "[", "]", 390000},
		{"{\"a\":[{},{},{},{}]}", "[", "]", 60000},
		{"[[],[]]", "[[[", "]]]", 100000},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strbuf struct strbuf text = {0};
		json_auto_t *value = NULL;

		strbuf_addf(&text,
			    "{\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":\"b\"}},"
			    "\"spec\":{\"large\":%s",
			    cases[i].begin);
		add_many(&text, cases[i].element, cases[i].n);
		strbuf_addf(&text,
			    "%s,\"node\":\"n1\",\"small\":[1,2]},\"status\":"
			    "{\"phase\":\"Running\",\"list\":[{\"a\":1}]}}",
			    cases[i].end);
		value = json_parse_within(text.data, text.len, false, NULL);
		assert_in_range(count_values(value), 1, PARSE_WITHIN_MAX);
		assert_string_equal(json_str_at(value, "metadata", "labels", "a"), "b");
		assert_string_equal(json_str_at(value, "spec", "node"), "n1");
		assert_int_equal(json_array_size(json_at(value, "spec", "small")), 2);
		assert_string_equal(json_str_at(value, "status", "phase"), "Running");
		assert_int_equal(json_array_size(json_at(value, "status", "list")), 1);
		if (i == 0)
			assert_int_equal(json_integer_value(json_at(value, "spec", "large")),
					 390000);
	}
}

/* Each has its room, and all together. */
TEST(so_are_those_of_each_object_of_a_list)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *value = NULL, *few = NULL;

	strbuf_adds(&text, "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[");
	for (size_t i = 0; i < 4 * PARSE_WITHIN_OBJECTS; i++) {
		strbuf_addf(&text, "%s{\"spec\":{\"large\":[", i ? "," : "");
		add_many(&text, "{}", i ? 10000 : 20000);
		strbuf_adds(&text, "],\"small\":[1]}}");
	}
	strbuf_adds(&text, "]}");
	value = json_parse_within(text.data, text.len, true, NULL);
	assert_in_range(count_values(value), 1, (PARSE_WITHIN_OBJECTS + 1) * PARSE_WITHIN_MAX);
	few = json_incref(json_at(value, "items"));
	assert_int_equal(json_array_size(few), 4 * PARSE_WITHIN_OBJECTS);
	assert_true(json_is_integer(json_at(json_array_get(few, 0), "spec", "large")));
	assert_int_equal(json_array_size(json_at(json_array_get(few, 0), "spec", "small")), 1);
	assert_int_equal(json_array_size(json_at(json_array_get(few, 1), "spec", "large")), 10000);
}

static int init(void **state)
{
	json_init();
	return 0;
}

TEST_GROUP(init, NULL)

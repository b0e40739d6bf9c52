// SPDX-License-Identifier: Apache-2.0
/*
 * The splitter: the same objects however the bytes are cut, nothing but JSON's structure let
 * through, limits kept.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/splitter.h"

/* Objects end in "|", the remainder of a list in "!". */
static int collect(void *arg, const struct splitter_object *object, struct err *err)
{
	struct strbuf *out = arg;

	assert_int_equal(strlen(object->text), object->len);
	strbuf_add(out, object->text, object->len);
	if (object->unreadable)
		strbuf_addf(out, " (%s)", object->unreadable);
	strbuf_addc(out, object->is_rest ? '!' : '|');
	return 0;
}

struct split {
	enum splitter_mode mode;
	const splitter_path *drops;
	size_t n_drops;
	bool prefixed;
};

/* 0, or -1 with the error, of feeding pieces of `size` bytes; what came out is in `out`. */
static int feed(const struct split *how, const char *text, size_t size, struct strbuf *out,
		struct err *err)
{
	struct splitter s;
	size_t len = strlen(text);
	int result = 0;

	splitter_init(&s, how->mode, how->drops, how->n_drops, how->prefixed, collect, out);
	for (size_t at = 0; at < len && result == 0; at += size) {
		/* A copy of exactly these bytes: reading beyond them is seen. */
		size_t n = len - at < size ? len - at : size;
		auto_free char *piece = mem_dup(text + at, n);

		result = splitter_feed(&s, piece, n, err);
	}
	if (result == 0)
		result = splitter_end(&s, err);
	else
		assert_int_equal(splitter_feed(&s, " ", 1, NULL), -1);
	splitter_done(&s);
	return result;
}

static void assert_split(const struct split *how, const char *text, const char *want)
{
	for (size_t size = 1; size <= strlen(text); size++) {
		auto_strbuf struct strbuf out = {0};
		struct err err = {0};

		assert_int_equal(feed(how, text, size, &out, &err), 0);
		assert_string_equal(strbuf_str(&out), want);
	}
}

static const struct split stream = {.mode = SPLITTER_STREAM};
static const struct split list = {.mode = SPLITTER_LIST};

TEST(a_stream_is_cut_into_its_objects)
{
	assert_split(&stream, "{\"a\":1}\n{\"b\":[true,null,-1.5e+3,\"x\"]}\n{}",
		     "{\"a\":1}|{\"b\":[true,null,-1.5e+3,\"x\"]}|{}|");
	assert_split(&stream, " { \"a\" : [ 1 , { } , [ ] ] , \"b\" : \"\" } \r\n\t",
		     "{\"a\":[1,{},[]],\"b\":\"\"}|");
	assert_split(&stream, " \n", "");
}

TEST(brackets_and_quotes_in_strings_mean_nothing)
{
	assert_split(&stream, "{\"}\\\"{\":\"]}\\\\\",\"x\\\\\":\"\\u00e9 \xc3\xa9 {\"}",
		     "{\"}\\\"{\":\"]}\\\\\",\"x\\\\\":\"\\u00e9 \xc3\xa9 {\"}|");
}

TEST(a_list_is_cut_into_its_items_and_the_rest)
{
	assert_split(&list,
		     "{\"kind\":\"L\",\"metadata\":{\"items\":[{\"no\":1}]},\"items\":[{\"a\":{"
		     "\"items\":[1,2]}}, {\"b\":2}],"
		     "\"z\":1}",
		     "{\"a\":{\"items\":[1,2]}}|{\"b\":2}|{\"kind\":\"L\",\"metadata\":{\"items\":["
		     "{\"no\":1}]},\"items\":[],\"z\":1}!");
	assert_split(&list, "{\"items\":[]}", "{\"items\":[]}!");
	assert_split(&list, "{\"items\":null,\"b\":1}", "{\"items\":null,\"b\":1}!");
}

static const splitter_path drops[] = {
	{"metadata", "managedFields"},
	{"status", "interfaces", "Vfs"},
	{"gone"},
};

TEST(dropped_members_leave_no_trace)
{
	static const struct split bare = {SPLITTER_STREAM, drops, ARRAY_LEN(drops), false};
	static const struct split watch = {SPLITTER_STREAM, drops, ARRAY_LEN(drops), true};
	static const struct split listed = {SPLITTER_LIST, drops, ARRAY_LEN(drops), true};
	static const char object[] =
		"{\"gone\":1,\"metadata\":{\"managedFields\":[{\"x\":[\"}\"]}],\"name\":\"n\"},"
		"\"status\":{\"interfaces\":[{\"Vfs\":[{\"Vfs\":1}],\"a\":1},{\"b\":2,\"Vfs\":{}}],"
		"\"Vfs\":3},"
		"\"spec\":{\"gone\":true,\"metadata\":{\"managedFields\":2}}}";
	static const char want[] = "{\"metadata\":{\"name\":\"n\"},"
				   "\"status\":{\"interfaces\":[{\"a\":1},{\"b\":2}],\"Vfs\":3},"
				   "\"spec\":{\"gone\":true,\"metadata\":{\"managedFields\":2}}}";
	auto_free char *want_bare = str_printf("%s|", want);
	auto_free char *event = str_printf("{\"type\":\"ADDED\",\"gone\":1,\"object\":%s}", object);
	auto_free char *want_event =
		str_printf("{\"type\":\"ADDED\",\"gone\":1,\"object\":%s}|", want);
	auto_free char *items = str_printf("{\"gone\":2,\"items\":[%s,%s]}", object, object);
	auto_free char *want_items = str_printf("%s|%s|{\"gone\":2,\"items\":[]}!", want, want);

	assert_split(&bare, object, want_bare);
	assert_split(&watch, event, want_event);
	assert_split(&listed, items, want_items);
	assert_split(&bare, "{\"a\":1,\"gone\":\"x\"}{\"gone\":{}}", "{\"a\":1}|{}|");
}

static void assert_refused(const struct split *how, const char *text)
{
	for (size_t size = 1; size <= strlen(text); size++) {
		auto_strbuf struct strbuf out = {0};
		struct err err = {0};

		if (feed(how, text, size, &out, &err) == 0)
			fail_msg("accepted in pieces of %zu: %s", size, text);
		assert_int_equal(err.class, ERR_TRANSIENT);
		assert_string_equal(err.reason, "BadStream");
	}
}

TEST(what_is_not_json_is_refused)
{
	static const char *const texts[] = {
		"}",
		"]",
		"1",
		"\"a\"",
		"null",
		"[]",
		"<html>",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{,\"a\":1}",
		"{\"a\":1 2}",
		"{\"a\":1]",
		"{\"a\":[1 2]}",
		"{\"a\":[1,]}",
		"{\"a\":[,]}",
		"{\"a\" 1}",
		"{\"a\"::1}",
		"{\"a\":1:2}",
		"{1:2}",
		"{true}",
		"{\"a\" \"b\"}",
		"{\"a\":\"b\"\"c\":1}",
		"{\"a\":1}]",
		",{}",
		"{} , {}",
		":",
		"{\"a\":'b'}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_refused(&stream, texts[i]);
		assert_refused(&list, texts[i]);
	}
	assert_refused(&list, "{}{}");
	assert_refused(&list, "{} x");
}

TEST(an_end_in_the_middle_is_noticed)
{
	static const char text[] = "{\"a\":[1,{\"b\":\"c\\n\"}]}";

	for (size_t len = 1; len < strlen(text); len++) {
		auto_free char *part = str_ndup(text, len);

		assert_refused(&stream, part);
		assert_refused(&list, part);
	}
	assert_refused(&list, " ");
}

static char *nest(const char *before, const char *open, int depth, const char *inside,
		  const char *close, const char *after)
{
	struct strbuf text = {0};

	strbuf_adds(&text, before);
	for (int i = 0; i < depth; i++)
		strbuf_adds(&text, open);
	strbuf_adds(&text, inside);
	for (int i = 0; i < depth; i++)
		strbuf_adds(&text, close);
	strbuf_adds(&text, after);
	return strbuf_take(&text);
}

TEST(an_object_that_is_too_deep_is_named_and_the_next_one_read)
{
	static const char inside[] = "{\"]\\\"\":[1,\"}\"],\"b\":-1e5 }";
	auto_free char *most = nest("{\"a\":", "[", SPLITTER_MAX_DEPTH - 1, "", "]", "}{\"b\":2}");
	auto_free char *most_out =
		nest("{\"a\":", "[", SPLITTER_MAX_DEPTH - 1, "", "]", "}|{\"b\":2}|");
	auto_free char *more = nest("{\"a\":", "[", 200, inside, "]", ",\"c\":3}{\"b\":2}");
	auto_free char *more_out = nest("{\"a\":", "[", SPLITTER_MAX_DEPTH - 1, "null", "]",
					",\"c\":3} (nested deeper than 64 levels)|{\"b\":2}|");
	auto_free char *items =
		nest("{\"items\":[{\"a\":1},", "[", 200, inside, "]", ",{\"b\":2}],\"z\":1}");
	auto_free char *items_out = nest("{\"a\":1}|", "[", SPLITTER_MAX_DEPTH - 2, "null", "]",
					 " (nested deeper than 64 levels)|{\"b\":2}|{\"items\":["
					 "],\"z\":1}!");

	assert_split(&stream, most, most_out);
	assert_split(&stream, more, more_out);
	assert_split(&list, items, items_out);
}

TEST(what_is_dropped_may_be_deep)
{
	static const struct split bare = {SPLITTER_STREAM, drops, ARRAY_LEN(drops), false};
	auto_free char *text = nest("{\"gone\":", "[", 200, "", "]", ",\"a\":1}");

	assert_split(&bare, text, "{\"a\":1}|");
}

TEST(depth_has_an_end)
{
	auto_free char *text = nest("{\"a\":", "[", SPLITTER_DEEPEST, "", "]", "}");
	auto_free char *crossed = nest("{\"a\":", "[", 100, "{]", "]", "}");
	auto_free char *rest = nest("{\"a\":", "[", 100, "", "]", ",\"items\":[]}");

	for (size_t i = 0; i < 3; i++) {
		const char *texts[] = {text, crossed, rest};
		auto_strbuf struct strbuf out = {0};
		struct err err = {0};

		assert_int_equal(feed(i == 2 ? &list : &stream, texts[i], 7, &out, &err), -1);
		assert_string_equal(err.reason, "BadStream");
	}
}

static int note_size(void *arg, const struct splitter_object *object, struct err *err)
{
	struct strbuf *out = arg;

	assert_true(object->len <= SPLITTER_MAX_OBJECT);
	strbuf_addf(out, "%s|", object->unreadable ? object->unreadable : object->text);
	return 0;
}

TEST(an_object_that_is_too_large_is_named_and_the_next_one_read)
{
	auto_free char *block = mem_alloc(1 << 20);
	auto_strbuf struct strbuf out = {0};
	struct splitter s;
	struct err err = {0};

	memset(block, 'x', 1 << 20);
	splitter_init(&s, SPLITTER_STREAM, NULL, 0, false, note_size, &out);
	assert_int_equal(splitter_feed(&s, "{\"a\":\"", 6, &err), 0);
	for (int i = 0; i < 64; i++)
		assert_int_equal(splitter_feed(&s, block, 1 << 20, &err), 0);
	assert_true(s.text.cap <= 2 * SPLITTER_MAX_OBJECT);
	assert_int_equal(splitter_feed(&s, "\"}{\"b\":2}", 9, &err), 0);
	assert_string_equal(strbuf_str(&out), "larger than 32 MiB|{\"b\":2}|");
	splitter_done(&s);
}

TEST(metadata_of_a_list_that_does_not_end_is_refused)
{
	auto_free char *block = mem_alloc(1 << 20);
	auto_strbuf struct strbuf out = {0};
	struct splitter s;
	struct err err = {0};
	int mib = 0;

	memset(block, 'x', 1 << 20);
	splitter_init(&s, SPLITTER_LIST, NULL, 0, false, collect, &out);
	assert_int_equal(splitter_feed(&s, "{\"metadata\":{\"continue\":\"", 25, &err), 0);
	while (mib < 64 && splitter_feed(&s, block, 1 << 20, &err) == 0)
		mib++;
	assert_int_equal(mib, (SPLITTER_MAX_OBJECT >> 20) - 1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "ObjectTooLarge");
	splitter_done(&s);
}

TEST(a_dropped_member_may_be_of_any_size)
{
	static const splitter_path only[] = {{"d"}};
	auto_free char *block = mem_alloc(1 << 20);
	auto_strbuf struct strbuf out = {0};
	struct splitter s;
	struct err err = {0};

	memset(block, 'x', 1 << 20);
	splitter_init(&s, SPLITTER_STREAM, only, 1, false, collect, &out);
	assert_int_equal(splitter_feed(&s, "{\"d\":\"", 6, &err), 0);
	for (int i = 0; i < 40; i++)
		assert_int_equal(splitter_feed(&s, block, 1 << 20, &err), 0);
	assert_int_equal(splitter_feed(&s, "\"}", 2, &err), 0);
	assert_string_equal(strbuf_str(&out), "{}|");
	splitter_done(&s);
}

TEST(what_one_large_object_needed_is_given_back)
{
	auto_free char *block = mem_alloc(1 << 20);
	struct splitter s;
	struct strbuf out = {0};
	struct err err = {0};

	memset(block, 'x', 1 << 20);
	splitter_init(&s, SPLITTER_STREAM, NULL, 0, false, collect, &out);
	assert_int_equal(splitter_feed(&s, "{\"a\":\"", 6, &err), 0);
	assert_int_equal(splitter_feed(&s, block, 1 << 20, &err), 0);
	assert_true(s.text.cap > 1 << 20);
	assert_int_equal(splitter_feed(&s, "\"}{\"b\":1}", 9, &err), 0);
	assert_true(s.text.cap < 4096);
	splitter_done(&s);
	strbuf_done(&out);
}

static int refuse(void *arg, const struct splitter_object *object, struct err *err)
{
	(*(int *)arg)++;
	return err_set(err, ERR_INVALID, "Mine", "no");
}

TEST(the_reader_can_stop_it)
{
	struct splitter s;
	struct err err = {0};
	int calls = 0;

	splitter_init(&s, SPLITTER_STREAM, NULL, 0, false, refuse, &calls);
	assert_int_equal(splitter_feed(&s, "{}{}", 4, &err), -1);
	assert_string_equal(err.reason, "Mine");
	assert_int_equal(splitter_feed(&s, "{}", 2, &err), -1);
	assert_int_equal(calls, 1);
	assert_int_equal(splitter_end(&s, &err), -1);
	splitter_done(&s);
}

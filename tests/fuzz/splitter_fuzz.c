// SPDX-License-Identifier: Apache-2.0
/*
 * The splitter against the parser: for a document that the parser takes, the object that comes out
 * is the document without the dropped members, whatever the chunks; for any bytes, all chunkings
 * agree, and what comes out is never longer than what went in.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "lib/kube/splitter.h"
#include "tests/fuzz/fuzz.h"

static const splitter_path drops[] = {
	{"metadata", "managedFields"},
	{"status", "interfaces", "Vfs"},
};

/* All objects, one a line; '!' at the end when the splitter gave up. */
static int collect(void *arg, const struct splitter_object *object, struct err *err)
{
	struct strbuf *out = arg;

	strbuf_add(out, object->text, object->len);
	if (object->unreadable)
		strbuf_adds(out, " unreadable");
	strbuf_adds(out, object->is_rest ? " last\n" : "\n");
	return 0;
}

static char *split(enum splitter_mode mode, const char *bytes, size_t len, size_t chunk,
		   bool prefixed)
{
	struct splitter splitter;
	struct strbuf out = {0};
	struct err err = {0};
	int result = 0;

	splitter_init(&splitter, mode, drops, ARRAY_LEN(drops), prefixed, collect, &out);
	for (size_t at = 0; at < len && result == 0; at += chunk)
		result = splitter_feed(&splitter, bytes + at, len - at < chunk ? len - at : chunk,
				       &err);
	if (result < 0 || splitter_end(&splitter, &err) < 0)
		strbuf_addc(&out, '!');
	fuzz_check(result == 0 || err.class != ERR_NONE, "a failure says why");
	splitter_done(&splitter);
	return strbuf_take(&out);
}

/* What the drop paths mean, on a value. */
static void drop(json_t *value, const splitter_path path, size_t step)
{
	json_t *child = NULL;
	size_t i = 0;

	if (json_is_array(value)) {
		json_array_foreach (value, i, child)
			drop(child, path, step);
	} else if (json_is_object(value) && !path[step + 1]) {
		json_object_del(value, path[step]);
	} else if (json_is_object(value)) {
		drop(json_object_get(value, path[step]), path, step + 1);
	}
}

static void drop_all(json_t *value)
{
	/* Paths begin in objects: an element of a list that is an array has none. */
	for (size_t i = 0; json_is_object(value) && i < ARRAY_LEN(drops); i++)
		drop(value, drops[i], 0);
}

/* The line at *at is this value; *at moves behind it. */
static void check_line(const char **at, const char *end_mark, const json_t *want)
{
	const char *end = strstr(*at, end_mark);
	json_auto_t *got = NULL;

	fuzz_check(end, "a line for each value");
	got = json_parse(*at, (size_t)(end - *at), NULL);
	fuzz_check(json_same(got, want), "the line is the value without the dropped members");
	*at = end + strlen(end_mark);
}

/*
 * Line breaks stand between values only: inside strings JSON has none, and the splitter leaves out
 * all others.
 */
static void compare_list_with_parser(const char *text, size_t len)
{
	json_auto_t *list = json_parse(text, len, NULL);
	json_t *items = json_object_get(list, "items");
	auto_free char *lines = NULL;
	const char *at = NULL;
	json_t *item = NULL;
	size_t i = 0;

	/* Names are compared as they are written, and a server writes none with escapes. */
	if (!json_is_object(list) || memchr(text, '\\', len))
		return;
	lines = split(SPLITTER_LIST, text, len, len, true);
	at = lines;
	json_array_foreach (items, i, item) {
		drop_all(item);
		check_line(&at, "\n", item);
	}
	json_array_clear(items);
	check_line(&at, " last\n", list);
	fuzz_check(!*at, "nothing behind the remainder");
}

static void compare_with_parser(const char *text, size_t len)
{
	json_auto_t *whole = json_parse(text, len, NULL);
	auto_free char *lines = NULL;
	json_auto_t *got = NULL;

	if (!json_is_object(whole))
		return;
	lines = split(SPLITTER_STREAM, text, len, len, false);
	fuzz_check(strlen(lines) >= 3 && lines[strlen(lines) - 1] == '\n',
		   "an object comes out whole");
	got = json_parse(lines, strlen(lines) - 1, NULL);
	for (size_t i = 0; i < ARRAY_LEN(drops); i++)
		drop(whole, drops[i], 0);
	fuzz_check(json_same(got, whole),
		   "what comes out is the document without the dropped members");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t chunks[] = {1, 2, 7, 64};
	const char *text = (const char *)data;

	if (size == 0)
		return 0;
	for (int mode = 0; mode < 3; mode++) {
		enum splitter_mode m = mode == 2 ? SPLITTER_LIST : SPLITTER_STREAM;
		auto_free char *whole = split(m, text, size, size, mode == 1);

		for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
			auto_free char *pieces = split(m, text, size, chunks[i], mode == 1);

			fuzz_check(strcmp(whole, pieces) == 0, "every chunking gives the same");
		}
	}
	compare_with_parser(text, size);
	compare_list_with_parser(text, size);
	return 0;
}

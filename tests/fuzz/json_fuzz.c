// SPDX-License-Identifier: Apache-2.0
/*
 * JSON: our parser and jansson's agree; what was parsed and written is parsed as the same again; a
 * diff carried out gives what was wanted.
 *
 * Input: one document, or two with a NUL byte between them. Two objects are diffed, one way and the
 * other.
 */
#include <stdint.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/parse_within.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_round_trip(const json_t *value)
{
	auto_free char *text = json_text(value);
	auto_strbuf struct strbuf written = {0};
	json_auto_t *from_text = json_parse(text, strlen(text), NULL);
	json_auto_t *from_written = NULL;
	auto_free char *again = NULL, *other = NULL;

	json_write(value, &written);
	other = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	fuzz_check(str_eq(other, written.data), "write(v) is what jansson writes");
	from_written = json_parse(written.data, written.len, NULL);
	fuzz_check(json_same(value, from_text), "parse(text(v)) is v");
	fuzz_check(json_same(value, from_written), "parse(write(v)) is v");
	again = json_text(from_written);
	fuzz_check(str_eq(text, again), "equal values give equal text");
}

/* Members that are null count as absent in merge patches, except in arrays. */
static void drop_nulls(json_t *value)
{
	const char *key;
	json_t *member;
	void *next;

	json_object_foreach_safe(value, next, key, member)
	{
		if (json_is_null(member))
			(void)json_object_del(value, key);
		else
			drop_nulls(member);
	}
}

static void check_diff(const json_t *from, const json_t *to)
{
	json_auto_t *patch = json_merge_diff(from, to);
	json_auto_t *got = json_deep_copy(from);
	json_auto_t *want = json_deep_copy(to);
	json_auto_t *none = NULL;

	fuzz_check(!patch || json_object_size(patch) > 0, "a patch changes something");
	if (patch)
		json_merge_patch(got, patch);
	none = json_merge_diff(got, to);
	fuzz_check(!none, "nothing is left to change");
	drop_nulls(got);
	drop_nulls(want);
	fuzz_check(json_same(got, want), "apply(diff(a, b), a) is b");
}

/* Apart from what json.h says is ours: depth, and NUL. */
static void check_against_jansson(const char *text, size_t len, const json_t *value,
				  const struct err *err)
{
	json_error_t e;
	json_auto_t *other = json_loadb(
		text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

	if (memchr(text, '\0', len) || strstr(err->text, "nested deeper"))
		return;
	fuzz_check(!value == !other, "both take it, or none");
	if (value && !memmem(text, len, "\\u0000", 6))
		fuzz_check(json_same(value, other), "both read the same");
}

static json_t *parse(const char *text, size_t len)
{
	struct err err = {0};
	json_t *value = json_parse(text, len, &err);
	json_auto_t *object = json_parse_within(text, len, false, NULL);
	json_auto_t *list = json_parse_within(text, len, true, NULL);

	fuzz_check(!value == (err.class == ERR_INVALID), "an error comes exactly without a value");
	fuzz_check(!strchr(err.text, '\n'), "an error is one line");
	check_against_jansson(text, len, value, &err);
	fuzz_check(!value || (object && list), "what is read is read within bounds");
	if (len <= PARSE_WITHIN_MAX)
		fuzz_check(json_same(value, object) && json_same(value, list),
			   "what is small is read as it is");
	if (value)
		check_round_trip(value);
	return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *nul = size ? memchr(text, '\0', size) : NULL;
	size_t len = nul ? (size_t)(nul - text) : size;
	json_auto_t *a = parse(text, len);
	json_auto_t *b = nul ? parse(nul + 1, size - len - 1) : NULL;

	if (json_is_object(a) && json_is_object(b)) {
		check_diff(a, b);
		check_diff(b, a);
		check_diff(a, a);
	}
	return 0;
}

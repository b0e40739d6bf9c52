// SPDX-License-Identifier: Apache-2.0
/* Messages as kubectl sends them, to JSON. */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/api/protobuf.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* A field with a length: its tag, the length, and the bytes. */
static void add(struct strbuf *out, unsigned int number, const void *data, size_t len)
{
	strbuf_addc(out, (char)(number << 3 | 2));
	assert_true(len < 128);
	strbuf_addc(out, (char)len);
	strbuf_add(out, data, len);
}

static void add_text(struct strbuf *out, unsigned int number, const char *text)
{
	add(out, number, text, strlen(text));
}

/* In its envelope, as kubectl's Unknown. */
static json_t *read(const char *kind, const struct strbuf *message, struct err *err)
{
	auto_strbuf struct strbuf type = {0}, out = {0};

	add_text(&type, 1, "v1");
	add_text(&type, 2, kind);
	strbuf_add(&out, "k8s", 4);
	add(&out, 1, type.data, type.len);
	add(&out, 2, strbuf_str(message), message->len);
	return protobuf_object(out.data, out.len, err);
}

TEST(reads_a_secret)
{
	auto_strbuf struct strbuf meta = {0}, entry = {0}, message = {0};
	json_auto_t *object = NULL;
	struct err err = {0};

	add_text(&meta, 1, "s");
	add_text(&meta, 2, "");
	add_text(&entry, 1, "key");
	add_text(&entry, 2, "value");
	add(&message, 1, meta.data, meta.len);
	add(&message, 2, entry.data, entry.len);
	add_text(&message, 3, "Opaque");
	strbuf_add(&message, "\x28\x01", 2); /* immutable */
	object = read("Secret", &message, &err);
	assert_non_null(object);
	assert_string_equal(json_name(object), "s");
	assert_null(json_at(object, "metadata", "generateName"));
	assert_string_equal(json_str_at(object, "data", "key"), "dmFsdWU=");
	assert_string_equal(json_str_at(object, "type"), "Opaque");
	assert_true(json_is_true(json_at(object, "immutable")));
	assert_string_equal(json_str_at(object, "apiVersion"), "v1");
}

TEST(refuses_kinds_and_fields_that_it_does_not_know)
{
	auto_strbuf struct strbuf message = {0};
	struct err err = {0};

	assert_null(read("Pod", &message, &err));
	assert_string_equal(err.reason, "UnsupportedMediaType");
	add_text(&message, 9, "x");
	assert_null(read("Namespace", &message, &err));
	assert_string_equal(err.reason, "UnsupportedMediaType");
	assert_non_null(strstr(err.text, "field 9"));
}

TEST(refuses_what_is_no_message)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{"", 0},
		{"k8s", 3},
		{"{}  ", 4},
		{"k8s\0\x0a\x7f", 6},             /* longer than what there is */
		{"k8s\0\x0d\x01\x01\x01\x01", 9}, /* a fixed32 */
		{"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 15},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(protobuf_object(cases[i].bytes, cases[i].len, &err));
		assert_string_equal(err.reason, "BadProtobuf");
	}
}

TEST(refuses_a_field_of_another_type)
{
	auto_strbuf struct strbuf message = {0};
	struct err err = {0};

	strbuf_add(&message, "\x08\x01", 2); /* metadata is a message, not a number */
	assert_null(read("Namespace", &message, &err));
	assert_string_equal(err.reason, "BadProtobuf");
}

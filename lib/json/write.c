// SPDX-License-Identifier: Apache-2.0
/* jansson's values to text, straight into a buffer: bodies of requests and what caches keep. */
#include <assert.h>

#include "lib/json/json.h"

/* Digits of an int64_t with its sign. */
#define INTEGER_MAX 20

static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

static void add_escape(struct strbuf *out, char c)
{
	switch (c) {
	case '"':
		strbuf_add(out, "\\\"", 2);
		break;
	case '\\':
		strbuf_add(out, "\\\\", 2);
		break;
	case '\b':
		strbuf_add(out, "\\b", 2);
		break;
	case '\f':
		strbuf_add(out, "\\f", 2);
		break;
	case '\n':
		strbuf_add(out, "\\n", 2);
		break;
	case '\r':
		strbuf_add(out, "\\r", 2);
		break;
	case '\t':
		strbuf_add(out, "\\t", 2);
		break;
	default:
		strbuf_addf(out, "\\u%04X", (unsigned char)c);
	}
}

static void add_string(struct strbuf *out, const char *s, size_t len)
{
	const char *end = s + len;

	strbuf_reserve(out, len + 2);
	strbuf_addc(out, '"');
	while (s < end) {
		const char *run = s;

		while (s < end && is_plain(*s))
			s++;
		strbuf_add(out, run, (size_t)(s - run));
		if (s < end)
			add_escape(out, *s++);
	}
	strbuf_addc(out, '"');
}

static void add_integer(struct strbuf *out, int64_t value)
{
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char digits[INTEGER_MAX];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + left % 10);
	while (left /= 10);
	if (value < 0)
		digits[--at] = '-';
	strbuf_add(out, digits + at, sizeof(digits) - at);
}

static void add_object(struct strbuf *out, json_t *object)
{
	char before = '{';

	if (json_object_size(object) == 0)
		strbuf_addc(out, '{');
	for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
		strbuf_addc(out, before);
		add_string(out, json_object_iter_key(i), json_object_iter_key_len(i));
		strbuf_addc(out, ':');
		json_write(json_object_iter_value(i), out);
		before = ',';
	}
	strbuf_addc(out, '}');
}

static void add_array(struct strbuf *out, const json_t *array)
{
	size_t n = json_array_size(array);

	strbuf_addc(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			strbuf_addc(out, ',');
		json_write(json_array_get(array, i), out);
	}
	strbuf_addc(out, ']');
}

void json_write(const json_t *value, struct strbuf *out)
{
	char text[64];
	size_t len;

	assert(value);
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		add_object(out, (json_t *)value);
		break;
	case JSON_ARRAY:
		add_array(out, value);
		break;
	case JSON_STRING:
		add_string(out, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		add_integer(out, json_integer_value(value));
		break;
	case JSON_REAL:
		/* As jansson does, which knows how many digits bring the same number back. Rare. */
		len = json_dumpb(value, text, sizeof(text), JSON_ENCODE_ANY);
		assert(len > 0 && len <= sizeof(text));
		strbuf_add(out, text, len);
		break;
	case JSON_TRUE:
		strbuf_add(out, "true", 4);
		break;
	case JSON_FALSE:
		strbuf_add(out, "false", 5);
		break;
	case JSON_NULL:
		strbuf_add(out, "null", 4);
		break;
	}
}

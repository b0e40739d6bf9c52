// SPDX-License-Identifier: Apache-2.0
/* JSON values to YAML, in block style, as people read it. See yaml.h. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "lib/json/yaml_scalar.h"

/* Blanks that a level is further in. */
#define INDENT 2

/*
 * Does it mean itself without quotes, for every reader? A letter has to come first: what begins
 * with a digit may be a date or a number in base 60 somewhere.
 */
static bool is_plain(const char *text)
{
	json_auto_t *value = NULL;

	if (!isalpha((unsigned char)*text) && *text != '/' && *text != '_')
		return false;
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(" -_./:+=@%~^()", *c))
			return false;
	if (strstr(text, ": ") || str_ends(text, ":") || str_ends(text, " "))
		return false;
	value = yaml_scalar_plain(text, NULL);
	return json_is_string(value);
}

/* YAML 1.2, 5.1: c-printable, without what readers take for a break of lines. */
static bool is_printable(uint32_t c)
{
	return (c >= 0x20 && c <= 0x7e) ||
	       (c >= 0xa0 && c <= 0xd7ff && c != 0x2028 && c != 0x2029) ||
	       (c >= 0xe000 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
}

/* The character at s, which is `len` bytes of valid UTF-8. */
static uint32_t character(const char *s, size_t len)
{
	uint32_t c = (unsigned char)s[0];

	if (len > 1)
		c &= 0x7fu >> len;
	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

static void add_quoted(struct strbuf *out, const char *s, size_t len)
{
	const char *end = s + len;

	strbuf_addc(out, '"');
	while (s < end) {
		size_t n = str_utf8_len(s, (size_t)(end - s));
		uint32_t c = character(s, n);

		if (c == '"' || c == '\\')
			strbuf_addc(out, '\\');
		if (c == '\n')
			strbuf_adds(out, "\\n");
		else if (is_printable(c))
			strbuf_add(out, s, n);
		else
			strbuf_addf(out, "\\U%08X", c);
		s += n;
	}
	strbuf_addc(out, '"');
}

static void add_string(struct strbuf *out, const char *text, size_t len)
{
	if (is_plain(text))
		strbuf_add(out, text, len);
	else
		add_quoted(out, text, len);
}

static void add_value(struct strbuf *out, const json_t *value, int depth);

static void indent(struct strbuf *out, int depth)
{
	strbuf_addf(out, "%*s", depth * INDENT, "");
}

static bool is_empty(const json_t *value)
{
	return json_object_size(value) == 0 && json_array_size(value) == 0;
}

/* The first line continues the one that is begun. */
static void add_members(struct strbuf *out, const json_t *object, int depth)
{
	const char *key;
	bool is_first = true;
	json_t *value;

	json_each (object, key, value) {
		if (!is_first)
			indent(out, depth);
		is_first = false;
		add_string(out, key, strlen(key));
		strbuf_addc(out, ':');
		if (json_is_object(value) && !is_empty(value)) {
			strbuf_addc(out, '\n');
			indent(out, depth + 1);
			add_members(out, value, depth + 1);
		} else if (json_is_array(value) && !is_empty(value)) {
			/* Items stand as far in as their key, as kubectl writes them. */
			strbuf_addc(out, '\n');
			indent(out, depth);
			add_value(out, value, depth);
		} else {
			strbuf_addc(out, ' ');
			add_value(out, value, depth);
		}
	}
}

/* Ends with the end of a line. */
static void add_value(struct strbuf *out, const json_t *value, int depth)
{
	json_t *item;
	size_t i;

	if (json_is_object(value) && !is_empty(value)) {
		add_members(out, value, depth);
		return;
	}
	if (json_is_array(value) && !is_empty(value)) {
		json_array_foreach (value, i, item) {
			if (i > 0)
				indent(out, depth);
			strbuf_adds(out, "- ");
			add_value(out, item, depth + 1);
		}
		return;
	}
	if (json_is_string(value))
		add_string(out, json_string_value(value), json_string_length(value));
	else
		json_write(value, out);
	strbuf_addc(out, '\n');
}

void yaml_write(const json_t *value, struct strbuf *out)
{
	assert(out);
	add_value(out, value, 0);
}

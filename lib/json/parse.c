// SPDX-License-Identifier: Apache-2.0
/*
 * Text to jansson's values, in one pass and for texts of strangers: what it costs follows from the
 * text's length and from json_weight, whatever it says.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "lib/json/parse_within.h"

/*
 * Documents about many things of one kind say the same short strings again and again: drivers,
 * states, vendors. Of those last seen there is one value each, in as many places as needed. A
 * jansson string with other owners is not changed here.
 */
enum { SHARED_SLOTS = 128, SHARED_LEN_MAX = 32 };

struct parser {
	const char *text, *at, *end;
	size_t depth;
	/* Part of the value that is being made: it lives as long, or the parse has failed. */
	json_t *shared[SHARED_SLOTS];
	struct strbuf scratch; /* strings without their escapes, numbers with a NUL behind them */
	struct err *err;
	/* json_parse_within(): depth of an object's members; 0: no bounds */
	size_t objects_at;
	size_t left, left_of_all; /* values of this object, of all */
};

/* Bytes of a string: of the text, or of the scratch buffer until the next string. */
struct span {
	const char *data;
	size_t len;
	bool has_nul; /* there was one, and is U+FFFD now */
};

static int fail_parsing(const struct parser *p, const char *at, const char *what)
{
	const char *line_start = p->text, *newline = NULL;
	size_t line = 1;

	while ((newline = memchr(line_start, '\n', (size_t)(at - line_start)))) {
		line_start = newline + 1;
		line++;
	}
	return err_set(p->err, ERR_INVALID, "BadJson", "line %zu, column %zu: %s", line,
		       (size_t)(at - line_start) + 1, what);
}

/* Something else stands at `at`. */
static int unexpected(const struct parser *p, const char *at, const char *wanted)
{
	auto_free char *what = NULL;

	if (at < p->end && *at == '\0')
		return fail_parsing(p, at, "NUL byte");
	what = str_printf("%s expected%s", wanted, at == p->end ? ", the text ends" : "");
	return fail_parsing(p, at, what);
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->end &&
	       (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
}

static bool take_byte(struct parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* It stands for itself and ends nothing. */
static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/*
 * The same of eight bytes. Without a byte above 0x7f, subtracting 1 from each (or 0x20) sets a
 * highest bit only where a byte was 0 (or below 0x20).
 */
static bool are_plain(const char *s)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
	uint64_t bytes, quotes, backslashes;

	memcpy(&bytes, s, sizeof(bytes));
	quotes = bytes ^ (ones * '"');
	backslashes = bytes ^ (ones * '\\');
	return !((bytes | (bytes - ones * 0x20) | (quotes - ones) | (backslashes - ones)) & highs);
}

/*
 * The closing quote of the string that begins at `s`; NULL with an error. Escapes are not looked
 * at.
 */
static const char *find_quote(const struct parser *p, const char *s, bool *ret_escaped)
{
	for (;;) {
		size_t n = 0;

		while (p->end - s >= 8 && are_plain(s))
			s += 8;
		while (s < p->end && is_plain(*s))
			s++;
		if (s == p->end || *s == '\0') {
			unexpected(p, s, "closing quote");
			return NULL;
		}
		if (*s == '"')
			return s;
		if (*s == '\\') {
			*ret_escaped = true;
			if (++s == p->end || *s == '\0') {
				unexpected(p, s, "escape");
				return NULL;
			}
			/* An escape of more than one byte goes on with plain ones. */
			n = is_plain(*s) || *s == '"' || *s == '\\';
		} else if ((unsigned char)*s >= 0x80) {
			n = str_utf8_len(s, (size_t)(p->end - s));
		}
		if (n == 0) {
			fail_parsing(p, s,
				     (unsigned char)*s < 0x20 ? "control character in a string"
							      : "not UTF-8");
			return NULL;
		}
		s += n;
	}
}

/* The four digits behind "\u", or -1. */
static int32_t hex4(const char *s, const char *end)
{
	int32_t value = 0;

	if (end - s < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = s[i];

		value *= 16;
		if (c >= '0' && c <= '9')
			value += c - '0';
		else if (c >= 'a' && c <= 'f')
			value += c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			value += c - 'A' + 10;
		else
			return -1;
	}
	return value;
}

static size_t put_utf8(char *out, int32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* `*s` is behind "\u" and moves on; the character, or -1. */
static int32_t unicode_escape(const char **s, const char *end)
{
	int32_t c = hex4(*s, end), low = 0;

	if (c < 0)
		return -1;
	if (c < 0xd800 || c > 0xdfff) {
		*s += 4;
		return c;
	}
	if (c > 0xdbff || end - *s < 10 || (*s)[4] != '\\' || (*s)[5] != 'u')
		return -1;
	low = hex4(*s + 6, end);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	*s += 10;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

/* `c` behind a backslash, for those that are one byte; 0 for others. */
static char simple_escape(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/':
		return c;
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return '\0';
	}
}

/* From `s` to `end` without escapes, which make it no longer. */
static int unescape(struct parser *p, const char *s, const char *end, struct span *ret)
{
	char *out = NULL;

	strbuf_reset(&p->scratch);
	strbuf_reserve(&p->scratch, (size_t)(end - s));
	out = p->scratch.data;
	while (s < end) {
		const char *escape = s;
		int32_t c = 0;

		if (*s != '\\') {
			*out++ = *s++;
			continue;
		}
		c = (unsigned char)simple_escape(s[1]);
		s += 2;
		if (c == 0 && s[-1] == 'u') {
			c = unicode_escape(&s, end);
			ret->has_nul = ret->has_nul || c == 0;
			/* Keeping it would cut the string for readers of C strings; see json.h. */
			if (c == 0)
				c = 0xfffd;
		} else if (c == 0) {
			c = -1;
		}
		if (c < 0)
			return fail_parsing(p, escape, "not an escape that JSON has");
		out += put_utf8(out, c);
	}
	ret->data = p->scratch.data;
	ret->len = (size_t)(out - p->scratch.data);
	return 0;
}

static int parse_string(struct parser *p, struct span *ret)
{
	const char *start = p->at + 1, *end = NULL;
	bool escaped = false;

	*ret = (struct span){0};
	if (p->at == p->end || *p->at != '"')
		return unexpected(p, p->at, "quoted key");
	end = find_quote(p, start, &escaped);
	if (!end)
		return -1;
	p->at = end + 1;
	if (escaped)
		return unescape(p, start, end, ret);
	ret->data = start;
	ret->len = (size_t)(end - start);
	return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool skip_digits(struct parser *p)
{
	const char *start = p->at;

	while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
		p->at++;
	return p->at > start;
}

/* Counted downwards, since there is one more negative number. */
static json_t *integer_of(const struct parser *p, const char *start)
{
	bool negative = *start == '-';
	int64_t n = 0;

	for (const char *s = start + negative; s < p->at; s++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *s - '0', &n)) {
			fail_parsing(p, start, "too big integer");
			return NULL;
		}
	if (!negative && n == INT64_MIN) {
		fail_parsing(p, start, "too big integer");
		return NULL;
	}
	return json_integer(negative ? n : -n);
}

/* No program of ours sets a locale, so strtod(3) reads a point. */
static json_t *real_of(struct parser *p, const char *start)
{
	double value = 0;

	strbuf_reset(&p->scratch);
	strbuf_add(&p->scratch, start, (size_t)(p->at - start));
	value = strtod(p->scratch.data, NULL);
	if (isinf(value)) {
		fail_parsing(p, start, "real number overflow");
		return NULL;
	}
	return json_real(value);
}

static json_t *parse_number(struct parser *p)
{
	const char *start = p->at;
	bool is_real = false;

	(void)take_byte(p, '-');
	if (!take_byte(p, '0') && !skip_digits(p)) {
		unexpected(p, p->at, p->at == start ? "value" : "digit");
		return NULL;
	}
	if (take_byte(p, '.')) {
		is_real = true;
		if (!skip_digits(p)) {
			unexpected(p, p->at, "digit");
			return NULL;
		}
	}
	if (take_byte(p, 'e') || take_byte(p, 'E')) {
		is_real = true;
		if (!take_byte(p, '+'))
			(void)take_byte(p, '-');
		if (!skip_digits(p)) {
			unexpected(p, p->at, "digit");
			return NULL;
		}
	}
	return is_real ? real_of(p, start) : integer_of(p, start);
}

/* ---- strings as values ----------------------------------------------------------------------- */

/* FNV-1a */
static size_t slot_of(const struct span *string)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < string->len; i++)
		hash = (hash ^ (unsigned char)string->data[i]) * 16777619U;
	return hash % SHARED_SLOTS;
}

static json_t *string_of(struct parser *p, const struct span *string)
{
	json_t **slot, *value;

	if (string->len > SHARED_LEN_MAX)
		return json_stringn_nocheck(string->data, string->len);
	slot = &p->shared[slot_of(string)];
	value = *slot;
	if (value && json_string_length(value) == string->len &&
	    memcmp(json_string_value(value), string->data, string->len) == 0)
		return json_incref(value);
	*slot = json_stringn_nocheck(string->data, string->len);
	return *slot;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Is there room for one more value in the array or object that is being read? */
static bool has_room(struct parser *p)
{
	if (p->objects_at == 0 || p->depth < p->objects_at)
		return true;
	if (p->left > 0) {
		p->left--;
		return true;
	}
	/* Members of an object and of its spec stay; what is in these has no room, either. */
	return p->depth < p->objects_at + 2;
}

/* ---- values ---------------------------------------------------------------------------------- */

static json_t *parse_value(struct parser *p);

static json_t *parse_array(struct parser *p)
{
	json_auto_t *array = json_array();
	json_int_t n = 0, crowded = 0; /* crowded: it is to be a number */

	p->at++;
	skip_blanks(p);
	if (take_byte(p, ']'))
		return take_ptr(array);
	for (;;) {
		json_t *value = parse_value(p);

		if (!value)
			return NULL;
		n++;
		json_array_append_new(array, value);
		crowded |= !has_room(p);
		if (crowded)
			json_array_clear(array);
		skip_blanks(p);
		if (take_byte(p, ']'))
			return crowded ? json_integer(n) : take_ptr(array);
		if (!take_byte(p, ',')) {
			unexpected(p, p->at, "comma or ]");
			return NULL;
		}
		skip_blanks(p);
	}
}

static int parse_member(struct parser *p, json_t *object)
{
	const char *start = p->at;
	auto_free char *copy = NULL;
	struct span key;
	json_t *value = NULL;
	size_t size = json_object_size(object);

	if (parse_string(p, &key) < 0)
		return -1;
	if (key.has_nul)
		return fail_parsing(p, start, "NUL character in a key");
	if (key.data == p->scratch.data) {
		copy = str_ndup(key.data, key.len);
		key.data = copy;
	}
	skip_blanks(p);
	if (!take_byte(p, ':'))
		return unexpected(p, p->at, "colon");
	skip_blanks(p);
	value = parse_value(p);
	if (!value)
		return -1;
	json_object_setn_new_nocheck(object, key.data, key.len, value);
	if (json_object_size(object) == size)
		return fail_parsing(p, start, "duplicate object key");
	return 0;
}

static json_t *parse_object(struct parser *p)
{
	json_auto_t *object = json_object();
	json_int_t n = 0, crowded = 0;

	p->at++;
	skip_blanks(p);
	if (take_byte(p, '}'))
		return take_ptr(object);
	for (;;) {
		if (parse_member(p, object) < 0)
			return NULL;
		n++;
		crowded |= !has_room(p);
		if (crowded)
			json_object_clear(object);
		skip_blanks(p);
		if (take_byte(p, '}'))
			return crowded ? json_integer(n) : take_ptr(object);
		if (!take_byte(p, ',')) {
			unexpected(p, p->at, "comma or }");
			return NULL;
		}
		skip_blanks(p);
	}
}

static json_t *parse_nested(struct parser *p)
{
	bool is_whole = p->depth + 1 == p->objects_at;
	json_t *value = NULL;
	size_t left;

	if (p->depth == JSON_MAX_DEPTH) {
		auto_free char *what = str_printf("nested deeper than %d levels", JSON_MAX_DEPTH);

		fail_parsing(p, p->at, what);
		return NULL;
	}
	if (is_whole)
		p->left = p->left_of_all < PARSE_WITHIN_MAX ? p->left_of_all : PARSE_WITHIN_MAX;
	left = p->left;
	p->depth++;
	value = *p->at == '{' ? parse_object(p) : parse_array(p);
	p->depth--;
	/* Its values went; those behind it have their room. */
	if (json_is_integer(value))
		p->left = left;
	if (is_whole)
		p->left_of_all -= left - p->left;
	return value;
}

static bool take_word(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(p->end - p->at) < len || memcmp(p->at, word, len) != 0)
		return false;
	p->at += len;
	return true;
}

static json_t *parse_value(struct parser *p)
{
	struct span string;

	if (p->at == p->end)
		return parse_number(p); /* which says that nothing is there */
	switch (*p->at) {
	case '{':
	case '[':
		return parse_nested(p);
	case '"':
		return parse_string(p, &string) < 0 ? NULL : string_of(p, &string);
	case 't':
		if (take_word(p, "true"))
			return json_true();
		break;
	case 'f':
		if (take_word(p, "false"))
			return json_false();
		break;
	case 'n':
		if (take_word(p, "null"))
			return json_null();
		break;
	default:
		return parse_number(p);
	}
	unexpected(p, p->at, "value");
	return NULL;
}

static json_t *parse_text(struct parser *p)
{
	json_auto_t *value = NULL;

	skip_blanks(p);
	value = parse_value(p);
	skip_blanks(p);
	if (value && p->at < p->end) {
		unexpected(p, p->at, "end of text");
		json_decref(take_ptr(value));
	}
	strbuf_done(&p->scratch);
	return take_ptr(value);
}

json_t *json_parse(const char *text, size_t len, struct err *err)
{
	struct parser p = {.text = text, .at = text, .end = text + len, .err = err};

	assert(text);
	return parse_text(&p);
}

json_t *json_parse_within(const char *text, size_t len, bool is_list, struct err *err)
{
	struct parser p = {.text = text,
			   .at = text,
			   .end = text + len,
			   .err = err,
			   .objects_at = is_list ? 3 : 1,
			   .left_of_all = PARSE_WITHIN_OBJECTS * (size_t)PARSE_WITHIN_MAX};

	assert(text);
	return parse_text(&p);
}

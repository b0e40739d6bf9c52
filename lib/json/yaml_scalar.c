// SPDX-License-Identifier: Apache-2.0
/*
 * What a YAML scalar stands for, as kubectl sees it. Facts: kubernetes-sigs/yaml,
 * goyaml.v2/resolve.go.
 */
#include "lib/json/yaml_scalar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/json/json.h"

/* Bytes of a scalar that a message quotes. */
#define QUOTE_MAX 40

#define TWO_63 9223372036854775808.0

static int quote_len(const char *text)
{
	return (int)str_clip(text, strlen(text), QUOTE_MAX);
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

/* A null or a boolean; NULL if it is none. Returns new. */
static json_t *resolve_word(const char *text)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const trues[] = {
		"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y", NULL,
	};
	static const char *const falses[] = {
		"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N", NULL,
	};

	if (is_one_of(text, nulls))
		return json_null();
	if (is_one_of(text, trues))
		return json_true();
	if (is_one_of(text, falses))
		return json_false();
	return NULL;
}

static bool is_not_finite(const char *text)
{
	static const char *const words[] = {
		".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF", "+.inf",
		"+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", NULL,
	};

	return is_one_of(text, words);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* The base by the prefix, which *s moves behind. */
static int take_base(const char **s)
{
	int base = 8;

	if ((*s)[0] != '0' || (*s)[1] == '\0')
		return 10;
	switch ((*s)[1]) {
	case 'x':
	case 'X':
		base = 16;
		break;
	case 'b':
	case 'B':
		base = 2;
		break;
	case 'o':
	case 'O':
		break;
	default:
		*s += 1;
		return 8;
	}
	*s += 2;
	return base;
}

enum integer {
	INTEGER_NOT,
	INTEGER_FITS,
	INTEGER_TOO_LARGE,
};

static enum integer parse_integer(const char *s, int64_t *ret)
{
	bool negative = *s == '-';
	bool fits = true;
	int64_t n = 0;
	int base;

	if (*s == '-' || *s == '+')
		s++;
	base = take_base(&s);
	if (!*s)
		return INTEGER_NOT;

	for (; *s; s++) {
		int digit = digit_value(*s);

		if (digit >= base)
			return INTEGER_NOT;
		/*
		 * Counted away from zero on its own side: the smallest number has no counterpart.
		 */
		fits = fits && !__builtin_mul_overflow(n, base, &n) &&
		       !__builtin_add_overflow(n, negative ? -digit : digit, &n);
	}
	*ret = n;
	return fits ? INTEGER_FITS : INTEGER_TOO_LARGE;
}

static size_t skip_digits(const char **s)
{
	size_t n = strspn(*s, "0123456789");

	*s += n;
	return n;
}

/* [sign] (digits [. [digits]] | . digits) [e [sign] digits] */
static bool is_float(const char *s)
{
	size_t digits;

	s += *s == '-' || *s == '+';
	digits = skip_digits(&s);
	if (*s == '.') {
		s++;
		digits += skip_digits(&s);
	}
	if (digits == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		if (skip_digits(&s) == 0)
			return false;
	}
	return *s == '\0';
}

/* NULL if it is too large for a double: a string, then. Returns new. */
static json_t *float_new(const char *text)
{
	double d = strtod(text, NULL);

	if (!isfinite(d))
		return NULL;
	/* 2^63 has no int64_t; -0.0 is a whole number without one, too. */
	if (d >= -TWO_63 && d < TWO_63 && d == (double)(int64_t)d && !(d == 0 && signbit(d)))
		return json_integer((int64_t)d);
	return json_real(d);
}

/* NULL without an error if it is not a number. Returns new. */
static json_t *resolve_number(const char *text, struct err *err, bool *ret_failed)
{
	auto_strbuf struct strbuf plain = {0};
	int64_t n = 0;

	if (!strchr("+-.0123456789", *text))
		return NULL;
	if (is_not_finite(text)) {
		*ret_failed = true;
		(void)err_set(err, ERR_INVALID, "BadYaml", "%s is not a number that JSON has",
			      text);
		return NULL;
	}

	/* Underscores can be anywhere, but in what begins with a dot only between digits. */
	for (const char *c = text; *c; c++)
		if (*c != '_' || (*text == '.' && !(is_digit(c[-1]) && is_digit(c[1]))))
			strbuf_addc(&plain, *c);
	switch (parse_integer(strbuf_str(&plain), &n)) {
	case INTEGER_FITS:
		return json_integer(n);
	case INTEGER_TOO_LARGE:
		*ret_failed = true;
		(void)err_set(err, ERR_INVALID, "BadYaml",
			      "integer %.*s does not fit into 64 bits; if it is text, quote it",
			      quote_len(text), text);
		return NULL;
	case INTEGER_NOT:
		break;
	}
	return is_float(strbuf_str(&plain)) ? float_new(strbuf_str(&plain)) : NULL;
}

json_t *yaml_scalar_plain(const char *text, struct err *err)
{
	bool failed = false;
	json_t *value = resolve_word(text);

	if (!value)
		value = resolve_number(text, err, &failed);
	return value || failed ? value : json_string(text);
}

static bool fits_tag(const char *tag, const json_t *value)
{
	if (str_eq(tag, YAML_INT_TAG))
		return json_is_integer(value);
	if (str_eq(tag, YAML_FLOAT_TAG))
		return json_is_number(value);
	if (str_eq(tag, YAML_BOOL_TAG))
		return json_is_boolean(value);
	return str_eq(tag, YAML_NULL_TAG) && json_is_null(value);
}

json_t *yaml_scalar_tagged(const char *tag, const char *text, struct err *err)
{
	static const char *const strings[] = {"!", YAML_STR_TAG, YAML_TIMESTAMP_TAG, NULL};
	static const char *const others[] = {
		YAML_INT_TAG, YAML_FLOAT_TAG, YAML_BOOL_TAG, YAML_NULL_TAG, NULL,
	};
	json_auto_t *value = NULL;

	if (is_one_of(tag, strings))
		return json_string(text);
	if (!is_one_of(tag, others)) {
		(void)err_set(err, ERR_INVALID, "BadYaml", "tag %.*s is not supported for a scalar",
			      quote_len(tag), tag);
		return NULL;
	}

	value = yaml_scalar_plain(text, err);
	if (!value)
		return NULL;
	if (!fits_tag(tag, value)) {
		(void)err_set(err, ERR_INVALID, "BadYaml", "\"%.*s\" does not fit its tag !!%s",
			      quote_len(text), text, strrchr(tag, ':') + 1);
		return NULL;
	}
	return take_ptr(value);
}

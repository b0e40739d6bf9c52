// SPDX-License-Identifier: Apache-2.0
/*
 * Go's regular expressions (RE2) to POSIX extended ones, for what both have: characters, classes,
 * groups, alternatives, repetition, anchors. Only whether a name matches is asked for, so that lazy
 * repetition and captures make no difference.
 *
 * Patterns come from users. What the C library makes of a repeat count is a copy per count, so
 * their product is bounded.
 */
#include <ctype.h>
#include <string.h>

#include "lib/base/str.h"
#include "nodeagent/pools/pools_internal.h"

#define PATTERN_MAX  256
#define EXPANDED_MAX 2048
#define ASCII        128

/* Members of a class among the characters that a name may have. */
struct class
{
	bool has[ASCII];
};

struct translation {
	const char *pattern;
	const char *at;
	struct strbuf out;
	/*
	 * Sizes once repeats are written out: of the open groups, innermost last, and of the last
	 * atom; 0: none to repeat.
	 */
	long size[PATTERN_MAX + 1];
	size_t depth;
	long atom;
	struct err *err;
};

static int refuse(struct translation *t, const char *what)
{
	return err_set(t->err, ERR_INVALID, "BadDeviceList", "\"%s\": %s", t->pattern, what);
}

/* ---- classes --------------------------------------------------------------------------------- */

static int is_word(int c)
{
	return isalnum(c) || c == '_';
}

/* \d \s \w and their opposites; false for any other letter. */
static bool class_of_escape(char letter, struct class *ret)
{
	for (int c = 1; c < ASCII; c++) {
		bool in;

		switch (tolower((unsigned char)letter)) {
		case 'd':
			in = isdigit(c);
			break;
		case 's':
			in = strchr("\t\n\f\r ", c) != NULL;
			break;
		case 'w':
			in = is_word(c);
			break;
		default:
			return false;
		}
		ret->has[c] = ret->has[c] || in != (isupper((unsigned char)letter) != 0);
	}
	return true;
}

/*
 * A bracket expression in which nothing is special by where it stands: ']' first, "[" and "^" late,
 * "-" last.
 */
static void put_class(struct translation *t, const struct class *class)
{
	size_t start;

	strbuf_addc(&t->out, '[');
	start = t->out.len;
	if (class->has[']'])
		strbuf_addc(&t->out, ']');
	for (int c = 1; c < ASCII; c++)
		if (class->has[c] && !strchr("]^-[", c))
			strbuf_addc(&t->out, (char)c);
	if (class->has['['])
		strbuf_addc(&t->out, '[');
	if (t->out.len > start) {
		strbuf_adds(&t->out, class->has['^'] ? "^" : "");
		strbuf_adds(&t->out, class->has['-'] ? "-]" : "]");
		return;
	}
	/* Nothing to put in front of the "^". */
	strbuf_cut(&t->out, start - 1);
	strbuf_adds(&t->out, class->has['^'] ? class->has['-'] ? "[-^]" : "\\^" : "[-]");
}

/* One character in brackets, possibly escaped. -1: none such. */
static int class_char(struct translation *t)
{
	char c = *t->at;

	if (c == '\\') {
		c = *++t->at;
		if (!ispunct((unsigned char)c))
			return -1;
	}
	if (c == '\0')
		return -1;
	t->at++;
	return (unsigned char)c;
}

static int named_class(struct translation *t, struct class *ret)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} rows[] = {
		{"[:alnum:]", isalnum}, {"[:alpha:]", isalpha}, {"[:blank:]", isblank},
		{"[:digit:]", isdigit}, {"[:graph:]", isgraph}, {"[:lower:]", islower},
		{"[:print:]", isprint}, {"[:punct:]", ispunct}, {"[:space:]", isspace},
		{"[:upper:]", isupper}, {"[:word:]", is_word},  {"[:xdigit:]", isxdigit},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!str_starts(t->at, rows[i].name))
			continue;
		for (int c = 1; c < ASCII; c++)
			ret->has[c] = ret->has[c] || rows[i].is(c);
		t->at += strlen(rows[i].name);
		return 0;
	}
	return refuse(t, "a class like [:this:] is not known");
}

static int class_range(struct translation *t, struct class *ret)
{
	int first = class_char(t), last = first;

	if (first < 0)
		return refuse(t, "brackets end or escape in a way that is not known");
	if (t->at[0] == '-' && t->at[1] != ']') {
		t->at++;
		last = class_char(t);
		if (last < first)
			return refuse(t, "a range in brackets is not in order");
	}
	for (int c = first; c <= last; c++)
		ret->has[c] = true;
	return 0;
}

static int class_item(struct translation *t, struct class *ret)
{
	if (t->at[0] == '[' && t->at[1] == ':')
		return named_class(t, ret);
	if (t->at[0] == '\\' && class_of_escape(t->at[1], ret)) {
		t->at += 2;
		return 0;
	}
	return class_range(t, ret);
}

/*
 * Not in a name below /dev, so that leaving other characters out of an inverted class makes no
 * difference.
 */
static void invert(struct class *class)
{
	for (int c = 1; c < ASCII; c++)
		class->has[c] = !class->has[c];
}

static bool is_empty(const struct class *class)
{
	for (int c = 1; c < ASCII; c++)
		if (class->has[c])
			return false;
	return true;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* An atom of this size was written. */
static int grow(struct translation *t, long atom, long by)
{
	t->atom = atom;
	t->size[t->depth] += by;
	if (t->size[t->depth] > EXPANDED_MAX)
		return refuse(t, "repeats too much");
	return 0;
}

static int brackets(struct translation *t)
{
	struct class class = {0};
	bool inverted = t->at[1] == '^';

	t->at += inverted ? 2 : 1;
	do {
		if (class_item(t, &class) < 0)
			return -1;
	} while (*t->at && *t->at != ']');
	if (!*t->at)
		return refuse(t, "a bracket is not closed");
	t->at++;
	if (inverted)
		invert(&class);
	if (is_empty(&class))
		return refuse(t, "brackets that hold no character");
	put_class(t, &class);
	return grow(t, 1, 1);
}

static int escape(struct translation *t)
{
	struct class class = {0};
	char c = t->at[1];

	t->at += c ? 2 : 1;
	if (c == 'A' || c == 'z') {
		strbuf_addc(&t->out, c == 'A' ? '^' : '$');
		t->atom = 0;
		return 0;
	}
	if (class_of_escape(c, &class)) {
		put_class(t, &class);
		return grow(t, 1, 1);
	}
	if (!ispunct((unsigned char)c))
		return refuse(t,
			      "an escape is not known; \\d, \\s, \\w, \\A, \\z are, and those of "
			      "special characters");
	/* Before an ordinary character a backslash has a meaning of its own here. */
	if (strchr(".[]()*+?{}|^$\\", c))
		strbuf_addc(&t->out, '\\');
	strbuf_addc(&t->out, c);
	return grow(t, 1, 1);
}

static int open_group(struct translation *t)
{
	t->at++;
	if (str_starts(t->at, "?:"))
		t->at += 2;
	else if (*t->at == '?')
		return refuse(t, "groups with flags or names are not supported");
	strbuf_addc(&t->out, '(');
	t->size[++t->depth] = 0;
	t->atom = 0;
	return 0;
}

static int close_group(struct translation *t)
{
	long inner = t->size[t->depth];

	if (t->depth == 0)
		return refuse(t, "a ) without (");
	t->at++;
	t->depth--;
	strbuf_addc(&t->out, ')');
	return grow(t, inner > 0 ? inner : 1, inner);
}

/* A decimal number; what is beyond all bounds stays just beyond them. */
static long number_at(const char **p)
{
	long value = 0;

	for (; isdigit((unsigned char)**p); (*p)++)
		value = value > EXPANDED_MAX ? value : 10 * value + (**p - '0');
	return value;
}

/* "{2}", "{2,}", "{2,5}" at p: its length, else 0. ret_times: how often the atom is written out. */
static size_t count_at(const char *p, long *ret_times)
{
	const char *end = p + 1;
	long min, max;

	if (!isdigit((unsigned char)*end))
		return 0;
	min = number_at(&end);
	max = min;
	if (*end == ',') {
		end++;
		max = *end == '}' ? min + 1 : number_at(&end);
	}
	if (*end != '}')
		return 0;
	*ret_times = max > min ? max : min;
	return (size_t)(end - p) + 1;
}

static int repeat(struct translation *t, size_t len, long times)
{
	if (t->atom == 0)
		return refuse(t, "there is nothing to repeat before a *, +, ? or {");
	if (times > EXPANDED_MAX)
		return refuse(t, "repeats too much");
	strbuf_add(&t->out, t->at, len);
	t->at += len;
	/* Lazy: the same names match. */
	if (*t->at == '?')
		t->at++;
	if (grow(t, 0, times > 1 ? t->atom * (times - 1) : 0) < 0)
		return -1;
	return 0;
}

static int literal(struct translation *t)
{
	char c = *t->at++;

	if (c == '{' || c == '}')
		strbuf_addc(&t->out, '\\');
	strbuf_addc(&t->out, c);
	return grow(t, 1, 1);
}

static int piece(struct translation *t)
{
	long times = 1;
	size_t len;

	switch (*t->at) {
	case '\\':
		return escape(t);
	case '[':
		return brackets(t);
	case '(':
		return open_group(t);
	case ')':
		return close_group(t);
	case '*':
	case '?':
		return repeat(t, 1, 1);
	case '+':
		return repeat(t, 1, 2);
	case '{':
		len = count_at(t->at, &times);
		return len ? repeat(t, len, times) : literal(t);
	case '|':
	case '^':
	case '$':
		strbuf_addc(&t->out, *t->at++);
		t->atom = 0;
		return 0;
	default:
		return literal(t);
	}
}

static int translate(struct translation *t)
{
	if (strlen(t->pattern) > PATTERN_MAX)
		return refuse(t, "is longer than 256 characters");
	for (const char *c = t->pattern; *c; c++)
		if (!isprint((unsigned char)*c))
			return refuse(t, "has a character that is not printable ASCII");
	while (*t->at)
		if (piece(t) < 0)
			return -1;
	return t->depth > 0 ? refuse(t, "a ( without )") : 0;
}

char *pools_regex_translate(const char *pattern, struct err *err)
{
	struct translation t = {.pattern = pattern, .at = pattern, .err = err};

	if (translate(&t) < 0) {
		strbuf_done(&t.out);
		return NULL;
	}
	return strbuf_take(&t.out);
}

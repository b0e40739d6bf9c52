// SPDX-License-Identifier: Apache-2.0
/*
 * One pass rewrites the pattern, and regcomp() takes the result. Escapes become bracket
 * expressions; each bracket expression is read into a set of bytes and written again as POSIX wants
 * it. Schemas of the simulated API server and lists of device files are compiled here once, and
 * matched often.
 */
#include "lib/base/pattern.h"

#include <assert.h>
#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

enum {
	ASCII = 128,
	DEPTH_MAX = 64,
	EXPANDED_MAX = 4096,
	REPEAT_MAX = 1000, /* RE2's */
	SUBJECT_MAX = 64 << 10,
};

struct pattern {
	regex_t regex;
};

struct set {
	bool has[ASCII];
};

struct translation {
	const char *at;
	struct strbuf out;
	/*
	 * Sizes once repetitions are written out: of the open groups, innermost last, and of the
	 * last atom; 0: there is nothing to repeat.
	 */
	long size[DEPTH_MAX];
	size_t depth;
	long atom;
	struct err *err;
};

static int refuse_pattern(struct translation *t, const char *what)
{
	return err_set(t->err, ERR_INVALID, "Invalid", "%s", what);
}

/* An atom of this size was written. */
static int grow_set(struct translation *t, long atom, long by)
{
	t->atom = atom;
	t->size[t->depth] += by;
	return t->size[t->depth] > EXPANDED_MAX
		       ? refuse_pattern(t, "repeats too much, or is too long")
		       : 0;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static int is_word(int c)
{
	return isalnum(c) || c == '_';
}

static int is_blank(int c)
{
	return strchr("\t\n\f\r ", c) != NULL;
}

static void add_class(struct set *set, int (*is)(int c), bool opposite)
{
	for (int c = 1; c < ASCII; c++)
		if ((is(c) != 0) != opposite)
			set->has[c] = true;
}

/* \d \s \w and their opposites; false for any other letter. */
static bool add_letter(struct set *set, char letter)
{
	int (*is)(int c) = NULL;

	switch (tolower((unsigned char)letter)) {
	case 'd':
		is = isdigit;
		break;
	case 's':
		is = is_blank;
		break;
	case 'w':
		is = is_word;
		break;
	default:
		return false;
	}
	add_class(set, is, isupper((unsigned char)letter));
	return true;
}

/* "[:digit:]" within brackets. */
static int add_named(struct translation *t, struct set *set)
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
		add_class(set, rows[i].is, false);
		t->at += strlen(rows[i].name);
		return 0;
	}
	return refuse_pattern(t, "a class like [:this:] is not known");
}

/*
 * A bracket expression in which nothing is special by where it stands: ']' first; '[' late, where
 * it does not open a class; then '^' and '-'. A '^' alone cannot come first.
 */
static void put_set(struct translation *t, const struct set *set, bool negated)
{
	size_t start;

	strbuf_adds(&t->out, negated ? "[^" : "[");
	start = t->out.len;
	if (set->has[']'])
		strbuf_addc(&t->out, ']');
	for (int c = 1; c < ASCII; c++)
		if (set->has[c] && !strchr("]-^[", c))
			strbuf_addc(&t->out, (char)c);
	if (set->has['['])
		strbuf_addc(&t->out, '[');
	if (set->has['^'] && t->out.len == start && !negated) {
		strbuf_cut(&t->out, start - 1);
		strbuf_adds(&t->out, set->has['-'] ? "[-^]" : "\\^");
		return;
	}
	strbuf_adds(&t->out, set->has['^'] ? "^" : "");
	strbuf_adds(&t->out, set->has['-'] ? "-]" : "]");
}

/* ---- brackets -------------------------------------------------------------------------------- */

/* What an escape stands for as one character; '\0' when it is none. */
static char escaped(char c)
{
	const char *letters = "tnrfv", *values = "\t\n\r\f\v";
	const char *at = c ? strchr(letters, c) : NULL;

	return at ? values[at - letters] : ispunct((unsigned char)c) ? c : '\0';
}

/* One character in brackets, possibly escaped. -1: the text ends, or it is none. */
static int member(struct translation *t)
{
	char c = *t->at;

	if (c == '\\')
		c = escaped(*++t->at);
	if (c == '\0')
		return -1;
	t->at++;
	return (unsigned char)c;
}

static int range(struct translation *t, struct set *set)
{
	int first = member(t), last = first;

	if (first < 0)
		return refuse_pattern(
			t, "a bracket expression ends or escapes in a way that is not known");
	if (t->at[0] == '-' && t->at[1] && t->at[1] != ']') {
		t->at++;
		last = member(t);
		if (last < first)
			return refuse_pattern(t, "a range in brackets is not in order");
	}
	for (int c = first; c <= last; c++)
		set->has[c] = true;
	return 0;
}

static int brackets(struct translation *t)
{
	bool negated = *t->at == '^';
	struct set set = {0};
	int result = 0;

	t->at += negated;
	do {
		if (t->at[0] == '[' && t->at[1] == ':')
			result = add_named(t, &set);
		else if (t->at[0] == '\\' && add_letter(&set, t->at[1]))
			t->at += 2;
		else
			result = range(t, &set);
	} while (result == 0 && *t->at && *t->at != ']');
	if (result < 0)
		return -1;
	if (!*t->at)
		return refuse_pattern(t, "a bracket expression does not end");
	t->at++;
	put_set(t, &set, negated);
	return grow_set(t, 1, 1);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int escape(struct translation *t)
{
	struct set set = {0};
	char c = *t->at;

	t->at += c != '\0';
	if (c == 'A' || c == 'z') {
		strbuf_addc(&t->out, c == 'A' ? '^' : '$');
		t->atom = 0;
		return 0;
	}
	if (add_letter(&set, c)) {
		put_set(t, &set, false);
		return grow_set(t, 1, 1);
	}
	c = escaped(c);
	if (c == '\0')
		return refuse_pattern(
			t, "an escape is not known; \\d, \\s, \\w, \\A, \\z are, and those of "
			   "special characters");
	/* Before an ordinary character a backslash has a meaning of its own in POSIX. */
	if (strchr(".[]()*+?{}|^$\\", c))
		strbuf_addc(&t->out, '\\');
	strbuf_addc(&t->out, c);
	return grow_set(t, 1, 1);
}

static int open_group(struct translation *t)
{
	if (*t->at == '?' && t->at[1] != ':')
		return refuse_pattern(t, "groups with flags or names are not supported");
	if (t->depth + 1 == DEPTH_MAX)
		return refuse_pattern(t, "groups are nested too deeply");
	t->at += *t->at == '?' ? 2 : 0;
	strbuf_addc(&t->out, '(');
	t->size[++t->depth] = 0;
	t->atom = 0;
	return 0;
}

/* A decimal number; what is beyond all bounds stays just beyond them. */
static long number_at(const char **p)
{
	long value = 0;

	for (; isdigit((unsigned char)**p); (*p)++)
		value = value > REPEAT_MAX ? value : 10 * value + (**p - '0');
	return value;
}

/* "2}", "2,}", "2,5}" at p: its length, else 0. ret_times: how often the atom is written out. */
static size_t count_at(const char *p, long *ret_times)
{
	const char *end = p;
	long least, most;

	if (!isdigit((unsigned char)*end))
		return 0;
	least = number_at(&end);
	most = least;
	if (*end == ',') {
		end++;
		most = *end == '}' ? least + 1 : number_at(&end);
	}
	if (*end != '}')
		return 0;
	*ret_times = most > least ? most : least;
	return (size_t)(end - p) + 1;
}

/* The operator and len more bytes; the atom before it is written out so many times. */
static int repeat(struct translation *t, size_t len, long times)
{
	if (t->atom == 0)
		return refuse_pattern(t, "there is nothing to repeat before a *, +, ? or {");
	if (times > REPEAT_MAX)
		return refuse_pattern(t, "repeats too much");
	strbuf_add(&t->out, t->at - 1, 1 + len);
	t->at += len;
	/* Lazy: the same texts match. */
	t->at += *t->at == '?';
	return grow_set(t, 0, times > 1 ? t->atom * (times - 1) : 0);
}

static int piece(struct translation *t)
{
	char c = *t->at++;
	long times = 1;
	size_t len;
	long inner;

	switch (c) {
	case '\\':
		return escape(t);
	case '[':
		return brackets(t);
	case '(':
		return open_group(t);
	case ')':
		inner = t->size[t->depth];
		if (t->depth == 0)
			return refuse_pattern(t, "a ) without (");
		t->depth--;
		strbuf_addc(&t->out, ')');
		return grow_set(t, inner > 0 ? inner : 1, inner);
	case '*':
	case '?':
		return repeat(t, 0, 1);
	case '+':
		return repeat(t, 0, 2);
	case '|':
	case '^':
	case '$':
		strbuf_addc(&t->out, c);
		t->atom = 0;
		return 0;
	default:
		break;
	}
	len = c == '{' ? count_at(t->at, &times) : 0;
	if (len > 0)
		return repeat(t, len, times);
	/* A brace that is not a count stands for itself in Go. */
	strbuf_adds(&t->out, c == '{' || c == '}' ? "\\" : "");
	strbuf_addc(&t->out, c);
	return grow_set(t, 1, 1);
}

static int translate(struct translation *t)
{
	for (const char *c = t->at; *c; c++)
		if ((unsigned char)*c >= ASCII)
			return refuse_pattern(t, "has a character that is not ASCII");
	while (*t->at)
		if (piece(t) < 0)
			return -1;
	return t->depth > 0 ? refuse_pattern(t, "a ( without )") : 0;
}

struct pattern *pattern_new(const char *text, struct err *err)
{
	struct translation t = {.at = text, .err = err};
	struct pattern *pattern = NULL;
	char why[128];
	int code;

	assert(text);
	if (translate(&t) == 0) {
		pattern = mem_new(struct pattern);
		code = regcomp(&pattern->regex, strbuf_str(&t.out), REG_EXTENDED | REG_NOSUB);
		if (code != 0) {
			(void)regerror(code, &pattern->regex, why, sizeof(why));
			(void)refuse_pattern(&t, why);
			mem_free(take_ptr(pattern));
		}
	}
	strbuf_done(&t.out);
	return pattern;
}

void pattern_free(void *arg)
{
	struct pattern *pattern = arg;

	if (!pattern)
		return;
	regfree(&pattern->regex);
	mem_free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *s)
{
	assert(s);
	return strlen(s) > SUBJECT_MAX || regexec(&pattern->regex, s, 0, NULL, 0) == 0;
}

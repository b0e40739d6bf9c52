// SPDX-License-Identifier: Apache-2.0
/*
 * A pattern is rewritten once, when a schema is compiled: escapes become bracket expressions, and
 * each bracket expression is read into a set of bytes and written again as POSIX wants it.
 */
#include "cli/simulate/objects/pattern.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

enum {
	PATTERN_MAX = 4096,
	SUBJECT_MAX = 64 << 10,
	REPEAT_MAX = 1000,
};

struct pattern {
	regex_t regex;
};

struct bytes {
	bool has[128];
};

struct translation {
	const char *at;
	struct strbuf out;
	long repeats; /* product of all repetitions so far */
	struct err *err;
};

static int refuse(struct translation *t, const char *what)
{
	return err_set(t->err, ERR_INVALID, "Invalid", "%s", what);
}

static void add_class(struct bytes *set, char name)
{
	for (int c = 1; c < 128; c++) {
		bool in = false;

		switch (tolower(name)) {
		case 'd':
			in = c >= '0' && c <= '9';
			break;
		case 'w':
			in = c == '_' || isalnum(c);
			break;
		default:
			in = strchr("\t\n\f\r ", c) != NULL;
		}
		if (in != (isupper((unsigned char)name) != 0))
			set->has[c] = true;
	}
}

/* What an escape stands for as one character; 0 when it is none. */
static char escaped(char c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 'f':
		return '\f';
	case 'v':
		return '\v';
	default:
		return ispunct((unsigned char)c) ? c : '\0';
	}
}

static void write_set(struct translation *t, const struct bytes *set, bool negated)
{
	strbuf_adds(&t->out, negated ? "[^" : "[");
	if (set->has[']'])
		strbuf_addc(&t->out, ']');
	/* A '[' before '.', ':' or '=' would open a class of POSIX. */
	for (int c = 1; c < 128; c++)
		if (set->has[c] && !strchr("]-^[", c))
			strbuf_addc(&t->out, (char)c);
	if (set->has['['])
		strbuf_addc(&t->out, '[');
	if (set->has['^'])
		strbuf_addc(&t->out, '^');
	if (set->has['-'])
		strbuf_addc(&t->out, '-');
	strbuf_addc(&t->out, ']');
}

/* One member of a bracket expression; 0 in *ret for a class, which is added. */
static int bracket_member(struct translation *t, struct bytes *set, char *ret)
{
	char c = *t->at++;

	if (c == '\\') {
		c = *t->at ? *t->at++ : '\0';
		if (c && strchr("dDwWsS", c)) {
			add_class(set, c);
			*ret = '\0';
			return 0;
		}
		c = escaped(c);
	}
	if (c == '\0' || (unsigned char)c >= 128)
		return refuse(t, "a bracket expression holds an escape or a character that is not "
				 "supported here");
	if (c == '[' && *t->at == ':')
		return refuse(t, "classes like [:alpha:] are not supported here");
	*ret = c;
	return 0;
}

static bool holds_any(const struct bytes *set)
{
	for (int c = 1; c < 128; c++)
		if (set->has[c])
			return true;
	return false;
}

static bool holds_only_caret(const struct bytes *set)
{
	for (int c = 1; c < 128; c++)
		if (set->has[c] != (c == '^'))
			return false;
	return true;
}

static int bracket(struct translation *t)
{
	struct bytes set = {0};
	bool negated = *t->at == '^';
	bool first = true;

	t->at += negated;
	while (*t->at && (first || *t->at != ']')) {
		char from = '\0', to = '\0';

		first = false;
		if (bracket_member(t, &set, &from))
			return -1;
		if (from == '\0')
			continue;
		to = from;
		if (t->at[0] == '-' && t->at[1] && t->at[1] != ']') {
			t->at++;
			if (bracket_member(t, &set, &to))
				return -1;
		}
		if ((unsigned char)to < (unsigned char)from)
			return refuse(t, "a range ends before it begins");
		for (int c = (unsigned char)from; c <= (unsigned char)to; c++)
			set.has[c] = true;
	}
	if (*t->at++ != ']')
		return refuse(t, "a bracket expression does not end");
	if (!holds_any(&set))
		return refuse(t, "a bracket expression is empty");
	if (holds_only_caret(&set) && !negated)
		strbuf_adds(&t->out, "\\^");
	else
		write_set(t, &set, negated);
	return 0;
}

static int escape(struct translation *t)
{
	char c = *t->at ? *t->at++ : '\0';
	struct bytes set = {0};

	if (c && strchr("dDwWsS", c)) {
		add_class(&set, (char)tolower(c));
		write_set(t, &set, isupper((unsigned char)c));
		return 0;
	}
	c = escaped(c);
	if (c == '\0')
		return refuse(t, "an escape that is not supported here");
	if (strchr(".[]()*+?{}|^$\\", c))
		strbuf_addc(&t->out, '\\');
	strbuf_addc(&t->out, c);
	return 0;
}

/* "{3}", "{3,}", "{3,5}" after the brace. */
static int repetition(struct translation *t)
{
	char *end = NULL;
	long least = 0, most = 0;

	if (!isdigit((unsigned char)*t->at))
		return refuse(t, "a brace that is no repetition has to be written \\{");
	least = strtol(t->at, &end, 10);
	most = least;
	if (*end == ',') {
		end++;
		if (isdigit((unsigned char)*end))
			most = strtol(end, &end, 10);
	}
	if (*end != '}' || least > REPEAT_MAX || most > REPEAT_MAX || most < least)
		return refuse(t, "a repetition is malformed, or more than 1000");
	t->repeats *= most > 1 ? most : 1;
	if (t->repeats > REPEAT_MAX)
		return refuse(t, "repetitions multiply to more than 1000");
	strbuf_addc(&t->out, '{');
	strbuf_add(&t->out, t->at, (size_t)(end + 1 - t->at));
	t->at = end + 1;
	return 0;
}

static int translate_one(struct translation *t)
{
	char c = *t->at++;

	switch (c) {
	case '\\':
		return escape(t);
	case '[':
		return bracket(t);
	case '(':
		if (*t->at == '?' && t->at[1] != ':')
			return refuse(t, "(?… is supported as (?:…) only");
		t->at += *t->at == '?' ? 2 : 0;
		break;
	case '{':
		if (repetition(t))
			return -1;
		t->at += *t->at == '?';
		return 0;
	case '*':
	case '+':
	case '?':
		/* Lazy or not makes no difference to whether there is a match. */
		t->at += *t->at == '?';
		break;
	default:
		break;
	}
	strbuf_addc(&t->out, c);
	return 0;
}

struct pattern *pattern_new(const char *text, struct err *err)
{
	struct translation t = {.at = text, .repeats = 1, .err = err};
	struct pattern *pattern = NULL;
	int fault = strlen(text) > PATTERN_MAX ? refuse(&t, "longer than 4096 bytes") : 0;

	while (!fault && *t.at)
		fault = translate_one(&t);
	if (!fault) {
		pattern = mem_new(struct pattern);
		if (regcomp(&pattern->regex, strbuf_str(&t.out), REG_EXTENDED | REG_NOSUB)) {
			fault = refuse(&t, "not a regular expression");
			mem_free(take_ptr(pattern));
		}
	}
	if (fault)
		err_in(err, "pattern \"%.200s\"", text);
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
	return strlen(s) > SUBJECT_MAX || regexec(&pattern->regex, s, 0, NULL, 0) == 0;
}

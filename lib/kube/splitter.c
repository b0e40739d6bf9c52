// SPDX-License-Identifier: Apache-2.0
/*
 * A push automaton over bytes: one token state, one small record per open bracket, two output
 * buffers.
 *
 * Commas are written when the next member is, so that a dropped member leaves no trace. Brackets,
 * colons and commas are checked; what stands between them (numbers, literals, escapes) is copied
 * for json_parse to judge. Below SPLITTER_MAX_DEPTH only strings and brackets are looked at, to
 * find the way out.
 */
#include "lib/kube/splitter.h"

#include <assert.h>
#include <string.h>

#define KEEP_MAX (64 * 1024)

void splitter_init(struct splitter *s, enum splitter_mode mode, const splitter_path *drops,
		   size_t n_drops, bool drop_prefixed, splitter_fn *fn, void *arg)
{
	assert(n_drops <= SPLITTER_MAX_DROPS);
	*s = (struct splitter){
		.mode = mode,
		.drops = drops,
		.n_drops = n_drops,
		.drop_prefixed = drop_prefixed,
		.fn = fn,
		.arg = arg,
	};
}

void splitter_done(struct splitter *s)
{
	strbuf_done(&s->text);
	strbuf_done(&s->rest);
	strbuf_done(&s->key);
	strbuf_done(&s->deep);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_scalar(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' ||
	       c == '.' || c == 'E';
}

static struct splitter_level *top(struct splitter *s)
{
	return s->depth ? &s->levels[s->depth - 1] : NULL;
}

static int bad_stream(struct splitter *s, const char *what, struct err *err)
{
	s->failed = true;
	return err_set(err, ERR_TRANSIENT, "BadStream", "the server's answer is not JSON: %s",
		       what);
}

/* Where the present byte goes: an element of the list, or everything else. */
static struct strbuf *output(struct splitter *s)
{
	return s->mode == SPLITTER_LIST && !s->in_items ? &s->rest : &s->text;
}

static int put(struct splitter *s, const char *bytes, size_t len, struct err *err)
{
	struct strbuf *out = output(s);

	if (s->skipping || s->full || s->deep.len > 0)
		return 0;
	if (len <= SPLITTER_MAX_OBJECT - out->len) {
		strbuf_add(out, bytes, len);
		return 0;
	}
	if (out == &s->rest) {
		s->failed = true;
		return err_set(err, ERR_TRANSIENT, "ObjectTooLarge",
			       "the server sent a list whose metadata has more than %d bytes",
			       SPLITTER_MAX_OBJECT);
	}
	s->full = true;
	s->unreadable = "larger than 32 MiB";
	return 0;
}

static int emit(struct splitter *s, struct strbuf *text, bool is_rest, struct err *err)
{
	const struct splitter_object object = {
		.text = strbuf_str(text),
		.len = text->len,
		.is_rest = is_rest,
		.unreadable = s->unreadable,
	};
	int result = s->fn(s->arg, &object, err);

	s->unreadable = NULL;
	s->full = false;

	/*
	 * A watch lives for minutes; what one large object needed is not kept for the next small
	 * one.
	 */
	if (text->cap > KEEP_MAX)
		strbuf_done(text);
	else
		strbuf_reset(text);
	if (result < 0)
		s->failed = true;
	return result;
}

/* A value is complete; its container, if any, is on top. */
static int value_ends(struct splitter *s, struct err *err)
{
	struct splitter_level *level = top(s);

	if (s->skipping && s->depth == s->skip_depth)
		s->skipping = false;
	if (level)
		level->state = SPLITTER_VALUE;
	if (s->mode == SPLITTER_STREAM && s->depth == 0)
		return emit(s, &s->text, false, err);
	if (s->in_items && s->depth == 2)
		return emit(s, &s->text, false, err);
	if (s->mode == SPLITTER_LIST && s->depth == 0) {
		s->done = true;
		return emit(s, &s->rest, true, err);
	}
	return 0;
}

/*
 * A value starts here: is one allowed, and does a comma go before it? Member names have written
 * theirs.
 */
static int value_begins(struct splitter *s, char first, struct err *err)
{
	struct splitter_level *level = top(s);

	if (!level && s->done)
		return bad_stream(s, "more bytes after its end", err);
	if (!level)
		return first == '{' ? 0 : bad_stream(s, "not an object", err);
	if (level->is_object)
		return level->state == SPLITTER_COLON
			       ? 0
			       : bad_stream(s, "a value without a name", err);
	if (level->state != SPLITTER_OPENED && level->state != SPLITTER_COMMA)
		return bad_stream(s, "two values without a comma", err);
	if (s->in_items && s->depth == 2)
		return 0;
	if (level->wrote && put(s, ",", 1, err) < 0)
		return -1;
	level->wrote = true;
	return 0;
}

static uint16_t all_drops(const struct splitter *s)
{
	return (uint16_t)((1U << s->n_drops) - 1);
}

/*
 * The value that begins here is too deep to be read: null stands for it, and its end is looked for.
 */
static int enter_the_deep(struct splitter *s, char bracket, struct err *err)
{
	if (output(s) == &s->rest)
		return bad_stream(s, "a list whose metadata is nested too deeply", err);
	if (put(s, "null", 4, err) < 0)
		return -1;
	if (!s->skipping)
		s->unreadable = "nested deeper than 64 levels";
	strbuf_addc(&s->deep, bracket);
	return 0;
}

/* A byte outside strings, below SPLITTER_MAX_DEPTH. */
static int deep_structure(struct splitter *s, char c, struct err *err)
{
	switch (c) {
	case '{':
	case '[':
		if (s->depth + s->deep.len >= SPLITTER_DEEPEST)
			return bad_stream(s, "nested too deeply", err);
		strbuf_addc(&s->deep, c);
		return 0;
	case '}':
	case ']':
		if (s->deep.data[s->deep.len - 1] != (c == '}' ? '{' : '['))
			return bad_stream(s, "a closing bracket that nothing opened", err);
		strbuf_cut(&s->deep, s->deep.len - 1);
		return s->deep.len > 0 ? 0 : value_ends(s, err);
	case '"':
		s->token = SPLITTER_STRING;
		s->token_is_name = false;
		return 0;
	default:
		return is_scalar(c) || c == ':' || c == ','
			       ? 0
			       : bad_stream(s, "a character out of place", err);
	}
}

static int open_bracket(struct splitter *s, bool is_object, struct err *err)
{
	const struct splitter_level *parent = top(s);
	struct splitter_level level = {.state = SPLITTER_OPENED, .is_object = is_object};
	bool items = s->mode == SPLITTER_LIST && s->depth == 1 && !is_object &&
		     str_eq(strbuf_str(&s->key), "items");

	if (value_begins(s, is_object ? '{' : '[', err) < 0)
		return -1;
	if (s->depth == SPLITTER_MAX_DEPTH)
		return enter_the_deep(s, is_object ? '{' : '[', err);
	/* What the value that opens now has to do with the drop paths. */
	if (s->in_items && s->depth == 2) {
		level.matching = all_drops(s);
		level.steps = 0;
	} else if (!parent) {
		bool root = s->mode == SPLITTER_STREAM && !s->drop_prefixed;

		level.matching = root ? all_drops(s) : 0;
		level.steps = root ? 0 : -1;
	} else if (parent->is_object) {
		level.matching = s->next_matching;
		level.steps = (int8_t)(parent->steps + (parent->steps < INT8_MAX));
	} else {
		level.matching = parent->matching;
		level.steps = parent->steps;
	}
	if (put(s, is_object ? "{" : "[", 1, err) < 0)
		return -1;
	s->levels[s->depth++] = level;
	if (items)
		s->in_items = true;
	return 0;
}

static int close_bracket(struct splitter *s, bool is_object, struct err *err)
{
	const struct splitter_level *level = top(s);

	if (!level || level->is_object != is_object)
		return bad_stream(s, "a closing bracket that nothing opened", err);
	if (level->state != SPLITTER_OPENED && level->state != SPLITTER_VALUE)
		return bad_stream(s, "a closing bracket where a value was due", err);
	if (s->in_items && s->depth == 2)
		s->in_items = false;
	if (put(s, is_object ? "}" : "]", 1, err) < 0)
		return -1;
	s->depth--;
	return value_ends(s, err);
}

/* Which drops go on through a member of this name; `*ret_drop`: one of them ends here. */
static uint16_t match_name(const struct splitter *s, const struct splitter_level *level,
			   bool *ret_drop)
{
	const char *name = strbuf_str(&s->key);
	uint16_t next = 0;

	*ret_drop = false;
	if (level->steps < 0)
		return s->drop_prefixed && s->depth == 1 && str_eq(name, "object") ? all_drops(s)
										   : 0;
	for (size_t i = 0; i < s->n_drops; i++) {
		if (!(level->matching & (1U << i)) || !str_eq(s->drops[i][level->steps], name))
			continue;
		next |= (uint16_t)(1U << i);
		if (!s->drops[i][level->steps + 1])
			*ret_drop = true;
	}
	return next;
}

static int string_begins(struct splitter *s, struct err *err)
{
	const struct splitter_level *level = top(s);

	s->token = SPLITTER_STRING;
	s->token_is_name = level && level->is_object && level->state != SPLITTER_COLON;
	if (!s->token_is_name)
		return value_begins(s, '"', err) < 0 ? -1 : put(s, "\"", 1, err);
	if (level->state != SPLITTER_OPENED && level->state != SPLITTER_COMMA)
		return bad_stream(s, "two members without a comma", err);
	strbuf_reset(&s->key);
	strbuf_adds(&s->key, "");
	return 0;
}

static int string_bytes(struct splitter *s, const char *bytes, size_t len, struct err *err)
{
	if (!s->token_is_name)
		return put(s, bytes, len, err);
	if (len > SPLITTER_MAX_OBJECT - s->key.len)
		return bad_stream(s, "an endless member name", err);
	strbuf_add(&s->key, bytes, len);
	return 0;
}

static int string_ends(struct splitter *s, struct err *err)
{
	s->token = SPLITTER_NONE;
	if (s->deep.len > 0)
		return 0;
	if (s->token_is_name) {
		struct splitter_level *level = top(s);
		bool drop = false;

		assert(level); /* names begin in objects only */
		level->state = SPLITTER_NAMED;
		if (s->skipping)
			return 0;
		s->next_matching = match_name(s, level, &drop);
		if (drop) {
			s->skipping = true;
			s->skip_depth = s->depth;
			return 0;
		}
		if (level->wrote && put(s, ",", 1, err) < 0)
			return -1;
		level->wrote = true;
		if (put(s, "\"", 1, err) < 0 || put(s, s->key.data, s->key.len, err) < 0)
			return -1;
		return put(s, "\":", 2, err);
	}
	return put(s, "\"", 1, err) < 0 ? -1 : value_ends(s, err);
}

/* A byte outside strings and scalars. */
static int structure(struct splitter *s, char c, struct err *err)
{
	struct splitter_level *level = top(s);

	switch (c) {
	case '{':
	case '[':
		return open_bracket(s, c == '{', err);
	case '}':
	case ']':
		return close_bracket(s, c == '}', err);
	case '"':
		return string_begins(s, err);
	case ':':
		if (!level || level->state != SPLITTER_NAMED)
			return bad_stream(s, "a colon out of place", err);
		level->state = SPLITTER_COLON;
		return 0;
	case ',':
		if (!level || level->state != SPLITTER_VALUE)
			return bad_stream(s, "a comma out of place", err);
		level->state = SPLITTER_COMMA;
		return 0;
	default:
		if (!is_scalar(c))
			return bad_stream(s, "a character out of place", err);
		if (value_begins(s, c, err) < 0)
			return -1;
		s->token = SPLITTER_SCALAR;
		return put(s, &c, 1, err);
	}
}

/* Is one of eight bytes a quote or a backslash? (Subtracting 1 borrows only from a byte of 0.) */
static bool has_end(const char *bytes)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
	uint64_t eight, quotes, backslashes;

	memcpy(&eight, bytes, sizeof(eight));
	quotes = eight ^ (ones * '"');
	backslashes = eight ^ (ones * '\\');
	return (((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes)) & highs;
}

/* How many of the bytes belong to the string before its next backslash or quote. */
static size_t plain_run(const char *bytes, size_t len)
{
	size_t n = 0;

	while (len - n >= 8 && !has_end(bytes + n))
		n += 8;
	while (n < len && bytes[n] != '"' && bytes[n] != '\\')
		n++;
	return n;
}

/*
 * How many bytes were used, or -1. None when a byte ends a number or literal: it is looked at
 * again, as what follows.
 */
static ssize_t step(struct splitter *s, const char *bytes, size_t len, struct err *err)
{
	size_t run = 0;

	switch (s->token) {
	case SPLITTER_STRING:
		run = plain_run(bytes, len);
		if (run > 0)
			return string_bytes(s, bytes, run, err) < 0 ? -1 : (ssize_t)run;
		if (*bytes == '"')
			return string_ends(s, err) < 0 ? -1 : 1;
		s->token = SPLITTER_ESCAPE;
		return string_bytes(s, bytes, 1, err) < 0 ? -1 : 1;
	case SPLITTER_ESCAPE:
		s->token = SPLITTER_STRING;
		return string_bytes(s, bytes, 1, err) < 0 ? -1 : 1;
	case SPLITTER_SCALAR:
		while (run < len && is_scalar(bytes[run]))
			run++;
		if (run > 0)
			return put(s, bytes, run, err) < 0 ? -1 : (ssize_t)run;
		s->token = SPLITTER_NONE;
		return value_ends(s, err) < 0 ? -1 : 0;
	case SPLITTER_NONE:
		break;
	}
	if (is_blank(*bytes))
		return 1;
	return (s->deep.len > 0 ? deep_structure(s, *bytes, err) : structure(s, *bytes, err)) < 0
		       ? -1
		       : 1;
}

int splitter_feed(struct splitter *s, const char *bytes, size_t len, struct err *err)
{
	if (s->failed)
		return bad_stream(s, "it went wrong before", err);
	for (size_t at = 0; at < len;) {
		ssize_t n = step(s, bytes + at, len - at, err);

		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

int splitter_end(const struct splitter *s, struct err *err)
{
	if (s->failed || s->depth > 0 || s->token != SPLITTER_NONE ||
	    (s->mode == SPLITTER_LIST && !s->done))
		return err_set(err, ERR_TRANSIENT, "BadStream",
			       "the server's answer broke off in the middle of an object");
	return 0;
}

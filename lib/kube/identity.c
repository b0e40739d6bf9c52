// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the text, to the end of the object's metadata: brackets are counted, strings are
 * passed over, and of the first few levels the member names are remembered, so that each string
 * value knows its path.
 */
#include "lib/kube/identity.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"

/* Deeper than "object.metadata.name" nothing matters. */
enum { LEVELS = 3 };

struct span {
	const char *at;
	size_t len;
};

struct scan {
	const char *text;
	bool is_event;
	size_t depth;
	bool is_object[LEVELS + 1]; /* by depth */
	bool names[LEVELS + 1];     /* a member name comes next, not a value */
	struct span path[LEVELS + 1];
	bool done; /* nothing that is looked for can follow */
	struct identity found;
};

static bool is(struct span span, const char *word)
{
	return span.len == strlen(word) && memcmp(span.at, word, span.len) == 0;
}

/* Plain ASCII that fits, or nothing. */
static bool keep(char *out, size_t size, struct span value)
{
	if (value.len >= size)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.at[i] <= ' ' || value.at[i] > '~' || value.at[i] == '\\')
			return false;
	memcpy(out, value.at, value.len);
	out[value.len] = '\0';
	return true;
}

static void on_string(struct scan *s, struct span value)
{
	size_t base = s->is_event ? 1 : 0; /* members of the object stand below "object" */
	struct span name;

	if (s->depth == 0 || s->depth > LEVELS || !s->is_object[s->depth])
		return;
	if (s->names[s->depth]) {
		s->path[s->depth] = value;
		return;
	}
	name = s->path[s->depth];
	if (s->is_event && s->depth == 1 && is(name, "type"))
		(void)keep(s->found.type, sizeof(s->found.type), value);
	if (s->depth != base + 2 || !is(s->path[base + 1], "metadata") ||
	    (s->is_event && !is(s->path[1], "object")))
		return;
	if (is(name, "namespace"))
		(void)keep(s->found.ns, sizeof(s->found.ns), value);
	else if (is(name, "name"))
		(void)keep(s->found.name, sizeof(s->found.name), value);
	else if (is(name, "resourceVersion") &&
		 keep(s->found.version, sizeof(s->found.version), value))
		s->found.version_at = (size_t)(value.at - s->text);
}

static void on_bracket(struct scan *s, const char *at)
{
	char c = *at;
	bool opens = c == '{' || c == '[';
	size_t base;

	if (!opens) {
		/* The object's metadata is over, and an event has said its type before. */
		base = s->is_event ? 1 : 0;
		s->depth -= s->depth > 0;
		s->done = s->depth == base + 1 && is(s->path[base + 1], "metadata") &&
			  (!s->is_event || (is(s->path[1], "object") && s->found.type[0])) &&
			  s->found.name[0] && s->found.version[0];
		return;
	}
	if (++s->depth > LEVELS)
		return;
	if (s->is_event && s->depth == 2 && is(s->path[1], "object"))
		s->found.object_at = (size_t)(at - s->text);
	s->is_object[s->depth] = c == '{';
	s->names[s->depth] = c == '{';
	s->path[s->depth] = (struct span){"", 0};
}

/* How many bytes stand before the quote that ends the string; len when there is none. */
static size_t string_len(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] != '"')
		n += text[n] == '\\' ? 2 : 1;
	return n < len ? n : len;
}

bool identity_read(const char *text, size_t len, bool is_event, struct identity *ret)
{
	struct scan s = {.text = text, .is_event = is_event};

	assert(ret && (text || len == 0));
	for (size_t i = 0; i < len && !s.done; i++) {
		size_t n = 0;

		switch (text[i]) {
		case '"':
			n = string_len(text + i + 1, len - i - 1);
			if (n < len - i - 1) /* else cut off in the middle */
				on_string(&s, (struct span){text + i + 1, n});
			i += n + 1;
			break;
		case '{':
		case '[':
		case '}':
		case ']':
			on_bracket(&s, text + i);
			break;
		case ':':
		case ',':
			if (s.depth <= LEVELS)
				s.names[s.depth] = text[i] == ',' && s.is_object[s.depth];
			break;
		}
	}
	*ret = s.found;
	return s.found.name[0] && identity_version(&s.found) > 0 && (!is_event || s.found.type[0]);
}

uint64_t identity_version(const struct identity *identity)
{
	int64_t version = 0;

	return str_to_int(identity->version, 1, INT64_MAX, &version) ? (uint64_t)version : 0;
}

char *identity_key(const struct identity *identity)
{
	return identity->ns[0] ? str_printf("%s/%s", identity->ns, identity->name)
			       : str_dup(identity->name);
}

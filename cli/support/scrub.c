// SPDX-License-Identifier: Apache-2.0
/*
 * Lines are searched with a few patterns, and members of JSON by their names. A value that was
 * replaced is remembered, so that it becomes the same number wherever it stands, also in logs.
 */
#include "cli/support/scrub.h"

#include <assert.h>
#include <ctype.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"

enum {
	GROUPS = 8,
	/* JSON in JSON: no more than CNI configurations and annotations have. */
	NESTED_MAX = 4,
	NAME_MAX_LEN = 256,
};

#define WORDS                                                                                      \
	"password|passwd|passphrase|secret|token|api[-_]?key|private[-_]?key|access[-_]?key|"      \
	"credential"

/* The group of each match that is replaced. */
static const struct {
	const char *pattern;
	int group;
} patterns[] = {
	/* RFC 7519: a JSON object in base64url begins with these three. */
	{"eyJ[A-Za-z0-9_-]{8,}[.][A-Za-z0-9_-]{4,}([.][A-Za-z0-9_-]*)?", 0},
	{"bearer[[:space:]]+([A-Za-z0-9._~+/=-]{16,})", 1},
	{"authorization[\"'\\]*[[:space:]]*[:=][[:space:]]*[\"'\\]*((basic|bearer)[[:space:]]+)?"
	 "([^\"'\\,;[:space:]]+)",
	 3},
	{"(" WORDS ")s?[\"'\\]*[[:space:]]*[:=][[:space:]]*[\"'\\]*([^]\"'\\,;[:space:]{}[]+)", 2},
	{"://[^/@:[:space:]\"']+:([^/@[:space:]\"']+)@", 1},
};

/* No line without one of these has a match. In lower case. */
static const char *const hints[] = {
	"eyj",    "bearer",  "authorization", "passw", "passphrase", "secret", "token",
	"apikey", "api-key", "api_key",       "key",   "credential", "://",
};

/* A name with one of these in it, without what separates words, has a secret for its value … */
static const char *const secret_names[] = {
	"password", "passwd",     "passphrase", "secret",     "token",
	"apikey",   "privatekey", "accesskey",  "credential", "authorization",
};
/* … unless it ends like this. */
static const char *const harmless_ends[] = {"name", "ref", "file", "path", "namespace", "type"};

struct scrub {
	regex_t compiled[ARRAY_LEN(patterns)];
	struct map words; /* value → its number */
};

struct scrub *scrub_new(void)
{
	struct scrub *scrub = mem_new(struct scrub);

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		if (regcomp(&scrub->compiled[i], patterns[i].pattern, REG_EXTENDED | REG_ICASE))
			abort(); /* they are ours */
	return scrub;
}

void scrub_free(struct scrub *scrub)
{
	if (!scrub)
		return;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		regfree(&scrub->compiled[i]);
	map_done(&scrub->words);
	mem_free(scrub);
}

size_t scrub_count(const struct scrub *scrub)
{
	return scrub->words.len;
}

#define WORD "REDACTED-"

char *scrub_word(struct scrub *scrub, const char *value)
{
	uintptr_t number;

	if (str_starts(value, WORD))
		return str_dup(value);
	number = (uintptr_t)map_get(&scrub->words, value);
	if (!number) {
		number = scrub->words.len + 1;
		map_set(&scrub->words, value, (void *)number);
	}
	return str_printf(WORD "%ju", (uintmax_t)number);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void replace_matches(struct scrub *scrub, size_t pattern, struct strbuf *line)
{
	auto_strbuf struct strbuf out = {0};
	regmatch_t match[GROUPS];
	int group = patterns[pattern].group;
	const char *at = strbuf_str(line);
	bool found = false;

	while (regexec(&scrub->compiled[pattern], at, GROUPS, match, 0) == 0 &&
	       match[0].rm_eo > 0) {
		size_t begin = (size_t)match[group].rm_so, end = (size_t)match[group].rm_eo;
		auto_free char *value = str_ndup(at + begin, end - begin);
		auto_free char *word = scrub_word(scrub, value);

		found = true;
		strbuf_add(&out, at, begin);
		strbuf_adds(&out, word);
		at += end;
	}
	if (!found)
		return;
	strbuf_adds(&out, at);
	strbuf_reset(line);
	strbuf_add(line, out.data, out.len);
}

static bool has_hint(const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strcasestr(line, hints[i]))
			return true;
	return false;
}

#define KEY_BEGIN "-----BEGIN "
#define KEY_END   "-----END "
#define KEY_WORDS "PRIVATE KEY"

/* Cut private keys out of the line; *in_key: one began in it or before, and has not ended. */
static void cut_keys(struct strbuf *line, bool *in_key)
{
	auto_strbuf struct strbuf out = {0};
	const char *at = strbuf_str(line), *begin, *end;

	while (*in_key || ((begin = strstr(at, KEY_BEGIN)) && strstr(begin, KEY_WORDS))) {
		if (!*in_key) {
			strbuf_add(&out, at, (size_t)(begin - at));
			strbuf_adds(&out, WORD "KEY");
			at = begin;
		}
		end = strstr(at, KEY_END);
		*in_key = !end;
		if (!end) {
			at += strlen(at);
			break;
		}
		end = strstr(end + strlen(KEY_END), "-----");
		at = end ? end + strlen("-----") : at + strlen(at);
	}
	strbuf_adds(&out, at);
	strbuf_reset(line);
	strbuf_add(line, strbuf_str(&out), out.len);
}

static void scrub_line(struct scrub *scrub, const char *text, size_t len, bool *in_key,
		       struct strbuf *out)
{
	auto_strbuf struct strbuf line = {0};

	/* What stands behind a NUL character would not be looked at. */
	strbuf_add_utf8(&line, text, len);
	for (size_t i = 0; i < line.len; i++)
		if (line.data[i] == '\0')
			line.data[i] = ' ';
	if (*in_key || strstr(strbuf_str(&line), KEY_WORDS))
		cut_keys(&line, in_key);
	if (has_hint(strbuf_str(&line)))
		for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
			replace_matches(scrub, i, &line);
	strbuf_add(out, strbuf_str(&line), line.len);
}

void scrub_text(struct scrub *scrub, const char *text, size_t len, struct strbuf *out)
{
	bool in_key = false;

	assert((text || len == 0) && out);
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		bool was_in_key = in_key;

		scrub_line(scrub, text, line, &in_key, out);
		if (end && !(was_in_key && in_key))
			strbuf_addc(out, '\n');
		text += line + (end != NULL);
		len -= line + (end != NULL);
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Is this what stands beside a secret? */
static bool is_secret_name(const char *name)
{
	char plain[NAME_MAX_LEN];
	size_t len = 0;

	for (; *name && len + 1 < sizeof(plain); name++)
		if (isalnum((unsigned char)*name))
			plain[len++] = (char)tolower((unsigned char)*name);
	plain[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(harmless_ends); i++)
		if (str_ends(plain, harmless_ends[i]))
			return false;
	for (size_t i = 0; i < ARRAY_LEN(secret_names); i++)
		if (strstr(plain, secret_names[i]))
			return true;
	return false;
}

/* In maps of these names keys are the user's, and values are compared with others. */
static bool is_map_of_labels(const char *name)
{
	return str_eq(name, "labels") || str_eq(name, "matchLabels") ||
	       str_eq(name, "nodeSelector") || str_eq(name, "allocatable") ||
	       str_eq(name, "capacity");
}

static json_t *scrubbed(struct scrub *scrub, json_t *value, bool is_secret, bool is_label,
			int nested);

static json_t *scrubbed_string(struct scrub *scrub, json_t *value, bool is_secret, int nested)
{
	const char *text = json_string_value(value);
	auto_strbuf struct strbuf out = {0};

	if (is_secret && *text) {
		auto_free char *word = scrub_word(scrub, text);

		return json_string(word);
	}
	if ((*text == '{' || *text == '[') && nested < NESTED_MAX) {
		json_auto_t *parsed = json_parse(text, json_string_length(value), NULL);
		json_auto_t *clean = NULL;

		if (parsed) {
			clean = scrubbed(scrub, json_incref(parsed), false, false, nested + 1);
			if (clean == parsed)
				return json_incref(value);
			json_write(clean, &out);
			return json_stringn(out.data, out.len);
		}
	}
	/* Most have nothing; the words of private keys are among the hints. */
	if (strlen(text) == json_string_length(value) && !has_hint(text))
		return json_incref(value);
	scrub_text(scrub, text, json_string_length(value), &out);
	if (out.len == json_string_length(value) && memcmp(strbuf_str(&out), text, out.len) == 0)
		return json_incref(value);
	return json_stringn(strbuf_str(&out), out.len);
}

/* The value without secrets: itself if there was none, else a changed copy. Takes value. */
static json_t *scrubbed(struct scrub *scrub, json_t *value, bool is_secret, bool is_label,
			int nested)
{
	json_t *result = json_incref(value), *member, *clean;
	const char *name;
	size_t i;

	if (json_is_string(value)) {
		json_replace(&result, scrubbed_string(scrub, value, is_secret, nested));
	} else if (json_is_array(value)) {
		json_array_foreach (value, i, member) {
			clean = scrubbed(scrub, json_incref(member), is_secret, is_label, nested);
			if (clean != member && result == value) {
				json_replace(&result, json_copy(value));
			}
			json_array_set_new(result, i, clean);
		}
	} else if (json_is_object(value)) {
		json_object_foreach (value, name, member) {
			bool secret = is_secret || (!is_label && is_secret_name(name));

			clean = scrubbed(scrub, json_incref(member), secret, is_map_of_labels(name),
					 nested);
			if (clean != member && result == value) {
				json_replace(&result, json_copy(value));
			}
			json_object_set_new(result, name, clean);
		}
	}
	json_decref(value);
	return result;
}

json_t *scrub_value(struct scrub *scrub, json_t *value)
{
	return scrubbed(scrub, value, false, false, 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A pattern is compared with each pool, and users choose its length and what stands between its
 * brackets. So it is read once: for each place, the set of letters that may stand there. While
 * comparing, only the last star is ever tried again; the time of fnmatch(3) grows with the power of
 * the number of stars.
 */
#include "reconcilers/ipam/pool_pattern.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

bool pool_name_is_pattern(const char *text)
{
	const char *open;

	assert(text);
	open = strchr(text, '[');
	return strpbrk(text, "*?") || (open && strchr(text, ']'));
}

/* What stands for one character, from p on: its length; 0 for a '[' without its ']'. */
static size_t element_len(const char *p)
{
	const char *end = p;

	if (*p == '\\' && p[1])
		return 2;
	if (*p != '[')
		return 1;
	end += p[1] == '^' ? 2 : 1;
	while (*end && *end != ']')
		end += *end == '\\' && end[1] ? 2 : 1;
	return *end ? (size_t)(end - p) + 1 : 0;
}

/* The letters of names of pools, which are DNS subdomains, in the order of their bits. */
static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

#define OTHER_LETTER (UINT64_C(1) << (sizeof(letters) - 1))
#define ANY_LETTER   ((OTHER_LETTER << 1) - 1)
#define STAR         UINT64_MAX

static uint64_t letter_bit(char c)
{
	if (c >= 'a' && c <= 'z')
		return UINT64_C(1) << (c - 'a');
	if (c >= '0' && c <= '9')
		return UINT64_C(1) << (c - '0' + 26);
	return c == '-' ? UINT64_C(1) << 36 : c == '.' ? UINT64_C(1) << 37 : OTHER_LETTER;
}

static uint64_t place_of(const char *p, size_t len)
{
	auto_free char *element = NULL;
	uint64_t place = 0;

	if (*p == '*')
		return STAR;
	if (*p == '?')
		return ANY_LETTER;
	if (len == 1)
		return letter_bit(*p) & ~OTHER_LETTER;
	element = str_ndup(p, len);
	for (size_t i = 0; i < sizeof(letters) - 1; i++)
		if (fnmatch(element, (const char[]){letters[i], '\0'}, 0) == 0)
			place |= UINT64_C(1) << i;
	return place;
}

bool pool_pattern_read(const char *text, struct pool_pattern *ret)
{
	size_t len;

	assert(text && ret);
	*ret = (struct pool_pattern){.places = calloc(strlen(text) + 1, sizeof(*ret->places))};
	for (const char *p = text; *p; p += len) {
		len = element_len(p);
		if (!len)
			return false;
		ret->places[ret->len++] = place_of(p, len);
	}
	return true;
}

void pool_pattern_done(struct pool_pattern *pattern)
{
	free(pattern->places);
}

bool pool_pattern_matches(const struct pool_pattern *pattern, const char *name)
{
	const char *from = NULL;
	size_t at = 0, star = 0;

	assert(pattern && name);
	while (*name) {
		uint64_t place = at < pattern->len ? pattern->places[at] : 0;

		if (place == STAR) {
			star = ++at;
			from = name;
		} else if (place & letter_bit(*name)) {
			at++;
			name++;
		} else if (from) {
			at = star;
			name = ++from;
		} else {
			return false;
		}
	}
	while (at < pattern->len && pattern->places[at] == STAR)
		at++;
	return at == pattern->len;
}

// SPDX-License-Identifier: Apache-2.0
/* Strings: new ones with printf, a growable buffer, predicates, UTF-8. */
#include "lib/base/str.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"

char *str_vprintf(const char *fmt, va_list ap)
{
	struct strbuf b = {0};

	strbuf_vaddf(&b, fmt, ap);
	return strbuf_take(&b);
}

char *str_printf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = str_vprintf(fmt, ap);
	va_end(ap);
	return s;
}

char *str_below(const char *dir, const char *path)
{
	return str_printf("%s%s%s", dir, str_ends(dir, "/") ? "" : "/", path);
}

char *str_dup(const char *s)
{
	return s ? mem_dup(s, strlen(s) + 1) : NULL;
}

char *str_ndup(const char *s, size_t len)
{
	char *copy = mem_alloc(len + 1);

	assert(s || len == 0);
	if (len)
		memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

void str_replace(char **field, char *value)
{
	char *old = *field;

	*field = value;
	mem_free(old);
}

int str_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool str_starts(const char *s, const char *prefix)
{
	return s && prefix && strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t len, suffix_len;

	if (!s || !suffix)
		return false;
	len = strlen(s);
	suffix_len = strlen(suffix);
	return len >= suffix_len && memcmp(s + len - suffix_len, suffix, suffix_len) == 0;
}

bool str_empty(const char *s)
{
	return !s || !*s;
}

/* A text of which str_nearest() looks at more than this is not a slip of anything. */
#define NEAREST_MAX 64

/*
 * How many characters have to be put in, taken out or exchanged (Levenshtein), row by row of the
 * table.
 */
static size_t distance(const char *a, const char *b)
{
	size_t row[NEAREST_MAX + 1], len = strlen(b);

	for (size_t k = 0; k <= len; k++)
		row[k] = k;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t k = 0; k < len; k++) {
			size_t best = diagonal + (strncasecmp(a + i, b + k, 1) != 0);

			diagonal = row[k + 1];
			if (best > diagonal + 1)
				best = diagonal + 1;
			if (best > row[k] + 1)
				best = row[k] + 1;
			row[k + 1] = best;
		}
	}
	return row[len];
}

const char *str_nearest(const char *const *known, const char *s)
{
	const char *nearest = NULL;
	size_t least = SIZE_MAX;

	if (strlen(s) > NEAREST_MAX)
		return NULL;
	for (; *known; known++) {
		size_t n = distance(*known, s);

		if (n < least && n <= strlen(*known) / 3) {
			nearest = *known;
			least = n;
		}
	}
	return nearest;
}

char *str_trim(char *s)
{
	size_t len;

	s += strspn(s, STR_BLANKS);
	len = strlen(s);
	while (len > 0 && strchr(STR_BLANKS, s[len - 1]))
		len--;
	s[len] = '\0';
	return s;
}

int str_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool str_to_int(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative;
	int64_t n = 0;

	assert(min <= max && ret);
	if (!s)
		return false;
	negative = *s == '-';
	if (negative)
		s++;
	if (!*s)
		return false;

	/* Counted downwards: the smallest number has no positive counterpart. */
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *s - '0', &n))
			return false;
	}
	if (!negative && __builtin_sub_overflow(0, n, &n))
		return false;
	if (n < min || n > max)
		return false;

	*ret = n;
	return true;
}

uint64_t str_hash(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3;
	return hash;
}

/* Well-formed sequences: The Unicode Standard, table 3-7. */
size_t str_utf8_len(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	assert(s || len == 0);
	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;

	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (p[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (p[0] == 0xf0)
		low = 0x90; /* overlong */
	else if (p[0] == 0xf4)
		high = 0x8f; /* beyond U+10FFFF */

	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static size_t control_len(const unsigned char *p)
{
	if (*p < 0x20 || *p == 0x7f)
		return 1;
	return *p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f ? 2 : 0;
}

void str_cover_controls(char *s, const char *kept, char cover)
{
	for (; *s; s++) {
		size_t len = strchr(kept, *s) ? 0 : control_len((const unsigned char *)s);

		if (len > 0) {
			memset(s, cover, len);
			s += len - 1;
		}
	}
}

size_t str_clip(const char *s, size_t len, size_t max)
{
	size_t cut = len < max ? len : max;
	size_t start = cut;

	assert(s || len == 0);
	/*
	 * Only the last character can be incomplete, and it begins at most three bytes before the
	 * cut.
	 */
	while (start > 0 && cut - start < 3 && ((unsigned char)s[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0 || (unsigned char)s[start - 1] < 0xc0)
		return cut;
	start--;
	if (str_utf8_len(s + start, cut - start) == 0 &&
	    (cut == len || str_utf8_len(s + start, len - start) > 0))
		return start;
	return cut;
}

void strbuf_reserve(struct strbuf *b, size_t more)
{
	size_t need, cap;

	if (__builtin_add_overflow(b->len, more, &need) || need > SIZE_MAX / 2 - 1)
		abort();
	if (b->data && need < b->cap)
		return;

	cap = b->cap ? b->cap : 64;
	while (cap <= need)
		cap *= 2;
	b->data = mem_realloc(b->data, cap);
	b->cap = cap;
	b->data[b->len] = '\0';
}

void strbuf_add(struct strbuf *b, const void *data, size_t len)
{
	assert(b && (data || len == 0));
	strbuf_reserve(b, len);
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void strbuf_adds(struct strbuf *b, const char *s)
{
	assert(s);
	strbuf_add(b, s, strlen(s));
}

void strbuf_addc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
{
	va_list again;
	size_t room;
	int n;

	/* Most texts fit into what there is: only longer ones are formatted twice. */
	strbuf_reserve(b, 1);
	room = b->cap - b->len;
	va_copy(again, ap);
	n = vsnprintf(b->data + b->len, room, fmt, ap);
	/*
	 * Fails only for a text beyond INT_MAX or a wide character without an encoding: never
	 * input.
	 */
	assert(n >= 0);
	if ((size_t)n >= room) {
		strbuf_reserve(b, (size_t)n);
		(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
	}
	va_end(again);
	b->len += (size_t)n;
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(b, fmt, ap);
	va_end(ap);
}

void strbuf_add_utf8(struct strbuf *b, const char *s, size_t len)
{
	size_t good = 0;

	for (size_t i = 0; i < len;) {
		size_t n = str_utf8_len(s + i, len - i);

		if (n == 0) {
			strbuf_add(b, s + good, i - good);
			strbuf_adds(b, "\xef\xbf\xbd"); /* U+FFFD */
			good = i + 1;
		}
		i += n ? n : 1;
	}
	strbuf_add(b, s + good, len - good);
}

void strbuf_consume(struct strbuf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len);
	b->data[b->len] = '\0';
}

void strbuf_reset(struct strbuf *b)
{
	strbuf_cut(b, 0);
}

void strbuf_cut(struct strbuf *b, size_t len)
{
	assert(len <= b->len);
	b->len = len;
	if (b->data)
		b->data[len] = '\0';
}

void strbuf_done(struct strbuf *b)
{
	assert(b);
	free(b->data);
	*b = (struct strbuf){0};
}

char *strbuf_take(struct strbuf *b)
{
	char *s = b->data ? b->data : str_dup("");

	assert(b);
	*b = (struct strbuf){0};
	return s;
}

const char *strbuf_str(const struct strbuf *b)
{
	return b->data ? b->data : "";
}

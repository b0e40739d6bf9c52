// SPDX-License-Identifier: Apache-2.0
/* Strings: new ones with printf, a growable buffer, and the predicates that everyone needs. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/own.h"

/* Return new strings; free them with free(). str_dup(NULL) is NULL. */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "dir/path", with one slash between them. Returns new. */
char *str_below(const char *dir, const char *path);
char *str_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
char *str_dup(const char *s);
char *str_ndup(const char *s, size_t len);
/* Put value, which is taken, in the place of *field, which is freed. Either may be NULL. */
void str_replace(char **field, char *value);

/* NULL-safe: NULL equals only NULL. */
bool str_eq(const char *a, const char *b);
/* For qsort() of const char *: by bytes. */
int str_compare(const void *a, const void *b);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* NULL or "". */
bool str_empty(const char *s);
/*
 * Return the one of `known` (NULL at the end) of which s is most likely a slip, whatever the case:
 * at most a third of its characters differ. NULL when s is like none of them.
 */
const char *str_nearest(const char *const *known, const char *s);
/* Characters that separate words in texts of users: blank, tab, carriage return, line feed. */
#define STR_BLANKS " \t\r\n"

/* Cut STR_BLANKS off the end of s, in place. Returns the first character that is none of them. */
char *str_trim(char *s);
/* Return the value of a hexadecimal digit of either case, -1 for another character. */
int str_hex_digit(char c);

/*
 * Decimal text of the whole string to a number within [min, max]. No sign other than '-', no
 * blanks, no base prefix; leading zeros are just zeros. False (and *ret untouched) for anything
 * else, NULL included.
 */
bool str_to_int(const char *s, int64_t min, int64_t max, int64_t *ret);

/*
 * 64-bit FNV-1a; stable across runs and machines, for shards and change detection, not against
 * attackers.
 */
uint64_t str_hash(const void *data, size_t len);

/*
 * Return the length, 1 to 4, of the UTF-8 character at the start of s (len bytes); 0 if it is
 * malformed.
 */
size_t str_utf8_len(const char *s, size_t len);

/*
 * Overwrite each byte of the control characters in s: those of ASCII but the ones in `kept`, and
 * U+0080 to U+009F, which terminals obey as well (ECMA-48, 5.3).
 */
void str_cover_controls(char *s, const char *kept, char cover);
/* The most of s's len bytes, but not more than max, that do not end within a character. */
size_t str_clip(const char *s, size_t len, size_t max);

/*
 * A growable byte buffer, always NUL-terminated once it holds something. `struct strbuf b = {0};`
 * is empty.
 */
struct strbuf {
	char *data; /* NULL while nothing was ever added */
	size_t len; /* without the NUL */
	size_t cap;
};

void strbuf_add(struct strbuf *b, const void *data, size_t len);
void strbuf_adds(struct strbuf *b, const char *s);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Add text of unknown origin; bytes that are not UTF-8 become U+FFFD. */
void strbuf_add_utf8(struct strbuf *b, const char *s, size_t len);
/*
 * Make room for `more` bytes after len; for callers that fill data + len themselves and then raise
 * len.
 */
void strbuf_reserve(struct strbuf *b, size_t more);
/* Drop the first n bytes (n <= len). Moves the rest: consume once per batch, not once per item. */
void strbuf_consume(struct strbuf *b, size_t n);
/* Keep the first len bytes only; strbuf_reset keeps none. The memory stays. */
void strbuf_cut(struct strbuf *b, size_t len);
void strbuf_reset(struct strbuf *b);
/* Free the memory; the buffer is empty and usable afterwards. */
void strbuf_done(struct strbuf *b);
/* The text as a new string ("" when nothing was added); the buffer is empty afterwards. */
char *strbuf_take(struct strbuf *b);
/* Borrowed text, "" when empty. */
const char *strbuf_str(const struct strbuf *b);

#define auto_strbuf auto_call(strbuf_done)

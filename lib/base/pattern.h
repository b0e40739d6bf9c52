// SPDX-License-Identifier: Apache-2.0
/*
 * Go's regular expressions (RE2) on POSIX extended ones, for what both have: characters, classes,
 * groups, alternatives, repetition, anchors. The question is only whether there is a match, so lazy
 * repetition and captures make no difference. ASCII alone.
 *
 * Refused: flags, named groups, \b, \p, and what does not compile. The C library writes repetitions
 * out as copies, and patterns come from users: that size is bounded.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

struct pattern;

/*
 * Compile. Returns new, or NULL with ERR_INVALID "Invalid" and a text that says which part is not
 * understood, or that it is too costly: more than 4096 characters once repetitions are written out.
 */
struct pattern *pattern_new(const char *text, struct err *err);
void pattern_free(void *pattern);

/* Is there a match anywhere in s? Longer than 64 KiB: true. */
bool pattern_matches(const struct pattern *pattern, const char *s);

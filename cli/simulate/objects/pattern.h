// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns of schemas (RE2 for kube-apiserver) as POSIX extended expressions. What is translated
 * and what is refused: schema.h.
 */
#ifndef ORBWEAVER_CLI_SIMULATE_OBJECTS_PATTERN_H
#define ORBWEAVER_CLI_SIMULATE_OBJECTS_PATTERN_H

#include <stdbool.h>

#include "lib/base/err.h"

struct pattern;

/*
 * Compile. Returns new, or NULL with ERR_INVALID "Invalid": longer than 4 KiB, syntax that POSIX
 * does not have, repetitions that multiply to more than 1000 (RE2 has the same bound).
 */
struct pattern *pattern_new(const char *text, struct err *err);
void pattern_free(void *pattern);

/* Is there a match anywhere in s? Longer than 64 KiB: true. */
bool pattern_matches(const struct pattern *pattern, const char *s);

#endif

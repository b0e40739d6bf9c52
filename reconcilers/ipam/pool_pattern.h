// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns of names of pools: as fnmatch(3) without flags, over the letters of DNS subdomains. A
 * '[' without its ']' is no pattern.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool_pattern {
	uint64_t *places; /* owned */
	size_t len;
};

/* Is the text a pattern rather than a name? */
bool pool_name_is_pattern(const char *text);

/* False: a '[' without its ']'. In both cases end it with pool_pattern_done(). */
bool pool_pattern_read(const char *text, struct pool_pattern *ret);
void pool_pattern_done(struct pool_pattern *pattern);

/* In time that grows with the length of the pattern times that of the name. */
bool pool_pattern_matches(const struct pool_pattern *pattern, const char *name);

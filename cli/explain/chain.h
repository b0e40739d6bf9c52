// SPDX-License-Identifier: Apache-2.0
/*
 * A chain from YAML to what a pod gets: links in the order in which they are made, with the first
 * one that is broken.
 *
 *	{ "of": "pod ml/w-0",
 *	  "links": [ { "link": "network", "state": "holds", "what": "ml/rail1 is there" }, … ],
 *	  "broken": "devices"		the first link whose state is broken; absent: none is
 *	  "reason": "TooFewDevices"	of that link, where it has one }
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum link_state {
	LINK_HOLDS,
	LINK_BROKEN,
	LINK_WAITS,   /* passes by itself */
	LINK_UNKNOWN, /* nothing is said about it */
};

/* Returns new. */
json_t *chain_new(const char *kind, const char *name);

/* Append a link. reason: NULL, or the one word for it. The text is one line. */
void chain_add(json_t *chain, const char *link, enum link_state state, const char *reason,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Append a link that a condition of the object speaks about; nothing when it has no such one. */
void chain_add_condition(json_t *chain, const char *link, const json_t *object, const char *type);

bool chain_is_broken(const json_t *chain);

/* The first broken link, or NULL. Borrowed. */
const json_t *chain_broken_link(const json_t *chain);

/* The lines of a report in one, with " | " between them; empty ones are left out. Returns new. */
char *one_line(const char *lines);

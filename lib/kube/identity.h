// SPDX-License-Identifier: Apache-2.0
/*
 * Which object a text is about, when the text as a whole cannot be read.
 *
 * Looks for the few short strings that the API server itself keeps in order (names are DNS names,
 * versions digits) and passes over everything else, so an object that json_parse refuses, or of
 * which only the beginning is there, still has a name to be reported under, and is not taken for
 * deleted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct identity {
	char type[16]; /* of a watch event: "ADDED", …; "" otherwise */
	char ns[64];   /* "" for cluster-scoped objects */
	char name[254];
	char version[24];
	/* Where the object begins, and the digits of its version: bytes from the text's start. */
	size_t object_at, version_at;
};

/*
 * text: an object as the splitter hands it over, or with is_event one around which a watch event
 * is. False when it does not say who it is: no name, no resourceVersion that is a number, or
 * (is_event) no type.
 */
bool identity_read(const char *text, size_t len, bool is_event, struct identity *ret);

/* metadata.resourceVersion as a number. */
uint64_t identity_version(const struct identity *identity);

/* "namespace/name", or "name". Returns new; free(). */
char *identity_key(const struct identity *identity);

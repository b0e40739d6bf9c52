// SPDX-License-Identifier: Apache-2.0
/*
 * Replace what looks like a secret, wherever it stands: the values of members with such a name
 * (password, token, private key …), JSON Web Tokens, bearer tokens, private keys in PEM, passwords
 * in URLs. The net below redact.h, which decides what is kept at all.
 *
 * Each value has a number: equal ones become the same "REDACTED-7", and nothing but their being
 * equal can be seen from it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/str.h"

struct scrub;

struct scrub *scrub_new(void);
void scrub_free(struct scrub *scrub);

/* What stands for this value. Returns new; free(). */
char *scrub_word(struct scrub *scrub, const char *value);

/* Append a text of any number of lines. */
void scrub_text(struct scrub *scrub, const char *text, size_t len, struct strbuf *out);

/*
 * The value without secrets, new: text that is JSON itself is looked through as JSON, and
 * serialized again only if something in it was replaced. Names in maps of labels say nothing about
 * the value. Takes value.
 */
json_t *scrub_value(struct scrub *scrub, json_t *value);

/* How many values were replaced so far; equal ones count once. */
size_t scrub_count(const struct scrub *scrub);

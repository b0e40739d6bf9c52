// SPDX-License-Identifier: Apache-2.0
/*
 * YAML in, JSON values out: kubeconfigs, configuration files, manifests. The only user of libyaml.
 * And JSON values to YAML, for people.
 *
 * A text means here what kubectl takes it for (sigs.k8s.io/yaml, on go-yaml v2, which follows YAML
 * 1.1 in this), so that a manifest reads the same offline and on the API server. Plain scalars are
 *
 *	null      the empty one, ~, null
 *	boolean   true, false, yes, no, on, off, y, n
 *	          (null and booleans in lower case, upper case or Capitalised)
 *	integer   decimal, 0x, 0o, 0b; a leading 0 is octal, too; with a sign, with underscores
 *                anywhere
 *	float     1.5, .5, 1e3; a float without a fraction becomes an integer, as on its way through
 *                Go's JSON
 *
 * and everything else, and everything quoted, is a string; dates are strings. The tags !!str,
 * !!int, !!float, !!bool, !!null, !!timestamp, !!map and !!seq are known. Keys that are integers or
 * booleans become the string of their value, so the key `on` is "true", as for kubectl.
 *
 * Refused, with a message: null, floats and collections as keys; duplicate keys and merge keys
 * (<<), but by yaml_parse_as_kubectl(); other tags; infinity and NaN; integers beyond an int64_t;
 * NUL characters; nesting beyond JSON_MAX_DEPTH. Anchors and aliases are followed; each use is a
 * copy, and all copies count, so that a small text cannot grow without end.
 *
 * Time is linear in the text and its copies, except that libyaml's is quadratic in the number of
 * %TAG directives.
 *
 * A text that begins with { or [ and is JSON is read by json_parse, as kubectl does.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Values and keys in all documents of one text, copies included. A string counts once more for each
 * full 32 bytes.
 */
#define YAML_MAX_NODES 1000000

/*
 * All documents of a stream; empty ones, and those that are just null, are left out. Returns a new
 * array, or NULL with ERR_INVALID "BadYaml" naming line and column.
 */
json_t *yaml_parse_all(const char *text, size_t len, struct err *err);

/*
 * The same, of what people write for kubectl, with two things more that it takes. Of duplicate keys
 * the last one counts. A merge key has a mapping, an alias of one, or a list of these: their
 * members are put where it stands, so those above it are replaced, and those below replace them; of
 * a list the first one counts. ret_warnings: NULL, or an array to which a sentence with line and
 * column is appended for each duplicate key.
 */
json_t *yaml_parse_as_kubectl(const char *text, size_t len, json_t *ret_warnings, struct err *err);

/* Exactly one document, not counting empty ones; returns new. Errors as above. */
json_t *yaml_parse(const char *text, size_t len, struct err *err);

/*
 * Append a value as a document in block style, in the order of insertion. What yaml_parse makes of
 * it is the same value (but for a float without a fraction). Strings that any reader of YAML could
 * take for something else are quoted.
 */
void yaml_write(const json_t *value, struct strbuf *out);

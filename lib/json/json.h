// SPDX-License-Identifier: Apache-2.0
/*
 * jansson with manners: typed getters that name the path of what is wrong, strict parsing,
 * canonical text, JSON merge patches, and lookups that cannot crash on a missing parent.
 *
 * Objects are json_t everywhere; json_auto_t owns. Kubernetes semantics: an absent field and a null
 * one are the same.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* Arrays and objects nested deeper than this are refused while parsing. */
#define JSON_MAX_DEPTH 64

/*
 * Install our allocator (which ends the process when memory is out) into jansson and seed its hash
 * tables. Call once at the start of main, before the first JSON value is made.
 */
void json_init(void);

/*
 * Parse one JSON document of exactly len bytes. Returns new, or NULL with err:
 *
 *   ERR_INVALID "BadJson"  not JSON, a duplicate key, a key with a NUL character, trailing bytes, a
 *                          number that fits neither an int64_t nor a double, too deep; the text
 *                          names line and column.
 *
 * A NUL character in a string (RFC 8259 has them as \u0000, and API servers store them) becomes
 * U+FFFD: readers of C strings would take what stands before it for the whole, which is not what
 * others read who checked the value.
 *
 * Equal short strings may be one value in several places: no code changes a string in place.
 */
json_t *json_parse(const char *text, size_t len, struct err *err);

/*
 * Commas, brackets and braces outside of strings: how much memory a text of strangers would take
 * once it is parsed. A value takes at most 130 bytes for each of them, besides its text. Looks at
 * bytes only; the text need not be JSON. Stops looking where it is more than max.
 */
size_t json_weight(const char *text, size_t len, size_t max);

/* Compact text with sorted keys: equal values give equal bytes. Returns new; free(). */
char *json_text(const json_t *value);
/* The same, appended to a buffer; not sorted (keeps order of insertion), cheaper. */
void json_write(const json_t *value, struct strbuf *out);

/*
 * Deep equality in Kubernetes' sense of JSON: 1 equals 1, not 1.0; order of keys does not count.
 * NULL equals NULL. A member that is null differs from one that is absent.
 */
bool json_same(const json_t *a, const json_t *b);

/* True when `text` is an item of the list; false for NULL and other types. */
bool json_list_has(const json_t *list, const char *text);

/*
 * Return the first item of the list whose member `key` is the string `value`. Borrowed; NULL when
 * there is none, for a value of NULL, and for other types: an item without the member never
 * matches.
 */
json_t *json_find(const json_t *list, const char *key, const char *value);

/* An object of those of these members (NULL at the end) that `object` has; values shared. New. */
json_t *json_pick(const json_t *object, const char *const *keys);

/*
 * Walk down: json_at(obj, "spec", "nicSelector", "vendor"). Borrowed, or NULL when any step is
 * missing, null, or its parent is not an object.
 */
#define json_at(root, ...) json_at_path((root), (const char *const[]){__VA_ARGS__, NULL})
json_t *json_at_path(const json_t *root, const char *const *keys);

/* The string there, or NULL when absent or not a string. Borrowed. */
#define json_str_at(root, ...) json_string_value(json_at((root), __VA_ARGS__))

/* The string, or `otherwise` when value is NULL or not a string. Borrowed. */
const char *json_str_or(const json_t *value, const char *otherwise);

/*
 * Typed fields of one object, for input that people write. `where` is the path of obj for the
 * message ("spec.sriov", or "" at the top). Absent or null: *ret is set to the default and 0 is
 * returned. A wrong type or a value out of bounds: -1 and ERR_INVALID "BadField" like
 * `spec.sriov.vlanID: "x" is a string, must be an integer from 0 to 4094`; *ret is untouched then.
 * A long value is quoted in part.
 */
int json_get_str(const json_t *obj, const char *where, const char *key, const char *otherwise,
		 const char **ret, struct err *err);
int json_get_int(const json_t *obj, const char *where, const char *key, int64_t min, int64_t max,
		 int64_t otherwise, int64_t *ret, struct err *err);
int json_get_bool(const json_t *obj, const char *where, const char *key, bool otherwise, bool *ret,
		  struct err *err);
/* Borrowed; NULL when absent. */
int json_get_object(const json_t *obj, const char *where, const char *key, const json_t **ret,
		    struct err *err);
int json_get_array(const json_t *obj, const char *where, const char *key, const json_t **ret,
		   struct err *err);
/* An array whose every element is a string. */
int json_get_strings(const json_t *obj, const char *where, const char *key, const json_t **ret,
		     struct err *err);

/* "a string", "an integer", … for messages. */
const char *json_type_words(const json_t *value);

/* Put value, which is taken, in the place of *field, which is dropped. Either may be NULL. */
void json_replace(json_t **field, json_t *value);

/*
 * Set a field when value is not NULL; takes value. Text may come from anywhere: bytes that are not
 * UTF-8 become U+FFFD. Keys are ours or from JSON, so they are UTF-8.
 */
void json_put(json_t *obj, const char *key, json_t *value);
void json_put_str(json_t *obj, const char *key, const char *value); /* nothing when NULL */
void json_put_int(json_t *obj, const char *key, int64_t value);
void json_put_bool(json_t *obj, const char *key, bool value);
/*
 * The object under key; put there, empty, when there is none (anything else under that key is
 * replaced). Borrowed.
 */
json_t *json_need_object(json_t *obj, const char *key);
/* A string from printf; returns new. */
json_t *json_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Iterate an object: key (const char *) and value (json_t *), borrowed. For const objects too. */
#define json_each(obj, key, value) json_object_foreach ((json_t *)(obj), key, value)

/*
 * RFC 7386. json_merge_patch applies patch to target in place; both are objects, both borrowed,
 * nothing is shared afterwards. json_merge_diff returns new the smallest patch that turns the
 * object `from` (NULL: the empty one) into the object `to`, or NULL when there is nothing to
 * change. Members that are null count as absent, on both sides; arrays are compared and replaced as
 * a whole, nulls in them included. json_merge_same says of two values, absent ones included,
 * whether there is nothing to change. json_merge_changes says whether json_merge_patch would change
 * the target (NULL: it would), and touches neither.
 */
void json_merge_patch(json_t *target, const json_t *patch);
json_t *json_merge_diff(const json_t *from, const json_t *to);
bool json_merge_same(const json_t *a, const json_t *b);
bool json_merge_changes(const json_t *target, const json_t *patch);

/* Keys and fields of Kubernetes objects. Borrowed; "" when absent. */
const char *json_name(const json_t *object);
const char *json_namespace(const json_t *object);
const char *json_uid(const json_t *object);
/* metadata.generation, 0 when absent. */
int64_t json_generation(const json_t *object);
/*
 * "namespace/name", or "name" for cluster-scoped ones: the key of caches, queues and worlds.
 * Returns new; free().
 */
char *json_key(const json_t *object);

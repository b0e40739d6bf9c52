// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of paths within an object, and what can be done with them: the arithmetic under field
 * ownership.
 *
 * A set is a JSON object whose keys are path elements ("f:spec", "k:{\"name\":\"x\"}", "v:\"a\"",
 * "i:0") and whose values are the sets below; the member "." says that the path itself is in the
 * set. fieldsV1 is the same but that a leaf is {}: fields_read and fields_write translate. An empty
 * object is the empty set, and no set below another is empty.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cli/simulate/objects/schema.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* Return new. Text that is not fieldsV1 reads as the empty set. */
json_t *fields_read(const json_t *fields_v1);
json_t *fields_write(const json_t *set);

bool fields_empty(const json_t *set);
/* Add all of `other`. */
void fields_add(json_t *set, const json_t *other);
/* Return new: members of a that are not in b; that are in both. */
json_t *fields_minus(const json_t *a, const json_t *b);
json_t *fields_common(const json_t *a, const json_t *b);
/* Return new: the set, and every field of a struct that has members below it. */
json_t *fields_with_parents(const struct schema *schema, const json_t *set);
/* Append a cause for each path: reason "FieldManagerConflict", field ".spec.list[name=\"x\"].y". */
void fields_add_causes(const json_t *set, const char *message, json_t *causes);

/* Return new: what an applier of this value owns. */
json_t *fields_of(const struct schema *schema, const json_t *value);
/*
 * What differs: sets of paths that are new or have another value in `to`, and of those that went.
 * Both are initialised by the caller, and added to.
 */
void fields_compare(const struct schema *schema, const json_t *from, const json_t *to,
		    json_t *changed, json_t *removed);
/* Return new: `applied` merged into `live`. */
json_t *fields_merge(const struct schema *schema, const json_t *live, const json_t *applied);
/* Remove all members of the set from the value, in place. */
void fields_remove(const struct schema *schema, json_t *value, const json_t *set);
/*
 * Does the value have the form that merging needs? ERR_INVALID "BadRequest": no list or map where
 * the schema wants one, items with the same keys, items without them.
 */
int fields_check_form(const struct schema *schema, const json_t *value, struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * Who owns an object, and who was first: the questions behind adopting, refusing and settling
 * conflicts.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* The owner reference with controller: true, or NULL. Borrowed. */
const json_t *owner_controller(const json_t *object);

/*
 * Is the reference to an object of this kind (any version of the group) and name? A reference of
 * NULL is to nothing.
 */
bool owner_is(const json_t *reference, const char *group, const char *kind, const char *name);

/* metadata.deletionTimestamp is set. */
bool object_is_terminating(const json_t *object);

/*
 * Created so short a time before now (RFC 3339) that what it refers to may still be on its way:
 * OBJECT_FRESH_MS.
 */
bool object_is_fresh(const json_t *object, const char *now);
#define OBJECT_FRESH_MS 5000

/*
 * Of two objects of a kind, a comes first: created earlier, or at the same second with the smaller
 * name. One that has no creationTimestamp yet (it is being admitted) is the youngest.
 */
bool object_precedes(const json_t *a, const json_t *b);

// SPDX-License-Identifier: Apache-2.0
/*
 * metav1.Condition lists: built without clocks, merged with what is there.
 *
 * lastTransitionTime changes only when the condition's status does, as the API conventions ask
 * (kubernetes/community, sig-architecture/api-conventions.md, "Typical status properties").
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum condition_status {
	CONDITION_FALSE,
	CONDITION_TRUE,
	CONDITION_UNKNOWN,
};

/* Bytes of a message that are kept. */
#define CONDITION_MESSAGE_MAX 1024
/* Bytes of a good reason; the API would take 1024. */
#define CONDITION_REASON_MAX 63

/*
 * Set one condition in `list` (a JSON array being built; borrowed, changed); one of the same type
 * is replaced. `previous` is the array found in the object's status (or NULL): when it has the type
 * with the same status, its lastTransitionTime is kept, else `now` (RFC 3339) is used. `type` and
 * `reason` are not empty. `message` goes through condition_message().
 */
void condition_set(json_t *list, const json_t *previous, const char *type,
		   enum condition_status status, const char *reason, const char *message,
		   int64_t observed_generation, const char *now);

/*
 * One line of UTF-8, not too long, as a JSON string, new: for messages, and whatever else people
 * read in a status.
 */
json_t *condition_message(const char *message);

/* Would the API server take this reason, and would a reader? NULL: false. */
bool condition_reason_is_good(const char *reason);

/*
 * All that the API asks of a condition is there: status, a CamelCase reason, message,
 * lastTransitionTime. NULL: false.
 */
bool condition_is_whole(const json_t *condition);

/* The condition of that type in a list, or NULL. Borrowed. */
const json_t *condition_find(const json_t *list, const char *type);
/* "True", "False" or "Unknown" of that type; "" when absent. */
const char *condition_status_of(const json_t *list, const char *type);

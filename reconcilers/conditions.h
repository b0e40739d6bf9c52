/*
 * metav1.Condition lists: built without clocks, merged with what is there.
 *
 * lastTransitionTime changes only when the condition's status does, as the API conventions ask
 * (kubernetes/community, sig-architecture/api-conventions.md, "Typical status properties").
 */
#ifndef ORBWEAVER_RECONCILERS_CONDITIONS_H
#define ORBWEAVER_RECONCILERS_CONDITIONS_H

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/plan.h"

enum condition_status {
	CONDITION_FALSE,
	CONDITION_TRUE,
	CONDITION_UNKNOWN,
};

/*
 * Set one condition in `list` (a JSON array being built; borrowed, changed); one of the same type is replaced. `previous` is the array found in the
 * object's status (or NULL): when it has the type with the same status, its lastTransitionTime is kept, else `now`
 * (RFC 3339) is used. `type` and `reason` are not empty. `message` becomes one line, at most 1024 bytes of it are kept.
 */
void condition_set(json_t *list, const json_t *previous, const char *type,
		   enum condition_status status, const char *reason, const char *message,
		   int64_t observed_generation, const char *now);

/* All that the API asks of a condition is there: status, a CamelCase reason, message, lastTransitionTime. NULL: false. */
bool condition_is_whole(const json_t *condition);

/* The condition of that type in a list, or NULL. Borrowed. */
const json_t *condition_find(const json_t *list, const char *type);
/* "True", "False" or "Unknown" of that type; "" when absent. */
const char *condition_status_of(const json_t *list, const char *type);

/*
 * Append an event for each condition whose status or reason differs from `previous`, with reason and message of the
 * condition: Warning for Degraded/Blocked=True, for Injected=False and for Ready=False that does not pass by itself (Progressing is not True),
 * else Normal. Not told: that something new is well from the start (5,000 good objects would be 5,000 events), and
 * Progressing, which Ready's reason says too.
 */
void conditions_tell(struct plan *plan, const char *kind, const char *key, const json_t *previous,
		     const json_t *list);

#endif

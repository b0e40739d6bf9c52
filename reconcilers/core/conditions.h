/*
 * Conditions (lib/json/condition.h) of objects that reconcilers judge, and the events that go with
 * them.
 */
#ifndef ORBWEAVER_RECONCILERS_CORE_CONDITIONS_H
#define ORBWEAVER_RECONCILERS_CORE_CONDITIONS_H

#include "lib/json/condition.h"
#include "reconcilers/core/plan.h"

/*
 * Append an event for each condition whose status or reason differs from `previous`, with reason
 * and message of the condition: Warning for Degraded/Blocked=True, for Injected=False and for
 * Ready=False that does not pass by itself (Progressing is not True), else Normal. One event for
 * one cause: conditions with the same reason and message are told once. Not told: that something
 * new is well from the start (5,000 good objects would be 5,000 events), and Progressing, which
 * Ready's reason says too.
 */
void conditions_tell(struct plan *plan, const char *kind, const char *key, const json_t *previous,
		     const json_t *list);

#endif

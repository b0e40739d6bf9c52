// SPDX-License-Identifier: Apache-2.0
/*
 * The state file: what the agent has to remember across power cuts, var/lib/orbweaver/state.json
 * below the host's root.
 */
#pragma once

#include "nodeagent/host/host.h"

#define STATE_FOLDER HOST_STATE_FOLDER
#define STATE_FILE   "state.json"
/* Where a damaged one is kept; an earlier one is replaced. */
#define STATE_DAMAGED STATE_FILE ".damaged"
/* How a host's PFs were found takes less than 200 bytes each. */
#define STATE_MAX (1U << 20)

/*
 * *ret is the object, new; {} when there is none. ERR_HOST "StateDamaged": it was no JSON object,
 * or too large, and has been put aside, so that the next call gives {}; ERR_HOST "StateUnreadable"
 * with errno. Removes temporary files of writers that were killed.
 */
int state_load(const struct host *host, json_t **ret, struct err *err);

/*
 * Replace the file. On success it is on disk, whatever happens then; on failure the old one is
 * there, or, when only the last sync failed, either. ERR_HOST "StateNotWritten" with errno, ERR_BUG
 * "StateTooLarge".
 */
int state_save(const struct host *host, const json_t *state, struct err *err);

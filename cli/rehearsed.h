// SPDX-License-Identifier: Apache-2.0
/* The operator's rehearsal (operator/rehearsal.h) on the objects of a command, as JSON. */
#pragma once

#include "cli/command.h"

struct rehearsed {
	/*
	 * [{ "step", "controller", "key", "error", "plan", "changes": [{ "does", "kind", "key",
	 * "message", "condition", "troubled", "differences" }] }]: the members of replay_fields
	 * (cli/replay.c)
	 */
	json_t *steps;
	json_t *left_out; /* [{ "controller", "why" }] */
	/* { key: NetworkAttachmentDefinition }, those that would be written, as they would be. */
	json_t *definitions;
	/* How often something was decided, and how often that is not so in the world. */
	size_t decided, differing;
};

/*
 * Rehearse on a world of source_world(). only: steps of this controller or key alone; NULL: all.
 * *ret is rehearsed_done()'s.
 */
void rehearsed_run(const struct cli *cli, const json_t *world, const char *only,
		   struct rehearsed *ret);
void rehearsed_done(struct rehearsed *r);

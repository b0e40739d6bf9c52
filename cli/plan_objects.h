// SPDX-License-Identifier: Apache-2.0
/* Objects that are to be applied: what becomes of each, and what the operator would do then. */
#pragma once

#include "cli/command.h"

struct plan_objects {
	/*
	 * [{ "kind", "key", "is", "faults", "differences", "follows", "nothing" }]: the members of
	 * plan_fields (cli/plan.c) below "objects"
	 */
	json_t *rows;
	json_t *left_out; /* of the operator's controllers: [{ "controller", "why" }] */
	bool troubled;    /* one of them would need an administrator */
};

/*
 * Apply objects to a world of source_world(), as `kubectl apply` does: what a file does not have
 * stays, but for what the last apply wrote. Objects get the namespaces that they lack. What the API
 * server would refuse is not applied, and fields that it would drop are not (cli/plan_schema.h).
 * Fills ret->rows; *ret is plan_objects_done()'s.
 */
void plan_objects_apply(const struct cli *cli, json_t *world, const json_t *objects,
			struct plan_objects *ret);

/*
 * Rehearse what the operator would do in that world, and not without each single one of the
 * objects. before: the world as it was.
 */
void plan_objects_follow(const struct cli *cli, const json_t *before, const json_t *world,
			 struct plan_objects *objects);
void plan_objects_done(struct plan_objects *objects);

/* Print a table of them. */
void plan_objects_print(struct strbuf *out, const struct plan_objects *objects);

// SPDX-License-Identifier: Apache-2.0
/*
 * The one signature of everything that decides.
 *
 * world: what the decision may look at, and nothing else:
 *
 *	{ "<kind id>": { "<key>": object, … }, …,
 *	  "env": { "now": RFC 3339, "namespace": the operator's, "resourcePrefix": "spidernet.io",
 *	           "policyNamespaces": [names], see trust.h } }
 *
 * In production each controller names the kinds that it needs and how they are narrowed (the table
 * in operator/controllers/controllers.c), and the objects come from the informer caches; in tests
 * the whole world is a file. Borrowed, never changed.
 *
 * key:  the primary object. A key whose object is not in the world belongs to a deleted object.
 * plan: operations are appended; unchanged on failure.
 *
 * Returns 0, or -1 with err set when it cannot decide at all (ERR_TRANSIENT: again with back-off;
 * ERR_BUG). What is wrong with a user's object is not an error here: it becomes conditions of that
 * object in the plan.
 *
 * Pure: no clock, no file, no socket, no static state. Equal worlds give equal plans, byte for
 * byte. Reconciling again after the plan was carried out gives a plan that changes nothing.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "reconcilers/core/plan.h"

typedef int reconcile_fn(const json_t *world, const char *key, struct plan *plan, struct err *err);

/* One kind's objects in the world, keyed; NULL when the world has none. Borrowed. */
const json_t *world_kind(const json_t *world, const char *kind);
/* One object, or NULL. Borrowed. */
const json_t *world_get(const json_t *world, const char *kind, const char *key);
/* A field of "env"; "" when absent. Borrowed. */
const char *world_env(const json_t *world, const char *name);

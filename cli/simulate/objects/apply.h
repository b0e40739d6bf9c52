// SPDX-License-Identifier: Apache-2.0
/*
 * Field ownership: server-side apply, and metadata.managedFields of all other writes.
 *
 * Lists and maps merge as the schema says: lists of type map by keys (a default of a key counts),
 * of type set by value, other lists as a whole; maps by member unless they are atomic; members
 * unknown to the schema are maps by member and lists as a whole.
 *
 * Sources: Kubernetes documentation, "Server-Side Apply"; kubernetes-sigs/structured-merge-diff
 * (sets of paths, and their form fieldsV1).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/simulate/objects/schema.h"
#include "lib/base/err.h"

/* A write, for all that ownership depends on. */
struct apply_write {
	const struct schema *schema; /* NULL: nothing known but metadata */
	const char *manager;         /* the field manager; never empty: see apply_manager_name */
	const char *api_version;     /* "v1", "sriovnetwork.openshift.io/v1" */
	const char *subresource;     /* "status", or NULL */
	int64_t now_us;              /* wall time, microseconds since the epoch */
	bool force;                  /* take fields from other managers; apply only */
};

/*
 * Return the manager's name for a request: fieldManager if it is not empty, else the part of the
 * User-Agent before '/', else "unknown"; at most 128 bytes. Returns new; free().
 */
char *apply_manager_name(const char *field_manager, const char *user_agent);

/*
 * Server-side apply of a configuration. live: NULL when the object does not exist. *ret is new: the
 * merged object with its managedFields, and without the fields that this manager applied before, no
 * longer applies, and that have no other manager. Metadata that servers set (uid, resourceVersion,
 * generation, creationTimestamp, …) is live's; a resourceVersion in `applied` is not compared.
 * Nothing is defaulted or validated: run schema_default on *ret, and schema_validate, before it is
 * stored. Prune `applied` before, not *ret.
 *
 * An apply that changes nothing gives *ret equal to live (json_same), times included: the caller
 * writes nothing then. With subresource "status", fields outside of status are ignored; without,
 * status in `applied` is, if the caller took it out (kinds with that subresource).
 *
 * Returns 0, or -1 with *ret untouched and
 *
 *   ERR_INVALID "BadRequest"             managedFields in `applied`, no map where the schema wants
 *                                        one, two items with the same keys, an item without them
 *   ERR_INVALID "RequestEntityTooLarge"  the result exceeds limits.h
 *   ERR_CONFLICT "Conflict"              fields belong to other managers and force is false;
 *                                        *ret_causes is a new array of causes {reason
 *                                        "FieldManagerConflict", message `conflict with "M" using
 *                                        v1`, field ".spec.x"}: failure_apply_conflict
 *
 * ret_causes is set to NULL in all other cases.
 */
int apply_object(const struct apply_write *write, const json_t *live, const json_t *applied,
		 json_t **ret, json_t **ret_causes, struct err *err);

/*
 * Ownership after create (live NULL), update or a patch of another type: fields of `object` that
 * differ from live become the manager's (operation Update), and are taken from all others; fields
 * that were removed have no owner. Sets object's metadata.managedFields in place, from those in
 * live; object's own count only as [{}], which drops all ownership, as on a real server. An object
 * without managedFields (after [{}]) stays so until the next apply. Call it on the object as it
 * will be stored, defaults included.
 *
 * A write that changes nothing leaves managedFields equal to live's, times included.
 *
 * Returns 0, or -1 with ERR_INVALID "RequestEntityTooLarge" and object untouched.
 */
int apply_track_update(const struct apply_write *write, const json_t *live, json_t *object,
		       struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * Refusals as kube-apiserver words them: metav1.StatusCause objects, and the metav1.Status around
 * them.
 *
 * Sources: Kubernetes API reference, "Status"; kubernetes/apimachinery pkg/util/validation/field
 * (wording of causes), pkg/api/errors (wording of statuses).
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * Append one cause {reason, message, field} to the array `causes`; dropped when it has CAUSES_MAX.
 *
 * reason   "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported",
 *          "FieldValueForbidden", "FieldValueDuplicate", "FieldValueTooLong",
 *          "FieldValueTooMany", "FieldValueTypeInvalid", "FieldManagerConflict"
 * field    its path: "spec.ips[0]", "metadata.name"; "<nil>" for the whole object
 * fmt      what stands after the field: `Invalid value: 5000: spec.vlan in body should be …`
 */
void cause_add(json_t *causes, const char *reason, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* A value as it stands in "Invalid value: …": `5000`, `"text"`, `null`, JSON. Returns new; free. */
char *cause_value(const json_t *value);

/*
 * A Status of any code. reason: metav1.StatusReason ("NotFound", …). details: NULL, or an object,
 * borrowed. Returns new.
 */
json_t *failure_status(int code, const char *reason, const char *message, const json_t *details);

/*
 * 422 "Invalid": `KIND.GROUP "NAME" is invalid: CAUSE` with one cause, `…: [CAUSE, CAUSE]` with
 * several. group: "" for the core group. Borrows causes. Returns new.
 */
json_t *failure_invalid(const char *group, const char *kind, const char *name,
			const json_t *causes);

/*
 * 409 "Conflict" of server-side apply: `Apply failed with 1 conflict: conflict with "MANAGER":
 * FIELD` or `… with 2 conflicts: conflicts with "MANAGER": - FIELD …`. Causes as apply.h makes
 * them. Returns new.
 */
json_t *failure_apply_conflict(const json_t *causes);

/*
 * The Status of an error of this folder: err->reason "BadRequest" is 400, "NotFound" 404,
 * "Conflict" 409, "RequestEntityTooLarge" 413, "UnsupportedMediaType" 415, "Invalid" 422; another
 * reason is 500 "InternalError". Returns new.
 */
json_t *failure_of_err(const struct err *err);

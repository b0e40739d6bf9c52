// SPDX-License-Identifier: Apache-2.0
/*
 * Patches: JSON patch (RFC 6902), JSON merge patch (RFC 7386), strategic merge patch.
 *
 * Strategic merge patches take merge keys from the schema (schema_builtin); kube-apiserver knows
 * them for built-in kinds alone, and answers 415 for custom resources, which is the caller's to
 * say. Directives: $patch (delete, replace, merge), $retainKeys, $setElementOrder/LIST,
 * $deleteFromPrimitiveList/LIST.
 *
 * Sources: RFC 6902, RFC 6901, RFC 7386; kubernetes/community
 * contributors/devel/sig-api-machinery/strategic-merge-patch.md.
 */
#pragma once

#include <jansson.h>

#include "cli/simulate/objects/schema.h"
#include "lib/base/err.h"

enum patch_type {
	PATCH_JSON,      /* application/json-patch+json */
	PATCH_MERGE,     /* application/merge-patch+json */
	PATCH_STRATEGIC, /* application/strategic-merge-patch+json */
};

/*
 * Apply a patch to an object. *ret is new and shares nothing with either input; both inputs stay as
 * they were. schema: NULL, or that of the kind; only strategic patches look at it. Nothing is
 * defaulted, pruned or validated, and metadata is not protected: a patch of metadata.name or uid
 * shows in *ret, and the caller compares.
 *
 * Returns 0, or -1 with *ret untouched and
 *
 *   ERR_INVALID "BadRequest"             not a patch of this type; the text names the operation
 *   ERR_INVALID "Invalid"                a JSON patch that does not fit the object: a path that is
 *                                        not there, a failed test
 *   ERR_INVALID "RequestEntityTooLarge"  too many operations, or the result exceeds limits.h
 */
int patch_object(enum patch_type type, const struct schema *schema, const json_t *object,
		 const json_t *patch, json_t **ret, struct err *err);

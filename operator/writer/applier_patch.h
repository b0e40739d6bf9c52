// SPDX-License-Identifier: Apache-2.0
/*
 * Differences between objects as they are in the cache and as plans want them, as merge patches
 * (RFC 7386). Pure.
 */
#pragma once

#include <jansson.h>

#include "lib/kube/api.h"

/*
 * The merge patch that makes `present` (as it is in the cache) what an "apply" operation wants;
 * NULL when it is so already. Includes metadata.resourceVersion. Returns new.
 */
json_t *applier_patch(const json_t *present, const json_t *wanted);

/* What a merge patch says about one member; NULL when it is as wanted. Returns new. */
json_t *applier_patch_difference(const json_t *present, const json_t *wanted);

/* The patch holds only if the object is still the one that was looked at. Returns patch. */
json_t *applier_patch_conditional(json_t *patch, const json_t *present);

/* How the server is to merge it: conditions of a Node with those of others, by type. */
enum kube_patch applier_patch_type(const struct kube_resource *resource, const json_t *patch);

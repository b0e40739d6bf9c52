// SPDX-License-Identifier: Apache-2.0
/*
 * What the kubelet gets to know of one resource: what there is and, for a while, what there was.
 * Pure.
 *
 * A device that vanishes is unhealthy at once, so that no pod gets it, and leaves the list only
 * when it has been gone for PLUGIN_OFFER_GONE_MS: a driver that is loaded again or a ConfigMap that
 * is replaced does not make the capacity jump.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

enum { PLUGIN_OFFER_GONE_MS = 5000 };

/*
 * before: what this function returned last, or NULL at the start. resource: the entry of
 * "resources" (pools.h) that is wanted now, or NULL when the resource is wanted no more.
 *
 * Returns new: the resource with its devices; after them those of `before` that are gone,
 * unhealthy, with "gone": the time since when. *ret_again_ms is when the next of them leaves (-1:
 * none will); ask again then. NULL when the resource is not wanted and its last device has left.
 */
json_t *plugin_offer_next(const json_t *before, const json_t *resource, int64_t now_ms,
			  int64_t *ret_again_ms);

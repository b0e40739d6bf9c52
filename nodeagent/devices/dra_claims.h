// SPDX-License-Identifier: Apache-2.0
/*
 * Claims that a kubelet has us prepare: what of a ResourceClaim is ours, and which edits of
 * containers come of it. What is remembered of it: state.h. Pure.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* What one claim can be given (k8s.io/api). */
enum { DRA_CLAIM_DEVICES_MAX = 32 };

/*
 * What of a ResourceClaim (resource.k8s.io/v1) concerns us: {"namespace", "name", "uid", "pod":
 * that it is reserved for, "results": [{"request", "pool", "device"}]}, new. NULL with err
 * ERR_INVALID "BadClaim": it is not the claim `uid`, nothing is allocated to it, something is of
 * another node or for an administrator, or there are too many.
 */
json_t *dra_claim_read(const json_t *object, const char *node, const char *uid, struct err *err);

/*
 * The entry of the state for this claim, new: each device once, those of one request and resource
 * as Allocate would give them (nodeagent/devices/allocate.h). `claim` is of dra_claim_read(),
 * `pools` of dra_choice_claims(). NULL with err ERR_INVALID: "UnknownDevice", "DeviceUnhealthy",
 * "DeviceTaken": another claim has it, "BadClaim", "TooManyClaims".
 */
json_t *dra_claim_prepare(const json_t *state, const json_t *claim, const json_t *pools,
			  const char *boot, struct err *err);

/*
 * The same entry with edits as devices are now, new, when all are well; NULL: they are not, or
 * nothing changed. Its CDI ids stay.
 */
json_t *dra_claim_renew(const json_t *entry, const char *uid, const json_t *pools,
			const char *boot);

/*
 * How devices of claims are, for their pods' status, new: [{"pool", "device": as in the slice,
 * "health": "healthy", "unhealthy" or "unknown": it is not among the pools now, "message": why not
 * healthy}], sorted, each device once. `state` as kept on disk, `pools` of dra_choice_claims().
 */
json_t *dra_claims_health(const json_t *state, const json_t *pools);

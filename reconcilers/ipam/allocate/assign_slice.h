// SPDX-License-Identifier: Apache-2.0
/* How many of the pods that wait, and of those that have ended, are in one pass (assign.h). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/ipam/candidates.h"

/*
 * Work that one pass takes on, so that the loop which renews the Lease and answers probes is back
 * soon. The unit is about what a pod with one network takes; users choose how much their pods take
 * (within limits.h). Pods of more than ASSIGN_LIGHT have a share of their own, so that many of them
 * keep no other pod waiting; one of them is in each pass. Those left are in the next pass.
 */
enum { ASSIGN_WORK = 6000, ASSIGN_LIGHT = 10, ASSIGN_HEAVY_WORK = 3000 };
/* For pods that have ended: users write how many addresses their endpoints name. */
enum { ASSIGN_ENDING_WORK = 2000 };

struct assign_slice {
	size_t endings, ending_work;
	size_t pods, work, heavy;
	size_t last;       /* what the pod that was taken last takes of either */
	size_t candidates; /* of it, for the pools that it may choose from */
};

/*
 * Is the pod in this pass? Notes what it takes. endpoint: its SpiderEndpoint, or NULL. pools: how
 * many SpiderIPPools there are.
 */
bool assign_slice_take(struct assign_slice *slice, const json_t *pod, const json_t *endpoint,
		       size_t pools);
/*
 * The pod that was taken last is more work, by its networks and its endpoint, which any user of its
 * namespace may write, or by its namespace (candidates_visit_names()). False: it is not in this
 * pass.
 */
bool assign_slice_take_more(struct assign_slice *slice, const struct candidate_names *meant,
			    size_t pools);
/* Is an entry of BOX_ENDING in this pass? Notes what it takes. One is in each pass. */
bool assign_slice_take_ending(struct assign_slice *slice, const json_t *ended);
/* About how much work the pod is. */
size_t assign_slice_work(const json_t *pod, size_t pools);

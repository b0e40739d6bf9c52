// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers to alert on, kept while objects change: conditions of all objects by reason, VFs of
 * policies, resources that nodes want and do not have. A scrape costs what there is to say, not
 * what there are objects.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct object_counts;

struct object_counts *object_counts_new(void);
void object_counts_free(struct object_counts *counts);

/*
 * The object was `old` and is `now` in a cache; either may be NULL. Objects without conditions
 * count nowhere. A NodeState that outlives its Node (node_state_is_kept) has its conditions counted
 * and nothing else: nobody has to act for a node that was taken away.
 */
void object_counts_update(struct object_counts *counts, const char *kind, const json_t *old,
			  const json_t *now);

/* fn for each kind, condition, status and reason of which there are objects, in no order. */
void object_counts_conditions(const struct object_counts *counts,
			      void (*fn)(void *arg, const char *kind, const char *type,
					 const char *status, const char *reason, size_t count),
			      void *arg);

/*
 * fn for each kind and reason for which objects need somebody: Degraded, or not Ready while nothing
 * makes progress, waits for a pod or waits for a reboot. One object counts once, as Degraded first.
 */
void object_counts_findings(const struct object_counts *counts,
			    void (*fn)(void *arg, const char *kind, const char *reason,
				       size_t count),
			    void *arg);

/* fn for each policy ("namespace/name") that has a status. */
void object_counts_policies(const struct object_counts *counts,
			    void (*fn)(void *arg, const char *policy, int64_t wanted,
				       int64_t present),
			    void *arg);

/*
 * fn for each resource that some NodeState wants: how many nodes want it, by a device plugin or for
 * claims, how many of them have no healthy device of it for the former, and on how many of these a
 * shared resource selects nothing: the node may not be meant (reconcilers/sriov/shared_offers.h).
 */
void object_counts_resources(const struct object_counts *counts,
			     void (*fn)(void *arg, const char *resource, size_t nodes, size_t empty,
					size_t unselected),
			     void *arg);

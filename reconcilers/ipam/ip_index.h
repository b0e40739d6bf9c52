// SPDX-License-Identifier: Apache-2.0
/*
 * Which pools touch these addresses? An index over 10,000 pools that answers in O(log n + hits).
 *
 * A treap of all ranges, ordered by first address, in which every node knows the highest last
 * address below it: whole subtrees that end too early are skipped. The owners of ranges are strings
 * (pool keys). Families do not mix: one index each. Plain memory, no I/O; the operator's cache
 * keeps one up to date and narrows a reconciler's world with it.
 */
#pragma once

#include "reconcilers/ipam/ip_range.h"

struct ip_index;

struct ip_index *ip_index_new(void);
void ip_index_free(struct ip_index *index);
OWN_DEFINE(struct ip_index, ip_index_free)
#define auto_ip_index auto_call(ip_index_free_p)

/*
 * The owner's ranges are these from now on; an empty set (any set, settled or not) removes the
 * owner.
 */
void ip_index_put(struct ip_index *index, const char *owner, const struct ip_set *ranges);
void ip_index_remove(struct ip_index *index, const char *owner);

/*
 * Call hit once for each owner with a range that overlaps one of `ranges`. The index must not
 * change meanwhile. `owner` is borrowed until the index changes.
 */
void ip_index_find(struct ip_index *index, const struct ip_set *ranges,
		   void (*hit)(void *ctx, const char *owner), void *ctx);

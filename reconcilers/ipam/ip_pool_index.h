// SPDX-License-Identifier: Apache-2.0
/*
 * All pools of the cluster, indexed so that a changed one is compared with the few that it may
 * overlap, not with all.
 *
 * The operator's cache keeps it up to date (put, remove) and asks (find) when it builds the world
 * of ip_pool_reconcile; it also asks with the old and the new object of an event, to queue the
 * neighbours whose verdict may have changed.
 */
#pragma once

#include <jansson.h>

#include "lib/base/own.h"
#include "reconcilers/ipam/ip_range.h"

struct ip_pool_index;

struct ip_pool_index *ip_pool_index_new(void);
void ip_pool_index_free(struct ip_pool_index *index);
OWN_DEFINE(struct ip_pool_index, ip_pool_index_free)
#define auto_ip_pool_index auto_call(ip_pool_index_free_p)

/*
 * The pool (by metadata.name) is now like this. It is found by the addresses of its spec and by
 * those that its ledger has, which an edit may have taken out of the spec. Records that we make
 * later are of the spec that was put, so it is put again only when the spec changes, or another
 * program has written the ledger. One without a readable subnet is found by its ledger alone.
 */
void ip_pool_index_put(struct ip_pool_index *index, const json_t *pool);
void ip_pool_index_remove(struct ip_pool_index *index, const char *name);

/*
 * Call hit with the names of the pools that have an address of this one's spec, or another subnet
 * that overlaps its subnet. A name may come twice, and the pool itself may be among them. The index
 * must not change meanwhile.
 */
void ip_pool_index_find(struct ip_pool_index *index, const json_t *pool,
			void (*hit)(void *ctx, const char *name), void *ctx);

/* The same for those that have this one address, in their spec or their ledger. */
void ip_pool_index_find_address(struct ip_pool_index *index, enum ip_family family,
				const char *address, void (*hit)(void *ctx, const char *name),
				void *ctx);

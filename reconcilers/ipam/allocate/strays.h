// SPDX-License-Identifier: Apache-2.0
/*
 * Where a pool's ledger and SpiderEndpoints do not agree: records that no SpiderEndpoint names and
 * no living pod can take up: what is left of a namespace that was deleted with its endpoints, or of
 * a pass that was cut off; and what pods have without a record.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

enum {
	/* How soon a pool that does not change is looked at again. */
	STRAYS_AGAIN_MS = 300000,
	/* How soon one is, that is not learned while pods that have its addresses are looked at. */
	STRAYS_LEARN_MS = 1000,
	/* Blocks of a pool, at most (strays_visit_blocks()). */
	STRAYS_BLOCKS_MAX = 65536,
};

/* The finding of a living pod that has the address that a record gives to another living pod. */
#define STRAYS_TWICE "AddressTwice"
/* By pod: the message of its finding STRAYS_TWICE. */
#define BOX_TWICE "twice"

/*
 * Post to BOX_LEARNED that the pool was looked at, once a pass of assign.h has looked at each pod
 * that had an address of it without a record when this began (BOX_LEARNING, BOX_CLAIMED,
 * BOX_CLAIMANTS). A pod that is not mirrored is read first: its endpoint is posted to BOX_STRAYS.
 * Nothing is learned while the server refuses the ledger (books_trouble()). A living pod with the
 * address that the record of another living pod has gets the finding STRAYS_TWICE, until that is no
 * longer so.
 *
 * Post each record to BOX_STRAYS (lifecycle.h) of its pod's name, where it is verified.
 *
 * Key: the pool. World: KIND_IP_POOL, and KIND_ENDPOINT, KIND_POD of the names in its records, of
 * endpoints that name it, and of machines of these names, as far as they are known; until it is
 * learned also of endpoints with an address in its blocks; the pools that all these name;
 * BOX_STRAYS of the names, BOX_TWICE, BOX_CLAIMED of the pool, BOX_CLAIMANTS, BOX_LEARNED,
 * BOX_LEARNING, BOX_UNWRITTEN, "namespace" and "now" in "env". A ledger that cannot be read is a
 * condition of the pool (ipam/ip_pool.h) and nothing is decided here.
 */
reconcile_fn strays_reconcile;

/*
 * Has the ledger of a pool lost a record from one version of it to the next? Of a text that cannot
 * be read: yes.
 */
bool strays_lost(const char *before, const char *after);

/*
 * Pods may have addresses of a pool from another one that is gone, or does not have them any more.
 * So endpoints are found by the blocks that their addresses are in: 256 IPv4 addresses, or a /64.
 * Visit that of an address, if the text is one, those of an endpoint, and of the addresses of a
 * pool, some perhaps twice. False, and none visited: the pool has more than STRAYS_BLOCKS_MAX.
 */
void strays_visit_block(const char *address, void (*visit)(void *arg, const char *block),
			void *arg);
void strays_visit_blocks_of_endpoint(const json_t *endpoint,
				     void (*visit)(void *arg, const char *block), void *arg);
bool strays_visit_blocks(const json_t *pool, void (*visit)(void *arg, const char *block),
			 void *arg);

/* What strays_reconcile() reads of an endpoint: a world has very many of them. Returns new. */
json_t *strays_endpoint(const json_t *endpoint);

/* Visit the names "namespace/name" in the records of a pool, some perhaps twice. */
void strays_visit(const json_t *pool, void (*visit)(void *arg, const char *key), void *arg);

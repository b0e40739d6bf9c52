// SPDX-License-Identifier: Apache-2.0
/*
 * What a SpiderEndpoint gives to a pod, compared with the ledgers of the pools that it names. Users
 * may write endpoints, so a NIC that is new gets only what a ledger has for its pod.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* All borrowed. */
struct claim {
	const char *ns, *name; /* of the endpoint: as records name the pod, or its machine */
	const char *uid;       /* of the pod */
	const json_t *asks;    /* the NICs that are served (candidates.h) */
	const json_t *status;  /* of the endpoint */
};

/*
 * The next pool of which these NICs have an address, "" where none is named; NULL: `compared`,
 * { pool: … }, has them all. Borrowed.
 */
const char *claim_next_pool(const struct claim *claim, const json_t *compared);

/*
 * Does the ledger of this pool have a record for the pod of each address that the NICs have of it?
 * object: the SpiderIPPool; null or NULL: there is none. -1 with err:
 *
 *	ERR_INVALID "AddressNotAdmitted"	it does not; the text says what it has
 */
int claim_compare(const struct claim *claim, const char *pool, const json_t *object,
		  struct err *err);

/* The same for all pools that are named; pools: { name: SpiderIPPool or null }. */
int claim_compare_all(const struct claim *claim, const json_t *pools, struct err *err);

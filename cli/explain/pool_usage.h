// SPDX-License-Identifier: Apache-2.0
/* How full a SpiderIPPool is. Pure. */
#pragma once

#include <jansson.h>

/*
 * { "pool", "subnet", "total", "used", "free", "resting", "conflicts", "ready" }, new; numbers
 * beyond 2^32 are texts like "~2^64", and absent where the ledger cannot be read. World:
 * KIND_RESERVED_IP.
 */
json_t *pool_usage(const json_t *world, const json_t *pool);

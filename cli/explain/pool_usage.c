// SPDX-License-Identifier: Apache-2.0
/*
 * The counting of the operator's own pool status (reconcilers/ipam) on one pool, as JSON for
 * tables: numbers that fit as numbers, the sizes of IPv6 pools as powers of two. For `ipam show`
 * and `explain pool`.
 */
#include "cli/explain/pool_usage.h"

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/ledger.h"

/* A number that people read: powers for what is too large to count. */
static json_t *count_text(int64_t count)
{
	int power = 0;

	if (count <= UINT32_MAX)
		return json_integer(count);
	for (int64_t rest = count - 1; rest > 0; rest /= 2)
		power++;
	return json_fmt("~2^%d", power);
}

json_t *pool_usage(const json_t *world, const json_t *pool)
{
	auto_ledger struct ledger ledger = {0};
	json_t *row = json_object(), *ready;
	struct err err = {0};

	json_put_str(row, "pool", json_name(pool));
	json_put_str(row, "subnet", json_str_at(pool, "spec", "subnet"));
	ready = json_find(json_at(pool, "status", "conditions"), "type", "Ready");
	json_put_str(row, "ready", json_str_at(ready, "reason"));
	if (ledger_open(pool, world_kind(world, KIND_RESERVED_IP), world_env(world, "now"), &ledger,
			&err) < 0) {
		json_put_str(row, "ready", err.reason);
		return row;
	}
	json_put(row, "total", count_text(ip_set_count(&ledger.addresses.usable)));
	json_put_int(row, "used", (int64_t)json_object_size(ledger.records));
	json_put(row, "free", count_text(ip_set_count(&ledger.free)));
	json_put_int(row, "resting", (int64_t)json_array_size(ledger.resting));
	json_put_int(row, "conflicts", (int64_t)json_array_size(ledger.conflicts.entries));
	return row;
}

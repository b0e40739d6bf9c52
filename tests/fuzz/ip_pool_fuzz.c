// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderIPPool → status on any world: see reconcile_fuzz.h; and the index of pools finds every pool
 * that the verdict names.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ip_pool_index.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_counts(const struct plan *plan)
{
	json_t *op;
	size_t i;

	fuzz_check_conditions(plan);
	json_array_foreach (plan->ops, i, op) {
		const json_t *status = json_at(op, "status");

		fuzz_check(!status || json_integer_value(json_at(status, "totalIPCount")) >= 0,
			   "a pool has no negative number of addresses");
		fuzz_check(!status || json_is_integer(json_at(status, "allocatedIPCount")),
			   "allocatedIPCount is there");
	}
}

static void add_to_world(void *ctx, const char *name)
{
	json_t *const *worlds = ctx;

	json_object_set(json_need_object(worlds[1], KIND_IP_POOL), name,
			(json_t *)world_get(worlds[0], KIND_IP_POOL, name));
}

static size_t count_overlaps(const json_t *world, const json_t *pool)
{
	auto_problems struct problems problems = {0};

	ip_pool_check(world, pool, &problems);
	return problems.total;
}

/* Pools bear the name that they are kept under, as in a cache. */
static void name_pools(const json_t *world)
{
	const char *name;
	json_t *pool;

	json_each (world_kind(world, KIND_IP_POOL), name, pool)
		json_put_str(json_need_object(pool, "metadata"), "name", name);
}

/*
 * The verdict on each pool is the same with all pools in the world and with those that the index
 * picks.
 */
static void check_index(const json_t *world)
{
	auto_ip_pool_index struct ip_pool_index *index = ip_pool_index_new();
	const char *name;
	json_t *pool;

	json_each (world_kind(world, KIND_IP_POOL), name, pool)
		ip_pool_index_put(index, pool);
	json_each (world_kind(world, KIND_IP_POOL), name, pool) {
		json_auto_t *narrow = json_object();
		json_t *worlds[] = {(json_t *)world, narrow};

		ip_pool_index_find(index, pool, add_to_world, worlds);
		fuzz_check(count_overlaps(world, pool) == count_overlaps(narrow, pool),
			   "the index misses nothing");
	}
	json_each (world_kind(world, KIND_IP_POOL), name, pool)
		ip_pool_index_remove(index, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *world = fuzz_world(json_at(input, "world"));

	fuzz_reconcile(data, size, ip_pool_reconcile, check_counts);
	name_pools(world);
	check_index(world);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetworkPoolConfig → status on any world: see reconcile_fuzz.h; and what a pool says about
 * GUIDs is sound.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_guid.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static bool is_in(uint64_t guid, const json_t *guid_pool)
{
	uint64_t start = 0, end = 0;

	return guid_parse(json_str_at(guid_pool, "rangeStart"), &start) &&
	       guid_parse(json_str_at(guid_pool, "rangeEnd"), &end) && guid >= start && guid <= end;
}

static void check_guids(const json_t *pool)
{
	const json_t *guid_pool = json_at(pool, "spec", "guidPool");
	auto_problems struct problems problems = {0};
	char text[GUID_TEXT_SIZE];
	uint64_t guid, again;
	int block;

	fuzz_check(guid_pool_block(guid_pool, &block, &problems) == (problems.total == 0),
		   "a pool without a block has a problem");
	/* Pools have no mac, but this one is as good as any other foreign text. */
	if (block == GUID_BLOCK_NONE ||
	    !guid_first_of_pf(block, json_str_at(pool, "metadata", "name"), &guid))
		return;
	fuzz_check(guid >> 56 == (uint64_t)block && (block & 3) == 2, "a GUID is of its block");
	fuzz_check(is_in(guid, guid_pool) && is_in(guid + GUID_VFS_MAX - 1, guid_pool),
		   "all VFs of a PF are in the range");
	guid_text(guid, text);
	fuzz_check(guid_parse(text, &again) && again == guid, "a GUID survives its text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	const char *key;
	json_t *pool;

	json_each (json_at(input, "world", KIND_POOL_CONFIG), key, pool)
		check_guids(pool);
	fuzz_reconcile(data, size, pool_config_reconcile, fuzz_check_conditions);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The configurations of static and host-local, {"config", "args", "last", "dns"}: an address is
 * tried once, is in its range and no gateway; a result is one that other plugins read.
 */
#include "lib/json/json.h"
#include "nodeagent/cni/plan/host_local.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/static_ipam.h"
#include "tests/fuzz/fuzz.h"

enum { STEPS_MAX = 300 };

static void walk(const struct host_local_set *set, const struct addr *last)
{
	struct host_local_walk walk;
	struct addr address, first = {0};
	const struct host_local_range *range;

	host_local_walk_init(&walk, set, last);
	for (int i = 0; i < STEPS_MAX && (range = host_local_walk_next(&walk, &address)); i++) {
		fuzz_check(host_local_range_of(set, &address) == range,
			   "an address is of its range");
		fuzz_check(!addr_same(&address, &range->gateway), "a gateway is not given");
		fuzz_check(i == 0 || !addr_same(&address, &first), "an address is tried once");
		if (i == 0)
			first = address;
	}
}

static void check_result(const json_t *result)
{
	json_auto_t *written = result_write(result, "1.1.0"), *again = NULL;

	fuzz_check(result_read(written, "1.1.0", &again, NULL) == 0 && json_same(result, again),
		   "a result is read as it was written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL), *result = NULL;
	const json_t *config = json_at(input, "config");
	const char *args = json_str_at(input, "args");
	auto_host_local_config struct host_local_config read = {0}, place = {0};
	struct addr last = {0};
	struct err err = {0};

	if (!input)
		return 0;
	json_decref(host_local_dns(json_str_or(json_at(input, "dns"), "")));
	(void)addr_parse(json_str_at(input, "last"), &last);
	if (host_local_config_read(config, args, false, &read, &err) == 0) {
		for (size_t i = 0; i < read.n_sets; i++)
			walk(&read.sets[i], &last);
		fuzz_check(host_local_config_read(config, args, true, &place, NULL) == 0,
			   "what ADD takes, DEL takes");
	} else {
		fuzz_check(err.class == ERR_INVALID, "a refusal is one of the configuration");
	}
	if (static_ipam_result(config, args, &result, NULL) == 0)
		check_result(result);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Any host, any list in a NodeState's spec, any earlier result: rails are numbered once each, the
 * same again gives the same, and a result is a good beginning for the next. The topology of it can
 * be told.
 *
 * Input: {"observed", "wanted", "before"}, the arguments of rails_decide().
 */
#include <stdint.h>

#include "lib/json/json.h"
#include "nodeagent/model/rails.h"
#include "nodeagent/model/topology.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_numbers(const json_t *decided)
{
	const json_t *list = json_at(decided, "rails", "list"), *entry;
	int64_t last = -1, count = 0;
	size_t i;

	fuzz_check(json_array_size(list) <= RAILS_MAX, "not too many rails");
	json_array_foreach ((json_t *)list, i, entry) {
		int64_t rail = json_integer_value(json_at(entry, "rail"));

		fuzz_check(rail > last && rail < RAILS_MAX, "each rail once, in order");
		fuzz_check(json_str_at(entry, "name") || json_str_at(entry, "pciAddress"),
			   "a rail has a name");
		last = rail;
		count += !json_at(entry, "missing");
	}
	fuzz_check(json_integer_value(json_at(decided, "rails", "count")) == count,
		   "those that are there are counted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *doc = json_parse((const char *)data, size, NULL);
	const json_t *observed = json_at(doc, "observed"), *wanted = json_at(doc, "wanted");
	json_auto_t *decided = NULL, *again = NULL, *next = NULL, *topology = NULL;
	json_auto_t *unchanged = json_deep_copy(doc);

	if (!json_is_object(observed))
		return 0;
	decided = rails_decide(observed, wanted, json_at(doc, "before"));
	again = rails_decide(observed, wanted, json_at(doc, "before"));
	fuzz_check(json_same(decided, again) && json_same(doc, unchanged), "pure");
	check_numbers(decided);
	next = rails_decide(observed, wanted, json_at(decided, "rails"));
	fuzz_check(json_same(json_at(next, "rails"), json_at(decided, "rails")),
		   "a look that sees the same numbers the same");
	topology = topology_compose(decided);
	fuzz_check(json_array_size(json_at(topology, "gpus")) <= TOPOLOGY_GPUS_MAX &&
			   json_array_size(json_at(topology, "nics")) <= TOPOLOGY_NICS_MAX,
		   "bounded");
	return 0;
}

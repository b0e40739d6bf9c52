// SPDX-License-Identifier: Apache-2.0
/*
 * The configurations of macvlan, ipvlan and vlan, {"type", "config", "args", "previous", "master",
 * "pod"}: reading is pure, what is planned is one interface, made once, and CHECK says the same of
 * the same.
 */
#include "lib/json/json.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/upper.h"
#include "tests/fuzz/fuzz.h"

static const char *type_of(const json_t *input)
{
	static const char *const types[] = {"macvlan", "ipvlan", "vlan"};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(json_str_at(input, "type"), types[i]))
			return types[i];
	return types[0];
}

static void check_same(const struct upper_config *config, const struct interface_facts *facts,
		       const json_t *master)
{
	struct err first = {0}, second = {0};
	int rc = upper_check(config, facts, master, &first);

	fuzz_check(rc == upper_check(config, facts, master, &second) &&
			   str_eq(first.text, second.text),
		   "CHECK says the same of the same");
	fuzz_check(rc == 0 || first.class != ERR_NONE, "a refusal has an error");
	fuzz_check(facts->previous || rc < 0, "CHECK needs a result");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL), *previous = NULL;
	json_auto_t *steps = json_array(), *undo = NULL, *before = NULL;
	auto_upper_config struct upper_config config = {0};
	struct interface_facts facts = {.type = "x", .ifname = "net1", .netns_path = "/ns"};
	struct err err = {0};

	if (!input || (json_at(input, "previous") &&
		       result_read(json_at(input, "previous"), "1.0.0", &previous, NULL)))
		return 0;
	before = json_deep_copy(input);
	if (upper_config_read(type_of(input), json_at(input, "config"), json_str_at(input, "args"),
			      previous, &config, &err)) {
		fuzz_check(err.class == ERR_INVALID, "a refusal is one of the configuration");
		return 0;
	}
	if (upper_plan(&config, json_at(input, "master"), "ow1", "net1", steps, &err) == 0) {
		undo = steps_undo(steps);
		fuzz_check(json_array_size(undo) == 1, "one interface is made");
	} else {
		fuzz_check(json_array_size(steps) == 0, "a refusal has no steps");
	}
	facts.previous = previous;
	facts.pod = json_at(input, "pod");
	check_same(&config, &facts, json_at(input, "master"));
	fuzz_check(json_same(before, input), "what is read is not changed");
	return 0;
}

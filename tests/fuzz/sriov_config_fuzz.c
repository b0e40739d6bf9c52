// SPDX-License-Identifier: Apache-2.0
/*
 * The configurations of sriov and ib-sriov, {"config", "args", "state", "link"}: what is planned
 * can be taken back, and then nothing is left to plan.
 */
#include "lib/json/json.h"
#include "nodeagent/cni/plan/ib_sriov.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *steps = json_array(), *undo = NULL, *none = json_array();
	auto_sriov_config struct sriov_config config = {0};
	auto_ib_sriov_config struct ib_sriov_config infiniband = {0};
	struct sriov_facts facts = {.pf = "pf", .ifname = "net1"};

	if (!input ||
	    sriov_config_read(json_at(input, "config"), json_str_at(input, "args"), &config, NULL))
		return 0;
	facts.state = json_at(input, "state");
	facts.link = json_at(input, "link");
	facts.netdev = facts.link ? "vf0" : NULL;
	sriov_plan(&config, &facts, steps);
	undo = steps_undo(steps);
	fuzz_check(json_array_size(undo) <= json_array_size(steps), "a step is taken back once");
	sriov_plan_settings("pf", 0, config.wanted, config.wanted, none);
	fuzz_check(json_array_size(none) == 0, "what is so already is not written");
	return 0;
}

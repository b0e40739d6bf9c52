// SPDX-License-Identifier: Apache-2.0
/*
 * The coordinator plugin's configuration and decisions: {"config", "settings", "ifname", "pod",
 * "host", "peer"}. What is planned can be taken back, and planning twice says the same.
 */
#include "lib/json/json.h"
#include "nodeagent/cni/plan/coordinator.h"
#include "nodeagent/cni/plan/steps.h"
#include "tests/fuzz/fuzz.h"

static int plan(const json_t *input, json_t *steps)
{
	auto_coordinator_config struct coordinator_config config = {0};
	auto_coordinator_role struct coordinator_role role = {0};
	struct coordinator_facts facts = {
		.pod = json_at(input, "pod"),
		.host = json_at(input, "host"),
		.peer = json_at(input, "peer"),
		.ifname = json_str_or(json_at(input, "ifname"), "net1"),
		.container_id = "0123456789abcdef",
		.veth_mac = "02:00:00:00:00:01",
		.peer_mac = "02:00:00:00:00:02",
	};

	if (coordinator_config_read(json_at(input, "config"), json_at(input, "settings"), &config,
				    NULL) ||
	    coordinator_role_of(&config, facts.ifname, facts.pod, &role, NULL))
		return -1;
	return coordinator_plan(&config, &role, &facts, steps, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *steps = json_array(), *again = json_array(), *undo = NULL;

	if (!input)
		return 0;
	fuzz_check(plan(input, steps) == plan(input, again), "planning twice says the same");
	fuzz_check(json_same(steps, again), "and plans the same");
	undo = steps_undo(steps);
	for (size_t i = 0; i < json_array_size(steps); i++) {
		char *text = step_text(json_array_get(steps, i));

		fuzz_check(text != NULL, "a step has words");
		free(text);
	}
	return 0;
}

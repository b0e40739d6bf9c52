// SPDX-License-Identifier: Apache-2.0
/*
 * The configurations of bridge, tuning, host-device and ifacer, {"type", "config", "args", "link",
 * "result", "host"}: reading is pure, a refusal is one of the configuration and has no steps,
 * sysctls stay below net/, and what a bridge gets stays when a pod goes.
 */
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/bridge.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/ifacer.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/tuning.h"
#include "tests/fuzz/fuzz.h"

static void check_refusal(const struct err *err, const json_t *steps)
{
	fuzz_check(err->class == ERR_INVALID, "a refusal is one of the configuration");
	fuzz_check(json_array_size(steps) == 0, "a refusal has no steps");
}

static void try_bridge(const json_t *input)
{
	json_auto_t *steps = json_array(), *port = json_array(), *result = NULL, *undo = NULL;
	auto_bridge_config struct bridge_config config = {0};
	struct bridge_node node = {.link = json_at(input, "link"),
				   .addresses = json_at(input, "host", "addresses")};
	struct interface_facts facts = {.type = "bridge", .ifname = "net1", .netns_path = "/ns"};
	const json_t *link;
	struct err err = {0};
	size_t i;
	json_t *range;
	int64_t last = 0;

	if (bridge_config_read(json_at(input, "config"), json_str_at(input, "args"), &config,
			       &err) ||
	    bridge_plan(&config, node.link, steps, &err)) {
		check_refusal(&err, steps);
		return;
	}
	json_array_foreach (config.trunk, i, range) {
		int64_t first = json_integer_value(json_array_get(range, 0));

		fuzz_check(first > last, "ranges of VLANs are in order, and apart");
		last = json_integer_value(json_array_get(range, 1));
		fuzz_check(last >= first && last <= 4094, "VLANs are numbers of 802.1Q");
	}
	bridge_plan_port(&config, node.link, "v1", "net1", port);
	undo = steps_undo(port);
	fuzz_check(json_find(undo, "do", "unlink") != NULL, "the pair can be taken back");
	if (result_read(json_at(input, "result"), "1.0.0", &result, NULL))
		return;
	facts.previous = result;
	facts.pod = json_at(input, "host");
	(void)interface_check(&facts, "veth", &link, NULL);
	(void)bridge_check(&config, &facts, json_at(input, "host"), NULL);
	bridge_put_gateways(&config, result);
	if (config.is_gateway)
		(void)bridge_plan_gateways(&config, &node, result, steps, NULL);
	json_array_foreach (steps, i, range)
		fuzz_check(json_is_true(json_at(range, "shared")), "the bridge is not a pod's");
}

static void try_tuning(const json_t *input)
{
	json_auto_t *steps = json_array(), *undo = NULL, *sysctls = json_object();
	auto_tuning_config struct tuning_config config = {0};
	struct err err = {0};
	const char *path;
	json_t *value;

	if (tuning_config_read(json_at(input, "config"), json_str_at(input, "args"), "net1",
			       &config, &err) ||
	    tuning_check_allowed(&config, json_str_at(input, "allowed"), &err)) {
		check_refusal(&err, steps);
		return;
	}
	json_each (config.sysctls, path, value) {
		fuzz_check(strncmp(path, "net/", 4) == 0 && !strstr(path, ".."),
			   "sysctls are those of the namespace");
		json_put_str(sysctls, path, "0");
	}
	tuning_plan(&config, json_at(input, "link"), sysctls, steps);
	undo = steps_undo(steps);
	fuzz_check(json_array_size(undo) == json_array_size(steps) ||
			   !json_is_string(json_at(input, "link", "mac")),
		   "each step has a way back");
	(void)tuning_check(&config, json_at(input, "link"), sysctls, NULL);
}

static void try_host_device(const json_t *input)
{
	json_auto_t *steps = json_array(), *state = NULL;
	auto_host_device_config struct host_device_config config = {0};
	struct err err = {0};

	if (host_device_config_read(json_at(input, "config"), &config, &err) ||
	    (json_str_at(input, "link", "name") &&
	     host_device_check("host-device", json_at(input, "link"), json_at(input, "host"),
			       &err))) {
		check_refusal(&err, steps);
		return;
	}
	fuzz_check((config.device != NULL) + (config.mac[0] != '\0') + (config.path != NULL) +
				   (config.id != NULL) ==
			   1,
		   "one key names the interface");
	host_device_plan(json_at(input, "link"), "net1", steps);
	state = host_device_state(json_at(input, "link"), NULL, config.has_ipam);
}

static void try_ifacer(const json_t *input)
{
	json_auto_t *steps = json_array();
	auto_ifacer_config struct ifacer_config config = {0};
	struct err err = {0};
	size_t i;
	json_t *step;

	if (ifacer_config_read(json_at(input, "config"), &config, &err) ||
	    ifacer_plan(&config, json_at(input, "host"), steps, &err)) {
		check_refusal(&err, steps);
		return;
	}
	json_array_foreach (steps, i, step)
		fuzz_check(json_is_true(json_at(step, "shared")), "what is made is not a pod's");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *before = json_deep_copy(input);
	const char *type = json_str_at(input, "type");

	if (!input)
		return 0;
	if (str_eq(type, "tuning"))
		try_tuning(input);
	else if (str_eq(type, "host-device"))
		try_host_device(input);
	else if (str_eq(type, "ifacer"))
		try_ifacer(input);
	else
		try_bridge(input);
	fuzz_check(json_same(before, input), "what is read is not changed");
	return 0;
}

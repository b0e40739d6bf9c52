// SPDX-License-Identifier: Apache-2.0
/*
 * The meta plugin's decisions: of any annotations, NetworkAttachmentDefinitions, configuration,
 * devices and answers of plugins the same twice, what they are made of unchanged, every interface
 * once, a device for one network only, DEL for what was called and for nothing else, and a status
 * that is JSON.
 *
 * Input: {"config", "pod", "nads", "devices", "files", "links", "args", "answers": [text of each
 * ADD in turn]}; an answer that is no result fails.
 */
#include <stdint.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/default_route.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/meta_run.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/network_status.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "reconcilers/core/cni_rules.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_delegates(const json_t *delegates)
{
	json_auto_t *seen = json_object();
	json_t *delegate;
	size_t i;

	fuzz_check(json_array_size(delegates) > 0, "there is the cluster's network");
	json_array_foreach (delegates, i, delegate) {
		const char *interface = json_str_at(delegate, "interface");
		const char *device = json_str_at(delegate, "deviceID");
		const char *resource = json_str_at(delegate, "resourceName");
		auto_free char *taken = device ? str_printf("%s/%s", resource, device) : NULL;

		fuzz_check(interface && !json_at(seen, interface), "every interface once");
		json_put_bool(seen, interface, true);
		fuzz_check(!taken || !json_at(seen, taken), "a device for one network");
		if (taken)
			json_put_bool(seen, taken, true);
		fuzz_check(delegate_plugins(delegate) > 0 &&
				   delegate_plugins(delegate) <= CNI_PLUGINS_MAX,
			   "as many plugins as there may be");
	}
}

/* One plugin's answer; counts what was called and not undone. */
static void answer(struct meta_run *run, const json_t *delegates, const struct meta_step *step,
		   const json_t *answers, size_t *n, int *calls)
{
	const char *text = json_str_or(json_array_get(answers, *n), "{}");
	json_auto_t *input = meta_run_stdin(run, step), *result = NULL;
	const json_t *delegate = json_array_get(delegates, step->delegate);
	struct err err = {0};

	fuzz_check(json_is_object(input), "stdin is an object");
	if (str_eq(step->command, "DEL")) {
		(*calls)--;
		meta_run_succeeded(run, step, NULL);
		return;
	}
	(*n)++;
	(*calls)++;
	result = delegate_result(delegate, text, strlen(text), &err);
	if (result) {
		meta_run_succeeded(run, step, result);
		return;
	}
	delegate_failure(delegate, step->plugin, step->command, 1, text, "", &err);
	fuzz_check(err.text[0] != '\0', "a failure has words");
	meta_run_failed(run, step, &err);
}

static void check_status(const json_t *delegates, json_t *results)
{
	auto_free char *text = network_status_text(delegates, results, NULL);
	json_auto_t *steps = default_route_apply(delegates, results);
	auto_free char *after = network_status_text(delegates, results, NULL);
	json_auto_t *parsed = json_parse(text, strlen(text), NULL);
	json_auto_t *parsed_after = json_parse(after, strlen(after), NULL);
	json_auto_t *again = default_route_apply(delegates, results);

	fuzz_check(json_is_array(parsed) && json_is_array(parsed_after), "the status is a list");
	fuzz_check(json_same(steps, again), "what is to be done for routes stays");
}

static void check_add(const json_t *delegates, const json_t *answers)
{
	struct meta_run *run = meta_run_new("ADD", delegates, NULL);
	struct meta_step step, held;
	bool holds = false;
	size_t n = 0;
	int calls = 0;
	struct err err = {0};

	/* Two at a time, the later one first. */
	while (meta_run_next(run, &step)) {
		if (!holds) {
			held = step;
			holds = true;
			if (meta_run_next(run, &step))
				answer(run, delegates, &step, answers, &n, &calls);
		} else {
			answer(run, delegates, &step, answers, &n, &calls);
		}
		answer(run, delegates, &held, answers, &n, &calls);
		holds = false;
	}
	fuzz_check(meta_run_has_ended(run), "a run ends");
	if (meta_run_outcome(run, NULL, &err) < 0)
		fuzz_check(calls == 0, "what was called is undone");
	else
		check_status(delegates, meta_run_results(run));
	meta_run_free(run);
}

static void check_delete(const json_t *delegates)
{
	struct meta_run *run = meta_run_new("DEL", delegates, NULL);
	struct meta_step step;
	size_t n = 0, plugins = 0;
	json_t *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate)
		plugins += delegate_plugins(delegate);
	while (meta_run_next(run, &step)) {
		meta_run_succeeded(run, &step, NULL);
		n++;
	}
	fuzz_check(meta_run_has_ended(run) && n == plugins, "DEL reaches every plugin once");
	meta_run_free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *before = NULL, *first = NULL, *second = NULL, *wanted = NULL;
	struct err err = {0};
	struct meta_input in;

	if (!json_is_object(input))
		return 0;
	before = json_deep_copy(input);
	in = (struct meta_input){
		.container_id = "c1",
		.ifname = "eth0",
		.args = json_str_at(input, "args"),
		.config = json_at(input, "config"),
		.pod = json_at(input, "pod"),
		.nads = json_at(input, "nads"),
		.devices = json_at(input, "devices"),
		.files = json_at(input, "files"),
		.links = json_at(input, "links"),
	};
	wanted = meta_wanted(in.config, in.pod, &err);
	fuzz_check(wanted || err.text[0], "a refusal has words");
	first = meta_delegates(&in, &err);
	second = meta_delegates(&in, &err);
	fuzz_check(json_same(first, second), "the same twice");
	fuzz_check(json_same(input, before), "what it is made of stays");
	if (!first)
		return 0;
	check_delegates(first);
	check_add(first, json_at(input, "answers"));
	check_delete(first);
	fuzz_check(json_same(first, second), "delegates stay");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A look and what came before it: any status of an API server, any state file. The document is told
 * and planned from without harm: no PF is there and missing, what the node needs stays needed, what
 * has just come is not put back, and before the kubelet was heard no VF that is there is touched.
 *
 * Input: {"observed", "before", "spec", "found", "nowMs"}, members of struct history_input and
 * planner_input; "linkHealth" of a status, and "devices" as counters have them.
 */
#include <stdint.h>

#include "lib/json/json.h"
#include "nodeagent/host_plan/history.h"
#include "nodeagent/host_plan/link_history.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/observed.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_missing(const json_t *seen)
{
	json_auto_t *shown = observed_status_interfaces(seen);
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(seen, "missing"), i, entry)
		fuzz_check(!json_find(json_at(seen, "interfaces"), "pciAddress",
				      json_str_at(entry, "pciAddress")),
			   "what is there is not missing");
	fuzz_check(json_array_size(shown) == json_array_size(json_at(seen, "interfaces")) +
						     json_array_size(json_at(seen, "missing")),
		   "all are shown");
}

static void check_protected(const json_t *observed, const json_t *seen)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(observed, "node", "protected"), i, entry)
		fuzz_check(json_at(entry, "goneMs") || !json_str_at(entry, "pciAddress") ||
				   json_find(json_at(seen, "node", "protected"), "pciAddress",
					     json_str_at(entry, "pciAddress")),
			   "what the node needs is needed");
	json_array_foreach (json_at(observed, "interfaces"), i, entry) {
		const json_t *now = json_array_get(json_at(seen, "interfaces"), i);

		fuzz_check(!json_str_at(entry, "host", "protected") ||
				   json_same(json_at(entry, "host", "protected"),
					     json_at(now, "host", "protected")),
			   "a reason stays the reason");
	}
}

/*
 * A VF that has a driver: a pod may hold it. One without cannot be in use, and gets its driver at
 * once.
 */
static bool may_be_held(const json_t *seen, const char *address)
{
	json_t *pf;
	size_t i;

	json_array_foreach (json_at(seen, "interfaces"), i, pf) {
		const json_t *vf = json_find(json_at(pf, "Vfs"), "pciAddress", address);

		if (vf && json_at(vf, "driver"))
			return true;
	}
	return false;
}

static void check_step(const struct planner_input *in, const json_t *step)
{
	const char *name = json_str_at(step, "step"), *pf = json_str_at(step, "pf");
	const json_t *entry = json_find(json_at(in->observed, "interfaces"), "pciAddress", pf);
	bool has_vfs = json_array_size(json_at(entry, "Vfs")) > 0;

	fuzz_check(!json_str_at(step, "vf") || !may_be_held(in->observed, json_str_at(step, "vf")),
		   "no step for a VF before the kubelet was heard");
	fuzz_check(!json_at(step, "index"), "no address either");
	fuzz_check(!has_vfs || (!str_eq(name, "set-num-vfs") && !str_eq(name, "set-eswitch")),
		   "nor for all of them");
	fuzz_check(!json_at(entry, "host", "arrivedMs") ||
			   json_find(json_at(in->spec, "interfaces"), "pciAddress", pf) || !pf,
		   "what has just come is not put back");
}

static void check_plan(const struct planner_input *in)
{
	json_auto_t *plan = planner_plan(in, NULL);
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, "steps"), i, entry)
		check_step(in, json_at(entry, "step"));
}

static void check_links(const json_t *input, const json_t *observed, int64_t now_ms)
{
	json_auto_t *links = link_history_restore(json_at(input, "linkHealth"), "boot", 0, now_ms);
	json_auto_t *wanted = link_history_wanted(json_at(input, "spec"), NULL, observed);
	json_auto_t *status = NULL, *restored = NULL, *again = NULL;

	link_history_look(links, observed, NULL, now_ms);
	link_history_counted(links, json_at(input, "devices"), NULL, now_ms);
	(void)link_history_judge(links, wanted, &link_limits_default, NULL, now_ms);
	status = link_history_status(links, "boot", 0);
	fuzz_check(json_array_size(json_at(status, "ports")) <= LINK_PORTS_MAX, "few ports");
	restored = link_history_restore(status, "boot", 0, now_ms);
	again = link_history_status(restored, "boot", 0);
	fuzz_check(json_same(status, again), "what is written is read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *unchanged = json_deep_copy(input), *first = NULL, *second = NULL;
	struct history_input in = {
		.observed = json_at(input, "observed"),
		.before = json_at(input, "before"),
		.spec = json_at(input, "spec"),
		.now_ms = json_integer_value(json_at(input, "nowMs")) & INT32_MAX,
	};

	if (!json_is_object(in.observed))
		return 0;
	first = history_merge(&in);
	second = history_merge(&in);
	fuzz_check(json_same(first, second), "the same input gives the same document");
	fuzz_check(json_same(input, unchanged), "the input is not changed");
	check_missing(first);
	check_protected(in.observed, first);
	check_links(input, first, in.now_ms);
	check_plan(&(struct planner_input){.spec = in.spec,
					   .observed = first,
					   .found = json_at(input, "found"),
					   .is_held_awaited = true});
	/* And once more, as the agent does. */
	in.before = first;
	json_decref(second);
	second = history_merge(&in);
	check_missing(second);
	json_decref(second);
	second = history_node(first);
	fuzz_check(json_is_array(json_at(second, "protected")), "there is something to keep");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The blocked entries and the reboot of a plan, turned into pods, others and a class. status.c puts
 * it into the NodeState, from which the operator evicts; the agent withdraws from the kubelet what
 * plan_vacated() lists, so that pods' successors do not get it.
 */
#include "nodeagent/host_plan/impact.h"

#include "lib/json/json.h"
#include "nodeagent/model/observed.h"

static void add_named(json_t *impact, const char *list, const char *more, json_t *entry)
{
	json_t *entries = json_object_get(impact, list);

	if (!entries) {
		entries = json_array();
		json_put(impact, list, entries);
	}
	if (json_array_size(entries) < IMPACT_NAMED_MAX) {
		json_array_append_new(entries, entry);
		return;
	}
	json_put_int(impact, more, json_integer_value(json_at(impact, more)) + 1);
	json_decref(entry);
}

json_t *plan_impact(const json_t *plan, bool withdrawn)
{
	const json_t *reboot = json_at(plan, "reboot"), *blocked;
	json_t *impact = json_object();
	const char *class = "none";
	size_t i;

	json_array_foreach (json_at(plan, "blocked"), i, blocked) {
		const char *pod = json_str_at(blocked, "pod");
		json_t *entry = json_object();

		if (pod)
			json_put(entry, "pod", observed_pod_of(pod));
		else
			json_put(entry, "holder",
				 json_fmt("%.200s",
					  json_str_or(json_at(blocked, "holder"), "someone")));
		json_put_str(entry, "device", json_str_at(blocked, "vf"));
		json_put_str(entry, "pciAddress", json_str_at(blocked, "pf"));
		if (pod)
			add_named(impact, "pods", "morePods", entry);
		else
			add_named(impact, "others", "moreOthers", entry);
	}
	if (json_at(impact, "pods"))
		class = "evict";
	if (reboot) {
		class = "reboot";
		json_put_str(impact, "reason", json_str_at(reboot, "reason"));
		json_put_str(impact, "message", json_str_at(reboot, "message"));
		json_put_str(impact, "cause", json_str_at(reboot, "cause"));
	}
	json_put_str(impact, "class", class);
	if (withdrawn)
		json_put_bool(impact, "withdrawn", true);
	return impact;
}

json_t *plan_vacated(const json_t *plan, const json_t *observed)
{
	json_auto_t *devices = json_object();
	const json_t *blocked, *pf, *vf;
	size_t i, k;

	json_array_foreach (json_at(plan, "blocked"), i, blocked) {
		if (!json_is_true(json_at(blocked, "all"))) {
			if (json_str_at(blocked, "vf"))
				json_put_bool(devices, json_str_at(blocked, "vf"), true);
			continue;
		}
		pf = json_find(json_at(observed, "interfaces"), "pciAddress",
			       json_str_or(json_at(blocked, "pf"), ""));
		json_array_foreach (json_at(pf, "Vfs"), k, vf)
			if (json_str_at(vf, "pciAddress"))
				json_put_bool(devices, json_str_at(vf, "pciAddress"), true);
	}
	return json_object_size(devices) ? json_incref(devices) : NULL;
}

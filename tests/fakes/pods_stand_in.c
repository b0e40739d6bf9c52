// SPDX-License-Identifier: Apache-2.0
/* Pods that hold devices. See the header. */
#include "tests/fakes/pods_stand_in.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"

bool pods_holds(const json_t *pod, const char *resource)
{
	const char *phase = json_str_or(json_at(pod, "status", "phase"), "");
	const json_t *container;
	size_t i;

	if (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"))
		return false;
	json_array_foreach (json_at(pod, "spec", "containers"), i, container)
		if (json_at(container, "resources", "requests", resource))
			return true;
	return false;
}

/* The kernel removes all VFs of a PF to change their number. */
static bool takes_vfs(const json_t *before, const json_t *next)
{
	const json_t *pf;
	size_t i;

	json_array_foreach (json_at(next, "interfaces"), i, pf) {
		const json_t *was = json_find(json_at(before, "interfaces"), "pciAddress",
					      json_str_at(pf, "pciAddress"));
		json_int_t there = json_integer_value(json_at(was, "numVfs"));

		if (there > 0 && there != json_integer_value(json_at(pf, "numVfs")))
			return true;
	}
	return false;
}

static json_t *impact_of(const json_t *holders, bool withdrawn)
{
	json_t *impact = json_pack("{s:s, s:[]}", "class", "evict", "pods"), *pod;
	size_t i;

	json_array_foreach ((json_t *)holders, i, pod)
		json_array_append_new(json_at(impact, "pods"),
				      json_pack("{s:O, s:o, s:s}", "pod", pod, "device",
						json_fmt("0000:af:00.%zu", i + 2), "pciAddress",
						"0000:af:00.0"));
	if (withdrawn)
		json_put_bool(impact, "withdrawn", true);
	return impact;
}

/* ---- reboots --------------------------------------------------------------------------------- */

/* The boot that runs, "boot-N". */
static int boot_number(const json_t *status)
{
	const char *id = json_str_or(json_at(status, "boots", "id"), "boot-1");

	return (int)strtol(id + strlen("boot-"), NULL, 10);
}

/* A change of the mode always needs one here: NULL: it is not to be changed. New. */
static json_t *boot_cause(const json_t *before, const json_t *next)
{
	const char *now = json_str_at(before, "system", "rdmaMode");
	const char *wanted = json_str_at(next, "system", "rdmaMode");

	return now && wanted && !str_eq(now, wanted) ? json_fmt("rdma-mode-%s", wanted) : NULL;
}

static bool is_permitted(const json_t *state, const char *cause)
{
	auto_free char *wanted =
		str_printf("boot-%d %s", boot_number(json_at(state, "status")), cause);

	return str_eq(json_str_at(state, "metadata", "annotations", "orbweaver.io/reboot"), wanted);
}

/* Over in a moment, and it always helps. */
static void reboot(json_t *status, const json_t *before, const char *cause)
{
	int number = boot_number(before);

	json_put(status, "boots",
		 json_pack("{s:o, s:[{s:s, s:o, s:b, s:b}]}", "id", json_fmt("boot-%d", number + 1),
			   "asked", "cause", cause, "bootID", json_fmt("boot-%d", number),
			   "requested", 1, "closed", 1));
}

/* It waits for the boot: the mode is the old one. */
static void await_boot(json_t *status, const json_t *state, const char *cause, bool has_pods)
{
	const json_t *before = json_at(state, "status");
	json_t *impact = json_need_object(status, "impact");

	json_object_set(json_need_object(status, "system"), "rdmaMode",
			json_at(before, "system", "rdmaMode"));
	json_put_int(status, "observedGeneration", json_generation(state));
	json_put_str(status, "syncStatus", "InProgress");
	json_put_str(impact, "class", "reboot");
	json_put_str(impact, "cause", cause);
	json_put_str(impact, "reason", "RdmaModeNextBoot");
	if (has_pods && is_permitted(state, cause)) {
		json_put_str(status, "syncStatus", "Failed");
		json_put_str(status, "lastSyncError", "told to reboot with pods on the node");
	}
}

static void play_boots(json_t *status, const json_t *state, const json_t *next, bool has_pods)
{
	const json_t *before = json_at(state, "status");
	json_auto_t *cause = boot_cause(before, next);
	const char *text = json_string_value(cause);

	json_put(status, "boots",
		 json_pack("{s:o}", "id", json_fmt("boot-%d", boot_number(before))));
	if (json_at(before, "boots", "asked"))
		json_object_set(json_at(status, "boots"), "asked",
				json_at(before, "boots", "asked"));
	if (cause && !has_pods && is_permitted(state, text))
		reboot(status, before, text);
	else if (cause)
		await_boot(status, state, text, has_pods);
}

/* What others write there stays, as with the agent. */
static void keep_of_others(json_t *status, const json_t *before)
{
	const json_t *draining = condition_find(json_at(before, "conditions"), "Draining");

	if (json_at(before, "maintenance"))
		json_object_set(status, "maintenance", json_at(before, "maintenance"));
	if (draining && !condition_find(json_at(status, "conditions"), "Draining"))
		json_array_append(json_at(status, "conditions"), (json_t *)draining);
}

json_t *pods_status(const json_t *state, const json_t *next, const json_t *holders,
		    const char *resource, int *ret_healthy)
{
	const json_t *before = json_at(state, "status");
	const char *drain = json_str_at(state, "metadata", "annotations",
					"sriovnetwork.openshift.io/current-state");
	bool blocked = json_array_size(holders) > 0 && takes_vfs(before, next);
	bool withdrawn = blocked && str_eq(drain, "Draining");
	json_t *status = json_deep_copy(blocked ? before : next);

	*ret_healthy = withdrawn ? 0 : PODS_DEVICES;
	if (blocked) {
		json_put_int(status, "observedGeneration", json_generation(state));
		json_put_str(status, "syncStatus", "InProgress");
		json_put(status, "impact", impact_of(holders, withdrawn));
	} else {
		json_put(status, "impact", json_pack("{s:s}", "class", "none"));
	}
	json_put(status, "resources",
		 json_pack("[{s:s, s:i, s:i}]", "name", resource, "offered", PODS_DEVICES,
			   "healthy", *ret_healthy));
	play_boots(status, state, next, json_array_size(holders) > 0);
	keep_of_others(status, before);
	return status;
}

json_t *pods_running(const json_t *pod, const char *now)
{
	if (str_eq(json_str_at(pod, "status", "phase"), "Running"))
		return NULL;
	return json_pack("{s:s, s:s, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}", "phase", "Running",
			 "startTime", now, "conditions", "type", "Ready", "status", "True",
			 "lastTransitionTime", now, "type", "ContainersReady", "status", "True",
			 "lastTransitionTime", now);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * lifecycle.c asks before it ends an endpoint or a record, and the audit to find what was left
 * over. It looks at the pod first, then at the owner that may want the addresses for its next pod.
 */
#include "reconcilers/ipam/allocate/release.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/pod_controller.h"

/*
 * The number behind the last '-' of a StatefulSet's pod, as its controller writes it; -1 when there
 * is none. "web-007" is not a pod of the set web: any user can create it.
 */
static int64_t ordinal_of(const char *name)
{
	const char *dash = strrchr(name, '-');
	int64_t ordinal;

	if (!dash || !str_to_int(dash + 1, 0, INT32_MAX, &ordinal))
		return -1;
	return dash[1] == '0' && dash[2] != '\0' ? -1 : ordinal;
}

static int64_t integer_at(const json_t *value, int64_t otherwise)
{
	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/*
 * May another pod of the instance than this one have its addresses? status.activePods has all that
 * are left of it, and KubeVirt keeps the instance until none is. A number is too many to be read.
 */
static bool has_another_pod(const json_t *instance, const char *uid)
{
	const json_t *pods = json_at(instance, "status", "activePods");

	return json_is_integer(pods) ||
	       json_object_size(pods) > (json_object_get(pods, uid) ? 1 : 0);
}

static bool is_kept_by_owner(const json_t *world, const char *key, const char *uid,
			     const json_t *endpoint, const struct ipam_settings *settings)
{
	const char *type = json_str_or(json_at(endpoint, "status", "ownerControllerType"), "");
	const char *name = strchr(key, '/');
	auto_free char *ns = name ? str_ndup(key, (size_t)(name - key)) : NULL;

	if (!ns)
		return false;
	if (settings->keeps_stateful_sets && str_eq(type, "StatefulSet")) {
		int64_t ordinal = ordinal_of(name + 1);
		auto_free char *set_key =
			ordinal < 0
				? NULL
				: str_printf("%s/%.*s", ns,
					     (int)(strrchr(name + 1, '-') - (name + 1)), name + 1);
		const json_t *set = set_key ? world_get(world, KIND_STATEFUL_SET, set_key) : NULL;
		int64_t start = integer_at(json_at(set, "spec", "ordinals", "start"), 0);

		/* Has the StatefulSet that made the pod a place of its name? */
		/* Neither is below 0, so the difference is a number. */
		return set && start >= 0 && ordinal >= start &&
		       ordinal - start < integer_at(json_at(set, "spec", "replicas"), 1);
	}
	if (settings->keeps_virtual_machines && str_eq(type, "VirtualMachineInstance")) {
		const json_t *instance = world_get(world, KIND_VIRTUAL_MACHINE_INSTANCE, key);
		const json_t *machine = world_get(world, KIND_VIRTUAL_MACHINE, key);

		/* A virtual machine that stops and starts keeps what its instance had. */
		if (instance &&
		    (!object_is_terminating(instance) || has_another_pod(instance, uid)))
			return true;
		return machine && !object_is_terminating(machine);
	}
	return false;
}

/* ---- how many -------------------------------------------------------------------------------- */

static const char *const counts_of_pods[] = {"pods", "count/pods"};

/* A whole quantity as the API server writes it: 1000 is "1k". -1 for any other. */
static int64_t count_of(const char *quantity)
{
	static const struct {
		const char *suffix;
		int64_t factor;
	} scales[] = {{"", 1}, {"k", 1000}, {"M", 1000000}};
	size_t digits = strspn(quantity, "0123456789");
	auto_free char *number = str_ndup(quantity, digits);
	int64_t count;

	for (size_t i = 0; i < ARRAY_LEN(scales); i++)
		if (str_eq(quantity + digits, scales[i].suffix) &&
		    str_to_int(number, 0, INT32_MAX, &count))
			return count * scales[i].factor;
	return -1;
}

int64_t release_ended_max(const json_t *world, const char *ns)
{
	const char *key;
	json_t *quota;
	int64_t most = -1;

	json_each (world_kind(world, KIND_RESOURCE_QUOTA), key, quota) {
		if (!release_wants_quota(quota) || !str_eq(json_namespace(quota), ns))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(counts_of_pods); i++) {
			const char *hard = json_str_at(quota, "spec", "hard", counts_of_pods[i]);
			int64_t count = hard ? count_of(hard) : -1;

			/* 0 freezes a namespace: nothing in it may grow. */
			if (count > 0 && (most < 0 || count < most))
				most = count;
		}
	}
	return most;
}

bool release_wants_quota(const json_t *quota)
{
	const json_t *hard = json_at(quota, "spec", "hard");

	/* One with a scope bounds some of the pods. */
	if (json_array_size(json_at(quota, "spec", "scopes")) ||
	    json_at(quota, "spec", "scopeSelector"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(counts_of_pods); i++)
		if (json_str_at(hard, counts_of_pods[i]))
			return true;
	return false;
}

void release_project_quota(json_t *quota)
{
	static const char *const metadata[] = {"name", "namespace", "uid", "resourceVersion"};
	json_auto_t *all = json_copy(quota);
	json_t *kept = json_object(), *hard = json_object();

	for (size_t i = 0; i < ARRAY_LEN(metadata); i++)
		json_put(kept, metadata[i], json_incref(json_at(all, "metadata", metadata[i])));
	for (size_t i = 0; i < ARRAY_LEN(counts_of_pods); i++)
		json_put(hard, counts_of_pods[i],
			 json_incref(json_at(all, "spec", "hard", counts_of_pods[i])));
	json_object_clear(quota);
	json_put(quota, "metadata", kept);
	json_put(quota, "spec", json_pack("{s:o}", "hard", hard));
}

/* ---- when ------------------------------------------------------------------------------------ */

bool release_is_due(const json_t *world, const char *key, const char *uid, const json_t *pod,
		    const json_t *endpoint, bool is_down, const struct ipam_settings *settings)
{
	assert(key && settings);
	if (!is_down || str_empty(uid))
		return false;
	if (pod && str_eq(json_uid(pod), uid) && pod_is_alive(pod))
		return false;
	return !is_kept_by_owner(world, key, uid, endpoint, settings);
}

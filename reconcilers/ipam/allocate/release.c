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
 * are left of it, and KubeVirt keeps the instance until none is.
 */
static bool has_another_pod(const json_t *instance, const char *uid)
{
	const json_t *pods = json_at(instance, "status", "activePods");

	return json_object_size(pods) > (json_object_get(pods, uid) ? 1 : 0);
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

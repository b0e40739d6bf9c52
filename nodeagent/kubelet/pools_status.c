/*
 * Which pods have a resource's devices, beside what the device plugins say of it.
 */
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/pools.h"

static json_t *pods_of(const json_t *devices)
{
	json_t *pods = json_array(), *pod;
	const char *id;

	json_each (devices, id, pod) {
		if (json_array_size(pods) == POOLS_STATUS_PODS_MAX)
			break;
		json_array_append_new(
			pods, json_pack("{s:s,s:s}", "device", id, "pod", json_str_or(pod, "")));
	}
	return pods;
}

json_t *pools_status(const json_t *plugins, const json_t *allocated)
{
	json_t *status = json_array(), *resource;
	size_t i;

	json_array_foreach ((json_t *)plugins, i, resource) {
		json_t *entry = json_copy(resource);
		const json_t *devices =
			json_at(allocated, json_str_or(json_at(resource, "name"), ""));

		if (allocated) {
			json_put_int(entry, "allocated", (int64_t)json_object_size(devices));
			json_put(entry, "pods", pods_of(devices));
		}
		json_array_append_new(status, entry);
	}
	return status;
}

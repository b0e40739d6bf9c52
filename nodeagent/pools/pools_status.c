/*
 * Which pods have a resource's devices, beside what the device plugins say of it.
 */
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/pools/pools.h"

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

static void add_pods(json_t *entry, const json_t *allocated)
{
	const json_t *devices = json_at(allocated, json_str_or(json_at(entry, "name"), ""));

	json_put_int(entry, "allocated", (int64_t)json_object_size(devices));
	json_put(entry, "pods", pods_of(devices));
}

static void add_entry(json_t *status, const json_t *resource, const json_t *allocated)
{
	json_t *entry = json_copy((json_t *)resource);

	if (allocated)
		add_pods(entry, allocated);
	json_array_append_new(status, entry);
}

json_t *pools_status(const json_t *plugins, const json_t *given, const json_t *allocated,
		     const json_t *before)
{
	json_t *status = json_array(), *resource;
	size_t i;

	json_array_foreach ((json_t *)plugins, i, resource)
		add_entry(status, resource, allocated);
	json_array_foreach ((json_t *)given, i, resource)
		if (!json_find(plugins, "name", json_str_or(json_at(resource, "name"), "")))
			add_entry(status, resource, allocated);
	json_array_foreach ((json_t *)before, i, resource) {
		const char *name = json_str_or(json_at(resource, "name"), "");
		json_t *entry;

		if (json_object_size(json_at(allocated, name)) == 0 ||
		    json_find(status, "name", name))
			continue;
		entry = json_pack(
			"{s:s, s:s, s:i, s:b, s:i, s:i, s:s}", "name", name, "kind",
			json_str_or(json_at(resource, "kind"), "sriov"), "wanted", 0, "registered",
			0, "offered", 0, "healthy", 0, "cause",
			"nothing asks for it any more; it goes when these pods have ended");
		add_pods(entry, allocated);
		json_array_append_new(status, entry);
	}
	return status;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * {"Data": {"PodDeviceEntries": [{"PodUID", "ResourceName", "DeviceIDs": {"0": [id]}, …}],
 * "RegisteredDevices": {resource: [id]}}, "Checksum"}; what is empty is null.
 */
#include "nodeagent/cni/plan/checkpoint.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* By NUMA node, or one list. */
static bool names_device(const json_t *ids, const char *device)
{
	const char *node;
	json_t *list;

	if (json_is_array(ids))
		return json_list_has(ids, device);
	json_each (ids, node, list)
		if (json_list_has(list, device))
			return true;
	return false;
}

enum checkpoint_holder checkpoint_holder_of(const json_t *checkpoint, const char *device,
					    const char *pod_uid)
{
	const json_t *data = json_at(checkpoint, "Data");
	const json_t *entries = json_object_get(data, "PodDeviceEntries"), *entry;
	const json_t *registered = json_object_get(data, "RegisteredDevices");
	enum checkpoint_holder holder = CHECKPOINT_UNMANAGED;
	const char *resource;
	json_t *ids;
	size_t i;

	assert(device);
	if (!json_is_object(data) || !(json_is_array(entries) || json_is_null(entries)) ||
	    !(json_is_object(registered) || json_is_null(registered)))
		return CHECKPOINT_UNKNOWN;
	json_each (registered, resource, ids)
		if (json_list_has(ids, device))
			holder = CHECKPOINT_OTHER;
	/*
	 * Entries of pods that have ended stay until the next Allocate: they say nothing of a
	 * device that is not offered any more, which a claim may have by now.
	 */
	json_array_foreach ((json_t *)entries, i, entry)
		if (str_eq(json_str_at(entry, "PodUID"), pod_uid) &&
		    names_device(json_at(entry, "DeviceIDs"), device))
			return CHECKPOINT_OF_POD;
	return holder;
}

json_t *checkpoint_pods_of(const json_t *checkpoint, const char *device)
{
	const json_t *entries = json_at(checkpoint, "Data", "PodDeviceEntries"), *entry;
	json_t *pods = json_array();
	size_t i;

	assert(device);
	json_array_foreach ((json_t *)entries, i, entry)
		if (json_str_at(entry, "PodUID") &&
		    names_device(json_at(entry, "DeviceIDs"), device))
			json_array_append(pods, json_at(entry, "PodUID"));
	return pods;
}

json_t *checkpoint_devices_of(const json_t *checkpoint, const char *pod_uid)
{
	const json_t *entries = json_at(checkpoint, "Data", "PodDeviceEntries"), *entry;
	json_t *devices = json_array();
	size_t i;

	assert(pod_uid);
	json_array_foreach ((json_t *)entries, i, entry) {
		json_t *ids = json_at(entry, "DeviceIDs"), *all, *list;
		const char *resource = json_str_at(entry, "ResourceName"), *node;

		if (!str_eq(json_str_at(entry, "PodUID"), pod_uid) || !resource)
			continue;
		all = json_array();
		if (json_is_array(ids))
			json_array_extend(all, ids);
		json_each (ids, node, list)
			json_array_extend(all, list);
		json_array_append_new(devices,
				      json_pack("{s:s, s:o}", "resource", resource, "ids", all));
	}
	return devices;
}

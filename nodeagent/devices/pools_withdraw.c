// SPDX-License-Identifier: Apache-2.0
/* Devices that are about to be changed: the kubelet may not give them to a pod meanwhile. */
#include "lib/json/json.h"
#include "nodeagent/devices/pools.h"

/* New when something in it differs, else the same once more. */
static json_t *withdraw_from(json_t *resource, const json_t *devices)
{
	const json_t *device;
	json_t *ret = NULL;
	size_t i;

	json_array_foreach (json_at(resource, "devices"), i, device) {
		json_t *changed;

		if (!json_at(devices, json_str_or(json_at(device, "id"), "")))
			continue;
		if (!ret) {
			ret = json_copy(resource);
			json_put(ret, "devices", json_copy(json_at(resource, "devices")));
		}
		changed = json_copy((json_t *)device);
		json_put_bool(changed, "healthy", false);
		json_put_str(changed, "cause", "it is being changed");
		json_array_set_new(json_at(ret, "devices"), i, changed);
	}
	return ret ? ret : json_incref(resource);
}

json_t *pools_withdraw(const json_t *pools, const json_t *devices)
{
	json_t *ret = json_copy((json_t *)pools), *resources = json_array(), *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource)
		json_array_append_new(resources, withdraw_from(resource, devices));
	json_put(ret, "resources", resources);
	return ret;
}

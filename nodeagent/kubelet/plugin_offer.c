// SPDX-License-Identifier: Apache-2.0
/*
 * Each device of the last offer and of the new one is looked at once, with the time at which it was
 * seen last. Pure; called by plugin.c whenever pools change.
 */
#include "nodeagent/kubelet/plugin_offer.h"

#include "lib/json/json.h"

/* Since when it is gone: `now` when it was there the last time. */
static int64_t gone_since(const json_t *device, int64_t now_ms)
{
	const json_t *gone = json_at(device, "gone");

	return gone ? json_integer_value(gone) : now_ms;
}

static json_t *gone_device(const json_t *device, int64_t since_ms)
{
	json_t *copy = json_copy((json_t *)device);

	json_put_bool(copy, "healthy", false);
	json_put_int(copy, "gone", since_ms);
	return copy;
}

static json_t *ids_of(const json_t *devices)
{
	json_t *ids = json_object();
	const json_t *device;
	size_t i;

	json_array_foreach ((json_t *)devices, i, device)
		json_put_bool(ids, json_str_or(json_at(device, "id"), ""), true);
	return ids;
}

/* The resource itself; wanted no more, it is what it was, and asks for nothing. */
static json_t *without_devices(const json_t *before, const json_t *resource)
{
	json_t *offer = json_copy((json_t *)(resource ? resource : before));

	if (!resource) {
		json_put_int(offer, "wanted", 0);
		(void)json_object_del(offer, "causes");
	}
	json_put(offer, "devices", json_array());
	return offer;
}

json_t *plugin_offer_next(const json_t *before, const json_t *resource, int64_t now_ms,
			  int64_t *ret_again_ms)
{
	json_auto_t *ids = ids_of(json_at(resource, "devices"));
	const json_t *device;
	json_t *offer, *devices;
	size_t i;

	*ret_again_ms = -1;
	if (!before && !resource)
		return NULL;
	offer = without_devices(before, resource);
	devices = json_object_get(offer, "devices");
	if (resource)
		(void)json_array_extend(devices, json_at(resource, "devices"));
	json_array_foreach (json_at(before, "devices"), i, device) {
		int64_t since = gone_since(device, now_ms);

		if (json_object_get(ids, json_str_or(json_at(device, "id"), "")) ||
		    now_ms - since >= PLUGIN_OFFER_GONE_MS)
			continue;
		(void)json_array_append_new(devices, gone_device(device, since));
		if (*ret_again_ms < 0 || since + PLUGIN_OFFER_GONE_MS < *ret_again_ms)
			*ret_again_ms = since + PLUGIN_OFFER_GONE_MS;
	}
	if (!resource && json_array_size(devices) == 0) {
		json_decref(offer);
		return NULL;
	}
	return offer;
}

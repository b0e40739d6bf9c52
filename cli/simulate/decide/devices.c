// SPDX-License-Identifier: Apache-2.0
/*
 * A kubelet's device manager without plugins: it takes the pools as they are computed. The nodes
 * process keeps who has what for each node.
 */
#include "cli/simulate/decide/devices.h"

#include "cli/simulate/decide/quantity.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/devices/pools.h"
#include "nodeagent/devices/same_rails.h"

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Resources and device IDs of the vendors' device plugins. */
static const struct gpu_vendor {
	const char *vendor, *resource, *id;
	const char *suffix; /* of the id */
} gpu_vendors[] = {
	{"10de", "nvidia.com/gpu", "uuid", ""},
	{"1002", "amd.com/gpu", "pciAddress", ""},
	{"8086", "gpu.intel.com/i915", "card", "-0"},
};

static json_t *gpus_of(const json_t *observed, const struct gpu_vendor *vendor)
{
	json_t *devices = json_array();
	const json_t *gpu;
	size_t i;

	json_array_foreach (json_at(observed, "gpus"), i, gpu)
		if (str_eq(json_str_at(gpu, "vendor"), vendor->vendor) &&
		    json_str_at(gpu, vendor->id))
			json_array_append_new(
				devices, json_pack("{s:o, s:b}", "id",
						   json_fmt("%s%s", json_str_at(gpu, vendor->id),
							    vendor->suffix),
						   "healthy", 1));
	return devices;
}

json_t *devices_with_gpus(const json_t *pools, const json_t *observed)
{
	json_t *all = json_copy((json_t *)pools), *resources = json_array();

	for (size_t i = 0; i < ARRAY_LEN(gpu_vendors); i++) {
		json_t *devices = gpus_of(observed, &gpu_vendors[i]);
		size_t n = json_array_size(devices);

		if (n == 0)
			json_decref(devices);
		else
			json_array_append_new(resources,
					      json_pack("{s:s, s:i, s:o}", "name",
							gpu_vendors[i].resource, "wanted", (int)n,
							"devices", devices));
	}
	(void)json_array_extend(resources, json_at(pools, "resources"));
	json_put(all, "resources", resources);
	return all;
}

/* ---- what the Node says ---------------------------------------------------------------------- */

json_t *devices_status(const json_t *pools)
{
	json_t *status = json_array(), *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource)
		json_array_append_new(status, pools_resource_status(resource, NULL));
	return status;
}

json_t *devices_node_status(const json_t *pools, const json_t *ours)
{
	json_t *capacity = json_object(), *allocatable = json_object(), *resource;
	const char *name;
	size_t i;

	json_each (ours, name, resource) {
		json_put_str(capacity, name, "0");
		json_put_str(allocatable, name, "0");
	}
	json_array_foreach (json_at(pools, "resources"), i, resource) {
		json_auto_t *status = pools_resource_status(resource, NULL);

		name = json_str_at(status, "name");
		json_put(capacity, name,
			 json_fmt("%lld",
				  (long long)json_integer_value(json_at(status, "offered"))));
		json_put(allocatable, name,
			 json_fmt("%lld",
				  (long long)json_integer_value(json_at(status, "healthy"))));
	}
	return json_pack("{s:o, s:o}", "capacity", capacity, "allocatable", allocatable);
}

/* ---- devices for a pod ----------------------------------------------------------------------- */

static const json_t *resource_named(const json_t *pools, const char *name)
{
	return json_find(json_at(pools, "resources"), "name", name);
}

/* A pod that is given devices. */
struct choice {
	const json_t *observed, *allocated, *pod;
	json_t *chosen;
};

/* GPUs were given before, and rails are named by the pod's label; new. */
static json_t *near_of(const struct choice *c, const json_t *resource)
{
	json_auto_t *all = NULL, *holders = NULL, *wanted = NULL;
	uint32_t rails;

	if (!json_is_true(json_at(resource, "gpus")))
		return NULL;
	all = json_deep_copy(c->allocated);
	devices_add(all, c->chosen);
	rails = same_rails_wanted(c->observed, c->pod, all,
				  json_str_or(json_at(resource, "name"), ""));
	if (rails)
		return same_rails_near(c->observed, rails);
	holders = affinity_holders(c->observed, all);
	wanted = affinity_wanted(c->pod, holders, all, json_str_or(json_at(resource, "name"), ""));
	return affinity_near(c->observed, holders, wanted);
}

/* One container's devices of one resource, added to what is chosen. */
static int choose(const struct choice *c, const json_t *resource, size_t wanted, const char *owner,
		  struct err *err)
{
	json_auto_t *near = near_of(c, resource);
	const char *name = json_str_at(resource, "name");
	const json_t *devices = json_at(resource, "devices"), *device;
	auto_free const char **available =
		mem_calloc(json_array_size(devices) + 1, sizeof(*available));
	auto_free const char **taken = mem_calloc(wanted + 1, sizeof(*taken));
	size_t n = 0, i;

	json_array_foreach (devices, i, device) {
		const char *id = json_str_at(device, "id");

		if (json_is_true(json_at(device, "healthy")) && !json_at(c->allocated, name, id) &&
		    !json_at(c->chosen, name, id))
			available[n++] = id;
	}
	if (n < wanted ||
	    allocate_prefer(resource, available, n, NULL, 0, wanted, near, taken, err) < 0)
		return err_set(err, ERR_TRANSIENT, "UnexpectedAdmissionError",
			       "Allocate failed due to requested number of devices unavailable for "
			       "%s. Requested: %zu, Available: %zu, which is unexpected",
			       name, wanted, n);
	for (i = 0; i < wanted; i++)
		json_put_str(json_need_object(c->chosen, name), taken[i], owner);
	return 0;
}

static int choose_for_container(const struct choice *c, const json_t *pools,
				const json_t *container, struct err *err)
{
	auto_free char *owner = str_printf("%s/%s/%s", json_namespace(c->pod), json_name(c->pod),
					   json_str_or(json_at(container, "name"), ""));
	const json_t *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource) {
		double wanted = quantity_of_container(container, json_str_at(resource, "name"));

		if (wanted >= 1 && wanted <= POOLS_TOKENS_MAX &&
		    choose(c, resource, (size_t)wanted, owner, err) < 0)
			return -1;
	}
	return 0;
}

json_t *devices_choose(const json_t *pools, const json_t *observed, const json_t *allocated,
		       const json_t *pod, struct err *err)
{
	json_auto_t *chosen = json_object();
	const struct choice c = {observed, allocated, pod, chosen};
	const json_t *container;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container)
		if (choose_for_container(&c, pools, container, err) < 0)
			return NULL;
	return json_incref(chosen);
}

void devices_add(json_t *allocated, const json_t *more)
{
	const char *name;
	json_t *devices;

	json_each (more, name, devices)
		(void)json_object_update(json_need_object(allocated, name), devices);
}

void devices_release(json_t *allocated, const char *pod)
{
	auto_free char *prefix = str_printf("%s/", pod);
	const char *name, *id;
	json_t *devices, *owner;
	void *next;

	json_each (allocated, name, devices)
		json_object_foreach_safe(
			devices, next, id,
			owner) if (str_starts(json_str_or(owner, ""), prefix))(void)
			json_object_del(devices, id);
}

const json_t *devices_info(const json_t *pools, const char *resource, const char *id)
{
	return json_at(json_find(json_at(resource_named(pools, resource), "devices"), "id", id),
		       "info");
}

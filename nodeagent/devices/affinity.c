// SPDX-License-Identifier: Apache-2.0
/*
 * Device IDs of GPUs become PCI addresses, and these distances to PFs; a VF is where its PF is. The
 * agent asks while the kubelet waits for preferred devices, and again when pods have got them.
 */
#include "nodeagent/devices/affinity.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/topology.h"

/* What a device ID of a GPU has at most; a longer one is none. */
#define ID_MAX 64

/* ---- GPUs of pods ---------------------------------------------------------------------------- */

/* {device ID, without what tells replicas apart: PCI address}, new. */
static json_t *ids_of_gpus(const json_t *observed)
{
	static const char *const names[] = {"pciAddress", "uuid", "card"};
	json_t *ids = json_object(), *gpu;
	size_t i;

	json_array_foreach (json_at(observed, "gpus"), i, gpu)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (json_str_at(gpu, "pciAddress") && json_str_at(gpu, names[k]))
				json_put(ids, json_str_at(gpu, names[k]),
					 json_incref(json_at(gpu, "pciAddress")));
	return ids;
}

/* The GPU's address, borrowed from ids; NULL: not the ID of a GPU. */
static json_t *gpu_called(const json_t *ids, const char *id)
{
	const char *replica = strstr(id, "::");
	size_t len = replica ? (size_t)(replica - id) : strlen(id);
	char name[ID_MAX];

	if (str_starts(id, "card"))
		len = strcspn(id, "-");
	if (len >= sizeof(name))
		return NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, id);
	return json_object_get(ids, name);
}

json_t *affinity_holders(const json_t *observed, const json_t *allocated)
{
	json_auto_t *ids = ids_of_gpus(observed);
	json_t *holders = json_object(), *devices, *owner;
	const char *resource, *id;

	if (json_object_size(ids) == 0)
		return holders;
	json_each (allocated, resource, devices)
		json_each (devices, id, owner) {
			const char *name = json_str_or(owner, "");
			json_t *gpu = gpu_called(ids, id);

			if (!gpu || json_list_has(json_at(holders, name), json_string_value(gpu)))
				continue;
			if (!json_object_get(holders, name))
				json_put(holders, name, json_array());
			json_array_append(json_object_get(holders, name), gpu);
		}
	return holders;
}

/* Length of "ns/pod" in "ns/pod/container". */
static size_t pod_len(const char *owner)
{
	const char *slash = strchr(owner, '/');

	slash = slash ? strchr(slash + 1, '/') : NULL;
	return slash ? (size_t)(slash - owner) : strlen(owner);
}

static bool is_same_pod(const char *a, const char *b)
{
	size_t len = pod_len(a);

	return len == pod_len(b) && strncmp(a, b, len) == 0;
}

/* GPUs of all containers of the pod that `owner` is of, new. */
static json_t *gpus_of_pod(const json_t *holders, const char *owner)
{
	json_t *ret = json_array(), *gpus;
	const char *name;

	json_each (holders, name, gpus)
		if (is_same_pod(name, owner))
			(void)json_array_extend(ret, gpus);
	return ret;
}

/* ---- the pod that the kubelet is about ------------------------------------------------------- */

static size_t count_held(const json_t *devices, const char *owner)
{
	const char *id;
	json_t *who;
	size_t n = 0;

	json_each (devices, id, who)
		n += str_eq(json_string_value(who), owner);
	return n;
}

json_t *affinity_suspects(const json_t *holders, const json_t *allocated, const char *resource)
{
	const json_t *devices = json_object_get(allocated, resource);
	json_auto_t *pods = json_object();
	json_t *ret = json_array(), *value;
	const char *name;

	json_each (holders, name, value) {
		auto_free char *pod = str_ndup(name, pod_len(name));

		if (count_held(devices, name) == 0)
			json_put_bool(pods, pod, true);
	}
	json_each (pods, name, value)
		json_array_append_new(ret, json_string(name));
	return ret;
}

/* Whole numbers are all that the API server takes for such a resource. */
static size_t limit_of(const json_t *container, const char *resource)
{
	const json_t *limit = json_at(container, "resources", "limits", resource);
	int64_t n = json_integer_value(limit);

	(void)str_to_int(json_string_value(limit), 0, INT32_MAX, &n);
	return n > 0 ? (size_t)n : 0;
}

/*
 * The first container of a list that lacks devices: "ns/pod/container", new, and what it asks for;
 * NULL: none does.
 */
static char *first_lacking(const json_t *pod, const char *list, const json_t *devices,
			   const char *resource, size_t *ret_limit)
{
	const json_t *container;
	size_t i;

	json_array_foreach (json_at(pod, "spec", list), i, container) {
		auto_free char *owner = str_printf("%s/%s/%s", json_namespace(pod), json_name(pod),
						   json_str_or(json_at(container, "name"), ""));

		/* PodResources names init containers only if they go on running. */
		if (str_eq(list, "initContainers") &&
		    !str_eq(json_str_at(container, "restartPolicy"), "Always"))
			continue;
		*ret_limit = limit_of(container, resource);
		if (count_held(devices, owner) < *ret_limit)
			return take_ptr(owner);
	}
	return NULL;
}

/* The same of all containers. */
static char *find_lacking(const json_t *pod, const json_t *allocated, const char *resource,
			  size_t *ret_limit)
{
	const json_t *devices = json_object_get(allocated, resource);
	char *owner = first_lacking(pod, "initContainers", devices, resource, ret_limit);

	return owner ? owner : first_lacking(pod, "containers", devices, resource, ret_limit);
}

size_t affinity_lacks(const json_t *pod, const json_t *allocated, const char *resource)
{
	auto_free char *owner = NULL;
	size_t limit = 0;

	assert(pod && resource);
	owner = find_lacking(pod, allocated, resource, &limit);
	return owner ? limit : 0;
}

json_t *affinity_wanted(const json_t *pod, const json_t *holders, const json_t *allocated,
			const char *resource)
{
	size_t limit;
	auto_free char *owner = find_lacking(pod, allocated, resource, &limit);
	const json_t *own;
	json_t *all;

	assert(pod && resource);
	if (!owner)
		return NULL;
	own = json_object_get(holders, owner);
	if (own)
		return json_incref((json_t *)own);
	all = gpus_of_pod(holders, owner);
	if (json_array_size(all) == 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}

/* ---- distances ------------------------------------------------------------------------------- */

static enum topology_distance between(const json_t *port, const json_t *gpu)
{
	return topology_between(json_at(port, "host"), gpu);
}

static const json_t *gpu_at(const json_t *observed, const json_t *address)
{
	return json_find(json_at(observed, "gpus"), "pciAddress", json_string_value(address));
}

static json_t *free_gpus(const json_t *observed, const json_t *holders)
{
	json_auto_t *held = json_object();
	json_t *ret = json_array(), *gpus, *gpu;
	const char *name;
	size_t i;

	json_each (holders, name, gpus)
		json_array_foreach (gpus, i, gpu)
			json_put_bool(held, json_str_or(gpu, ""), true);
	json_array_foreach (json_at(observed, "gpus"), i, gpu)
		if (!json_object_get(held, json_str_or(json_at(gpu, "pciAddress"), "")))
			json_array_append(ret, json_at(gpu, "pciAddress"));
	return ret;
}

json_t *affinity_near(const json_t *observed, const json_t *holders, const json_t *wanted)
{
	json_auto_t *gpus = wanted ? json_incref((json_t *)wanted) : free_gpus(observed, holders);
	size_t n = json_array_size(gpus), i, k;
	json_t *list, *address, *port, *ret;

	assert(observed && holders);
	if (n == 0 || (!wanted && n == json_array_size(json_at(observed, "gpus"))))
		return NULL;
	list = json_array();
	json_array_foreach (gpus, i, address) {
		const json_t *gpu = gpu_at(observed, address);
		json_t *distances = json_object();

		if (i == TOPOLOGY_GPUS_MAX) {
			json_decref(distances);
			break;
		}
		json_array_foreach (json_at(observed, "interfaces"), k, port)
			if (json_str_at(port, "pciAddress"))
				json_put_int(distances, json_str_at(port, "pciAddress"),
					     between(port, gpu));
		json_array_append_new(list, distances);
	}
	ret = json_pack("{s:o}", "gpus", list);
	if (!wanted)
		json_put_bool(ret, "free", true);
	return ret;
}

/* ---- what pods have got ---------------------------------------------------------------------- */

/* {PCI address of a PF or VF: its PF's entry in "interfaces"}, new. */
static json_t *ports_by_function(const json_t *observed)
{
	json_t *ret = json_object(), *port, *vf;
	size_t i, k;

	json_array_foreach (json_at(observed, "interfaces"), i, port) {
		if (json_str_at(port, "pciAddress"))
			json_object_set(ret, json_str_at(port, "pciAddress"), port);
		json_array_foreach (json_at(port, "Vfs"), k, vf)
			if (json_str_at(vf, "pciAddress"))
				json_object_set(ret, json_str_at(vf, "pciAddress"), port);
	}
	return ret;
}

static enum topology_distance nearest(const json_t *observed, const json_t *port,
				      const json_t *gpus)
{
	enum topology_distance best = TOPOLOGY_UNKNOWN;
	const json_t *address;
	size_t i;

	json_array_foreach ((json_t *)gpus, i, address) {
		enum topology_distance distance = between(port, gpu_at(observed, address));

		best = distance < best ? distance : best;
	}
	return best;
}

json_t *affinity_distances(const json_t *observed, const json_t *allocated)
{
	json_auto_t *holders = affinity_holders(observed, allocated), *ports = NULL;
	json_t *ret = json_object(), *devices, *owner;
	const char *resource, *id;

	if (json_object_size(holders) == 0)
		return ret;
	ports = ports_by_function(observed);
	json_each (allocated, resource, devices)
		json_each (devices, id, owner) {
			const json_t *port = json_object_get(ports, id);
			json_auto_t *gpus =
				port ? gpus_of_pod(holders, json_str_or(owner, "")) : NULL;

			if (json_array_size(gpus) > 0)
				json_put_str(json_need_object(ret, resource), id,
					     topology_distance_name(nearest(observed, port, gpus)));
		}
	return ret;
}

json_t *affinity_counts(const json_t *distances)
{
	json_t *ret = json_object(), *devices, *distance;
	const char *resource, *id;

	for (int d = 0; d < TOPOLOGY_DISTANCES; d++)
		json_put_int(ret, topology_distance_name((enum topology_distance)d), 0);
	json_each (distances, resource, devices)
		json_each (devices, id, distance) {
			const char *name = json_str_or(distance, "");

			json_put_int(ret, name, json_integer_value(json_at(ret, name)) + 1);
		}
	return ret;
}

void affinity_show(json_t *status, const json_t *distances)
{
	json_t *resource, *entry;
	size_t i, k;

	json_array_foreach (status, i, resource)
		json_array_foreach (json_at(resource, "pods"), k, entry)
			json_put_str(entry, "gpuDistance",
				     json_str_at(distances,
						 json_str_or(json_at(resource, "name"), ""),
						 json_str_or(json_at(entry, "device"), "")));
}

/* ---- nearer ones that were left -------------------------------------------------------------- */

struct missed {
	const json_t *observed, *ports, *devices; /* devices: of the resource, who has what */
	const char *owner;
	const json_t *gpus;
};

static bool has_device_of(const struct missed *m, const json_t *port)
{
	const char *id;
	json_t *who;

	json_each (m->devices, id, who)
		if (json_object_get(m->ports, id) == port &&
		    is_same_pod(json_str_or(who, ""), m->owner))
			return true;
	return false;
}

/* The nearest device that is left, with its PF and distance; NULL: none is nearer. */
static const char *find_nearer(const struct missed *m, const json_t *resource,
			       enum topology_distance than, const json_t **ret_port,
			       enum topology_distance *ret_distance)
{
	const char *ret = NULL;
	const json_t *device;
	size_t i;

	*ret_distance = than;
	json_array_foreach (json_at(resource, "devices"), i, device) {
		const char *id = json_str_or(json_at(device, "id"), "");
		const json_t *port = json_object_get(m->ports, id);
		enum topology_distance distance;

		if (!port || !json_is_true(json_at(device, "healthy")) ||
		    json_at(device, "cause") || json_object_get(m->devices, id))
			continue;
		distance = nearest(m->observed, port, m->gpus);
		if (distance >= *ret_distance || has_device_of(m, port))
			continue;
		ret = id;
		*ret_port = port;
		*ret_distance = distance;
	}
	return ret;
}

json_t *affinity_missed(const json_t *observed, const json_t *pools, const json_t *allocated,
			const json_t *before)
{
	json_auto_t *holders = affinity_holders(observed, allocated);
	json_auto_t *ports = ports_by_function(observed), *told = json_object();
	json_t *ret = json_array(), *devices, *owner;
	const char *name, *id;

	json_each (json_object_size(holders) > 0 ? allocated : NULL, name, devices)
		json_each (devices, id, owner) {
			const json_t *resource =
				json_find(json_at(pools, "resources"), "name", name);
			const char *who = json_str_or(owner, "");
			json_auto_t *gpus = gpus_of_pod(holders, who);
			auto_free char *key = str_printf("%s %.*s", name, (int)pod_len(who), who);
			const json_t *port = json_object_get(ports, id), *other = NULL;
			enum topology_distance is, could_be;
			const char *nearer;

			if (!resource || !port || json_array_size(gpus) == 0 ||
			    str_eq(json_str_at(before, name, id), who) || json_at(told, key))
				continue;
			is = nearest(observed, port, gpus);
			nearer = find_nearer(&(struct missed){observed, ports, devices, who, gpus},
					     resource, is, &other, &could_be);
			if (!nearer)
				continue;
			json_put_bool(told, key, true);
			json_array_append_new(
				ret,
				json_pack("{s:s, s:o}", "pod", who, "message",
					  json_fmt("%s: %s of %s is %s from the pod's GPUs, and %s "
						   "of %s (%s) was free; to try again, delete the "
						   "pod",
						   name, id,
						   json_str_or(json_at(port, "name"), "its NIC"),
						   topology_distance_name(is), nearer,
						   json_str_or(json_at(other, "name"), "its NIC"),
						   topology_distance_name(could_be))));
		}
	return ret;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Pools as ResourceSlices: each device with its attributes, cut into slices of the API's size. The
 * agent writes what dra_slices_diff() lists to the API server; what dra_slices_learn() finds that
 * the server dropped shapes the next slices.
 */
#include "nodeagent/devices/dra_slices.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/dra_names.h"

/* A string as attribute, and the name of an object (k8s.io/api, apimachinery). */
enum {
	ATTRIBUTE_MAX = 64,
	LABEL_MAX = 63,
	NAME_MAX_LEN = 253,
	HASH_LEN = 8,
};

/* ---- names ----------------------------------------------------------------------------------- */

char *dra_device_name(const char *address)
{
	char *name = str_dup(address);

	for (char *p = name; *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
	return name;
}

static uint32_t hash_of(const char *text)
{
	return (uint32_t)(str_hash(text, strlen(text)) & 0xffffffffU);
}

char *dra_shared_name(const char *resource)
{
	auto_free char *label = dra_device_name(resource);

	return str_printf("%.*s-%08x", LABEL_MAX - 1 - HASH_LEN, label, hash_of(resource));
}

char *dra_node_label(const char *node)
{
	if (strlen(node) <= LABEL_MAX)
		return str_dup(node);
	/* As SpiderEndpoints have it. */
	return str_printf("%.*s-%016" PRIx64, LABEL_MAX - 2 * HASH_LEN - 1, node,
			  str_hash(node, strlen(node)));
}

static char *slice_name(const char *node, size_t number)
{
	static const size_t room = NAME_MAX_LEN - sizeof("-" DRA_DRIVER "-9999");

	if (strlen(node) <= room)
		return str_printf("%s-" DRA_DRIVER "-%zu", node, number);
	return str_printf("%.*s%08x-" DRA_DRIVER "-%zu", (int)(room - HASH_LEN), node,
			  hash_of(node), number);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void put_text(json_t *attributes, const char *name, const char *text)
{
	json_t *attribute;

	if (str_empty(text) || strlen(text) > ATTRIBUTE_MAX)
		return;
	attribute = json_object();
	json_put_str(attribute, "string", text);
	json_put(attributes, name, attribute);
}

static void put_int(json_t *attributes, const char *name, const json_t *number)
{
	json_t *attribute;

	if (!json_is_integer(number))
		return;
	attribute = json_object();
	json_put_int(attribute, "int", json_integer_value(number));
	json_put(attributes, name, attribute);
}

static void put_bool(json_t *attributes, const char *name, bool value)
{
	json_t *attribute = json_object();

	json_put_bool(attribute, "bool", value);
	json_put(attributes, name, attribute);
}

/* A network function of the observed host. */
struct function {
	const json_t *seen;
	const json_t *pf; /* NULL: it is none of a PF's VFs */
	int64_t number;   /* of a VF */
};

static void function_free(void *function)
{
	mem_free(function);
}

static void add_function(struct map *functions, const json_t *seen, const json_t *pf,
			 int64_t number)
{
	const char *address = json_str_at(seen, "pciAddress");
	struct function *function;

	if (!address)
		return;
	function = mem_new(struct function);
	*function = (struct function){seen, pf, number};
	map_set(functions, address, function);
}

static void index_functions(const json_t *observed, struct map *functions)
{
	const json_t *pf, *vf;
	size_t i, k;

	functions->free_value = function_free;
	json_array_foreach (json_at(observed, "interfaces"), i, pf) {
		add_function(functions, pf, NULL, -1);
		json_array_foreach (json_at(pf, "Vfs"), k, vf) {
			const json_t *number = json_at(vf, "vfID");

			add_function(functions, vf, pf,
				     json_is_integer(number) ? json_integer_value(number)
							     : (int64_t)k);
		}
	}
}

/* The verdict about the link of a function's port; NULL: it is not judged. */
static const char *link_of(const struct dra_slices_input *input, const struct function *function)
{
	const json_t *port = !function ? NULL : function->pf ? function->pf : function->seen;
	const char *address = json_str_at(port, "pciAddress");

	return address ? json_str_at(json_find(input->links, "pciAddress", address), "verdict")
		       : NULL;
}

/* Those that dra-driver-sriov and DRANET have, under their names. */
static json_t *attributes_of(const json_t *resource, const json_t *device,
			     const struct function *function, const char *link)
{
	const json_t *seen = function ? function->seen : NULL, *pf = function ? function->pf : NULL;
	const char *id = json_str_at(device, "id");
	const char *rdma = json_str_at(device, "details", "rdma", "rdma_dev");
	const char *type = json_str_at(pf ? pf : seen, "linkType");
	json_t *attributes = json_object();

	put_text(attributes, "pciAddress", id);
	put_text(attributes, "resource.kubernetes.io/pciBusID", id);
	put_text(attributes, "resource.kubernetes.io/pcieRoot",
		 json_str_at(seen, "host", "pcieRoot"));
	put_text(attributes, "vendor", json_str_at(seen, "vendor"));
	put_text(attributes, "deviceID", json_str_at(seen, "deviceID"));
	put_text(attributes, "driver", json_str_at(seen, "driver"));
	put_text(attributes, "interfaceName", json_str_at(seen, "name"));
	put_text(attributes, "dra.net/ifName", json_str_at(seen, "name"));
	put_text(attributes, "linkType",
		 str_eq(type, "ETH")  ? "ether"
		 : str_eq(type, "IB") ? "infiniband"
				      : NULL);
	put_text(attributes, "PFName", json_str_at(pf, "name"));
	put_text(attributes, "pfPciAddress", json_str_at(pf, "pciAddress"));
	put_text(attributes, "pfDeviceID", json_str_at(pf, "deviceID"));
	put_text(attributes, "EswitchMode", json_str_at(pf, "eSwitchMode"));
	if (pf) {
		json_auto_t *number = json_integer(function->number);

		put_int(attributes, "vfID", number);
	}
	put_int(attributes, "rail", json_at(pf ? pf : seen, "rail"));
	put_text(attributes, "linkVerdict", link);
	put_int(attributes, "dra.net/numaNode", json_at(device, "numa"));
	put_bool(attributes, "rdmaCapable", json_at(device, "details", "rdma") != NULL);
	put_bool(attributes, "dra.net/rdma", json_at(device, "details", "rdma") != NULL);
	put_text(attributes, "dra.net/rdmaDevice", rdma);
	put_text(attributes, "resourceName", json_str_at(resource, "name"));
	put_text(attributes, "k8s.cni.cncf.io/resourceName", json_str_at(resource, "name"));
	put_text(attributes, "k8s.cni.cncf.io/deviceID", id);
	return attributes;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* taint: NULL for none. */
static json_t *device_new(char *name, json_t *attributes, const char *taint)
{
	auto_free char *owned = name;
	json_t *device = json_object();

	json_put_str(device, "name", owned);
	json_put(device, "attributes", attributes);
	if (taint)
		json_put(device, "taints",
			 json_pack("[{s:s, s:s}]", "key", taint, "effect", "NoSchedule"));
	return device;
}

static void add_functions(const struct dra_slices_input *input, const json_t *resource,
			  const struct map *functions, json_t *devices)
{
	const json_t *device;
	size_t i;

	json_array_foreach (json_at(resource, "devices"), i, device) {
		const char *id = json_str_at(device, "id");
		bool is_healthy = json_is_true(json_at(device, "healthy"));
		const struct function *function = id ? map_get(functions, id) : NULL;
		const char *link = link_of(input, function), *taint = NULL;

		if (!id || (!is_healthy && input->features.no_taints))
			continue;
		if (!is_healthy)
			taint = DRA_TAINT;
		else if (input->taints_degraded && !input->features.no_taints && link &&
			 !str_eq(link, "healthy"))
			taint = DRA_TAINT_DEGRADED;
		json_array_append_new(devices,
				      device_new(dra_device_name(id),
						 attributes_of(resource, device, function, link),
						 taint));
	}
}

/* As a server writes it (apimachinery, pkg/api/resource/quantity.go): else it would differ. New. */
static json_t *quantity_of(size_t n)
{
	static const char *const suffixes[] = {"", "k", "M", "G"};
	size_t power = 0;

	while (n > 0 && n % 1000 == 0 && power + 1 < ARRAY_LEN(suffixes)) {
		n /= 1000;
		power++;
	}
	return json_fmt("%zu%s", n, suffixes[power]);
}

/*
 * One device for all: each claim takes one of its slots, as the device plugin counts. Whether it
 * works all its tokens say.
 */
static void add_shared(const struct dra_slices_input *input, const json_t *resource,
		       json_t *devices)
{
	const json_t *tokens = json_at(resource, "devices");
	bool is_healthy = json_is_true(json_at(json_array_get(tokens, 0), "healthy"));
	const char *name = json_str_at(resource, "name");
	json_t *attributes, *device;

	if (!name || json_array_size(tokens) == 0 || input->features.no_sharing ||
	    (!is_healthy && input->features.no_taints))
		return;
	attributes = json_object();
	put_text(attributes, "resourceName", name);
	put_bool(attributes, "rdmaCapable", true);
	put_bool(attributes, "dra.net/rdma", true);
	device = device_new(dra_shared_name(name), attributes, is_healthy ? NULL : DRA_TAINT);
	json_put_bool(device, "allowMultipleAllocations", true);
	json_put(device, "capacity",
		 json_pack("{s:{s:o, s:{s:s, s:[s]}}}", "slots", "value",
			   quantity_of(json_array_size(tokens)), "requestPolicy", "default", "1",
			   "validValues", "1"));
	json_array_append_new(devices, device);
}

/* In the order of the pools, which is sorted. */
static json_t *devices_of(const struct dra_slices_input *input)
{
	auto_call(map_done) struct map functions = {0};
	json_t *devices = json_array();
	const json_t *resource;
	size_t i;

	index_functions(input->observed, &functions);
	json_array_foreach (json_at(input->pools, "resources"), i, resource) {
		if (!json_is_true(json_at(resource, "offered")))
			continue;
		if (str_eq(json_str_at(resource, "kind"), "shared"))
			add_shared(input, resource, devices);
		else
			add_functions(input, resource, &functions, devices);
	}
	return devices;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static json_t *slice_new(const struct dra_slices_input *input, size_t number)
{
	auto_free char *name = slice_name(input->node, number);
	auto_free char *label = dra_node_label(input->node);
	json_t *slice = json_pack(
		"{s:s, s:s, s:{s:s, s:{s:s}}, s:{s:s, s:s, s:{s:s, s:i, s:i}, s:[]}}", "apiVersion",
		"resource.k8s.io/v1", "kind", "ResourceSlice", "metadata", "name", name, "labels",
		DRA_NODE_LABEL, label, "spec", "driver", DRA_DRIVER, "nodeName", input->node,
		"pool", "name", input->node, "generation", 0, "resourceSliceCount", 0, "devices");

	if (input->node_uid)
		json_put(json_at(slice, "metadata"), "ownerReferences",
			 json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "v1", "kind",
				   "Node", "name", input->node, "uid", input->node_uid,
				   "controller", 1));
	return slice;
}

json_t *dra_slices(const struct dra_slices_input *input)
{
	json_auto_t *devices = devices_of(input);
	json_t *slices = json_array(), *device, *slice = NULL;
	size_t i, max = DRA_SLICE_DEVICES;

	assert(input->node);
	json_array_foreach (devices, i, device)
		if (json_at(device, "taints") || json_at(device, "allowMultipleAllocations"))
			max = DRA_SLICE_DEVICES_TAINTED;
	json_array_foreach (devices, i, device) {
		if (i % max == 0) {
			slice = slice_new(input, json_array_size(slices));
			json_array_append_new(slices, slice);
		}
		json_array_append(json_at(slice, "spec", "devices"), device);
	}
	json_array_foreach (slices, i, slice)
		json_put_int(json_at(slice, "spec", "pool"), "resourceSliceCount",
			     (int64_t)json_array_size(slices));
	return slices;
}

/* ---- differences ----------------------------------------------------------------------------- */

/* Is all of `want` in `have`? Servers add fields: defaults, the time of a taint. */
static bool is_within(const json_t *want, const json_t *have)
{
	const json_t *item;
	const char *key;
	size_t i;

	if (json_is_object(want)) {
		json_each (want, key, item)
			if (!is_within(item, json_object_get(have, key)))
				return false;
		return json_is_object(have);
	}
	if (!json_is_array(want))
		return json_same(want, have);
	if (json_array_size(want) != json_array_size(have) || !json_is_array(have))
		return false;
	json_array_foreach (want, i, item)
		if (!is_within(item, json_array_get(have, i)))
			return false;
	return true;
}

static const json_t *find_slice(const json_t *slices, const char *name)
{
	const json_t *slice;
	size_t i;

	json_array_foreach (slices, i, slice)
		if (str_eq(json_name(slice), name))
			return slice;
	return NULL;
}

static int64_t generation_of(const json_t *slice)
{
	return json_integer_value(json_at(slice, "spec", "pool", "generation"));
}

static json_t *with_generation(const json_t *slice, int64_t generation)
{
	json_t *copy = json_deep_copy(slice);

	json_put_int(json_at(copy, "spec", "pool"), "generation", generation);
	return copy;
}

static bool are_as_wanted(const json_t *wanted, const json_t *existing, int64_t generation)
{
	const json_t *slice;
	size_t i;

	if (json_array_size(wanted) != json_array_size(existing))
		return false;
	json_array_foreach (wanted, i, slice) {
		json_auto_t *now = with_generation(slice, generation);

		if (!is_within(now, find_slice(existing, json_name(slice))))
			return false;
	}
	return true;
}

json_t *dra_slices_diff(const json_t *wanted, const json_t *existing)
{
	json_t *diff = json_object(), *slice;
	json_t *write = json_array(), *gone = json_array();
	int64_t generation = 0;
	size_t i;

	assert(json_is_array(wanted));
	json_put(diff, "write", write);
	json_put(diff, "delete", gone);
	json_array_foreach ((json_t *)existing, i, slice)
		if (generation_of(slice) > generation)
			generation = generation_of(slice);
	if (are_as_wanted(wanted, existing, generation))
		return diff;
	json_array_foreach ((json_t *)wanted, i, slice)
		json_array_append_new(write, with_generation(slice, generation + 1));
	json_array_foreach ((json_t *)existing, i, slice)
		if (!find_slice(wanted, json_name(slice)))
			json_array_append(gone, slice);
	return diff;
}

void dra_slices_learn(const json_t *sent, const json_t *stored, struct dra_features *features)
{
	const json_t *device;
	size_t i;

	json_array_foreach (json_at(sent, "spec", "devices"), i, device) {
		const json_t *kept = json_array_get(json_at(stored, "spec", "devices"), i);

		if (!json_same(json_at(kept, "name"), json_at(device, "name")))
			continue;
		features->no_taints |= json_at(device, "taints") && !json_at(kept, "taints");
		features->no_sharing |= json_at(device, "allowMultipleAllocations") &&
					!json_at(kept, "allowMultipleAllocations");
	}
}

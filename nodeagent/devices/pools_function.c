// SPDX-License-Identifier: Apache-2.0
/*
 * One network function as a device of a pool: its device nodes, what is reported about it, and why
 * it cannot be had.
 *
 * Names and keys are those of the SR-IOV device plugin (sriov-network-device-plugin,
 * pkg/netdevice), since applications read them.
 */
#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/model/rdma_folder.h"

#define FAULT_MAX 256

/* A device in the making. */
struct draft {
	struct pools *pools;
	struct pool *pool;
	const struct pools_function *function;
	const struct pools_wants *wants;
	json_t *nodes;
	json_t *details;
	char fault[FAULT_MAX]; /* why it cannot be had; empty: it can */
	bool out_of_sight;     /* the fault is only that a pod has taken its parts away */
};

/* The first one counts: the rest mostly follows from it. */
static void set_fault(struct draft *draft, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void set_fault(struct draft *draft, const char *fmt, ...)
{
	va_list ap;

	if (draft->fault[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(draft->fault, sizeof(draft->fault), fmt, ap);
	va_end(ap);
}

static const char *driver_of(const struct pools_function *function)
{
	return json_str_at(function->seen, "driver");
}

static bool is_held(const struct pool *pool, const struct pools_function *function)
{
	return pool_gave(pool, function->address) ||
	       json_is_true(json_at(function->seen, "host", "inUse"));
}

/* How the node itself uses it, where no pod has it; NULL: it does not, as far as is to be seen. */
static const char *nodes_use(const struct pool *pool, const struct pools_function *function)
{
	const json_t *host = json_at(function->seen, "host"), *holder = json_at(host, "holder");

	if (!json_is_true(json_at(host, "inUse")) || !str_eq(json_str_at(holder, "kind"), "host") ||
	    json_is_true(json_at(holder, "unknown")) || pool_gave(pool, function->address))
		return NULL;
	return json_str_or(json_at(holder, "name"), "the node");
}

const char *pools_protected(const struct pools *pools, const struct pools_function *function)
{
	const char *why = json_str_at(function->seen, "host", "protected");
	const json_t *entry;

	if (why)
		return why;
	entry = json_find(json_at(pools->input->observed, "node", "protected"), "pciAddress",
			  function->address);
	return entry ? json_str_or(json_at(entry, "reason"), "the node needs it") : NULL;
}

/* ---- drivers --------------------------------------------------------------------------------- */

static void check_driver(struct draft *draft)
{
	const char *driver = driver_of(draft->function), *type = draft->wants->device_type;

	if (!driver)
		set_fault(draft, "no driver is bound to it yet");
	else if (str_eq(type, "vfio-pci") && !str_eq(driver, "vfio-pci"))
		set_fault(draft, "driver %s is bound to it, wanted vfio-pci", driver);
	else if (str_eq(type, "netdevice") && observed_is_userspace_driver(driver))
		set_fault(draft, "driver %s is bound to it, wanted the kernel's network driver",
			  driver);
	else if (observed_is_userspace_driver(driver) && !str_eq(driver, "vfio-pci"))
		set_fault(draft, "driver %s is not supported for pods, take vfio-pci", driver);
}

/* Without an IOMMU the host's file has another name, and the container's has not. */
static json_t *vfio_node(const struct pools *pools, long long group)
{
	json_auto_t *plain = json_fmt("vfio/%lld", group),
		    *bare = json_fmt("vfio/noiommu-%lld", group);
	json_t *path = json_fmt("/dev/vfio/%lld", group);

	if (!pools->input->dev_names || pools_has_file(pools, json_string_value(plain)) ||
	    !pools_has_file(pools, json_string_value(bare)))
		return path;
	return json_pack("{s:o,s:o}", "path", path, "hostPath",
			 json_fmt("/dev/%s", json_string_value(bare)));
}

static void add_vfio(struct draft *draft)
{
	const json_t *group = json_at(draft->function->seen, "host", "iommuGroup");
	json_t *details;

	if (!str_eq(driver_of(draft->function), "vfio-pci"))
		return;
	if (!json_is_integer(group)) {
		set_fault(draft, "it has no IOMMU group; turn the IOMMU on in firmware and kernel");
		return;
	}
	details = json_object();
	json_put_str(details, "mount", "/dev/vfio/vfio");
	json_put(details, "dev-mount",
		 json_fmt("/dev/vfio/%lld", (long long)json_integer_value(group)));
	json_put(draft->details, "vfio", details);
	json_array_append_new(draft->nodes, json_string("/dev/vfio/vfio"));
	json_array_append_new(draft->nodes,
			      vfio_node(draft->pools, (long long)json_integer_value(group)));
}

static void add_vhost_net(struct draft *draft)
{
	static const char *const files[] = {"vhost-net", "net/tun"};
	json_t *details;

	if (!draft->wants->vhost_net)
		return;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		json_array_append_new(draft->nodes, json_fmt("/dev/%s", files[i]));
		if (!pools_has_file(draft->pools, files[i]))
			set_fault(draft,
				  "/dev/%s is missing, which needVhostNet asks for; load the "
				  "module %s",
				  files[i], i == 0 ? "vhost_net" : "tun");
	}
	details = json_object();
	json_put_str(details, "net-mount", "/dev/vhost-net");
	json_put_str(details, "tun-mount", "/dev/net/tun");
	json_put(draft->details, "vhost", details);
}

/* ---- RDMA ------------------------------------------------------------------------------------ */

bool pools_has_rdma(const struct pools *pools, const struct pool *pool,
		    const struct pools_function *function)
{
	if (json_array_size(pools_rdma_of(pools, function->address)) > 0)
		return true;
	if (!is_held(pool, function) || observed_is_userspace_driver(driver_of(function)))
		return false;
	/* Its RDMA device has gone where its holder is: what it was, or what its PF is, decides. */
	return json_at(pool_device_before(pool, function->address), "details", "rdma") ||
	       (function->pf &&
		json_array_size(pools_rdma_of(
			pools, json_str_or(json_at(function->pf, "pciAddress"), ""))) > 0);
}

static bool is_exclusive(const struct draft *draft)
{
	return str_eq(json_str_at(draft->pools->input->observed, "rdma", "netnsMode"), "exclusive");
}

/* Files of one RDMA device; returns whether the one without which nothing works is there. */
static bool add_rdma_files(struct draft *draft, const json_t *files, json_t *details)
{
	bool has_verbs = false;
	json_t *file;
	size_t i;

	json_array_foreach ((json_t *)files, i, file) {
		const char *type = json_str_at(file, "type"), *path = json_str_at(file, "path");

		if (!type || !path)
			continue;
		has_verbs = has_verbs || str_eq(type, "uverbs");
		if (is_exclusive(draft) && !str_eq(type, "rdma_cm"))
			continue;
		json_array_append_new(draft->nodes, json_string(path));
		json_put_str(details, type, path);
	}
	return has_verbs;
}

/* Returns the names of the devices, "mlx5_2,mlx5_3"; free(). */
static char *add_rdma_devices(struct draft *draft, const json_t *devices)
{
	json_t *details = json_object(), *device;
	struct strbuf names = {0};
	size_t i;

	json_array_foreach ((json_t *)devices, i, device) {
		const char *name = json_str_or(json_at(device, "name"), "?");

		if (!add_rdma_files(draft, json_at(device, "charDevices"), details))
			set_fault(draft,
				  "its RDMA device %s has no file uverbs* in /dev/infiniband; load "
				  "the "
				  "module ib_uverbs",
				  name);
		if (i == 0)
			json_put_str(details, "rdma_dev", name);
		strbuf_adds(&names, i > 0 ? "," : "");
		strbuf_adds(&names, name);
	}
	(void)add_rdma_files(draft, json_at(draft->pools->input->observed, "rdma", "charDevices"),
			     details);
	/*
	 * A move gives it other numbers after the kubelet got these: what a pod gets is its folder.
	 * Each function's has a path of its own in the container, since kubelets pass over a path
	 * that was there before; runtimes put what is in it beside the others.
	 */
	if (is_exclusive(draft))
		json_array_append_new(
			draft->nodes,
			json_pack("{s:o, s:o}", "path",
				  json_fmt("/dev/infiniband/%s/..", draft->function->address),
				  "hostPath",
				  json_fmt(RDMA_FOLDER "/%s", draft->function->address)));
	json_put(draft->details, "rdma", details);
	return strbuf_take(&names);
}

/* What it had when it was last seen: its holder has that now. Returns the names or NULL; free(). */
static char *add_rdma_as_before(struct draft *draft)
{
	const struct pools_function *function = draft->function;
	const json_t *before = pool_device_before(draft->pool, function->address);
	json_t *details = json_at(before, "details", "rdma"), *node;
	size_t i;

	if (!details) {
		const char *holder =
			json_str_or(json_at(draft->pool->allocated, function->address),
				    json_str_at(function->seen, "host", "holder", "name"));

		draft->out_of_sight = !draft->fault[0];
		set_fault(draft, "%s has it, its RDMA device is out of sight",
			  str_empty(holder) ? "a pod" : holder);
		return NULL;
	}
	json_put(draft->details, "rdma", json_incref(details));
	json_array_foreach (json_at(before, "nodes"), i, node)
		if (str_starts(json_str_or(node, json_str_at(node, "path")), "/dev/infiniband/"))
			json_array_append(draft->nodes, node);
	return str_dup(json_str_at(before, "info", "pci", "rdma-device"));
}

/* Returns the names of its RDMA devices or NULL; free(). */
static char *add_rdma(struct draft *draft)
{
	const json_t *devices = pools_rdma_of(draft->pools, draft->function->address);
	const char *driver = driver_of(draft->function);

	if (!draft->wants->rdma)
		return NULL;
	if (json_array_size(devices) > 0)
		return add_rdma_devices(draft, devices);
	if (!observed_is_userspace_driver(driver) && is_held(draft->pool, draft->function))
		return add_rdma_as_before(draft);
	if (observed_is_userspace_driver(driver))
		set_fault(draft, "driver %s gives it no RDMA device; set isRdma to false", driver);
	else
		set_fault(draft,
			  "it has no RDMA device yet; is the RDMA module of its driver loaded?");
	return NULL;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void add_extra(const struct draft *draft)
{
	const char *const keys[] = {"*", draft->function->address};
	json_t *extra = json_object();

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *own = json_at(draft->wants->extra, keys[i]);

		if (json_is_object(own))
			json_object_update(extra, own);
	}
	if (json_object_size(extra) > 0)
		json_object_set(draft->details, "extra", extra);
	json_decref(extra);
}

static json_t *device_of(const struct draft *draft, const char *rdma)
{
	const struct pools_function *function = draft->function;
	const json_t *numa = json_at(function->seen, "host", "numaNode");
	json_t *device = json_object(), *pci = json_object();

	json_put_str(pci, "pci-address", function->address);
	json_put_str(pci, "rdma-device", rdma);
	json_put_str(device, "id", function->address);
	json_put_bool(device, "healthy", !draft->fault[0] || draft->out_of_sight);
	json_put_str(device, "cause", draft->fault[0] ? draft->fault : NULL);
	if (json_is_integer(numa) && json_integer_value(numa) >= 0 &&
	    !draft->wants->exclude_topology)
		json_put_int(device, "numa", json_integer_value(numa));
	json_put_str(device, "pf",
		     function->pf ? json_str_at(function->pf, "pciAddress") : function->address);
	json_put(device, "nodes", json_incref(draft->nodes));
	json_put(device, "details", json_incref(draft->details));
	json_put(device, "info",
		 json_pack("{s:s,s:s,s:o}", "type", "pci", "version", "1.1.0", "pci", pci));
	return device;
}

void pools_add_function(struct pools *pools, struct pool *pool,
			const struct pools_function *function, const struct pools_wants *wants)
{
	json_auto_t *nodes = json_array(), *details = json_object();
	struct draft draft = {
		.pools = pools,
		.pool = pool,
		.function = function,
		.wants = wants,
		.nodes = nodes,
		.details = details,
	};
	auto_free char *rdma = NULL, *unwell = NULL;
	json_t *device;
	const char *address, *resource, *use;

	assert(function->address && !map_get(&pools->claimed, function->address));
	json_put(details, "generic", json_pack("{s:s}", "deviceID", function->address));
	/*
	 * The kubelet counts each resource for itself: after a change of names it would give a
	 * device to a second pod.
	 */
	address = draft.function->address;
	resource = pools_gave_elsewhere(draft.pools, draft.pool, address);
	if (resource)
		set_fault(&draft, "%s has it as %s",
			  json_str_or(json_at(draft.pools->input->allocated, resource, address),
				      "a pod"),
			  resource);
	use = nodes_use(pool, function);
	if (use)
		set_fault(&draft, "it is used by %s; end that use", use);
	check_driver(&draft);
	unwell = pools_unwell(pools, function, is_held(pool, function), function->pf != NULL);
	if (unwell)
		set_fault(&draft, "%s", unwell);
	add_vfio(&draft);
	add_extra(&draft);
	rdma = add_rdma(&draft);
	add_vhost_net(&draft);
	device = device_of(&draft, rdma);
	if (!json_is_true(json_at(device, "healthy")))
		pool_cause(pool, "%s: %s", function->address, draft.fault);
	json_array_append_new(pool->devices, device);
	map_set(&pools->claimed, function->address, pool);
}

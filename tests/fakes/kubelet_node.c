// SPDX-License-Identifier: Apache-2.0
/* See the header. Pods are one JSON object, which is also what the checkpoint is made of. */
#include "tests/fakes/kubelet_node.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/grpc/message.h"
#include "lib/grpc/proto/pod_resources.pb-c.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"

#define CHECKPOINT "kubelet_internal_checkpoint"

struct kubelet_node {
	struct loop *loop;
	char *dir, *plugins_dir;
	const struct kubelet_version *version;
	struct fake_kubelet *manager;
	struct grpc_server *server;
	/*
	 * {"ns/p": {"resource", "ids": […], "env": {…}, "nodes": […], "gpus": […], "ended": true}},
	 * in order; without a resource: it was given GPUs only
	 */
	json_t *pods;
	bool is_closed;
};

/* ---- devices --------------------------------------------------------------------------------- */

/* The kubelet's view of a resource's devices; NULL: it is not registered. */
static const DevicePlugin__ListAndWatchResponse *devices(const struct kubelet_node *node,
							 const char *resource)
{
	return fake_kubelet_list(node->manager, resource);
}

static const DevicePlugin__Device *device(const struct kubelet_node *node, const char *resource,
					  const char *id)
{
	const DevicePlugin__ListAndWatchResponse *list = devices(node, resource);

	for (size_t i = 0; list && i < list->n_devices; i++)
		if (str_eq(list->devices[i]->id, id))
			return list->devices[i];
	return NULL;
}

static bool is_healthy(const DevicePlugin__Device *device)
{
	return device && str_eq(device->health, "Healthy");
}

/* Devices of pods that have ended are free. */
static bool is_given(const struct kubelet_node *node, const char *resource, const char *id)
{
	const char *name;
	json_t *pod;

	json_each (node->pods, name, pod)
		if (!json_is_true(json_at(pod, "ended")) &&
		    str_eq(json_str_at(pod, "resource"), resource) &&
		    json_list_has(json_at(pod, "ids"), id))
			return true;
	return false;
}

/* NUMA nodes as the checkpoint has them. */
static char *numa_key(const struct kubelet_node *node, const DevicePlugin__Device *device)
{
	if (device && device->topology && device->topology->n_nodes)
		return str_printf("%lld", (long long)device->topology->nodes[0]->id);
	return str_dup(node->version->takes_none_for_0 ? "0" : "-1");
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

/* As written since 1.20: ids by NUMA node. The checksum, of Go's own making, is left out. */
static void save(struct kubelet_node *node)
{
	auto_free char *path = str_printf("%s/" CHECKPOINT, node->plugins_dir), *text = NULL;
	json_auto_t *data = json_object();
	json_t *entries = json_array();
	struct err err = {0};
	const char *name;
	json_t *pod;

	json_each (node->pods, name, pod) {
		json_t *by_node = json_object(), *id;
		size_t i;

		if (!json_at(pod, "resource")) {
			json_decref(by_node);
			continue;
		}
		json_array_foreach (json_at(pod, "ids"), i, id) {
			auto_free char *key =
				numa_key(node, device(node, json_str_at(pod, "resource"),
						      json_string_value(id)));

			if (!json_object_get(by_node, key))
				json_put(by_node, key, json_array());
			json_array_append(json_object_get(by_node, key), id);
		}
		json_array_append_new(entries, json_pack("{s:s, s:s, s:O, s:o}", "PodUID", name,
							 "ContainerName", "c", "ResourceName",
							 json_object_get(pod, "resource"),
							 "DeviceIDs", by_node));
	}
	json_put(data, "Data",
		 json_pack("{s:o, s:{}}", "PodDeviceEntries", entries, "RegisteredDevices"));
	text = json_text(data);
	if (fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, &err) < 0)
		abort();
}

/* What pods have is what the file says, whoever wrote it. */
static void load(struct kubelet_node *node)
{
	auto_free char *path = str_printf("%s/" CHECKPOINT, node->plugins_dir);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_auto_t *data = NULL;
	const json_t *entry;
	size_t i;

	if (fs_read(AT_FDCWD, path, 1 << 20, &text, &err) < 0)
		return;
	data = json_parse(text.data, text.len, &err);
	json_array_foreach (json_at(data, "Data", "PodDeviceEntries"), i, entry) {
		json_t *pod = json_object_get(node->pods, json_str_at(entry, "PodUID"));
		json_t *ids = json_array(), *of_node;
		const char *key;

		assert(pod);
		json_each (json_at(entry, "DeviceIDs"), key, of_node)
			json_array_extend(ids, of_node);
		json_put(pod, "ids", ids);
	}
}

/* ---- admission ------------------------------------------------------------------------------- */

/* Healthy ones that nobody has, in the order of the list. New. */
static json_t *available(const struct kubelet_node *node, const char *resource)
{
	const DevicePlugin__ListAndWatchResponse *list = devices(node, resource);
	json_t *ids = json_array();

	for (size_t i = 0; list && i < list->n_devices; i++)
		if (is_healthy(list->devices[i]) && !is_given(node, resource, list->devices[i]->id))
			json_array_append_new(ids, json_string(list->devices[i]->id));
	return ids;
}

/* Strings of a list, for a message; borrowed in a new array. */
static char **strings(const json_t *list)
{
	char **items = mem_calloc(json_array_size(list) + 1, sizeof(*items));
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		items[i] = (char *)json_string_value(item);
	return items;
}

/* callGetPreferredAllocationIfAvailable(): a hint, of which what is available counts. New. */
static json_t *preferred(struct kubelet_node *node, const char *resource, const json_t *ids,
			 size_t n, char **ret_why)
{
	auto_free char **all = strings(ids);
	DevicePlugin__ContainerPreferredAllocationRequest one =
		DEVICE_PLUGIN__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	DevicePlugin__ContainerPreferredAllocationRequest *containers[] = {&one};
	DevicePlugin__PreferredAllocationRequest request =
		DEVICE_PLUGIN__PREFERRED_ALLOCATION_REQUEST__INIT;
	struct ProtobufCMessage *message = NULL;
	const DevicePlugin__PreferredAllocationResponse *answer;
	json_t *chosen = json_array();

	one.available_device_ids = all;
	one.n_available_device_ids = json_array_size(ids);
	one.allocation_size = (int32_t)n;
	request.container_requests = containers;
	request.n_container_requests = 1;
	if (!fake_kubelet_call(node->manager, resource, "GetPreferredAllocation", &request.base,
			       &device_plugin__preferred_allocation_response__descriptor, &message,
			       ret_why))
		return chosen;
	answer = (const void *)message;
	for (size_t i = 0;
	     answer->n_container_responses && i < answer->container_responses[0]->n_device_ids;
	     i++) {
		const char *id = answer->container_responses[0]->device_ids[i];

		if (json_list_has(ids, id))
			json_array_append_new(chosen, json_string(id));
	}
	grpc_message_free(message);
	return chosen;
}

static json_t *given(const DevicePlugin__ContainerAllocateResponse *answer)
{
	json_t *env = json_object(), *nodes = json_array();

	for (size_t i = 0; i < answer->n_envs; i++)
		json_put_str(env, answer->envs[i]->key, answer->envs[i]->value);
	for (size_t i = 0; i < answer->n_devices; i++)
		json_array_append_new(nodes, json_string(answer->devices[i]->host_path));
	return json_pack("{s:o, s:o}", "env", env, "nodes", nodes);
}

static json_t *allocate(struct kubelet_node *node, const char *resource, const json_t *ids,
			char **ret_why)
{
	auto_free char **all = strings(ids);
	DevicePlugin__ContainerAllocateRequest one =
		DEVICE_PLUGIN__CONTAINER_ALLOCATE_REQUEST__INIT;
	DevicePlugin__ContainerAllocateRequest *containers[] = {&one};
	DevicePlugin__AllocateRequest request = DEVICE_PLUGIN__ALLOCATE_REQUEST__INIT;
	struct ProtobufCMessage *message = NULL;
	const DevicePlugin__AllocateResponse *answer;
	json_t *pod = NULL;

	one.device_ids = all;
	one.n_device_ids = json_array_size(ids);
	request.container_requests = containers;
	request.n_container_requests = 1;
	if (!fake_kubelet_call(node->manager, resource, "Allocate", &request.base,
			       &device_plugin__allocate_response__descriptor, &message, ret_why))
		return NULL;
	answer = (const void *)message;
	if (answer->n_container_responses == 1)
		pod = given(answer->container_responses[0]);
	else
		*ret_why = str_dup("no containers return in allocation response");
	grpc_message_free(message);
	return pod;
}

/* The checks of what a container has from before: until 1.26 none. */
static char *check_given(const struct kubelet_node *node, const json_t *pod)
{
	const char *resource = json_str_at(pod, "resource");
	const json_t *id;
	size_t i;

	if (!node->version->checks_given)
		return NULL;
	if (!devices(node, resource))
		return str_printf("cannot allocate unregistered device %s", resource);
	json_array_foreach (json_at(pod, "ids"), i, id)
		if (!is_healthy(device(node, resource, json_string_value(id))))
			return str_printf("previously allocated devices are no longer healthy; "
					  "cannot allocate unhealthy devices %s",
					  resource);
	return NULL;
}

char *kubelet_node_admit(struct kubelet_node *node, const char *name, const char *resource,
			 size_t n)
{
	json_t *pod = json_object_get(node->pods, name);
	json_auto_t *ids = NULL, *chosen = NULL, *gpus = json_incref(json_at(pod, "gpus"));
	char *why = NULL;

	if (json_at(pod, "resource"))
		return check_given(node, pod);
	if (!devices(node, resource))
		return str_printf("cannot allocate unregistered device %s", resource);
	ids = available(node, resource);
	if (json_array_size(ids) < n)
		return str_printf("requested number of devices unavailable for %s. Requested: %zu, "
				  "Available: %zu",
				  resource, n, json_array_size(ids));
	chosen = n < json_array_size(ids) && fake_kubelet_may_prefer(node->manager, resource)
			 ? preferred(node, resource, ids, n, &why)
			 : json_array();
	if (why)
		return why;
	for (size_t i = 0; json_array_size(chosen) < n; i++)
		if (!json_list_has(chosen, json_string_value(json_array_get(ids, i))))
			json_array_append(chosen, json_array_get(ids, i));
	pod = allocate(node, resource, chosen, &why);
	if (!pod)
		return why;
	json_put_str(pod, "resource", resource);
	json_put(pod, "ids", take_ptr(chosen));
	json_put(pod, "gpus", json_incref(gpus));
	json_put(node->pods, name, pod);
	save(node);
	return NULL;
}

void kubelet_node_give_gpu(struct kubelet_node *node, const char *name, const char *id)
{
	json_t *pod = json_need_object(node->pods, name);

	if (!json_at(pod, "gpus"))
		json_put(pod, "gpus", json_array());
	json_array_append_new(json_at(pod, "gpus"), json_string(id));
}

void kubelet_node_end_pod(struct kubelet_node *node, const char *pod)
{
	json_put_bool(json_object_get(node->pods, pod), "ended", true);
}

void kubelet_node_remove_pod(struct kubelet_node *node, const char *pod)
{
	(void)json_object_del(node->pods, pod);
	save(node);
}

const json_t *kubelet_node_given(const struct kubelet_node *node, const char *pod)
{
	return json_at(node->pods, pod);
}

/* ---- PodResources ---------------------------------------------------------------------------- */

static PodResources__ContainerDevices *
entry_new(const char *resource, const DevicePlugin__Device *device, const struct kubelet_node *node)
{
	PodResources__ContainerDevices *entry = mem_new(PodResources__ContainerDevices);
	auto_free char *numa = numa_key(node, device);

	pod_resources__container_devices__init(entry);
	entry->resource_name = str_dup(resource);
	if (str_eq(numa, "-1"))
		return entry;
	entry->topology = mem_new(PodResources__TopologyInfo);
	pod_resources__topology_info__init(entry->topology);
	entry->topology->nodes = mem_calloc(1, sizeof(*entry->topology->nodes));
	entry->topology->nodes[0] = mem_new(PodResources__NumaNode);
	pod_resources__numa_node__init(entry->topology->nodes[0]);
	entry->topology->nodes[0]->id = str_eq(numa, "0") ? 0 : numa[0] - '0';
	entry->topology->n_nodes = 1;
	return entry;
}

static bool same_node(const PodResources__ContainerDevices *a,
		      const PodResources__ContainerDevices *b)
{
	return !a->topology == !b->topology &&
	       (!a->topology || a->topology->nodes[0]->id == b->topology->nodes[0]->id);
}

/*
 * Add a device to a list of entries: to one of its NUMA node, or as one of its own. Messages own
 * all that is in them.
 */
static void add_device(const struct kubelet_node *node, const char *resource, const char *id,
		       PodResources__ContainerDevices ***entries, size_t *n)
{
	PodResources__ContainerDevices *entry =
		entry_new(resource, device(node, resource, id), node);

	for (size_t i = 0; node->version->lists_together && i < *n; i++)
		if (same_node((*entries)[i], entry) &&
		    str_eq((*entries)[i]->resource_name, resource)) {
			pod_resources__container_devices__free_unpacked(entry, NULL);
			entry = (*entries)[i];
			break;
		}
	entry->device_ids =
		mem_realloc(entry->device_ids, (entry->n_device_ids + 1) * sizeof(char *));
	entry->device_ids[entry->n_device_ids++] = str_dup(id);
	if (entry->n_device_ids > 1)
		return;
	*entries = mem_realloc(*entries, (*n + 1) * sizeof(**entries));
	(*entries)[(*n)++] = entry;
}

static PodResources__PodResources *pod_new(const struct kubelet_node *node, const char *name,
					   const json_t *pod)
{
	PodResources__PodResources *message = mem_new(PodResources__PodResources);
	PodResources__ContainerResources *container = mem_new(PodResources__ContainerResources);
	const char *slash = strchr(name, '/');
	const json_t *id;
	size_t i;

	pod_resources__pod_resources__init(message);
	pod_resources__container_resources__init(container);
	message->namespace_ = str_ndup(name, (size_t)(slash - name));
	message->name = str_dup(slash + 1);
	message->containers = mem_calloc(1, sizeof(*message->containers));
	message->containers[0] = container;
	message->n_containers = 1;
	container->name = str_dup("c");
	if (!json_is_true(json_at(pod, "ended")))
		json_array_foreach (json_at(pod, "ids"), i, id)
			add_device(node, json_str_at(pod, "resource"), json_string_value(id),
				   &container->devices, &container->n_devices);
	json_array_foreach (json_at(pod, "gpus"), i, id)
		add_device(node, "nvidia.com/gpu", json_string_value(id), &container->devices,
			   &container->n_devices);
	return message;
}

static void handle_list(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	const struct kubelet_node *node = arg;
	PodResources__ListPodResourcesResponse *list =
		mem_new(PodResources__ListPodResourcesResponse);
	const char *name;
	json_t *pod;

	pod_resources__list_pod_resources_response__init(list);
	list->pod_resources =
		mem_calloc(json_object_size(node->pods) + 1, sizeof(*list->pod_resources));
	json_each (node->pods, name, pod)
		if (node->version->lists_ended || !json_is_true(json_at(pod, "ended")))
			list->pod_resources[list->n_pod_resources++] = pod_new(node, name, pod);
	grpc_call_reply(call, &list->base);
	pod_resources__list_pod_resources_response__free_unpacked(list, NULL);
}

static const struct grpc_method methods[] = {
	{"/v1alpha1.PodResourcesLister/List",
	 &pod_resources__list_pod_resources_request__descriptor, handle_list},
	{"/v1.PodResourcesLister/List", &pod_resources__list_pod_resources_request__descriptor,
	 handle_list},
};

/* ---- beginning and end ----------------------------------------------------------------------- */

/* What of the directory is no socket; the manager removes those. */
static void wipe_files(const struct kubelet_node *node)
{
	auto_closedir DIR *files = opendir(node->plugins_dir);
	const struct dirent *file;

	while (files && (file = readdir(files)))
		if (file->d_type == DT_REG && !str_eq(file->d_name, CHECKPOINT))
			(void)unlinkat(dirfd(files), file->d_name, 0);
}

static void start(struct kubelet_node *node, const struct kubelet_version *version)
{
	auto_free char *socket = str_printf("%s/pod-resources/kubelet.sock", node->dir);

	node->version = version;
	load(node);
	if (version->wipes_files)
		wipe_files(node);
	node->manager = fake_kubelet_new(node->loop, node->plugins_dir, version->kind);
	if (version->dials_by_path)
		fake_kubelet_dial_by_path(node->manager);
	node->server = grpc_server_new(node->loop,
				       &(struct grpc_server_config){
					       .path = socket,
					       .methods = methods,
					       .n_methods = ARRAY_LEN(methods),
					       .arg = node,
				       },
				       NULL);
	assert(node->server);
}

static void on_closed(void *arg)
{
	struct kubelet_node *node = arg;

	node->is_closed = true;
}

static void stop(struct kubelet_node *node)
{
	node->is_closed = false;
	grpc_server_close(take_ptr(node->server), 0, on_closed, node);
	while (!node->is_closed)
		loop_turn(node->loop, true);
	fake_kubelet_free(take_ptr(node->manager));
}

struct kubelet_node *kubelet_node_new(struct loop *loop, const char *dir,
				      const struct kubelet_version *version)
{
	struct kubelet_node *node = mem_new(struct kubelet_node);

	node->loop = loop;
	node->dir = str_dup(dir);
	node->plugins_dir = str_printf("%s/device-plugins", dir);
	node->pods = json_object();
	start(node, version);
	return node;
}

void kubelet_node_free(struct kubelet_node *node)
{
	if (!node)
		return;
	stop(node);
	json_decref(node->pods);
	mem_free(node->plugins_dir);
	mem_free(node->dir);
	mem_free(node);
}

void kubelet_node_restart(struct kubelet_node *node, const struct kubelet_version *version)
{
	stop(node);
	start(node, version);
}

struct fake_kubelet *kubelet_node_manager(struct kubelet_node *node)
{
	return node->manager;
}

// SPDX-License-Identifier: Apache-2.0
/* Everything is allocated, as if it had been decoded, so that one function frees it. */
#include "nodeagent/kubelet/plugin_messages.h"

#include "lib/base/mem.h"
#include "lib/json/json.h"

/* A new message of the type that `init` initialises. */
#define MESSAGE_NEW(type, init)                                                                    \
	({                                                                                         \
		type *message_ = mem_new(type);                                                    \
		init(message_);                                                                    \
		message_;                                                                          \
	})

/* Repeated members are arrays of pointers. */
#define POINTERS(n) mem_calloc((n), sizeof(void *))

static char *text_of(const json_t *value)
{
	return str_dup(json_str_or(value, ""));
}

static DevicePlugin__Device *device_of(const json_t *device)
{
	DevicePlugin__Device *message =
		MESSAGE_NEW(DevicePlugin__Device, device_plugin__device__init);
	const json_t *numa = json_at(device, "numa");

	message->id = text_of(json_at(device, "id"));
	message->health =
		str_dup(json_is_true(json_at(device, "healthy")) ? "Healthy" : "Unhealthy");
	if (json_is_integer(numa)) {
		DevicePlugin__TopologyInfo *topology =
			MESSAGE_NEW(DevicePlugin__TopologyInfo, device_plugin__topology_info__init);

		/* Node 0 is an empty message, and has to be there all the same. */
		topology->nodes = POINTERS(1);
		topology->nodes[0] =
			MESSAGE_NEW(DevicePlugin__NumaNode, device_plugin__numa_node__init);
		topology->nodes[0]->id = json_integer_value(numa);
		topology->n_nodes = 1;
		message->topology = topology;
	}
	return message;
}

DevicePlugin__ListAndWatchResponse *plugin_message_list(const json_t *devices)
{
	DevicePlugin__ListAndWatchResponse *message = MESSAGE_NEW(
		DevicePlugin__ListAndWatchResponse, device_plugin__list_and_watch_response__init);
	size_t n = json_array_size(devices);

	if (n == 0)
		return message;
	message->devices = POINTERS(n);
	for (size_t i = 0; i < n; i++)
		message->devices[i] = device_of(json_array_get(devices, i));
	message->n_devices = n;
	return message;
}

static void add_env(DevicePlugin__ContainerAllocateResponse *message, const json_t *env)
{
	const char *name;
	json_t *value;

	if (json_object_size(env) == 0)
		return;
	message->envs = POINTERS(json_object_size(env));
	json_each (env, name, value) {
		DevicePlugin__ContainerAllocateResponse__EnvsEntry *entry =
			MESSAGE_NEW(DevicePlugin__ContainerAllocateResponse__EnvsEntry,
				    device_plugin__container_allocate_response__envs_entry__init);

		entry->key = str_dup(name);
		entry->value = text_of(value);
		message->envs[message->n_envs++] = entry;
	}
}

static void add_nodes(DevicePlugin__ContainerAllocateResponse *message, const json_t *nodes)
{
	size_t n = json_array_size(nodes);

	if (n == 0)
		return;
	message->devices = POINTERS(n);
	for (size_t i = 0; i < n; i++) {
		const json_t *node = json_array_get(nodes, i);
		DevicePlugin__DeviceSpec *spec =
			MESSAGE_NEW(DevicePlugin__DeviceSpec, device_plugin__device_spec__init);

		spec->container_path = text_of(json_at(node, "path"));
		spec->host_path = text_of(json_at(node, "hostPath"));
		spec->permissions = text_of(json_at(node, "permissions"));
		message->devices[i] = spec;
	}
	message->n_devices = n;
}

static void add_mounts(DevicePlugin__ContainerAllocateResponse *message, const json_t *mounts)
{
	size_t n = json_array_size(mounts);

	if (n == 0)
		return;
	message->mounts = POINTERS(n);
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(mounts, i);
		DevicePlugin__Mount *mount =
			MESSAGE_NEW(DevicePlugin__Mount, device_plugin__mount__init);

		mount->container_path = text_of(json_at(item, "path"));
		mount->host_path = text_of(json_at(item, "hostPath"));
		mount->read_only = true;
		message->mounts[i] = mount;
	}
	message->n_mounts = n;
}

DevicePlugin__ContainerAllocateResponse *plugin_message_allocation(const json_t *allocation)
{
	DevicePlugin__ContainerAllocateResponse *message =
		MESSAGE_NEW(DevicePlugin__ContainerAllocateResponse,
			    device_plugin__container_allocate_response__init);

	add_env(message, json_at(allocation, "env"));
	add_nodes(message, json_at(allocation, "nodes"));
	add_mounts(message, json_at(allocation, "mounts"));
	return message;
}

DevicePlugin__ContainerPreferredAllocationResponse *plugin_message_preferred(const char *const *ids,
									     size_t n)
{
	DevicePlugin__ContainerPreferredAllocationResponse *message =
		MESSAGE_NEW(DevicePlugin__ContainerPreferredAllocationResponse,
			    device_plugin__container_preferred_allocation_response__init);

	if (n == 0)
		return message;
	message->device_ids = POINTERS(n);
	for (size_t i = 0; i < n; i++)
		message->device_ids[i] = str_dup(ids[i]);
	message->n_device_ids = n;
	return message;
}

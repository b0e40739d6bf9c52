// SPDX-License-Identifier: Apache-2.0
/* Names come from the kubelet and are keys here, so they are made UTF-8 first. */
#include "nodeagent/kubelet/pod_resources_read.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* Borrowed; valid until the buffer is used again. */
static const char *clean(struct strbuf *buffer, const char *text)
{
	strbuf_reset(buffer);
	strbuf_add_utf8(buffer, text, strlen(text));
	return strbuf_str(buffer);
}

static void add_devices(json_t *allocated, const char *owner,
			const PodResources__ContainerDevices *devices)
{
	auto_strbuf struct strbuf text = {0};
	json_t *ids;

	if (devices->n_device_ids == 0)
		return;
	ids = json_need_object(allocated, clean(&text, devices->resource_name));
	for (size_t i = 0; i < devices->n_device_ids; i++) {
		const char *id = clean(&text, devices->device_ids[i]);
		const char *other = json_str_at(ids, id);

		if (!other || strcmp(owner, other) < 0)
			json_put_str(ids, id, owner);
	}
}

static void add_pod(json_t *allocated, const PodResources__PodResources *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		const PodResources__ContainerResources *container = pod->containers[i];
		auto_strbuf struct strbuf owner = {0};

		strbuf_add_utf8(&owner, pod->namespace_, strlen(pod->namespace_));
		strbuf_addc(&owner, '/');
		strbuf_add_utf8(&owner, pod->name, strlen(pod->name));
		strbuf_addc(&owner, '/');
		strbuf_add_utf8(&owner, container->name, strlen(container->name));
		for (size_t j = 0; j < container->n_devices; j++)
			add_devices(allocated, owner.data, container->devices[j]);
	}
}

json_t *pod_resources_read(const PodResources__ListPodResourcesResponse *list)
{
	json_t *allocated = json_object();

	for (size_t i = 0; i < list->n_pod_resources; i++)
		add_pod(allocated, list->pod_resources[i]);
	return allocated;
}

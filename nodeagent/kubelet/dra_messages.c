// SPDX-License-Identifier: Apache-2.0
/* Everything is allocated, as if it had been decoded, so that one function frees it. */
#include "nodeagent/kubelet/dra_messages.h"

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/message.h"
#include "lib/json/json.h"

/* A new message of the type that `init` initialises. */
#define MESSAGE_NEW(type, init)                                                                    \
	({                                                                                         \
		type *message_ = mem_new(type);                                                    \
		init(message_);                                                                    \
		message_;                                                                          \
	})

static char *text_of(const json_t *value)
{
	return str_dup(json_str_or(value, ""));
}

json_t *dra_message_claims(const struct ProtobufCMessage *request)
{
	/* The other request has the same members at the same places. */
	const Dra__NodePrepareResourcesRequest *all = (const void *)request;
	json_auto_t *seen = json_object();
	json_t *claims = json_array();

	for (size_t i = 0; i < all->n_claims; i++) {
		const Dra__Claim *claim = all->claims[i];
		json_t *entry;

		if (json_object_get(seen, claim->uid))
			continue;
		json_put_bool(seen, claim->uid, true);
		entry = json_object();
		json_put_str(entry, "namespace", claim->namespace_);
		json_put_str(entry, "name", claim->name);
		json_put_str(entry, "uid", claim->uid);
		json_array_append_new(claims, entry);
	}
	return claims;
}

static Dra__Device *device_of(const json_t *device)
{
	Dra__Device *message = MESSAGE_NEW(Dra__Device, dra__device__init);
	const json_t *ids = json_at(device, "cdi");

	message->pool_name = text_of(json_at(device, "pool"));
	message->device_name = text_of(json_at(device, "device"));
	message->request_names = mem_calloc(1, sizeof(char *));
	message->request_names[0] = text_of(json_at(device, "request"));
	message->n_request_names = 1;
	if (json_array_size(ids) == 0)
		return message;
	message->cdi_device_ids = mem_calloc(json_array_size(ids), sizeof(char *));
	for (; message->n_cdi_device_ids < json_array_size(ids); message->n_cdi_device_ids++)
		message->cdi_device_ids[message->n_cdi_device_ids] =
			text_of(json_array_get(ids, message->n_cdi_device_ids));
	return message;
}

static Dra__NodePrepareResourceResponse *prepared_of(const json_t *answer)
{
	Dra__NodePrepareResourceResponse *message = MESSAGE_NEW(
		Dra__NodePrepareResourceResponse, dra__node_prepare_resource_response__init);
	const json_t *devices = json_at(answer, "devices");

	message->error = text_of(json_at(answer, "error"));
	if (json_array_size(devices) == 0)
		return message;
	message->devices = mem_calloc(json_array_size(devices), sizeof(void *));
	for (; message->n_devices < json_array_size(devices); message->n_devices++)
		message->devices[message->n_devices] =
			device_of(json_array_get(devices, message->n_devices));
	return message;
}

struct ProtobufCMessage *dra_message_prepared(const json_t *answers)
{
	Dra__NodePrepareResourcesResponse *message = MESSAGE_NEW(
		Dra__NodePrepareResourcesResponse, dra__node_prepare_resources_response__init);
	const json_t *answer;
	const char *uid;

	if (json_object_size(answers) == 0)
		return &message->base;
	message->claims = mem_calloc(json_object_size(answers), sizeof(void *));
	json_each (answers, uid, answer) {
		Dra__NodePrepareResourcesResponse__ClaimsEntry *entry =
			MESSAGE_NEW(Dra__NodePrepareResourcesResponse__ClaimsEntry,
				    dra__node_prepare_resources_response__claims_entry__init);

		entry->key = str_dup(uid);
		entry->value = prepared_of(answer);
		message->claims[message->n_claims++] = entry;
	}
	return &message->base;
}

struct ProtobufCMessage *dra_message_unprepared(const json_t *answers)
{
	Dra__NodeUnprepareResourcesResponse *message = MESSAGE_NEW(
		Dra__NodeUnprepareResourcesResponse, dra__node_unprepare_resources_response__init);
	const json_t *answer;
	const char *uid;

	if (json_object_size(answers) == 0)
		return &message->base;
	message->claims = mem_calloc(json_object_size(answers), sizeof(void *));
	json_each (answers, uid, answer) {
		Dra__NodeUnprepareResourcesResponse__ClaimsEntry *entry =
			MESSAGE_NEW(Dra__NodeUnprepareResourcesResponse__ClaimsEntry,
				    dra__node_unprepare_resources_response__claims_entry__init);

		entry->key = str_dup(uid);
		entry->value = MESSAGE_NEW(Dra__NodeUnprepareResourceResponse,
					   dra__node_unprepare_resource_response__init);
		entry->value->error = text_of(json_at(answer, "error"));
		message->claims[message->n_claims++] = entry;
	}
	return &message->base;
}

static Dra__HealthStatus status_of(const json_t *device)
{
	const char *health = json_str_at(device, "health");

	if (str_eq(health, "healthy"))
		return DRA__HEALTH_STATUS__HEALTHY;
	return str_eq(health, "unhealthy") ? DRA__HEALTH_STATUS__UNHEALTHY
					   : DRA__HEALTH_STATUS__UNKNOWN;
}

struct ProtobufCMessage *dra_message_health(const json_t *health, int64_t time_s)
{
	Dra__NodeWatchResourcesResponse *message = MESSAGE_NEW(
		Dra__NodeWatchResourcesResponse, dra__node_watch_resources_response__init);
	const json_t *device;
	size_t i;

	if (json_array_size(health) == 0)
		return &message->base;
	message->devices = mem_calloc(json_array_size(health), sizeof(void *));
	json_array_foreach (health, i, device) {
		Dra__DeviceHealth *entry = MESSAGE_NEW(Dra__DeviceHealth, dra__device_health__init);

		entry->device = MESSAGE_NEW(Dra__DeviceIdentifier, dra__device_identifier__init);
		entry->device->pool_name = text_of(json_at(device, "pool"));
		entry->device->device_name = text_of(json_at(device, "device"));
		entry->health = status_of(device);
		entry->last_updated_time = time_s;
		entry->message = text_of(json_at(device, "message"));
		message->devices[message->n_devices++] = entry;
	}
	return &message->base;
}

void dra_message_free(struct ProtobufCMessage *message)
{
	grpc_message_free(message);
}

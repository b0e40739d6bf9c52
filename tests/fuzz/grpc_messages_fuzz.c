// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet's messages. First byte: which one. What was read can be written, and read again as
 * the same.
 */
#include <stdint.h>

#include "lib/grpc/frame.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/message.h"
#include "lib/grpc/proto/device_plugin.pb-c.h"
#include "lib/grpc/proto/plugin_registration.pb-c.h"
#include "lib/grpc/proto/pod_resources.pb-c.h"
#include "tests/fuzz/fuzz.h"

static const ProtobufCMessageDescriptor *const types[] = {
	&device_plugin__register_request__descriptor,
	&device_plugin__list_and_watch_response__descriptor,
	&device_plugin__preferred_allocation_request__descriptor,
	&device_plugin__preferred_allocation_response__descriptor,
	&device_plugin__allocate_request__descriptor,
	&device_plugin__allocate_response__descriptor,
	&device_plugin__pre_start_container_request__descriptor,
	&device_plugin__device_plugin_options__descriptor,
	&device_plugin__empty__descriptor,
	&plugin_registration__plugin_info__descriptor,
	&plugin_registration__registration_status__descriptor,
	&pod_resources__list_pod_resources_response__descriptor,
	&pod_resources__allocatable_resources_response__descriptor,
	&pod_resources__get_pod_resources_response__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_strbuf struct strbuf first = {0}, second = {0};
	const ProtobufCMessageDescriptor *type;
	struct ProtobufCMessage *message;
	struct grpc_status status = {0};

	if (size < 1)
		return 0;
	type = types[data[0] % ARRAY_LEN(types)];
	message = grpc_message_decode(type, data + 1, size - 1, size, &status);
	if (!message) {
		if (status.code != GRPC_INTERNAL && status.code != GRPC_RESOURCE_EXHAUSTED)
			abort();
		return 0;
	}
	if (grpc_message_encode(message, GRPC_MESSAGE_MAX, &first, &status) < 0)
		abort();
	grpc_message_free(message);

	message = grpc_message_decode(type, first.data + GRPC_FRAME_HEAD,
				      first.len - GRPC_FRAME_HEAD, GRPC_MESSAGE_MAX, &status);
	if (!message || grpc_message_encode(message, GRPC_MESSAGE_MAX, &second, &status) < 0)
		abort();
	grpc_message_free(message);
	if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
		abort();
	return 0;
}

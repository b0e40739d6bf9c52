// SPDX-License-Identifier: Apache-2.0
/* The kubelet's messages made of our documents. Pure. */
#pragma once

#include <jansson.h>

#include "lib/grpc/proto/device_plugin.pb-c.h"

/* Each returns new: grpc_message_free(&message->base). */

/* devices: "devices" of a resource (pools.h). */
DevicePlugin__ListAndWatchResponse *plugin_message_list(const json_t *devices);
/* allocation: what allocate_devices() returned (allocate.h). */
DevicePlugin__ContainerAllocateResponse *plugin_message_allocation(const json_t *allocation);
DevicePlugin__ContainerPreferredAllocationResponse *plugin_message_preferred(const char *const *ids,
									     size_t n);

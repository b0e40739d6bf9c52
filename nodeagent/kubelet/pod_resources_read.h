// SPDX-License-Identifier: Apache-2.0
/* The kubelet's list of pods as a document. Pure. */
#pragma once

#include <jansson.h>

#include "lib/grpc/proto/pod_resources.pb-c.h"

/*
 * Returns new: {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}}, as pod_resources.h has it.
 * Whatever the number of entries in which a kubelet names one resource, and their order: equal
 * contents give equal documents. Of several containers that have a device (init containers pass
 * theirs on), the one whose text is least is named.
 */
json_t *pod_resources_read(const PodResources__ListPodResourcesResponse *list);

// SPDX-License-Identifier: Apache-2.0
/* The devices that the kubelet has given a pod, dealt out to its networks. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All devices of one resource that a pod has, as a new array of texts: container by container as
 * the pod's spec lists them, init containers last, by PCI address within a container, each once (an
 * init container's device may be given to a container again). So networks get the same devices
 * however the kubelet sorts its answer.
 *
 * devices: [{"container", "resource", "ids": [text]}].
 */
json_t *devices_of(const json_t *pod, const json_t *devices, const char *resource);

/*
 * Does the kubelet name more devices of a resource for a container than that asks for? Then some
 * are another pod's of that name, which ends, and nothing tells which. *ret: which container it is,
 * how many it has, how many it asks for. A container of which `resources` is absent may ask for any
 * number.
 */
struct devices_beyond {
	const char *container; /* borrowed from the pod */
	size_t named;
	int64_t asked;
};
bool devices_beyond(const json_t *pod, const json_t *devices, const char *resource,
		    struct devices_beyond *ret);

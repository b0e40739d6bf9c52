// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of host-device: an interface of the node becomes the pod's, and comes back. Pure.
 *
 * Compatible with the plugin of this name of containernetworking-plugins 1.x
 * (github.com/containernetworking/plugins, plugins/main/host-device): its keys, its result, and the
 * alias that keeps the name which the interface had on the node.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

struct host_device_config {
	json_t *folded; /* what the texts are borrowed from */
	/*
	 * One of these is set: a name, a path below /sys/devices, a PCI address or an auxiliary
	 * device.
	 */
	const char *device, *path, *id;
	char mac[18]; /* or this one, else "" */
	bool has_ipam;
};

/* ERR_INVALID "BadField" names the key and what it must be. */
int host_device_config_read(const json_t *config, struct host_device_config *ret, struct err *err);
void host_device_config_done(struct host_device_config *config);
#define auto_host_device_config auto_call(host_device_config_done)

/*
 * May a pod, or a bond, have this link of the node? type: the plugin, for the message. host: links,
 * addresses and routes of the node (look.h).
 * ERR_INVALID "NodeInterface" says how the node uses it.
 */
int host_device_check(const char *type, const json_t *link, const json_t *host, struct err *err);

/* Append the steps up to an interface of this name in the pod, which is up. */
void host_device_plan(const json_t *link, const char *ifname, json_t *steps);

/* What DEL needs (vf_return.h), new. host: links of the node. */
json_t *host_device_state(const json_t *link, const json_t *host, bool ipam);

/*
 * The link of the pod, or of the node, that `saved` is about, borrowed; NULL: it is not there. Of a
 * device with several interfaces only the one with the number, alias or name that was saved.
 * has_moved: the pod's namespace exists, and the interface has left it.
 */
const json_t *host_device_in_pod(const json_t *pod, const json_t *saved);
const json_t *host_device_on_node(const json_t *host, const json_t *saved, bool has_moved);

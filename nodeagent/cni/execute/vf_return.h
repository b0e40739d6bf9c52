// SPDX-License-Identifier: Apache-2.0
/*
 * What plugins for VFs have in common: settings of the PF, and the way of the interface back from
 * its pod to the node.
 *
 * saved: {"device": PCI address, "name": its name on the node, "index": its number there}; of
 * host-device also {"aliased": its alias in the pod is its name, and stays that on the way back,
 * "shares": its device has others}, "index" is that in the pod then.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/plugins.h"

/*
 * Find what `saved` is about in the living pod. *ret_look is new; *ret, borrowed from it, stays as
 * it is when the interface is not there.
 */
int vf_find_in_pod(const struct plugin_call *call, const json_t *saved, json_t **ret_look,
		   const json_t **ret, struct err *err);

/*
 * May a pod have the function, or does the node use it: as a vDPA device, or by its interface as
 * host_device_check() has it? type: the plugin, for the message. link: its interface on the node;
 * NULL: it has none. host: the same node's files.
 * ERR_INVALID "NodeInterface" says how; other errors as of netns_observe().
 */
int vf_check_node(const struct plugin_call *call, const char *type, struct host *host,
		  const char *address, const json_t *link, struct err *err);

/*
 * What the PF says of the VF: *ret is new, as of sriov.h. PFs that say nothing (some do in
 * switchdev mode) are enough where nothing is to be set: no setting is wanted, or VLAN 0 and rate
 * 0, which each network of a SpiderMultusConfig says. Errors as of netns_observe_vf().
 */
int vf_settings(const struct plugin_call *call, const struct device *device, const json_t *wanted,
		json_t **ret, struct err *err);

/*
 * Down, and back under its old name, or a spare one where that is taken. Nothing to do is no error.
 */
int vf_bring_back(const struct plugin_call *call, const json_t *saved, struct err *err);

/* Has no interface this name, as an alternative one neither? The one with number `but` may. */
bool vf_name_is_free(struct netns *ns, const char *name, int64_t but);

// SPDX-License-Identifier: Apache-2.0
/*
 * What a coordinator has to find out on the network before its first change: does another host have
 * an address of the NIC, does the gateway answer? Of all NICs of a pod at once, since each of these
 * questions is a wait.
 *
 * The finding of a NIC: {"conflicts": [{"ip", "mac"}], "error": {…} (lib/json/ask.h)}; empty where
 * all is well, or its configuration asks for nothing.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/cni/plan/coordinator_config.h"
#include "nodeagent/netlink/netns.h"

/* One NIC, new. look: of the namespace (nodeagent/cni/plan/look.h). */
json_t *coordinator_detect_one(struct netns *pod, const char *ifname,
			       const struct coordinator_config *config, const json_t *look);

/*
 * {interface: its finding}, new, of nics: [{"ifname", "config": stdin of its coordinator}]. Left
 * out, for its own call to find out or to refuse: a NIC that is down, is not there or has no
 * address, and a configuration that asks for nothing or cannot be read. netns: descriptor of the
 * pod's namespace, of or for the list (netns_keep()).
 */
json_t *coordinator_detect(struct netns **namespaces, int netns, const json_t *nics,
			   const json_t *settings);

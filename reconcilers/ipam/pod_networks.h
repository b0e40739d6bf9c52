// SPDX-License-Identifier: Apache-2.0
/*
 * The networks of a pod as its node names and numbers their interfaces: one place for what is
 * foreseen, filtered, and mirrored.
 *
 * Names without a namespace follow the node's rule (nodeagent/cni/plan/delegates.h): those of the
 * annotation are in the pod's, that of default-network in Multus' namespace. Which one that is says
 * the setting; without it Multus' own default, and the ConfigMap's, which Spiderpool's chart sets.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "reconcilers/ipam/candidates.h"

/*
 * A new array of elements as of networks_parse(). The first is the default network's, with the
 * interface "eth0", or null where it is not known; "elsewhere" is another namespace in which it may
 * be, where its own does not have it. Then those that each pod of the namespace has
 * (settings), then the annotation's, "net1" and so on by their place. NULL with err of
 * networks_parse(), naming the annotation.
 */
json_t *pod_networks(const json_t *pod, const struct ipam_settings *settings, struct err *err);

/* The other key of such an element, as network_key(); NULL: it has none. */
char *pod_network_other_key(const json_t *network);

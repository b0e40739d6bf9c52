// SPDX-License-Identifier: Apache-2.0
/* What the node's meta plugin checks before it calls a pod's first plugin. Pure. */
#pragma once

#include <jansson.h>

#include "reconcilers/ipam/candidates.h"

/*
 * Append a link that is broken when the meta plugin would refuse the pod: "devices" for those, else
 * "networks": an interface that two networks want, configurations, default routes. Nothing when it
 * would go on. networks: as of pod_networks(); served: names of resources that nodes of the world
 * have, or should have.
 */
void chain_add_attaching(json_t *chain, const json_t *world, const json_t *pod,
			 const json_t *networks, const json_t *served,
			 const struct ipam_settings *settings);

/* How many of an extended resource the pod's containers ask for together. */
int64_t pod_requests(const json_t *pod, const char *resource);

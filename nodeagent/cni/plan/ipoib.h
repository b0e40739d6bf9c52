// SPDX-License-Identifier: Apache-2.0
/*
 * The ipoib plugin's decisions: a child of an IPoIB interface of the node, in the pod. Pure.
 *
 * Compatible with ipoib-cni (github.com/mellanox/ipoib-cni). Pods of one node reach each other by
 * such interfaces from Linux 5.8 on.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * Append the steps for a child of `master` (a link, look.h; NULL when the node has none of the
 * configuration's name), made under the name `spare` and moved into the pod as ifname; not up yet.
 *
 * ERR_INVALID "BadField"  master is missing or no IPoIB interface, mtu is more than it has, or
 *                         IPAM is dhcp, which needs Ethernet
 */
int ipoib_plan(const json_t *config, const json_t *master, const char *spare, const char *ifname,
	       json_t *steps, struct err *err);

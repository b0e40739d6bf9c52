// SPDX-License-Identifier: Apache-2.0
/*
 * What the cluster says to the coordinator plugin. Pure.
 *
 * Source: Spiderpool 1.2, GET /v1/coordinator/config of its agent: the members of a
 * SpiderCoordinator's spec as they are, its status' address ranges, and the pod's own NIC for the
 * default route, which goes before. There it is the first of an unordered list; here the one called
 * "default", else the first by name.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

#define SETTINGS_DEFAULT_ROUTE_NIC "ipam.spidernet.io/default-route-nic"
/*
 * By KubeVirt, on the pod that a virtual machine migrates to. The pod that it comes from answers
 * for its addresses until then.
 */
#define SETTINGS_MIGRATION "kubevirt.io/migrationJobName"

/*
 * coordinators: the items of a list; pod: may be NULL. Returns new {"mode", "tunePodRoutes",
 * "overlayPodCIDR", "serviceCIDR", …, "migrating": true, if it is}, or NULL with err:
 *
 *	ERR_TRANSIENT "NoCoordinator"       there is no SpiderCoordinator
 *	ERR_TRANSIENT "CoordinatorNotReady" its status does not say yet which ranges the cluster has
 */
json_t *settings_of(const json_t *coordinators, const json_t *pod, struct err *err);

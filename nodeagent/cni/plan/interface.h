// SPDX-License-Identifier: Apache-2.0
/*
 * An interface gets what IPAM said: addresses and routes. Pure.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_PLAN_INTERFACE_H
#define ORBWEAVER_NODEAGENT_CNI_PLAN_INTERFACE_H

#include <jansson.h>

#include "lib/base/err.h"

/*
 * Append steps (steps.h) for a result of result_read(), whose addresses are all for this interface
 * of the pod, which is up afterwards. Routes without a gateway take that of the first address of
 * their family; where there is none they are on link.
 */
void interface_plan(const char *ifname, const json_t *result, json_t *steps);

/*
 * Put an IPAM result into the plugin's own, whose interface 0 is the one: addresses, routes, DNS.
 * ERR_INVALID "BadResult" when there is no address in it.
 */
int interface_adopt(json_t *result, const json_t *from_ipam, struct err *err);

#endif

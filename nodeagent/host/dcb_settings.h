// SPDX-License-Identifier: Apache-2.0
/*
 * Settings that are DCB (nodeagent/model/nic_settings.h): trafficClasses, pfc, buffers,
 * dscpToPriority, trust. Reading them off an answer is pure.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/netlink/dcb.h"

/*
 * The value, new. NULL: the driver does not have it. What a driver has may be nothing that
 * nic_setting_check() takes: a credit-based shaper, shares that do not add up.
 */
json_t *dcb_setting_read(const struct dcb *dcb, const char *name);

/*
 * Set one that was read of `now`, which is changed; what was not asked for stays. ERR_INVALID
 * "SettingOutOfRange": more than the driver offers; others as of dcb.h, EINVAL and others also
 * where the NIC's firmware manages DCB, which the text then says.
 */
int dcb_setting_write(struct netlink *netlink, const char *interface, struct dcb *now,
		      const char *name, const json_t *value, struct err *err);

/* Arrays of priorities, and bits. */
json_t *dcb_priorities(unsigned int bits);
unsigned int dcb_priority_bits(const json_t *priorities);

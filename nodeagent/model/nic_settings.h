// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of a NIC that RoCE depends on: names, values in one form each, and how values compare.
 * What each means, and which interface of the kernel has it, is in docs/node-agent.md. Pure.
 *
 *   pauseFrames       bool: IEEE 802.3x pause frames, received and sent; where one of both is on,
 *                     {"rx": true, "tx": false}
 *   dscpToPriority    {"26": 3}: all DSCPs with a priority of their own; {}: none
 *   trust             "pcp", "dscp": what gives a received packet its priority
 *   trafficClasses    [{"priorities": [0, 1], "bandwidth": 50}, …], by number of the class. Each of
 *                     8 priorities is in one of them; besides the priorities a class has either
 *                     "bandwidth" in percent, which add up to 100, or "strict": true, or "vendor":
 *                     true (a transmission selection of the driver's own, IEEE 802.1Q 8.6.8). The
 *                     last has priorities or bandwidth
 *   pfc               [3]: priorities with priority flow control, ascending
 *   buffers           {"sizes": [8 of bytes], "priorities": [8 of buffers, by priority]}
 *   ecn               [3]: priorities with RoCE congestion control, both points, ascending
 *   cnp               {"dscp": 48, "priority": 6}: of congestion notifications; one at least
 *   rdmaCmRoceMode    "v1", "v2": of connections that rdma_cm makes
 *   rdmaCmTos         0 … 255, the same
 *   trafficClass      0 … 255: of all RoCE packets; -1: what each program asks for
 *   rings             {"rx": n, "tx": n}: descriptors; one at least
 *   channels          {"combined": n}
 *   maxReadRequest    128, 256, … 4096 bytes: of PCI Express
 *   relaxedOrdering   bool: of PCI Express
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

enum {
	NIC_SETTING_PRIORITIES = 8, /* of IEEE 802.1Q; as many traffic classes and buffers */
	NIC_SETTING_DSCPS = 64,
};

struct nic_setting {
	const char *name;
	const char *right; /* what a value must be, for messages */
	/* Which drivers take the link down for a change: nic_setting_disturbs(). */
	enum { DISTURBS_NONE, DISTURBS, DISTURBS_BUT_MLX5 } disturbs;
	bool in_part; /* of an object; members that are not named stay as they are */
};

/*
 * All, in the order in which they are to be set: what one of them implies comes before it, and what
 * a driver derives from it comes behind.
 */
const struct nic_setting *nic_settings(size_t *ret_n);
/* NULL: there is none, also for a name of NULL. */
const struct nic_setting *nic_setting_find(const char *name);

/*
 * Does this driver (NULL: unknown) take the link down for a moment when it changes the setting,
 * and with it that of all VFs? Sources: docs/fabric.md. The name is one of the table.
 */
bool nic_setting_disturbs(const char *name, const char *driver);

/*
 * Is it a value of this setting, in the form above? ERR_INVALID "BadSetting" `pfc: [9], must be …`;
 * a NULL value is missing.
 */
int nic_setting_check(const char *name, const json_t *value, struct err *err);

/*
 * An object of settings by name, each of them right, and none that excludes another: pause frames
 * and PFC, trust in PCP and priorities of DSCPs. Errors as above.
 */
int nic_settings_check(const json_t *settings, struct err *err);

/* Is what is wanted so? Of those in_part only members that are wanted count. NULL is never. */
bool nic_setting_is_met(const char *name, const json_t *wanted, const json_t *is);

/*
 * What is to be done to the settings of a PF. wanted: by name, or NULL; found: those from before
 * our first change, which are put back when they are not wanted any more; now: those that can be
 * read. Takes out of found what is not to be put back: not wanted and so already, or not a value at
 * all. Returns new, in the order of the table:
 *
 *	[{"setting": "pfc", "value": [3], "is": [], "wanted": true, "takesLink": true,
 *	  "found": {"pfc": []}}]
 *
 * wanted: false where the value is of found; else found gets the members that it lacks. Trust is
 * put back by the entries of dscpToPriority, which stay while trust is wanted: drivers switch by
 * them. NULL with err as of nic_settings_check(wanted).
 */
json_t *nic_settings_due(const json_t *wanted, json_t *found, const json_t *now, const char *driver,
			 struct err *err);

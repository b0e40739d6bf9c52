// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of nodeagent/model/nic_settings.h on a PF: DCB and ethtool by netlink, configfs of
 * rdma_cm, PCI Express, and what NVIDIA's own driver has in sysfs.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/host/host.h"

/* What became of reading, each an object by name of the setting; a setting is in one of them. */
struct pf_settings {
	json_t *values;
	json_t *unsupported; /* what driver or kernel answered, in words */
	json_t *failed;      /* why it is not known */
};

/*
 * Read one setting, or with `only` NULL all, into the three, which are the caller's. Of a PF whose
 * interface is not in our network namespace: none. The folder of an RDMA device in configfs is made
 * for a moment where it is missing: without it the kernel shows nothing, and it changes nothing
 * else.
 */
void pf_settings_read(struct host *host, const char *pf, const char *only,
		      const struct pf_settings *ret);

/*
 * Set one that can be read, to a checked value. What was not asked for stays as it is; what came of
 * it has to be read.
 *
 *   ERR_INVALID "SettingOutOfRange"  more than the driver offers, which the text names
 *   ERR_HOST "SettingUnsupported"    it cannot be read
 *   others                           with errno, as of the kernel's interface
 */
int pf_settings_write(struct host *host, const char *pf, const char *name, const json_t *value,
		      struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * devlink: the mode of a NIC's embedded switch, its health, and what its firmware is set to
 * (Documentation/networking/devlink).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nodeagent/host/host.h"

enum devlink_mode {
	DEVLINK_MODE_UNKNOWN = -1,
	DEVLINK_MODE_LEGACY, /* numbers of the kernel */
	DEVLINK_MODE_SWITCHDEV,
};

const char *devlink_mode_name(enum devlink_mode mode);
enum devlink_mode devlink_mode_of(const char *name);

/*
 * PCI addresses of all functions with a devlink instance; an array of strings, new. Empty when the
 * kernel has no devlink.
 */
int devlink_list(struct host *host, json_t **ret, struct err *err);
json_t *devlink_decode_list(const void *bytes, size_t len);

/*
 * Health reporters in error, {"0000:3b:00.0": ["fw_fatal"]}, new; functions without one are left
 * out (Documentation/networking/devlink/devlink-health.rst). Empty when the kernel has no such
 * reporters. To counts, unless NULL, is added how many errors each reporter has seen,
 * {"0000:3b:00.0": {"fw_fatal": 2, "tx": 0}}.
 */
int devlink_list_errors(struct host *host, json_t *counts, json_t **ret, struct err *err);
json_t *devlink_decode_errors(const void *bytes, size_t len, json_t *counts);

/* EOPNOTSUPP: no switch. ENODEV: no devlink instance. */
int devlink_get_mode(struct host *host, const char *address, enum devlink_mode *ret,
		     struct err *err);
enum devlink_mode devlink_decode_mode(const void *bytes, size_t len);
int devlink_set_mode(struct host *host, const char *address, enum devlink_mode mode,
		     struct err *err);

/*
 * A setting of the firmware, a flag or a number, that outlasts reboots: the permanent value of one
 * of the driver's parameters (Documentation/networking/devlink/devlink-params.rst).
 */
struct devlink_setting {
	bool is_flag;
	uint32_t value; /* of a flag 0 or 1 */
};

/* EINVAL, EOPNOTSUPP or ENODEV: the driver does not offer it. */
int devlink_get_setting(struct host *host, const char *address, const char *name,
			struct devlink_setting *ret, struct err *err);
/* False: there is no permanent value that is a flag or a number. */
bool devlink_decode_setting(const void *bytes, size_t len, struct devlink_setting *ret);
int devlink_set_setting(struct host *host, const char *address, const char *name,
			const struct devlink_setting *setting, struct err *err);
/*
 * Reset the card, so that its firmware takes what was set
 * (Documentation/networking/devlink/devlink-reload.rst, fw_activate). EOPNOTSUPP: the driver
 * cannot.
 */
int devlink_activate(struct host *host, const char *address, struct err *err);

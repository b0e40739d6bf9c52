/*
 * devlink: the mode of a NIC's embedded switch (Documentation/networking/devlink).
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_DEVLINK_H
#define ORBWEAVER_NODEAGENT_HOST_DEVLINK_H

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
 * reporters.
 */
int devlink_list_errors(struct host *host, json_t **ret, struct err *err);
json_t *devlink_decode_errors(const void *bytes, size_t len);

/* EOPNOTSUPP: no switch. ENODEV: no devlink instance. */
int devlink_get_mode(struct host *host, const char *address, enum devlink_mode *ret,
		     struct err *err);
enum devlink_mode devlink_decode_mode(const void *bytes, size_t len);
int devlink_set_mode(struct host *host, const char *address, enum devlink_mode mode,
		     struct err *err);

/* Number of a generic netlink family; 0 when the answer has none. */
uint16_t devlink_decode_family(const void *bytes, size_t len);

#endif

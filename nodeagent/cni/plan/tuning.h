// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of tuning: sysctls of the pod's network namespace, and settings of an interface
 * that a plugin before made. Pure.
 *
 * Compatible with the plugin of this name of containernetworking-plugins 1.x
 * (github.com/containernetworking/plugins, plugins/meta/tuning): its keys, its file of sysctls that
 * are allowed, its result.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* The host's file; without it all sysctls of the namespace are allowed. At most so many bytes. */
#define TUNING_ALLOW_LIST     "etc/cni/tuning/allowlist.conf"
#define TUNING_ALLOW_LIST_MAX (64 << 10)

/* Sysctls of one configuration. */
#define TUNING_SYSCTLS_MAX 256

struct tuning_config {
	json_t *sysctls; /* {path below /proc/sys: value} */
	json_t *names;   /* {path: its name in the configuration} */
	json_t *link;    /* what is set: members of a step "link" (steps.h) but mac */
	char mac[18];    /* "": as it is */
};

/*
 * ifname: for IFNAME in names; args: CNI_ARGS, or NULL. ERR_INVALID "BadField" names the key and
 * what it must be.
 */
int tuning_config_read(const json_t *config, const char *args, const char *ifname,
		       struct tuning_config *ret, struct err *err);
void tuning_config_done(struct tuning_config *config);
#define auto_tuning_config auto_call(tuning_config_done)

/*
 * Does the text of the file, of one extended regular expression (POSIX) a line, allow all sysctls?
 * NULL: there is no file. ERR_INVALID "BadField" names the sysctl, or the line.
 */
int tuning_check_allowed(const struct tuning_config *config, const char *text, struct err *err);

/*
 * Append the steps (steps.h), with what was before. link: the interface as of look.h; sysctls:
 * {path: value} as they are, without those that cannot be read.
 */
void tuning_plan(const struct tuning_config *config, const json_t *link, const json_t *sysctls,
		 json_t *steps);

/*
 * What sets all as it was, new: these steps back, and those of an earlier tuning of the interface,
 * or NULL. Of what both change the value before the earlier one counts.
 */
json_t *tuning_undo(const json_t *steps, const json_t *earlier);

/* The MAC of the interface in a result of the plugins before. */
void tuning_put_mac(const struct tuning_config *config, const char *ifname, json_t *result);

/* Is all as ADD set it? ERR_HOST "NotAsAdded": the text has what is different. */
int tuning_check(const struct tuning_config *config, const json_t *link, const json_t *sysctls,
		 struct err *err);

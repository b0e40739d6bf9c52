// SPDX-License-Identifier: Apache-2.0
/* Errors as the CNI specification wants them: one place that knows its codes. Pure. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Codes of SPEC.md 1.1.0, section "Error", that we answer with; 100 and up are ours. */
enum cni_code {
	CNI_INCOMPATIBLE_VERSION = 1, /* "BadCniVersion" */
	CNI_UNSUPPORTED_FIELD = 2,    /* "UnsupportedField" */
	CNI_BAD_ENVIRONMENT = 4,      /* "BadEnvironment" */
	CNI_IO = 5,                   /* what else the machine refused */
	CNI_DECODE = 6,               /* "BadJson", "BadResult" */
	CNI_BAD_CONFIG = 7,           /* what else is wrong input */
	CNI_BAD_NETNS = 8,            /* "BadNetns" */
	CNI_TRY_LATER = 11,           /* ERR_TRANSIENT, ERR_CONFLICT */
	CNI_DEVICE_BUSY = 100,        /* "DeviceBusy": another pod has it */
	CNI_BUG = 999,
};

enum cni_code cni_error_code(const struct err *err);

/*
 * Return new the object for stdout: {"cniVersion", "code", "msg", "details"}; details is the
 * reason. `version` may be NULL: none then.
 *
 * containerd takes an error of DEL whose text has "not found" or "no such file or directory" for a
 * success (go-cni); both are put in other words.
 */
json_t *cni_error(const char *version, const struct err *err);

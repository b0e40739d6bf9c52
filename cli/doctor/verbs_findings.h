// SPDX-License-Identifier: Apache-2.0
/*
 * What became of the calls on an RDMA device (cli/verbs/verbs.h), as findings with cause and
 * remedy. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/verbs/verbs.h"

/* Where programs of this kind run. */
struct verbs_place {
	int64_t memlock;       /* bytes that it may lock, RLIMIT_MEMLOCK; -1: no limit */
	bool may_lock;         /* CAP_IPC_LOCK: the limit does not count */
	const char *rdma_mode; /* "shared", "exclusive"; NULL: not known */
	bool has_devices;      /* sysfs shows one in this network namespace */
	bool has_files;        /* /dev/infiniband has one of a device */
};

/* Add what there is to say of one device; has_file: its own is in /dev/infiniband. */
void verbs_findings_add(json_t *findings, const struct verbs_place *place, const char *device,
			bool has_file, const struct verbs_report *report);

/* Of no device, or of one that is named and not in this network namespace; device may be NULL. */
void verbs_findings_none(json_t *findings, const struct verbs_place *place, const char *device);

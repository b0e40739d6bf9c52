// SPDX-License-Identifier: Apache-2.0
/*
 * The record of an attachment on the disk, one of its sandbox's (state/sandboxes.h). In a worker:
 * blocks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/worker/attachment.h"

/* {0} changes nothing, but makes the record. All is borrowed. */
struct record_change {
	const char *phase;   /* NULL: as it is */
	const json_t *saved; /* with has_saved: NULL removes it */
	bool has_saved;
	const json_t *result; /* NULL: as it is */
	bool is_gone;         /* remove it */
	bool must_exist;      /* change nothing when there is none */
};

/*
 * Change the attachment's record, and make it where there is none. An attachment that is not going
 * gives it its configuration and environment. sync: on the disk when it returns, unless the power
 * takes along all that it is about. Errors as of sandbox_change(), and ERR_INVALID
 * "SandboxTooLarge": DEL would need more of this network than is kept.
 */
int attachment_record_put(const struct attachment *a, struct record_change what, bool sync,
			  struct err *err);

/* *ret: new, NULL: there is none. -1: it cannot be known (sandbox_load). */
int attachment_record_load(const struct attachment *a, json_t **ret, struct err *err);

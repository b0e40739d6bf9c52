// SPDX-License-Identifier: Apache-2.0
/*
 * What is remembered of claims that are prepared. Pure.
 *
 * The state is a document that is on the disk before a claim is answered:
 *
 *	{"claims": {UID: {
 *		"namespace", "name", "pod",
 *		"boot": the id of the boot that "cdi" is right for,
 *		"devices": [{"request", "pool", "device": as in the slice, "resource", "id": as
 *			in the pools; absent for a shared one, "cdi": [id, …]}],
 *		"cdi": the content of its CDI file (container-device-interface, SPEC.md)}}}
 *
 * Numbers of device files change with a boot, CDI ids do not: the file is made again then, when the
 * devices are there again.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/* Where it is, below the host's root, and in which file. */
#define DRA_STATE_FOLDER "var/lib/orbweaver/dra"
#define DRA_STATE_FILE   "claims.json"

enum {
	/* More than a kubelet has pods. */
	DRA_CLAIMS_MAX = 4096,
	DRA_UID_MAX = 64,
	/* Bytes of the file: these claims, of the usual size. */
	DRA_STATE_MAX = 8 << 20,
};

/* A UID names files: letters, digits and dashes, and not too many. */
bool dra_uid_is_good(const char *uid);

/* Whose an entry is, "ns/pod/claim", new. */
char *dra_holder(const json_t *entry);

/*
 * Devices of claims for evidence of use: {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/claim"}}, new.
 */
json_t *dra_prepared(const json_t *state);

/* Is it a state that we may have written? 0, or -1 with err ERR_HOST "ClaimsDamaged". */
int dra_state_check(const json_t *state, struct err *err);

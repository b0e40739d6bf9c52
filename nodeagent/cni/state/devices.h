// SPDX-License-Identifier: Apache-2.0
/*
 * Which sandbox a device belongs to: one file per device below the state's folder,
 * devices/ADDRESS.json, of {"container": "…", "ifname": "…", "boot": "…", "before": {…}}; `before`
 * is the owner whose DEL has not come yet. An owner of an earlier boot owns nothing: the device was
 * made anew since then, and there is nothing of the sandbox to put back. One without "boot", as
 * first versions wrote it, may be of this boot.
 *
 * The kubelet may give a device to the next pod before the runtime has sent the DEL of the last
 * one, whose sandbox is gone without it: a sandbox that is not the owner any more must leave the
 * device alone. Whoever changes a device, or asks before it does, holds the lock of it; the lock
 * ends with the process. All calls block.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct sandboxes; /* sandboxes.h: the folder, here and below */

/* The device that a configuration names, borrowed; NULL: none, or no PCI address. */
const char *device_of(const json_t *config);

/*
 * A descriptor that holds the lock until it is closed; -1 with "DeviceNotLocked": ERR_HOST, or
 * ERR_TRANSIENT when another process has had it for all of wait_ms. A driver that hangs keeps its
 * process, and the lock, for ever.
 */
int device_lock(struct sandboxes *state, const char *address, int64_t wait_ms, struct err *err);

/*
 * Make the sandbox the owner. On the disk when it returns. ERR_HOST "DeviceNotClaimed": also where
 * the owner before cannot be known now.
 */
int device_claim(struct sandboxes *state, const char *address, const char *container,
		 const char *ifname, struct err *err);

/*
 * *ret: the container that has it, new; NULL: none. Of a file that is no JSON, the one whose record
 * has something to put back on the device in this boot; of several, one that is not being taken
 * down. It is logged. -1 with err ERR_HOST "DeviceNotClaimed": it
 * cannot be known now.
 */
int device_owner(struct sandboxes *state, const char *address, char **ret, struct err *err);

/*
 * 1: it is this sandbox's, or nobody's. 0: another one's; what this sandbox had before a boot is
 * not its own any more. -1 with ERR_TRANSIENT "DeviceNotClaimed": it cannot be known now.
 */
int device_is_owned(struct sandboxes *state, const char *address, const char *container,
		    struct err *err);

/*
 * Give it up; the owner before is the owner again if it has a file still. Another's is left alone.
 */
void device_release(struct sandboxes *state, const char *address, const char *container);

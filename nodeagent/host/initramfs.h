// SPDX-License-Identifier: Apache-2.0
/*
 * What the initramfs of the running kernel says about modules: it has its own copy of modprobe.d,
 * and a module that it loads is never configured by the one on disk.
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_INITRAMFS_H
#define ORBWEAVER_NODEAGENT_HOST_INITRAMFS_H

#include <stdbool.h>
#include <stdio.h>

#include "nodeagent/host/host.h"

/* Below the root: what was read last, and of which file (host_keep_answers). */
#define INITRAMFS_ANSWER HOST_STATE_FOLDER "/initramfs.json"

/*
 * New, or NULL when there is no initramfs that we can read. Unpacking one takes seconds: after
 * host_keep_answers() only one that has changed is unpacked again.
 *
 *   file      "/boot/initrd.img-6.1.0"
 *   carries   whether ib_core is in it
 *   lists     whether a list of modules to load names ib_core or a module that needs it
 *   modprobe  contents of its modprobe.d by name, { "x.conf": text }
 */
json_t *initramfs_look(struct host *host);

/*
 * Read archives of format "newc" (Documentation/driver-api/early-userspace/buffer-format.rst), one
 * behind the other, into an object like the above without `file`. Stops at the first byte that is
 * no part of one, and leaves `in` there: what follows is the end or a compressed archive. False
 * when an archive breaks off.
 */
bool initramfs_scan(FILE *in, json_t *facts);

#endif

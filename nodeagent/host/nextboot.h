// SPDX-License-Identifier: Apache-2.0
/*
 * In which mode the RDMA subsystem will start at the next boot, and which file says so
 * (drivers/infiniband/core/device.c, rdma_compatdev_set()). The initramfs is not read: when it
 * loads ib_core with other options, the mode after the boot shows it.
 */
#pragma once

#include <stdbool.h>

#include "nodeagent/host/host.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/host/sysfs.h"

/* The object rdma.netnsModeNextBoot of the observed document, new. */
json_t *next_boot_observe(const struct host *host);

/* Boot id of the running system; "" when it cannot be read. */
void next_boot_id(const struct host *host, struct sysfs_text *ret);

/* Write and remove our own file. Writing nothing when it says so already. */
int next_boot_write(struct host *host, enum rdma_mode mode, bool *ret_changed, struct err *err);
int next_boot_remove(struct host *host, bool *ret_changed, struct err *err);

/* The last answer of a modprobe.d text, or of a kernel command line. Pure. */
enum rdma_mode next_boot_parse_modprobe(const char *text);
enum rdma_mode next_boot_parse_command_line(const char *text);
/* Has a modprobe.d text a command of its own for loading ib_core? Options then may not count. */
bool next_boot_parse_command(const char *text);

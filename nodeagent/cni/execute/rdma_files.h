// SPDX-License-Identifier: Apache-2.0
/*
 * Folders with the character devices of RDMA devices (nodeagent/model/rdma_folder.h), kept as the
 * kernel has them now.
 *
 * The files below a function in /sys are there whatever namespace its RDMA device is in. A function
 * without any has no folder: a container that needs it is not made, and tried again.
 */
#pragma once

#include "lib/base/err.h"
#include "nodeagent/host/host.h"

/* Of one function. ERR_HOST "RdmaFilesStale". */
int rdma_files_keep(const struct host *host, const char *address, struct err *err);

/* Of all; of those that fail the first is reported. */
int rdma_files_keep_all(const struct host *host, struct err *err);

// SPDX-License-Identifier: Apache-2.0
/* Which RDMA devices and GIDs a pod has, once its interfaces are up. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "nodeagent/host/host.h"

/* The kernel makes GIDs after the address, in a work queue: so long they are waited for. */
enum { RDMA_LOOK_MS = 1000 };

/*
 * *ret_rows: of rdma_rows() (nodeagent/cni/plan), new, with "function" and "pf", PCI addresses,
 * where they are known. netns: descriptor of the pod's namespace. In RDMA mode exclusive GIDs are
 * out of sight, and there is nothing to wait for. Errors as of netns_open() and netlink_ask().
 */
int rdma_look(int netns, struct host *host, json_t **ret_rows, struct err *err);

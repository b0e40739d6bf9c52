// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps the folders with device files of RDMA devices right (nodeagent/cni/execute/rdma_files.h)
 * whenever the kernel says that a device came, went or moved.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_SERVER_RDMA_KEEPER_H
#define ORBWEAVER_NODEAGENT_CNI_SERVER_RDMA_KEEPER_H

#include "lib/loop/loop.h"

struct rdma_keeper;

/* root: of the host; borrowed. NULL: the kernel tells nothing here, which is logged. */
struct rdma_keeper *rdma_keeper_new(struct loop *loop, int root);
/* Accepts NULL. */
void rdma_keeper_free(struct rdma_keeper *keeper);

#endif

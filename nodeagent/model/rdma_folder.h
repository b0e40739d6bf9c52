// SPDX-License-Identifier: Apache-2.0
/*
 * Where the character devices of a PCI function's RDMA devices are kept under their present names:
 * a folder per function, RDMA_FOLDER/0000:3b:00.2/uverbs3.
 *
 * The kernel gives an RDMA device that changes its namespace the lowest number that is free
 * (ib_uverbs_add_one(), drivers/infiniband/core/uverbs_main.c), and device plugins speak before CNI
 * plugins do. So a container is promised the folder: runtimes look what is in it when they make the
 * container, as with /dev/snd.
 */
#pragma once

#define RDMA_FOLDER "/run/orbweaver/rdma"

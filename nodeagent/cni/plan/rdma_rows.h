// SPDX-License-Identifier: Apache-2.0
/*
 * A pod's interfaces with their RDMA devices and GIDs, from what a worker has seen in its network
 * namespace and in the GID tables of the node; and the texts of the files that its containers get
 * (docs/nccl.md). Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum { RDMA_ROWS_MAX = 64, RDMA_ROW_ADDRESSES_MAX = 16 };

/*
 * What to look for in GID tables: "addresses" and "functions" of gids_find() (nodeagent/host), of
 * all interfaces of the look (look.h) but the cluster's own; new.
 */
json_t *rdma_rows_wanted(const json_t *look);

/*
 * [ { "interface": "net1", "rdmaDevice": "mlx5_0", "function": "0000:3b:00.2", "infiniband": true,
 * "addresses": ["10.6.0.1"], "gids": [ { "port", "index", "version", "netdev", "address" } ] } ],
 * new; an interface without a device has no row. ports: [ { "device", "interface" } ] of the pod's
 * namespace; gids: of gids_find(). alone: the devices are the pod's, also those without an
 * interface (RDMA mode exclusive).
 */
json_t *rdma_rows(const json_t *look, const json_t *ports, const json_t *gids, bool alone);

/* Has the kernel made the RoCE v2 GIDs of all addresses in `wanted`, by `gids`? */
bool rdma_rows_are_complete(const json_t *wanted, const json_t *gids);

/*
 * Give each row the "rail" of its "pf" in `topology` (of topology_compose(); {}: it is not known),
 * and sort them: by rail where each has one, then by interface, net2 before net10.
 */
void rdma_rows_sort(json_t *rows, const json_t *topology);

/*
 * The file nccl.env: lines for a POSIX shell that export variables unless they are set; new. NULL:
 * no row. owner: what its first line names, as job_env_owner() finds it.
 */
char *job_env_text(const json_t *rows, const char *owner);
/* New; NULL: the text is not of job_env_text(). */
char *job_env_owner(const char *text);

// SPDX-License-Identifier: Apache-2.0
/* The variables of NCCL (RCCL reads the same), UCX and Gloo for the RDMA devices of a pod. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

#define RDMA_TRAFFIC_CLASS "NCCL_IB_TC"
/* The cluster's own network, by which processes find each other. */
#define RDMA_CLUSTER_INTERFACE "eth0"
#define RDMA_INDICES_DIFFER                                                                        \
	"the GID indices differ, and NCCL_IB_GID_INDEX is one for all devices: start a process "   \
	"for each device with its own NCCL_IB_HCA and NCCL_IB_GID_INDEX, or use RDMA mode "        \
	"exclusive"

/*
 * Can this name of an RDMA device or an interface, which a pod's owner may have set, be in the
 * variables? Letters, digits, '-', '_', '.': nothing that a shell, or a list with commas, would
 * read.
 */
bool rdma_name_is_plain(const char *name);

/* What is known of all interfaces with a device. */
struct rdma_summary {
	struct strbuf devices; /* "mlx5_0:1,mlx5_1:1" */
	size_t n, with_gid, without_v2;
	int64_t index; /* of all GIDs; -1: they differ */
	bool is_v6, is_infiniband;
};

/*
 * rows: interfaces in the order that the variables are to have: [ { "rdmaDevice": "mlx5_0",
 * "infiniband": true, "addresses": ["10.6.0.1"], "gids": [ { "port", "index", "version", "address"
 * } ] } ]; those without "rdmaDevice" are passed over, names are plain. ret: {0}
 * before; rdma_summary_done() is due.
 */
void rdma_summarize(const json_t *rows, struct rdma_summary *ret);
void rdma_summary_done(struct rdma_summary *summary);
/* No single NCCL_IB_GID_INDEX is right: RDMA_INDICES_DIFFER. */
bool rdma_summary_differs(const struct rdma_summary *summary);

/*
 * { NAME: value }, new, of a summary with a device. traffic_class: a number; "" when it is not
 * known.
 */
json_t *rdma_variables(const struct rdma_summary *summary, const char *traffic_class);

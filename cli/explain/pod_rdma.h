// SPDX-License-Identifier: Apache-2.0
/*
 * What a job in a pod needs to know of its RDMA devices: names, GID indices, and the variables of
 * NCCL, UCX and Gloo that say so. Pure.
 */
#pragma once

#include <jansson.h>

/*
 * Add to the chain of a pod that is on a node; nothing where no interface is known:
 *
 *	"interfaces": [ { "interface": "net1", "network": "ml/rail1", "rail": 0, "rdmaDevice":
 *	    "mlx5_0", "trafficClass": "106", "addresses": ["10.6.0.1"], "gids":
 *	    [ { "port", "index", "version", "address" } ] } ]
 *		in order of rails, where each has one, else of the pod's networks
 *	"variables": { "NCCL_IB_HCA": "=mlx5_0:1", … }	absent: no RDMA device is known
 *	"notes": [ sentences ]	what the variables cannot say, and what to do
 *
 * Sources, the better first: NodeState.status.attachments, as the agent writes it; the pod's
 * network-status, which its owner can write. Names that are none of devices are left out, so that
 * variables and commands can be copied into a shell.
 *
 * World: KIND_NODE_STATE, KIND_NAD, "env".
 */
void explain_pod_rdma(json_t *chain, const json_t *world, const json_t *pod);

/* Those "interfaces" alone, an array, new. */
json_t *explain_pod_interfaces(const json_t *world, const json_t *pod);

// SPDX-License-Identifier: Apache-2.0
/*
 * The order of a node's NICs that pools and policies give, for spec.rails of its NodeState. The
 * agent makes rails of it (nodeagent/model/rails.h), since it sees which NICs there are.
 * docs/rails.md.
 */
#pragma once

#include "reconcilers/sriov/node_decision.h"

/*
 * {"from", "order", "exact"}, new; NULL: none is given. d: as node_decide() left it.
 *
 * spec.rails of the SriovNetworkPoolConfig of a node with these labels is exact. Otherwise the NICs
 * that pfNames of RDMA policies name, policy by policy: the stronger one first, those of one
 * priority by name, in which numbers count as numbers ("rail9" before "rail10"). A NIC that the
 * node never had is left out, one that vanished keeps its place, and one NIC alone is not an order.
 * While no single good answer exists
 * (as pool_config_rdma_mode() has it), or the NICs are not reported, it is what d->spec has.
 */
json_t *node_rails(const struct decision *d, const json_t *world, const json_t *labels);

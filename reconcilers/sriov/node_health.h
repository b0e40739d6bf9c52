// SPDX-License-Identifier: Apache-2.0
/*
 * What schedulers and people read of a Node's links: a condition and an annotation, from what the
 * agent has judged (docs/health.md). Pure.
 */
#pragma once

#include "reconcilers/core/plan.h"

/* Of a Node: True, False; Unknown while no agent reports. */
#define NODE_HEALTH_CONDITION "RdmaNetworkReady"
/* Of a Node: "0=LinkHealthy,3=LinkDown": rail and reason, of the rails that are judged. */
#define NODE_HEALTH_ANNOTATION "rdma.orbweaver.io/rail-health"

/*
 * Append what the Node lacks, or has otherwise, as a group of its own, as node_labels_plan() does.
 * is_away: no agent reports; the condition is Unknown then. A Node without a NodeState, or whose
 * ports nobody judges, gets neither, and loses what it has. now: RFC 3339.
 */
void node_health_plan(struct plan *plan, const json_t *node, const json_t *state, bool is_away,
		      const char *now);

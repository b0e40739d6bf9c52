// SPDX-License-Identifier: Apache-2.0
/*
 * Labels of Nodes that say what their rails are, for selectors of pods. Pools and policies, which
 * rails and VFs follow from, cannot select by them: what they do would change what they select.
 * docs/rails.md, "Node labels".
 */
#pragma once

#include "reconcilers/core/plan.h"

/* Labels stay for this long after the DaemonSet removed the agent from the node. */
#define NODE_LABELS_KEPT_S 3600

/* Of all our labels; no other key is written or removed. */
#define NODE_LABEL_PREFIX "rdma.orbweaver.io/"

#define NODE_LABEL_CAPABLE   NODE_LABEL_PREFIX "capable"
#define NODE_LABEL_COUNT     NODE_LABEL_PREFIX "rail.count"
#define NODE_LABEL_MODEL     NODE_LABEL_PREFIX "rail.model"
#define NODE_LABEL_LINK_TYPE NODE_LABEL_PREFIX "rail.link-type"
#define NODE_LABEL_SPEED     NODE_LABEL_PREFIX "rail.speed-gbps"

/* Is it the key of such a label, or could become one? NULL: false. */
bool node_label_is_ours(const char *key);

/*
 * Append the labels that a Node lacks, has wrong, or has although the agent says otherwise, as a
 * group of its own: a server that refuses it keeps nothing else from being written. Nothing while
 * the agent has not reported, or an agent reports that knows nothing of rails.
 *
 * capable: "true". count: rails whose NIC is there. model, link-type: of the rails, "mixed" where
 * they differ. speed-gbps: of the fastest rail; it stays as it is while none has a link.
 *
 * state NULL: the agent was removed; the labels are removed, too.
 */
void node_labels_plan(struct plan *plan, const json_t *node, const json_t *state);

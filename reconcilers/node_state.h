/*
 * Node and policies → SriovNetworkNodeState.spec: the work item of one node, and what the node adds to the status of policies.
 *
 * key: the node's name. World:
 *	nodes[key]						absent: the node is gone
 *	sriovnetworknodestates["<env namespace>/<key>"]		spec, status.interfaces (without Vfs), syncStatus, …
 *	sriovnetworknodepolicies, sriovnetworkpoolconfigs	all, of all namespaces
 *
 * Plan: the NodeState with its whole spec (for a node that a policy's nodeSelector selects, and for a NodeState that is
 * there already), the node's report for each policy that selects it (policy_report.h). A NodeState whose node is gone
 * is marked, kept NODE_STATE_KEEP_MINUTES and then deleted.
 *
 * Costs: policies × own PFs. Nothing depends on the number of nodes.
 *
 * Source: reference/sriov-operator.md sections 2.1 to 2.8, 3.2. Where we differ: reconcilers/sriov.md.
 */
#ifndef ORBWEAVER_RECONCILERS_NODE_STATE_H
#define ORBWEAVER_RECONCILERS_NODE_STATE_H

#include "reconcilers/reconcile.h"

struct decision;

/* As upstream's STALE_NODE_STATE_CLEANUP_DELAY_MINUTES when it is not set. */
#define NODE_STATE_KEEP_MINUTES 30
#define NODE_STATE_KEEP_UNTIL   "sriovnetwork.openshift.io/keep-state-until"

int node_state_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/*
 * The reports alone, each with up to why_lines_max lines, and in *ret (the caller's to decision_done) the decision that they
 * explain. Returns new.
 */
json_t *node_state_reports(const json_t *world, const char *key, size_t why_lines_max,
			   struct decision *ret);

#endif

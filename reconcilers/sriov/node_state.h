// SPDX-License-Identifier: Apache-2.0
/*
 * Node and policies → SriovNetworkNodeState.spec: the work item of one node, and what the node adds
 * to the status of policies.
 *
 * key: the node's name. World:
 * 	nodes[key]						absent: the node is gone
 * 	sriovnetworknodestates["<env namespace>/<key>"] spec, status.interfaces (without Vfs),
 * 	syncStatus, …
 * 	sriovnetworknodepolicies, sriovnetworkpoolconfigs	all, of all namespaces
 * 	agentpods, noagentpod					node_agent.h
 *
 * Plan: the NodeState with its whole spec (for a node that a policy's nodeSelector selects, and for
 * a NodeState that is there already), the node's report for each policy that selects it
 * (policy_report.h). A NodeState whose node is gone is marked, kept NODE_STATE_KEEP_MINUTES with
 * Ready=Unknown NodeGone and then deleted; conditions with that reason go when the node comes
 * back. One that no agent ever wrote a status of, or whose agent went away (node_agent.h),
 * gets Ready=False NoAgent and status.agentSilentSince.
 *
 * An event EditUndone says what another client wrote to the spec when that is written over
 * (reconcilers/core/edit.h).
 *
 * Costs: policies × own PFs. Nothing depends on the number of nodes.
 *
 * Source: github.com/k8snetworkplumbingwg/sriov-network-operator,
 * controllers/sriovnetworknodepolicy_controller.go. Where we differ: docs/sriov.md.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

struct decision;

/* As upstream's STALE_NODE_STATE_CLEANUP_DELAY_MINUTES when it is not set. */
#define NODE_STATE_KEEP_MINUTES 30
#define NODE_STATE_KEEP_UNTIL   "sriovnetwork.openshift.io/keep-state-until"

/*
 * The drain protocol of the SR-IOV network operator: what is asked for (on the Node, and its mirror
 * on the NodeState), how far it is, and whether another drainer does it.
 */
#define DRAIN_NODE_STATE    "sriovnetwork.openshift.io/state"
#define DRAIN_DESIRED_STATE "sriovnetwork.openshift.io/desired-state"
#define DRAIN_CURRENT_STATE "sriovnetwork.openshift.io/current-state"
#define DRAIN_EXTERNAL      "sriovnetwork.openshift.io/use-external-drainer"

int node_state_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/* Is its Node gone, as far as the operator has noted it? Nothing in it is up to date then. */
bool node_state_is_kept(const json_t *state);

/*
 * Of status.resources: the node has devices of it, and nothing is wanted of a device plugin: claims
 * have them (docs/dra.md), or what was offered is on its way out.
 */
bool node_state_resource_is_given(const json_t *resource);

/*
 * Of status.resources of this NodeState: a shared one that the node does not offer since its RDMA
 * mode is exclusive.
 */
bool node_state_resource_is_withheld(const json_t *state, const json_t *resource);

/*
 * The reports alone, each with up to why_lines_max lines, and in *ret (the caller's to
 * decision_done) the decision that they explain. Returns new.
 */
json_t *node_state_reports(const json_t *world, const char *key, size_t why_lines_max,
			   struct decision *ret);

// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetworkNodePolicy → its status: what the nodes reported for it (policy_report.h), summed up
 * and explained.
 *
 * key: "namespace/name". World: the policy, what trust.h needs; policyreports = { node: report },
 * one for each node that nodeSelector selects. The caller lets no key run before every node was
 * looked at once: a missing report means "not selected".
 *
 * Plan: status { observedGeneration, matchedNodes, readyNodes, wantedVfs, presentVfs, conditions,
 * explanation }, and events.
 *
 * Conditions
 *	Ready		True: every matched node is ready. False: the reason names what stands in
 *                      the way, worst first
 *	Progressing	True: it will pass by itself (an agent works, a NodeState is being written)
 *	Degraded	True: someone has to act (a field is wrong, a policy is overruled, an agent
 *                      failed)
 * explanation holds at most POLICY_EXPLANATION_MAX lines, the worst first: problems of the policy,
 * then nodes.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/* As the CRD bounds them: items, and bytes of one. */
#define POLICY_EXPLANATION_MAX      32
#define POLICY_EXPLANATION_LINE_MAX 1024

/*
 * The status of the world's policy `key`, of which nodes reported this: { node: report }. At most
 * `lines_max` lines of explanation; the last one says how many more there are. World: the policy,
 * "env". Returns new.
 */
json_t *policy_status_json(const json_t *world, const char *key, const json_t *reports,
			   size_t lines_max);

int policy_status_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err);

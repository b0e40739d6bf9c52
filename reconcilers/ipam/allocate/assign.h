// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over all pods that wait and all that have ended: every ledger is written once, however
 * many took from it or gave back, then each pod gets its SpiderEndpoint (lifecycle.h).
 *
 * The ledgers are written first, each only in the version that was read: who loses that race
 * decides again. A pass that is cut off leaves records that name pod and UID; the next one takes
 * them up, or gives them back.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/* Boxes (plan_post) of IPAM. */

/*
 * By pod, which may lack addresses: true while the mirror of pods has it, and it waits until it has
 * them; else the Pod as it was read, for the next pass alone, or while its endpoint says that it
 * has addresses and they are not recorded.
 */
#define BOX_WAITING "waiting"
/*
 * In such a Pod, true: KubeVirt says that it is of its machine, whose addresses another pod has
 * until now. assign_project() leaves nothing of this name that a user wrote.
 */
#define ASSIGN_TAKES_OVER "takesOver"
/*
 * By SpiderEndpoint, what has ended and may be given to others, after it was verified with the API
 * server: {"uid", "status": endpoint_addresses(), "conflicts": conflicts_said(), if anything}. By
 * "namespace/name UID": {"uid", "records": [{"pool", "address"}]}.
 */
#define BOX_ENDING "ending"
/*
 * By SpiderEndpoint, what has become true in the ledgers: {"endpoint": object as it has to be,
 * if it is another, "heard": text of ENDPOINT_CONFLICTS_ANNOTATION that may go, if any} or {"gone":
 * UID that no ledger has any more}; posted by lifecycle.h itself: {"unwritten": object}, of a pod
 * that ended before the endpoint was written
 */
#define BOX_DECIDED "decided"

/*
 * By SpiderIPPool, its UID: the endpoints that name the pool were compared with its ledger, so that
 * what living pods have is recorded, or about to be, before anything new is given out. With "env"
 * "learns": true, no new address is taken from a pool that this box does not have.
 */
#define BOX_LEARNED "learnedpools"

/*
 * By SpiderIPPool that is not in BOX_LEARNED, its UID: what endpoints claim of it was noted
 * (BOX_CLAIMED). Later claims are not waited for: users may write endpoints without end.
 */
#define BOX_LEARNING "learningpools"
/* By pod: true, from a claim for it (BOX_CLAIMED) until a pass has looked at the pod. */
#define BOX_CLAIMANTS "claimants"
/*
 * By SpiderEndpoint: true, more than LIMIT_MACHINE_PODS pods name its virtual machine as their
 * owner, and not all of them are in the world: of what they have nothing is given back, and they
 * get nothing.
 */
#define BOX_CROWDED "crowded"

/*
 * By the key of the pass: true, once one since the start has seen all that wait. Until then nobody
 * knows that none waits for a pool.
 */
#define BOX_PASSED "passed"

/*
 * Pods that are bound to a node and may need addresses, as the operator mirrors them (assign_wants,
 * assign_project).
 */
#define KIND_BOUND_POD "boundpods"

/* Pods that wait, and pods that have ended, that one pass looks at, at most (assign_slice.h). */
enum { ASSIGN_MAX = 1000 };

/* A pass that could serve none of so many is followed by the next one after this. */
enum { ASSIGN_AGAIN_MS = 1000 };

/*
 * Key: any. World: BOX_WAITING, BOX_CLAIMANTS, BOX_ENDING, BOX_SHORT_POOL and BOX_UNWRITTEN
 * (ip_pool.h), BOX_PACED with "clockMs" in "env" (books.h), KIND_POD (those that wait and stand in
 * BOX_WAITING as true, and all that may have the SpiderEndpoints of those that wait), KIND_ENDPOINT
 * of them, KIND_NAD that they name, KIND_NAMESPACE, KIND_NODE, KIND_IP_POOL (with those that
 * overlap), KIND_RESERVED_IP,
 * IPAM_CONFIG_MAP, and in "env" "isPart" (true: others wait for later passes), "leavesEnding"
 * (true: entries of BOX_ENDING are left to later passes), "now",
 * "configNamespace" and "waitingUnknown" (ip_pool.h), "configFault": what cannot be read in the
 * ConfigMap as it is now, while an earlier one stands in its place; "": nothing; absent: not known.
 *
 * Each ledger is a group of the plan (plan_group()) with the pool's name: one that the server
 * refuses to store does not concern the pods of other pools.
 *
 * Pods that have addresses already, by their endpoint or their network-status, come first and keep
 * them where their pools have no record: after a pool, or its status, was restored or made again.
 *
 * A pod that needs a large ledger which was just written waits for a later pass, and so does the
 * release of an address of it: all that comes meanwhile is one write.
 *
 * A pod that cannot have addresses keeps waiting, with a finding that says why and what to do.
 * Nothing of a ledger stays behind for it.
 *
 * The ConfigMap has a finding "BadConfig" while it cannot be read. Without an earlier one that can
 * be, so have the pods that wait, and nothing is decided.
 */
reconcile_fn assign_reconcile;

/*
 * Can the pod need addresses that the leader can foresee? Only such pods are mirrored (the door of
 * the cache).
 */
bool assign_wants(const json_t *pod);

/*
 * What decisions read of a pod: in place. Of its network-status, which the runtime wrote when its
 * sandbox was made, "addresses" is kept: {interface: [address]}.
 */
void assign_project(json_t *pod);

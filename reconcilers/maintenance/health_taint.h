// SPDX-License-Identifier: Apache-2.0
/*
 * Which Nodes with bad links get no new pods: a taint, a cordon, or both, on nodes of pools that
 * ask for it, on so many at once as the pool allows. What fails on many nodes at once is a switch
 * or a rail, not the nodes: it is said once, and taints none. docs/health.md, "Taints".
 *
 * The state is in the Nodes: the taint itself, the mark of the cordon (DRAIN_CORDONED_FOR_LINKS of
 * drain.h), and the condition of node_health.h. Recovery takes them back, and so does a pool that
 * asks for none any more. A Node that is cordoned without the mark is not cordoned again; one with
 * the mark that was uncordoned gets another mark (DRAIN_CORDON_UNDONE), and until its links are
 * well neither its uncordon nor a cordon that follows is changed.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/* The one key: all nodes. */
#define HEALTH_TAINT_KEY "health-taint"

/* Key of the taint, with effect NoSchedule; no other taint is written or removed. */
#define HEALTH_TAINT "orbweaver.io/rdma-degraded"

enum {
	/*
	 * A rail that is bad on so many nodes of a pool, and on more than one in four of those that
	 * have it or on more than four times as many as may be tainted, has a cause of its own.
	 */
	HEALTH_TAINT_COMMON = 3,
};

/*
 * World: all nodes and pools, what trust.h needs. A node whose condition is Unknown stays as it is,
 * and counts when it is tainted. Plan: taints go first; a pool that gives one back gets none in the
 * same plan, so that no order of writes exceeds the budget. Of tainted nodes that are too many
 * those that failed last lose theirs; of those that wait the one that failed first gets it.
 */
int health_taint_reconcile(const json_t *world, const char *key, struct plan *plan,
			   struct err *err);

/* Has the Node the taint, or a mark of the cordon? */
bool health_taint_is_on(const json_t *node);

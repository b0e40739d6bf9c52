/*
 * Which node is drained next, and which pods are asked to end.
 *
 * What has to end is what the node's agent says in NodeState.status.impact; nothing else is
 * touched. Only nodes of a pool with maxUnavailable are drained, so many at a time. A node goes
 * through
 *
 *	Waiting    it wants, and waits for a slot, for pods that may not be asked, for its node
 *	Evicting   its devices are withdrawn from the kubelet, then its pods asked to end
 *	Working    nothing is in the way any more, its agent changes the node
 *	Stopped    its agent failed; the slot stays taken, lest the same be done to every node
 *
 * and back to nothing, from anywhere, as soon as nothing has to end any more. The state is the
 * annotation current-state of the NodeState, with the values of the SR-IOV network operator: Idle,
 * Draining (Evicting), DrainComplete (Working, Stopped). That is one write, conditional on the
 * version that was decided on, and it comes before anything that follows from it.
 */
#ifndef ORBWEAVER_RECONCILERS_MAINTENANCE_DRAIN_H
#define ORBWEAVER_RECONCILERS_MAINTENANCE_DRAIN_H

#include "reconcilers/core/reconcile.h"

/* The one key: all nodes. */
#define DRAIN_KEY "drain"

/*
 * World: what was read of the API server: {DRAIN_KEY: {"atMs", "pods": {"ns/name": pod or
 * null}, "nodes": {name: Node}}}. Asked for by a post to BOX_LOOK under DRAIN_KEY.
 */
#define BOX_DRAIN_LOOK "drainlook"
/*
 * World: the answers to evictions: {"ns/name": {"uid", "atMs", "tries", "reason", "message"}};
 * reason and message are absent when the pod was asked to end.
 */
#define BOX_EVICTIONS "evictions"

/* On a NodeState: "stop" keeps the node from being drained, and gives it back when it is. */
#define DRAIN_STOP_ANNOTATION "orbweaver.io/drain"
/* On a pool: "true" allows to evict pods that nobody makes anew. */
#define DRAIN_UNMANAGED_ANNOTATION "orbweaver.io/evict-unmanaged"

enum {
	/* Pods of one node that are asked and have not ended. */
	DRAIN_WINDOW = 8,
	/* Reads of what is being drained, and first retry of an eviction. */
	DRAIN_LOOK_MS = 5000,
	/* What was read longer ago is not decided on. */
	DRAIN_LOOK_OLD_MS = 10000,
	DRAIN_RETRY_MAX_MS = 60000,
	/* Pods that status.maintenance names. */
	DRAIN_PODS_MAX = 32,
};

/*
 * World: nodes and pools, all of them; NodeStates: those for which drain_concerns() holds (more do
 * no harm); sriovoperatorconfigs (spec.disableDrain); the boxes above; env.nowMs: a clock that
 * never goes back.
 */
int drain_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/* Is this NodeState drained, or does it want to be? */
bool drain_concerns(const json_t *state);

/* Keep of a Pod, or a Node, what this decision reads. Changes the object. */
void drain_project(json_t *object);

#endif

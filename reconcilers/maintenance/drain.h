// SPDX-License-Identifier: Apache-2.0
/*
 * Which node is drained or rebooted next, and which pods are asked to end.
 *
 * What has to end is what the node's agent says in NodeState.status.impact; for a reboot it is all
 * pods but those of DaemonSets, static ones, and the operator's own. Only nodes of a pool with
 * maxUnavailable are drained, so many at a time, and rebooted where the same pool asks for what
 * needs the boot. A node goes through
 *
 *	Waiting    it wants, and waits for a slot, for pods that may not be asked, for its node
 *	Evicting   its devices are withdrawn from the kubelet (for a reboot: it is cordoned), then
 *	           its pods asked to end
 *	Rebooting  it is empty, and its agent is allowed to reboot it
 *	Working    nothing is in the way any more, its agent changes the node
 *	Stopped    its agent failed; the slot stays taken, lest the same be done to every node
 *	TimedOut   the pool's time was over (drain-timeout); the slot is free
 *
 * and back to nothing, from anywhere, as soon as nothing has to end any more. The state is the
 * annotation current-state of the NodeState, with the values of the SR-IOV network operator: Idle,
 * Draining (Evicting), DrainComplete (Rebooting, Working, Stopped). That is one write, conditional
 * on the version that was decided on, and it comes before anything that follows from it. A Node
 * that was cordoned has a mark, and is uncordoned by the mark alone once it need not be empty.
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/* The one key: all nodes. */
#define DRAIN_KEY "drain"

/*
 * World: what was read of the API server: {DRAIN_KEY: {"atMs", "pods": {"ns/name": pod or
 * null}, "nodes": {name: Node}, BOX_PODS_OF_NODE: {name: {"ns/name": pod}}}}, the last read after
 * the others. Asked for by a post to BOX_LOOK under DRAIN_KEY.
 */
#define BOX_DRAIN_LOOK "drainlook"
/*
 * World: the answers to evictions: {"ns/name": {"uid", "atMs", "tries", "reason", "message"}};
 * reason and message are absent when the pod was asked to end.
 */
#define BOX_EVICTIONS "evictions"

/*
 * On a NodeState: "stop" keeps the node from being drained, and gives it back when it is.
 * "timed-out" does the same, and was written here.
 */
#define DRAIN_STOP_ANNOTATION "orbweaver.io/drain"
/* On a NodeState, for its agent (AGENT_REBOOT_ANNOTATION): the boot, and what it may end for. */
#define DRAIN_REBOOT_ANNOTATION "orbweaver.io/reboot"
/* On a NodeState: the boot in which what was rebooted for in vain is tried once more. */
#define DRAIN_RETRY_ANNOTATION "orbweaver.io/retry-reboot"
/* On a Node: it was cordoned here, and had not been before. */
#define DRAIN_CORDONED_ANNOTATION "orbweaver.io/cordoned-by"
#define DRAIN_CORDONED_BY         "orbweaver-operator"
/* Instead: for its links (health_taint.h). A drain that needs the cordon takes it over. */
#define DRAIN_CORDONED_FOR_LINKS "orbweaver-links"
/* That cordon was undone; if the Node is cordoned, another client did it. */
#define DRAIN_CORDON_UNDONE "orbweaver-links-undone"
/* On a pool: "true" allows to evict pods that no controller makes again. */
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
	/*
	 * A node that was rebooted and is not back after that is for an administrator to look at.
	 */
	DRAIN_BOOT_S = 900,
};

/*
 * World: nodes and pools, all of them (without a NodeState: nodes that have the mark); NodeStates:
 * those for which drain_concerns() holds (more do no harm); sriovoperatorconfigs
 * (spec.disableDrain); the boxes above; env.nowMs: a clock that never goes back.
 */
int drain_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/* Is this NodeState drained, or does it want to be? */
bool drain_concerns(const json_t *state);

/* Has the Node the mark of DRAIN_CORDONED_ANNOTATION? */
bool drain_is_marked(const json_t *node);

/* Keep of a Pod, or a Node, what this decision reads. Changes the object. */
void drain_project(json_t *object);

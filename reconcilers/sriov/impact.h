// SPDX-License-Identifier: Apache-2.0
/*
 * What a change of a NodeState's spec costs the node, said before anything is done: which pods have
 * to end, and whether the node has to boot.
 *
 * The rules are those of the agent's planner (docs/node-agent.md), seen from outside: the kernel
 * changes the number of VFs by removing all of them, the same goes for another eSwitch mode; a VF
 * changes its driver only while no pod holds it; the RDMA namespace mode changes at run time only
 * while there is no namespace but the host's, so it counts as a boot. An MTU never costs a pod: VFs
 * that are held keep theirs. RoCE settings cost pods where their driver takes the link down
 * (nodeagent/model/nic_settings.h).
 *
 * What the status does not say, this cannot know: macvlan and ipvlan interfaces on a PF, and
 * programs of the host that hold a VF. The agent looks at those again before each write, and waits.
 * How a PF was found, to which it goes back when policies leave it or its mode, is taken to be
 * without VFs and in mode legacy.
 */
#pragma once

#include <jansson.h>

/* Worse ones later. */
enum node_impact {
	NODE_IMPACT_NONE,   /* no pod notices */
	NODE_IMPACT_EVICT,  /* pods that hold the VFs have to end */
	NODE_IMPACT_REBOOT, /* takes effect when the node boots */
};

/* "none", "evict", "reboot". */
const char *node_impact_name(enum node_impact impact);

/*
 * The pod "ns/name" of "ns/name/container", as NodeState.status names who has a device; new.
 * *ret_container points into the text, NULL when none is named; may be NULL.
 */
char *node_holder_pod(const char *holder, const char **ret_container);

/*
 * From `before`, the spec that the agent follows now, to `spec`, on a node whose NodeState.status
 * is this. Each may be NULL; of before and spec that means empty. Returns new:
 *
 *	{"class": "evict",
 *	 "changes": [{"class", "pciAddress", "nic", "vfsBefore", "vfs", "message"}],
 *	 "pods": [{"pod": "ns/name", "container", "resource", "device", "nic", "why"}],
 *	 "unknown": 3}
 *
 * pciAddress, nic, vfsBefore and vfs are absent where a change is about the node. A pod appears
 * once for each device that has to be released. "unknown" counts VFs that may be in use with
 * unknown users: they count as in use; absent when all are known.
 */
json_t *node_impact(const json_t *before, const json_t *spec, const json_t *status);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the rest of a plan costs the pods of this node, reported before it is paid: who has to end,
 * or that the node has to boot. Pure.
 *
 * It is read off the plan, so it is what the planner itself waits for, with all users it knows:
 * what the kubelet has allocated, and what the host shows.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum {
	/* Pods, and others, that are named; the rest is counted. */
	IMPACT_NAMED_MAX = 32,
};

/*
 * plan: of planner.h. withdrawn: the kubelet gives none of the devices away that the plan waits
 * for. Returns new:
 *
 *	{"class": "evict",                "none", "evict" or "reboot"
 *	 "reason", "message", "cause",    of class "reboot"; cause: as in the steps (step.h)
 *	 "pods": [{"pod": "ns/name", "device", "pciAddress"}], "morePods": 3,
 *	 "others": [{"holder", "device", "pciAddress"}], "moreOthers": 1,
 *	 "withdrawn": true}
 *
 * Lists, counts and "withdrawn" are absent where they are empty, 0 or false. "others" is in the way
 * and no pod that the kubelet names: interfaces, programs of the host, the node itself. Nobody can
 * evict it.
 */
json_t *plan_impact(const json_t *plan, bool withdrawn);

/*
 * VFs that are free or become free and may not go to another pod until the plan is through,
 * {"0000:3b:00.2": true}; new, NULL: none. observed: the document that the plan was made from.
 */
json_t *plan_vacated(const json_t *plan, const json_t *observed);

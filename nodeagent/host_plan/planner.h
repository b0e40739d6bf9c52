// SPDX-License-Identifier: Apache-2.0
/*
 * What is to be done to this host: desired state against observed state, to ordered steps.
 *
 * Pure: looks at nothing but its arguments, equal inputs give equal bytes. Level-triggered:
 * planning again after the steps were executed gives none, and a plan that was cut off anywhere is
 * continued by the next one. It never plans what could hurt: nothing on a protected PF, nothing
 * that takes a VF from its holder, nothing that unbinds a PF. What is wanted and cannot be
 * done now is said in "blocked", what cannot be done at all in "problems"; other PFs go on.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

struct planner_input {
	/* NodeState.spec. NULL: there is no NodeState, and nothing is planned. */
	const json_t *spec;
	/*
	 * The observed document (docs/node-agent.md), made with HOST_OBSERVE_HOLDERS; with what
	 * history.h adds, if there is any.
	 */
	const json_t *observed;
	/*
	 * How the host was before we touched it: "found" of an earlier plan, kept in a file on the
	 * host. NULL or {} when there is none. {"pfs": {"0000:3b:00.0": {"numVfs", "mtu",
	 * "eSwitchMode", "linkAdminState", "driversAutoprobe", "udevRules", "vendor", "deviceID",
	 * "permanentMac", "overrides": {VF: driver}}}, "rdma": {"netnsMode"}, "settings":
	 * {"0000:3b:00.0": {"vendor", "deviceID", "permanentMac", "values": {"pfc": []}}}}, members
	 * absent that could not be known.
	 */
	const json_t *found;
	/*
	 * Devices that the kubelet has given to pods, besides what `observed` can see:
	 * {"0000:3b:00.2": "ns/pod"}. NULL when not known.
	 */
	const json_t *held;
	/*
	 * The kubelet has still to say that: until then any VF may be a pod's. Only without `held`.
	 */
	bool is_held_awaited;
	/*
	 * Steps (what was in "step") that failed and would fail again if tried at once: a list,
	 * NULL for none. They are left out, and so is what has to come after them; everything else
	 * is planned. Who executes takes an entry off when it is time to try again, and all of them
	 * when the NodeState has a new generation. A refused set-rdma-netns-mode (RdmaModeBusy)
	 * turns into a request for a reboot. What failed is in status.h's `failures`, not
	 * here.
	 */
	const json_t *refused;
	/*
	 * Reboots (boots.h), as the NodeState has them; NULL: nothing is said. What is allowed,
	 * what is tried once more in which boot, and what the API server has of the record,
	 * status.boots.
	 */
	const char *reboot_allowed, *reboot_retry;
	const json_t *boots_reported;
};

/*
 * Returns new:
 *
 * 	{"steps":    [{"step": {…}, "pf": "0000:3b:00.0", "impact": "pf", "why": "numVfs is 0,
 *                   wanted 4"}],
 * 	 "blocked":  [{"pf", "vf", "reason": "VfInUse", "holder": "/run/netns/cni-…", "message",
 *                   "pod": "ns/pod" when the kubelet named the holder, "all": true when all VFs of
 *                   the PF go}],
 * 	 "problems": [{"pf", "reason": "VfCountOutOfRange", "message"}],
 * 	 "reboot":   {"reason", "message", "cause"}, absent unless a reboot is wanted and the node
 *                   is prepared for it
 * 	 "inVain":   {"cause", "message"},       a reboot that did not help; absent: none
 * 	 "nextBoot": {"reason", "message"},      what the next boot changes although no policy
 *                                               waits for it; absent: nothing
 * 	 "found":    {…},                        to be on disk before the first step is executed
 * 	 "vfs":      {"wanted": 4, "present": 0}}
 *
 * "step" is what step_check() accepts. "pf", "vf" are absent where it is about the node; a step
 * about VFs together has "vfs", their addresses, in place of "vf". Steps of the node come first,
 * then PF after PF; the steps of one PF depend on those before them, steps of different PFs do not.
 * A plan that makes VFs ends with waiting for them, since their addresses are not known before:
 * look again, plan again. All lists come in an order that depends on nothing but the input;
 * messages say what is the case and what to do next.
 *
 * NULL with err ERR_INVALID "BadSpec" when spec has the wrong shape as a whole, naming the field. A
 * wrong entry of interfaces is a problem of that PF.
 */
json_t *planner_plan(const struct planner_input *input, struct err *err);

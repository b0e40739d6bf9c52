// SPDX-License-Identifier: Apache-2.0
/*
 * The long answer about one policy: every node, every PF, every field. What policy_status.c says
 * within its bounds, from the same functions without them. For a command line; nothing is planned.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * key: "namespace/name" of the policy. World: env now and namespace, and all of nodes, NodeStates,
 * policies, pools. Returns new:
 *
 *	{ "status": as policy_status_reconcile writes it, with all lines of explanation
 *	  "nodes": { NODE: {
 *		"selected": bool,
 *		"why": why not: the first label that is missing; or the lines of the node's report
 *		"pfs": [ {				of a node that is selected
 *			"name", "pciAddress",
 *			"picked": bool,
 *			"why": the first selector that fails
 *			"vfGroups": [ { "vfRange", "policy" } ],	who has VFs, strongest first
 *			"lost": [ { "vfRange", "policy", "to" } ],	who lost them to whom
 *			"fields": { FIELD: { numVfs, mtu, linkType, eSwitchMode, externallyManaged
 *				"value", "policy": whose,
 *				"overruled": [ { "policy", "value" } ] } } } ] } } }
 *
 * "policy" and "to" are keys; what has nothing to say is absent. The last three are there when some
 * policy claims VFs of the PF. Time: nodes × policies × PFs. Errors: ERR_INVALID when there is no
 * such policy.
 */
json_t *policy_explain(const json_t *world, const char *key, struct err *err);

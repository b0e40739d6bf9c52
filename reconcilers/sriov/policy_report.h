// SPDX-License-Identifier: Apache-2.0
/*
 * How a policy stands on one node: what node_report.c says (plan_report) and policy_status.c sums
 * up.
 *
 * One report, per node and policy whose nodeSelector selects the node:
 *
 *	{ "matched": bool,	nicSelector picks a PF there
 *	  "ready": bool,	the agent did what this policy wants, as the NodeState says for its
 *                              current spec
 *	  "wantedVfs": int,	VFs that the policy asks for, all PFs together
 *	  "presentVfs": int,	those of them that exist and are this policy's
 *	  "failing": int,	when it picks no PF: selectors that fail on the one that comes
 *                              closest
 *	  "plain": true,	that one can have no VFs
 *	  "reason": string,	the worst standing below; absent when ready and well
 *	  "cause": string,	of SyncFailed: the agent's own reason; absent when it has none
 *	  "why": string }	lines "SUBJECT: text", SUBJECT a PF's name or "agent"; absent when
 *                              there is nothing to say
 *
 * A planned report is bounded whatever node and policy look like: POLICY_WHY_LINES lines of less
 * than 400 bytes. Those that policy_explain.c asks for have all lines.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define POLICY_WHY_LINES 4

/* Worse ones later. */
enum policy_standing {
	STANDING_READY,
	STANDING_FIELD_OVERRULED, /* its VFs are there, a field of the PF is a stronger policy's */
	/* its VFs are there, another policy fills the resource with other ones */
	STANDING_MIXED_RESOURCE,
	STANDING_NO_GUIDS,       /* its VFs are there, but not with GUIDs from the node's pool */
	STANDING_NOT_REPORTED,   /* the agent has not said which NICs there are */
	STANDING_NO_NIC,         /* picks no PF */
	STANDING_SPEC_PENDING,   /* the NodeState does not carry the decision yet */
	STANDING_SYNCING,        /* the agent is at work */
	STANDING_BLOCKED,        /* the agent waits for a pod to end */
	STANDING_REBOOT,         /* the rest takes effect at the next boot */
	STANDING_VFS_MISSING,    /* the agent is done, but VFs are not there */
	STANDING_SYNC_FAILED,    /* the agent gave up; what follows says better why */
	STANDING_NO_AGENT,       /* no agent reports, or does anything */
	STANDING_PF_HELD,        /* the PF stays as it is until another policy is mended */
	STANDING_TOO_MANY_VFS,   /* more than the device can have */
	STANDING_EXTERNAL_VFS,   /* more than were made by hand on an externally managed PF */
	STANDING_OVERRULED,      /* VFs it asks for are a stronger policy's */
	STANDING_RESOURCE_TAKEN, /* its resource is filled by a policy of another namespace */
};

struct policy_standing_info {
	const char *reason; /* CamelCase: the report's "reason" and a condition's */
	bool ready;         /* does not stand in the way of Ready */
	bool progressing;   /* passes by itself */
	bool degraded;      /* an administrator has to act */
	const char *remedy; /* what to do, for the end of a message */
};

const struct policy_standing_info *policy_standing_info(enum policy_standing standing);

/* The word for a report, as precise as it is known; NULL when all is well. Borrowed. */
const char *policy_report_reason(const json_t *report);

/* The standing of that reason; STANDING_READY for NULL and reasons that no agent reports. */
enum policy_standing policy_standing_find(const char *reason);

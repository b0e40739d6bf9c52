// SPDX-License-Identifier: Apache-2.0
/* The table of standings. */
#include "reconcilers/sriov/policy_report.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"

static const struct policy_standing_info standings[] = {
	[STANDING_READY] = {.reason = "Ready", .ready = true, .remedy = ""},
	[STANDING_FIELD_OVERRULED] = {.reason = "FieldOverruled",
				      .ready = true,
				      .degraded = true,
				      .remedy = "give the policies of this PF the same values"},
	[STANDING_MIXED_RESOURCE] =
		{.reason = "MixedResource",
		 .ready = true,
		 .degraded = true,
		 .remedy = "give the policies of this resource the same values or other names"},
	[STANDING_NO_GUIDS] = {.reason = "NoPoolGuids",
			       .ready = true,
			       .degraded = true,
			       .remedy = "the agent gives these VFs GUIDs of its own; use a PF "
					 "with a MAC address, or fewer VFs"},
	[STANDING_NO_NIC] = {.reason = "NoNicMatches", .remedy = "correct nicSelector"},
	[STANDING_NOT_REPORTED] = {.reason = "NicsNotReported",
				   .progressing = true,
				   .remedy = "if this lasts, look whether the agent runs there"},
	[STANDING_SPEC_PENDING] = {.reason = "SpecPending",
				   .progressing = true,
				   .remedy = "wait; if this lasts, apply the crds/ of this "
					     "release, the server may not know a field"},
	[STANDING_SYNCING] =
		{.reason = "Syncing",
		 .progressing = true,
		 .remedy = "wait; if this lasts, see the status of its SriovNetworkNodeState"},
	/* The agent says what to do: that depends on who is in the way. */
	[STANDING_BLOCKED] = {.reason = "Blocked", .progressing = true, .remedy = ""},
	[STANDING_REBOOT] = {.reason = "RebootRequired",
			     .progressing = true,
			     .remedy = "drain and reboot the node when it suits you; for an "
				       "rdmaMode, maxUnavailable of its SriovNetworkPoolConfig "
				       "has it done"},
	[STANDING_VFS_MISSING] = {.reason = "VfsMissing",
				  .degraded = true,
				  .remedy = "see the status of its SriovNetworkNodeState"},
	[STANDING_SYNC_FAILED] = {.reason = "SyncFailed", .degraded = true, .remedy = ""},
	[STANDING_NO_AGENT] = {.reason = "NoAgent", .degraded = true, .remedy = ""},
	[STANDING_PF_HELD] = {.reason = "PfHeld",
			      .degraded = true,
			      .remedy = "mend or delete the policy that is refused"},
	[STANDING_TOO_MANY_VFS] = {.reason = "TooManyVfs",
				   .degraded = true,
				   .remedy = "lower numVfs"},
	[STANDING_EXTERNAL_VFS] = {.reason = "ExternalVfsMissing",
				   .degraded = true,
				   .remedy = "make the VFs by hand, or lower numVfs"},
	[STANDING_OVERRULED] = {.reason = "Overruled",
				.degraded = true,
				.remedy = "make the VF ranges disjoint, or give the policy that "
					  "is to win a lower priority number"},
	[STANDING_RESOURCE_TAKEN] = {.reason = "ResourceTaken",
				     .degraded = true,
				     .remedy = "give one of them another resourceName, or create "
					       "both in one namespace"},
};

const struct policy_standing_info *policy_standing_info(enum policy_standing standing)
{
	assert(standing < ARRAY_LEN(standings));
	return &standings[standing];
}

const char *policy_report_reason(const json_t *report)
{
	const char *cause = json_str_at(report, "cause");

	return condition_reason_is_good(cause) ? cause : json_str_at(report, "reason");
}

enum policy_standing policy_standing_find(const char *reason)
{
	for (size_t i = 0; i < ARRAY_LEN(standings); i++)
		if (str_eq(reason, standings[i].reason))
			return (enum policy_standing)i;
	return STANDING_READY;
}

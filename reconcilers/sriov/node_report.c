// SPDX-License-Identifier: Apache-2.0
/*
 * node_state.c calls this after the decision: what the decision lost is noted already, here the
 * agent's word is added for each policy, and VFs are counted. policy_status.c sums the reports of
 * all nodes up.
 */
#include "reconcilers/sriov/node_report.h"

#include <assert.h>
#include <string.h>

#include "lib/json/condition.h"
#include "lib/json/json.h"

#define NAME_QUOTE_MAX 64

static bool differ(const struct sriov_policy *a, const struct sriov_policy *b,
		   const char **ret_field)
{
	if (!str_eq(a->device_type, b->device_type))
		*ret_field = "deviceType";
	else if (a->is_rdma != b->is_rdma)
		*ret_field = "isRdma";
	else if (!str_eq(a->vdpa_type, b->vdpa_type))
		*ret_field = "vdpaType";
	else if (a->need_vhost_net != b->need_vhost_net)
		*ret_field = "needVhostNet";
	else if (a->exclude_topology != b->exclude_topology)
		*ret_field = "excludeTopology";
	else
		return false;
	return true;
}

/* A pod that asks for a resource gets any VF of it, so they should be of one sort. */
static void note_mixed_resources(struct decision *d)
{
	struct map by_resource = {0};
	const char *field;

	for (size_t i = d->shares_len; i-- > 0;) {
		struct share *share = &d->shares[i];
		const struct share *stronger = map_get(&by_resource, share->policy.resource_name);

		if (share->groups == 0)
			continue;
		if (!stronger)
			map_set(&by_resource, share->policy.resource_name, share);
		else if (differ(&share->policy, &stronger->policy, &field))
			share_note(share, STANDING_MIXED_RESOURCE, "agent",
				   "resource %.*s also has VFs of policy %s with another %s",
				   (int)str_clip(share->policy.resource_name,
						 strlen(share->policy.resource_name),
						 NAME_QUOTE_MAX),
				   share->policy.resource_name, stronger->policy.key, field);
	}
	map_done(&by_resource);
}

/* VFs that the PF has, as the agent says; a foreign number. */
static int64_t vfs_there(const struct pf *pf)
{
	int64_t there = json_integer_value(json_at(pf->seen, "numVfs"));

	return there < 0 ? 0 : there;
}

/*
 * Report to a policy that asks for more than there can be, or than another client has made, and
 * those that share the PF with it: for them nothing is done either.
 */
static void note_too_many(const struct decision *d, const struct pf *pf, struct share *share)
{
	const json_t *problems = json_at(d->state, "status", "problems");
	int64_t there = vfs_there(pf);
	const json_t *total = json_at(pf->seen, "totalvfs");
	bool is_external = pf->external && pf->external->policy.externally_managed;

	/* The agent knows what switches SR-IOV on. */
	if (json_is_integer(total) && json_integer_value(total) == 0 &&
	    json_find(problems, "pciAddress", json_str_at(pf->seen, "pciAddress")))
		return;
	if (json_is_integer(total) && share->policy.num_vfs > json_integer_value(total))
		share_note(share, STANDING_TOO_MANY_VFS, pf_name(pf),
			   "numVfs %d, the device has at most %lld", share->policy.num_vfs,
			   (long long)json_integer_value(total));
	else if (is_external && share->policy.num_vfs > there)
		share_note(share, STANDING_EXTERNAL_VFS, pf_name(pf),
			   "is externally managed and has %lld VFs, numVfs is %d", (long long)there,
			   share->policy.num_vfs);
	else if (!is_external && json_is_integer(total) &&
		 pf->num_vfs.value > json_integer_value(total))
		share_note(share, STANDING_TOO_MANY_VFS, pf_name(pf),
			   "numVfs %lld of policy %s, the device has at most %lld",
			   (long long)pf->num_vfs.value, pf->num_vfs.by->policy.key,
			   (long long)json_integer_value(total));
}

static bool can_have_vfs(const struct pf *pf)
{
	return json_integer_value(json_at(pf->seen, "totalvfs")) > 0;
}

/*
 * Which PF comes closest? Of those with the same count of failing selectors one that can have VFs:
 * a wrong pfNames fails on the NIC for management as it does on the right one. Say of that one all
 * selectors that fail: who wrote the policy meant it. Then of the others, for the long answer.
 */
static void note_no_nic(const struct decision *d, struct share *share)
{
	size_t best = 0, fewest = SIZE_MAX;

	for (size_t i = 0; i < d->pfs_len; i++) {
		size_t fails = sriov_policy_fails(&share->policy, d->pfs[i].seen, NULL);

		if (fails < fewest ||
		    (fails == fewest && can_have_vfs(&d->pfs[i]) && !can_have_vfs(&d->pfs[best]))) {
			fewest = fails;
			best = i;
		}
	}
	share->failing = d->pfs_len > 0 ? fewest : 0;
	share->closest_is_plain = d->pfs_len > 0 && !can_have_vfs(&d->pfs[best]);
	for (size_t i = 0; i < d->pfs_len && share->why_lines < share->why_lines_max; i++) {
		/* The best one first, the rest in their order. */
		size_t at = i == 0 ? best : i <= best ? i - 1 : i;
		auto_strbuf struct strbuf why = {0};

		sriov_policy_fails(&share->policy, d->pfs[at].seen, &why);
		share_note(share, STANDING_NO_NIC, pf_name(&d->pfs[at]), "%s", strbuf_str(&why));
	}
	if (d->pfs_len == 0)
		share_note(share, STANDING_NO_NIC, "agent", "reports no NIC");
}

/*
 * An agent that says which generation it saw is held to it. Upstream's does not say: its
 * "Succeeded" may be about the spec before, and then missing VFs are not a failure yet.
 */
static void note_done(const struct decision *d, struct share *share)
{
	bool is_current = json_is_integer(json_at(d->state, "status", "observedGeneration"));

	/* Something worse says why they are missing. */
	if (share->present >= share->wanted || share->standing > STANDING_VFS_MISSING)
		return;
	share_note(share, is_current ? STANDING_VFS_MISSING : STANDING_SYNCING, "agent",
		   "%lld of %lld VFs are there", (long long)share->present,
		   (long long)share->wanted);
}

static bool status_is_old(const json_t *state)
{
	const json_t *observed = json_at(state, "status", "observedGeneration");

	return json_is_integer(observed) && json_integer_value(observed) < json_generation(state);
}

/*
 * Report to the policy what the agent says of its PFs, and of the node as a whole. False when all
 * of it is about others.
 */
static bool note_problems(const struct decision *d, struct share *share, const json_t *problems)
{
	static const struct {
		const char *type;
		enum policy_standing standing;
	} standings[] = {
		{"Degraded", STANDING_SYNC_FAILED},
		{"Blocked", STANDING_BLOCKED},
		{"RebootRequired", STANDING_REBOOT},
	};
	const json_t *problem;
	bool found = false;
	size_t i;

	json_array_foreach ((json_t *)problems, i, problem) {
		const char *reason = json_str_at(problem, "reason");
		const char *address = json_str_at(problem, "pciAddress");
		const struct pf *pf = address ? map_get(&d->by_address, address) : NULL;

		/* Of a PF where the policy neither has VFs nor wants some. */
		if (address && !(pf && sriov_policy_picks(&share->policy, pf->seen, NULL)))
			continue;
		found = true;
		for (size_t k = 0; k < ARRAY_LEN(standings); k++) {
			if (!str_eq(json_str_at(problem, "type"), standings[k].type))
				continue;
			if (standings[k].standing == STANDING_SYNC_FAILED && !share->cause)
				share->cause = reason;
			share_note(share, standings[k].standing, pf ? pf_name(pf) : "agent", "%s",
				   json_str_or(json_at(problem, "message"), ""));
		}
	}
	return found;
}

static void note_agent(const struct decision *d, struct share *share, bool spec_is_written)
{
	const json_t *problems = json_at(d->state, "status", "problems");
	const char *sync = json_str_or(json_at(d->state, "status", "syncStatus"), "");
	const char *error = json_str_or(json_at(d->state, "status", "lastSyncError"), "");
	bool is_named = json_array_size(problems) > 0;

	if (!spec_is_written) {
		share_note(share, STANDING_SPEC_PENDING, "agent", "its NodeState is being written");
	} else if (status_is_old(d->state)) {
		share_note(share, STANDING_SYNCING, "agent", "has not seen the new NodeState yet");
	} else if (str_eq(sync, "Failed") && !is_named) {
		share_note(share, STANDING_SYNC_FAILED, "agent",
			   "syncStatus Failed%s%s; see the status of its SriovNetworkNodeState",
			   *error ? ": " : "", error);
	} else if (is_named && !note_problems(d, share, problems)) {
		const json_t *conditions = json_at(d->state, "status", "conditions");
		const json_t *blocked = json_find(problems, "type", "Blocked");
		const char *address = json_str_or(json_at(blocked, "pciAddress"), "");
		const struct pf *pf = map_get(&d->by_address, address);

		/*
		 * All problems of the node are about PFs of other policies. Steps that are left may
		 * still be for this one's PFs; without any, they are as far as they come, whatever
		 * the others wait for.
		 */
		if (!str_eq(condition_status_of(conditions, "Progressing"), "True"))
			note_done(d, share);
		else if (blocked)
			share_note(share, STANDING_SYNCING, "agent", "is at work, and %s waits: %s",
				   pf ? pf_name(pf) : address,
				   json_str_or(json_at(blocked, "message"), ""));
		else
			share_note(share, STANDING_SYNCING, "agent", "is at work on the node");
	} else if (!is_named && !str_eq(sync, "Succeeded")) {
		share_note(share, STANDING_SYNCING, "agent", "syncStatus is %s%s%s",
			   *sync ? sync : "not reported", *error ? ", last error: " : "", error);
	} else if (!is_named) {
		note_done(d, share);
	}
}

static json_t *report_json(const struct decision *d, const struct share *share)
{
	const struct policy_standing_info *info = policy_standing_info(share->standing);
	json_t *report = json_object();

	json_put_bool(report, "reported", decision_has_report(d));
	json_put_bool(report, "matched", share->picks);
	json_put_bool(report, "ready", info->ready);
	json_put_int(report, "wantedVfs", share->wanted);
	json_put_int(report, "presentVfs", share->present);
	if (share->standing != STANDING_READY)
		json_put_str(report, "reason", info->reason);
	if (share->standing == STANDING_SYNC_FAILED)
		json_put_str(report, "cause", share->cause);
	if (share->failing > 0)
		json_put_int(report, "failing", (int64_t)share->failing);
	if (share->closest_is_plain)
		json_put_bool(report, "plain", true);
	if (share->why_lines > 0)
		json_put_str(report, "why", strbuf_str(&share->why));
	return report;
}

json_t *node_reports(struct decision *d, bool spec_is_written, const char *no_agent)
{
	json_t *reports = json_object();

	assert(d->touched_len <= d->pfs_len);
	for (size_t i = 0; i < d->touched_len; i++) {
		struct pf *pf = d->touched[i];
		int64_t there = vfs_there(pf);

		/* Count VFs that are there. */
		for (size_t k = 0; k < pf->groups.len; k++) {
			struct group *group = &pf->groups.items[k];
			struct share *share = group->share;
			int64_t last = group->range.last < there ? group->range.last : there - 1;

			share->groups++;
			if (last >= group->range.first)
				share->present += last - group->range.first + 1;
			if (k == 0 || group[-1].share != share)
				note_too_many(d, pf, share);
		}
	}
	note_mixed_resources(d);
	for (size_t i = 0; i < d->shares_len; i++) {
		if (no_agent)
			share_note(&d->shares[i], STANDING_NO_AGENT, "agent", "%s", no_agent);
		else if (!decision_has_report(d))
			share_note(&d->shares[i], STANDING_NOT_REPORTED, "agent",
				   "no NICs are reported yet");
		else if (!d->shares[i].picks)
			note_no_nic(d, &d->shares[i]);
		else if (d->shares[i].groups > 0)
			note_agent(d, &d->shares[i], spec_is_written);
		json_put(reports, d->shares[i].policy.key, report_json(d, &d->shares[i]));
	}
	return reports;
}

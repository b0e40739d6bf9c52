// SPDX-License-Identifier: Apache-2.0
/*
 * Each link is a function that says whether it is broken; the table has them in the order in which
 * a resource comes about: policy, node, agent, NIC, VFs, device plugin, kubelet, health,
 * allocatable. `explain resource` has a row for each node.
 */
#include "cli/explain/resource.h"

#include <string.h>

#include "cli/explain/agent.h"
#include "cli/explain/chain.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/sriov/node_decision.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/sriov_policy.h"

/* What the links look at. */
struct look {
	const json_t *world;
	const char *node, *asked;
	const json_t *labels;  /* of the node */
	const json_t *makers;  /* all policies of the resource */
	json_t *selecting;     /* of them, those that count and select the node */
	const json_t *state;   /* NodeState, or NULL */
	const json_t *reports; /* of node_state_reports() */
	const json_t *offer;   /* of status.resources, or NULL */
	int64_t there;         /* allocatable; -1: nothing is said */
	bool excluded;
};

/* "spidernet.io/rail" and "rail" are the same resource. */
static bool resource_is(const char *name, const char *asked)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	return str_eq(name, asked) || (slash && str_eq(slash + 1, asked));
}

json_t *resource_makers(const json_t *world, const char *asked)
{
	json_t *found = json_object(), *policy;
	const char *key, *slash = strrchr(asked, '/');

	json_each (world_kind(world, KIND_POLICY), key, policy)
		if (resource_is(json_str_at(policy, "spec", "resourceName"),
				slash ? slash + 1 : asked))
			json_object_set(found, key, policy);
	return found;
}

const json_t *resource_offer(const json_t *state, const char *asked)
{
	json_t *resource;
	size_t i;

	json_array_foreach (json_at(state, "status", "resources"), i, resource)
		if (resource_is(json_str_at(resource, "name"), asked))
			return resource;
	return NULL;
}

int64_t resource_allocatable(const json_t *node, const char *asked)
{
	json_t *quantity;
	const char *name;

	json_each (json_at(node, "status", "allocatable"), name, quantity)
		if (resource_is(name, asked))
			return node_allocatable(node, name);
	return -1;
}

/* Say what is the matter with the link; true, for its function to return. */
static bool say(json_t *row, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool say(json_t *row, const char *reason, const char *fmt, ...)
{
	auto_free char *text = NULL, *what = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	what = one_line(text);
	json_put_str(row, "reason", reason);
	json_put_str(row, "broken", what);
	return true;
}

/* ---- the links ------------------------------------------------------------------------------- */

/* A policy that is refused as a whole, or does not count, is applied nowhere. */
static bool counts(const struct look *look, const char *key, const json_t *policy, json_t *row)
{
	auto_problems struct problems problems = {0};
	struct sriov_policy parsed;
	struct err err = {0};

	trust_check(look->world, policy, &problems);
	if (problems.total > 0) {
		auto_free char *text = problems_text(&problems);

		return !say(row, problems_reason(&problems), "policy %s: %s", key, text);
	}
	if (sriov_policy_is_reserved(policy))
		return !say(row, "NameReserved",
			    "policy %s: the name `default` is never applied; choose another", key);
	if (sriov_policy_parse(key, policy, &parsed, &err) < 0)
		return !say(row, err.reason, "policy %s: %s", key, err.text);
	if (json_integer_value(json_at(policy, "spec", "numVfs")) == 0)
		return !say(row, "NumVfsZero",
			    "policy %s: numVfs is 0, so it makes nothing; set it", key);
	return true;
}

static bool policy_broken(struct look *look, json_t *row)
{
	json_auto_t *said = json_object();
	const char *key;
	json_t *policy;

	json_each (look->makers, key, policy)
		if (counts(look, key, policy, said))
			json_object_set(look->selecting, key, policy);
	if (json_object_size(look->selecting) > 0 || json_object_size(look->makers) == 0)
		return false;
	json_object_update(row, said);
	return true;
}

static bool node_broken(struct look *look, json_t *row)
{
	json_auto_t *selecting = json_object();
	auto_strbuf struct strbuf why = {0};
	const char *key;
	json_t *policy;

	if (json_object_size(look->makers) == 0)
		return false;
	json_each (look->selecting, key, policy) {
		if (sriov_policy_selects(policy, look->labels)) {
			json_object_set(selecting, key, policy);
			continue;
		}
		strbuf_addf(&why, "%spolicy %s: ", why.len > 0 ? "; " : "", key);
		sriov_policy_why_not_selected(policy, look->labels, &why);
	}
	if (json_object_size(selecting) == 0) {
		look->excluded = true;
		return say(row, "NoNodeSelected", "%s", strbuf_str(&why));
	}
	json_object_clear(look->selecting);
	json_object_update(look->selecting, selecting);
	if (!node_runs_agent(look->labels))
		return say(
			row, NULL,
			"no agent runs on such a node: it needs kubernetes.io/os=linux and has %s",
			json_str_or(json_at(look->labels, "kubernetes.io/os"), "none"));
	return false;
}

static bool agent_broken(struct look *look, json_t *row)
{
	const json_t *conditions = json_at(look->state, "status", "conditions");
	const json_t *ready = json_find(conditions, "type", "Ready");
	auto_free char *missing = agent_pod_missing(look->world, look->node, look->state);

	if (!look->state)
		return json_object_size(look->makers) > 0 &&
		       say(row, NULL,
			   "the operator has not made its NodeState: look whether the operator "
			   "runs, and at its log");
	if (str_eq(json_str_at(ready, "reason"), "NoAgent"))
		return say(row, "NoAgent", "%s", json_str_or(json_at(ready, "message"), ""));
	if (!json_at(look->state, "status", "syncStatus"))
		return say(row, "NicsNotReported",
			   "the agent of this node has written no status yet: if this lasts, look "
			   "at its DaemonSet, kubectl describe node %s",
			   look->node);
	return missing && say(row, "NoAgent", "%s", missing);
}

/* Standings that are decided before the agent does anything. */
static bool is_of_decision(const char *reason)
{
	static const enum policy_standing standings[] = {
		STANDING_NO_NIC,    STANDING_NOT_REPORTED,   STANDING_SPEC_PENDING,
		STANDING_PF_HELD,   STANDING_TOO_MANY_VFS,   STANDING_EXTERNAL_VFS,
		STANDING_OVERRULED, STANDING_RESOURCE_TAKEN,
	};

	for (size_t i = 0; i < ARRAY_LEN(standings); i++)
		if (str_eq(reason, policy_standing_info(standings[i])->reason))
			return true;
	return false;
}

/* What a policy reports of this node, with the remedy. */
static bool say_report(json_t *row, const char *key, const json_t *report)
{
	const char *reason = json_str_at(report, "reason");
	const char *remedy = policy_standing_info(policy_standing_find(reason))->remedy;

	return say(row, policy_report_reason(report), "policy %s: %s%s%s", key,
		   json_str_or(json_at(report, "why"), reason), *remedy ? ": " : "", remedy);
}

/* Does an entry of spec.interfaces fill the resource? */
static bool fills(const struct look *look, const char *address)
{
	const json_t *entry =
		json_find(json_at(look->state, "spec", "interfaces"), "pciAddress", address);
	json_t *group;
	size_t i;

	json_array_foreach (json_at(entry, "vfGroups"), i, group)
		if (resource_is(json_str_at(group, "resourceName"), look->asked) ||
		    resource_is(look->asked, json_str_or(json_at(group, "resourceName"), "")))
			return true;
	return false;
}

/* What the agent could not do: with the NICs of this resource, or with the node. */
static bool say_problem(const struct look *look, json_t *row)
{
	json_t *problem;
	size_t i;

	json_array_foreach (json_at(look->state, "status", "problems"), i, problem) {
		const char *address = json_str_at(problem, "pciAddress");

		if (!address || fills(look, address))
			return say(row, json_str_at(problem, "reason"), "%s",
				   json_str_or(json_at(problem, "message"), ""));
	}
	return false;
}

static bool nic_broken(struct look *look, json_t *row)
{
	const char *key;
	json_t *policy;

	json_each (look->selecting, key, policy) {
		const json_t *report = json_object_get(look->reports, key);
		const char *reason = json_str_at(report, "reason");

		if (!is_of_decision(reason))
			continue;
		/* The agent knows why a NIC can have no VFs, and the command that changes it. */
		return (str_eq(reason, policy_standing_info(STANDING_TOO_MANY_VFS)->reason) &&
			say_problem(look, row)) ||
		       say_report(row, key, report);
	}
	return false;
}

static bool vfs_broken(struct look *look, json_t *row)
{
	const char *key;
	json_t *policy;

	json_each (look->selecting, key, policy) {
		const json_t *report = json_object_get(look->reports, key);
		const char *reason = json_str_at(report, "reason");
		const struct policy_standing_info *info =
			policy_standing_info(policy_standing_find(reason));

		if (!reason || info->ready)
			continue;
		return say_problem(look, row) || say_report(row, key, report);
	}
	return false;
}

static int64_t count_of(const json_t *offer, const char *member)
{
	return json_integer_value(json_at(offer, member));
}

static bool say_cause(const struct look *look, json_t *row, const char *otherwise)
{
	return say(row, NULL, "%s", json_str_or(json_at(look->offer, "cause"), otherwise));
}

static bool offer_broken(struct look *look, json_t *row)
{
	if (!look->offer)
		return json_object_size(look->makers) > 0 &&
		       say(row, NULL,
			   "the VFs are there and the agent does not offer them: look at the log "
			   "of the agent on this node");
	/* One ConfigMap serves nodes of both modes. */
	if (node_state_resource_is_withheld(look->state, look->offer)) {
		look->excluded = true;
		return say(row, "RdmaModeExclusive", "%s",
			   json_str_or(json_at(look->offer, "cause"),
				       "the node's RDMA mode is exclusive"));
	}
	return count_of(look->offer, "offered") < count_of(look->offer, "wanted") &&
	       say_cause(look, row,
			 "the agent offers fewer devices than are wanted; see the "
			 "NodeState's conditions");
}

static bool kubelet_broken(struct look *look, json_t *row)
{
	return look->offer && !json_is_true(json_at(look->offer, "registered")) &&
	       say_cause(look, row, "the kubelet does not serve it; look at the kubelet's log");
}

static bool health_broken(struct look *look, json_t *row)
{
	return count_of(look->offer, "healthy") < count_of(look->offer, "offered") &&
	       say_cause(look, row,
			 "not all of its devices are healthy; see the NodeState's "
			 "conditions");
}

static bool allocatable_broken(struct look *look, json_t *row)
{
	return look->there < count_of(look->offer, "healthy") &&
	       say(row, NULL,
		   "the kubelet has not told the API server yet: if this stays for a minute, look "
		   "at the kubelet's log");
}

static const struct {
	const char *name;
	bool (*broken)(struct look *look, json_t *row);
} links[] = {
	{"policy", policy_broken},   {"node", node_broken},     {"agent", agent_broken},
	{"nic", nic_broken},         {"vfs", vfs_broken},       {"offer", offer_broken},
	{"kubelet", kubelet_broken}, {"health", health_broken}, {"allocatable", allocatable_broken},
};

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_counts(json_t *row, const struct look *look)
{
	static const char *const counts_of[] = {"wanted", "offered", "healthy", "allocated"};

	for (size_t i = 0; i < ARRAY_LEN(counts_of); i++)
		if (json_at(look->offer, counts_of[i]))
			json_put_int(row, counts_of[i], count_of(look->offer, counts_of[i]));
	if (look->offer)
		json_put_str(row, "registered",
			     json_is_true(json_at(look->offer, "registered")) ? "yes" : "no");
	if (look->there >= 0)
		json_put_int(row, "allocatable", look->there);
}

json_t *resource_row(const json_t *world, const char *node, const char *asked, const json_t *makers)
{
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), node);
	const json_t *object = world_get(world, KIND_NODE, node);
	auto_decision struct decision decision = {0};
	json_auto_t *selecting = json_object();
	json_auto_t *reports = node_state_reports(world, node, SIZE_MAX, &decision);
	struct look look = {
		.world = world,
		.node = node,
		.asked = asked,
		.labels = json_at(object, "metadata", "labels"),
		.makers = makers,
		.selecting = selecting,
		.state = world_get(world, KIND_NODE_STATE, key),
		.reports = reports,
		.there = resource_allocatable(object, asked),
	};
	json_t *row;

	look.offer = resource_offer(look.state, asked);
	if (json_object_size(makers) == 0 && !look.offer && look.there < 0)
		return NULL;
	row = json_object();
	json_put_str(row, "node", node);
	put_counts(row, &look);
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		/* What claims have no device plugin offers. */
		if (links[i].broken == kubelet_broken && node_state_resource_is_given(look.offer))
			break;
		if (links[i].broken(&look, row)) {
			json_put_str(row, "link", links[i].name);
			break;
		}
	}
	if (look.excluded)
		json_put_bool(row, "excluded", true);
	return row;
}

json_t *resource_rows(const json_t *world, const char *asked)
{
	json_auto_t *makers = resource_makers(world, asked);
	json_t *rows = json_array(), *object;
	const char *node;

	json_each (world_kind(world, KIND_NODE), node, object) {
		json_t *row = resource_row(world, node, asked, makers);

		if (row)
			json_array_append_new(rows, row);
	}
	return rows;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Two worlds are decided: the one that is there, and the one with the change. What the second asks
 * of a node is compared with what its agent last reported, and reconcilers/sriov's impact says what
 * pods notice. plan_objects.c does the same for objects other than policies.
 */
#include "cli/plan.h"

#include <string.h>

#include "cli/plan_objects.h"
#include "cli/print.h"
#include "cli/source.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/labels.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/core/trust.h"
#include "reconcilers/sriov/impact.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_report.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/sriov_policy.h"

#define KIND_BUDGET "poddisruptionbudgets"

const char *const plan_kinds[] = {
	KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG, KIND_POD, KIND_BUDGET, NULL,
};

const struct cli_field plan_fields[] = {
	{"objects[].kind", "string", "of an object that is to be applied"},
	{"objects[].key", "string", "NAMESPACE/NAME of it, or NAME"},
	{"objects[].is", "string",
	 "created, changed, unchanged, refused: the API server would not take it; absent: nobody "
	 "here looks at its kind, or may"},
	{"objects[].faults[].path", "string",
	 "a field that the API server refuses the value of, or does not know"},
	{"objects[].faults[].message", "string", "what is wrong with it"},
	{"objects[].differences[].path", "string", "a field that changes"},
	{"objects[].differences[].before", "string", "its value as JSON; absent: none"},
	{"objects[].differences[].after", "string", "its value as JSON; absent: none"},
	{"objects[].follows[].does", "string",
	 "what the operator would do, and not without the object: create, patch, delete, status, "
	 "evict; finding: people are told; fail: it cannot decide"},
	{"objects[].follows[].kind", "string", "of the object to which it does that"},
	{"objects[].follows[].key", "string", "of that object"},
	{"objects[].follows[].controller", "string", "which decides"},
	{"objects[].follows[].message", "string", "of a finding, or why it cannot decide"},
	{"objects[].follows[].condition", "string",
	 "of a status: the worst condition, or Ready, as TYPE=STATUS REASON: MESSAGE"},
	{"objects[].follows[].troubled", "boolean", "of a status: does somebody have to act?"},
	{"objects[].follows[].differences[].path", "string", "of a field"},
	{"objects[].follows[].differences[].before", "string", "its value as JSON; absent: none"},
	{"objects[].follows[].differences[].after", "string", "its value as JSON; absent: none"},
	{"objects[].nothing", "string", "why nothing follows"},
	{"nodes[].node", "string", "name of the Node"},
	{"nodes[].class", "string", "worst of its changes: none, evict, reboot"},
	{"nodes[].reported", "boolean", "has its agent ever written a status?"},
	{"nodes[].unknown", "integer", "VFs that may be in use without a word on who has them"},
	{"nodes[].changes[].class", "string", "none, evict, reboot"},
	{"nodes[].changes[].pciAddress", "string", "of the PF; absent: it is about the node"},
	{"nodes[].changes[].nic", "string", "name of the PF"},
	{"nodes[].changes[].vfsBefore", "integer", "VFs that it has"},
	{"nodes[].changes[].vfs", "integer", "VFs that it would have"},
	{"nodes[].changes[].message", "string", "what changes, and why"},
	{"nodes[].pods[].pod", "string", "a pod that would have to end, once for each device"},
	{"nodes[].pods[].container", "string", "that has the device"},
	{"nodes[].pods[].resource", "string", "that it asked for"},
	{"nodes[].pods[].device", "string", "PCI address"},
	{"nodes[].pods[].nic", "string", "name of the PF"},
	{"nodes[].pods[].why", "string", "the change that needs it"},
	{"nodes[].pods[].owner", "string", "KIND/NAME of the controller that makes it anew"},
	{"nodes[].pods[].budget", "string", "PodDisruptionBudget, and how many it allows now"},
	{"nodes[].spec", "object", "the NodeState's spec as the operator would write it"},
	{"policiesNotMet[].policy", "string", "NAMESPACE/NAME of the policy or pool config"},
	{"policiesNotMet[].node", "string", "absent: it is wrong by itself"},
	{"policiesNotMet[].reason", "string", "that its condition would have"},
	{"policiesNotMet[].why", "string", "what is the matter, and what to do"},
	{"leftOut[].controller", "string", "of the operator; it decides nothing here"},
	{"leftOut[].why", "string", "what of the cluster is not known"},
	{0},
};

/* ---- the world with the change --------------------------------------------------------------- */

/* "NAMESPACE/POLICY-": take it out of the world. */
static int without(const struct cli *cli, json_t *world, const char *argument, struct err *err)
{
	auto_free char *key = str_ndup(argument, strlen(argument) - 1);

	if (json_object_del(json_at(world, KIND_POLICY), key) < 0)
		return err_set(err, ERR_INVALID, "PolicyNotFound",
			       "%.128s: there is no such SriovNetworkNodePolicy; write "
			       "NAMESPACE/NAME-",
			       argument);
	return 0;
}

static bool is_taken_out(const char *argument)
{
	return str_ends(argument, "-") && strchr(argument, '/');
}

static int take_out(const struct cli *cli, json_t *world, struct err *err)
{
	for (size_t i = 0; i < cli->args_len; i++)
		if (is_taken_out(cli->args[i]) && without(cli, world, cli->args[i], err) < 0)
			return -1;
	return 0;
}

static int nothing_in(const char *path, struct err *err)
{
	return err_set(err, ERR_INVALID, "NothingToPlan", "%.128s: no Kubernetes object is in it",
		       path);
}

static int read_objects(const struct cli *cli, json_t *objects, struct err *err)
{
	for (size_t i = 0; i < cli->args_len; i++) {
		const char *argument = cli->args[i];
		size_t n = json_array_size(objects);

		if (is_taken_out(argument))
			continue;
		if (source_objects(objects, argument, err) < 0) {
			/* A file that cannot be read is not wrong usage. */
			err->class = ERR_HOST;
			return -1;
		}
		if (json_array_size(objects) == n)
			return nothing_in(argument, err);
	}
	return 0;
}

/* Are files of -f a cluster, or what is to be applied to one? */
static bool are_to_be_applied(const struct cli *cli)
{
	return cli->files && cli->args_len == 0 && !json_at(cli->world, CLI_DUMP) &&
	       json_object_size(world_kind(cli->world, KIND_NODE)) == 0 &&
	       json_object_size(world_kind(cli->world, KIND_NODE_STATE)) == 0;
}

/* ---- one node -------------------------------------------------------------------------------- */

/* The operation of a plan, or NULL. */
static const json_t *find_op(const struct plan *plan, const char *name)
{
	json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op)
		if (str_eq(json_str_at(op, "op"), name))
			return op;
	return NULL;
}

/* Policies that do not get what they ask for on this node. */
static void add_troubles(json_t *troubles, const char *node, const json_t *reports)
{
	const char *policy;
	json_t *report;

	json_each (reports, policy, report) {
		const char *reason = json_str_at(report, "reason");
		const struct policy_standing_info *info =
			policy_standing_info(policy_standing_find(reason));

		if (reason && info->degraded)
			json_array_append_new(
				troubles,
				json_pack("{s:s, s:s, s:s, s:s}", "node", node, "policy", policy,
					  "reason", policy_report_reason(report), "why",
					  json_str_or(json_at(report, "why"), info->remedy)));
	}
}

/* The controller that would recreate the pod. */
static char *owner_of(const json_t *pod)
{
	json_t *owner;
	size_t i;

	json_array_foreach (json_at(pod, "metadata", "ownerReferences"), i, owner)
		if (json_is_true(json_at(owner, "controller")))
			return str_printf("%s/%s", json_str_or(json_at(owner, "kind"), ""),
					  json_str_or(json_at(owner, "name"), ""));
	return NULL;
}

/* The disruption budget that the pod counts for, with what it still allows. */
static json_t *budget_of(const struct cli *cli, const json_t *pod)
{
	const char *ns = json_namespace(pod), *key;
	json_t *budget;

	json_each (world_kind(cli->world, KIND_BUDGET), key, budget) {
		if (str_eq(json_namespace(budget), ns) &&
		    label_selector_matches(json_at(budget, "spec", "selector"),
					   json_at(pod, "metadata", "labels")))
			return json_fmt("%s (allows %lld)", json_name(budget),
					(long long)json_integer_value(
						json_at(budget, "status", "disruptionsAllowed")));
	}
	return NULL;
}

/* Decide for one node of the changed world. NULL: nothing of ours is about it. */
static json_t *plan_node(const struct cli *cli, const json_t *world, const char *node,
			 json_t *troubles, struct err *err)
{
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), node);
	const json_t *state = world_get(world, KIND_NODE_STATE, key), *apply;
	auto_plan struct plan plan = {0};
	json_t *row;
	json_t *entry;
	size_t i;

	if (node_state_reconcile(world, node, &plan, err) < 0)
		return NULL;
	add_troubles(troubles, node, json_at(find_op(&plan, "report"), "policies"));
	apply = find_op(&plan, "apply");
	if (!apply)
		return json_object();
	row = node_impact(json_at(state, "spec"), json_at(apply, "object", "spec"),
			  json_at(state, "status"));
	json_put_str(row, "node", node);
	json_put(row, "spec", json_incref(json_at(apply, "object", "spec")));
	json_put_bool(row, "reported", json_at(state, "status", "syncStatus") != NULL);
	json_array_foreach (json_at(row, "pods"), i, entry) {
		const json_t *pod =
			world_get(cli->world, KIND_POD, json_str_or(json_at(entry, "pod"), ""));
		auto_free char *owner = owner_of(pod);
		json_t *budget = pod ? budget_of(cli, pod) : NULL;

		json_put_str(entry, "owner", owner);
		if (budget)
			json_put(entry, "budget", budget);
	}
	return row;
}

static json_t *plan_all(const struct cli *cli, const json_t *world, json_t *troubles,
			struct err *err)
{
	json_auto_t *rows = json_array();
	const char *node;
	json_t *object;

	json_each (world_kind(world, KIND_NODE), node, object) {
		json_t *row = plan_node(cli, world, node, troubles, err);

		if (!row)
			return NULL;
		if (json_object_size(row) > 0)
			json_array_append(rows, row);
		json_decref(row);
	}
	return json_incref(rows);
}

/* What is wrong with policies and pool configs by themselves, before any node is looked at. */
static void check_objects(const json_t *world, const char *kind,
			  void (*check)(const json_t *, struct problems *), json_t *troubles)
{
	const char *key;
	json_t *object;

	json_each (world_kind(world, kind), key, object) {
		auto_problems struct problems problems = {0};
		auto_free char *text = NULL;

		trust_check(world, object, &problems);
		check(object, &problems);
		if (problems.total == 0)
			continue;
		text = problems_text(&problems);
		json_array_append_new(troubles,
				      json_pack("{s:s, s:s, s:s}", "policy", key, "reason",
						problems_reason(&problems), "why", text));
	}
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* The objects that a row has under key, each with the row's node. */
static void add_rows(json_t *lines, const json_t *row, const char *key)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(row, key), i, entry) {
		json_t *line = json_copy(entry);

		json_put_str(line, "node", json_str_at(row, "node"));
		if (json_at(entry, "vfs"))
			json_put(
				line, "count",
				json_fmt("%lld -> %lld",
					 (long long)json_integer_value(json_at(entry, "vfsBefore")),
					 (long long)json_integer_value(json_at(entry, "vfs"))));
		json_array_append_new(lines, line);
	}
}

static void print_tables(struct strbuf *out, const json_t *rows, const json_t *troubles)
{
	static const struct column changes[] = {
		{"NODE", "node"}, {"CLASS", "class"},  {"NIC", "nic"},
		{"VFS", "count"}, {"WHAT", "message"},
	};
	static const struct column pods[] = {
		{"POD THAT HAS TO END", "pod"}, {"NODE", "node"},
		{"DEVICE", "device"},           {"OWNER", "owner"},
		{"BUDGET", "budget"},           {"WHY", "why"},
	};
	static const struct column policies[] = {
		{"POLICY NOT MET", "policy"},
		{"NODE", "node"},
		{"REASON", "reason"},
		{"WHY", "why"},
	};
	json_auto_t *lines = json_array(), *ending = json_array();
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		add_rows(lines, row, "changes");
		add_rows(ending, row, "pods");
	}
	print_part(out, changes, ARRAY_LEN(changes), lines);
	print_part(out, pods, ARRAY_LEN(pods), ending);
	print_part(out, policies, ARRAY_LEN(policies), troubles);
	if (json_array_size(lines) + json_array_size(troubles) == 0)
		strbuf_addf(out, "%snothing changes on any node\n", out->len > 0 ? "\n" : "");
}

static enum cli_status status_of(const json_t *rows, bool found)
{
	enum cli_status status = found ? CLI_FOUND : CLI_OK;
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *class = json_str_at(row, "class");

		if (str_eq(class, node_impact_name(NODE_IMPACT_REBOOT)))
			return CLI_REBOOT;
		if (str_eq(class, node_impact_name(NODE_IMPACT_EVICT)))
			status = CLI_EVICT;
	}
	return status;
}

static void print(const struct cli *cli, struct strbuf *out, const struct plan_objects *objects,
		  const json_t *rows, const json_t *troubles)
{
	json_auto_t *members = NULL;

	if (cli->output == CLI_TABLE) {
		plan_objects_print(out, objects);
		print_tables(out, rows, troubles);
		return;
	}
	members = json_pack("{s:O, s:O, s:O, s:O}", "objects", objects->rows, "nodes", rows,
			    "policiesNotMet", troubles, "leftOut", objects->left_out);
	print_document(cli, out, members);
}

/* To the world of cli, on which the operator's controllers can decide. */
static int plan_changes(const struct cli *cli, const json_t *given, struct plan_objects *objects,
			json_t **ret_world, struct err *err)
{
	json_auto_t *before = NULL, *world = NULL;

	if (json_array_size(given) > 0 && source_read_rest(cli, cli->world, err) < 0)
		return -1;
	before = source_world(cli);
	if (take_out(cli, before, err) < 0)
		return -1;
	world = source_world(cli);
	(void)take_out(cli, world, NULL);
	if (json_array_size(given) > 0) {
		plan_objects_apply(cli, world, given, objects);
		plan_objects_follow(cli, before, world, objects);
	}
	*ret_world = json_incref(world);
	return 0;
}

static int plan(const struct cli *cli, const json_t *given, struct plan_objects *objects,
		struct strbuf *out, enum cli_status *ret_status, struct err *err)
{
	json_auto_t *world = NULL, *troubles = json_array(), *rows = NULL;

	if (plan_changes(cli, given, objects, &world, err) < 0)
		return -1;
	check_objects(world, KIND_POLICY, sriov_policy_check, troubles);
	check_objects(world, KIND_POOL_CONFIG, pool_config_check, troubles);
	rows = plan_all(cli, world, troubles, err);
	if (!rows)
		return -1;
	*ret_status = status_of(rows, json_array_size(troubles) > 0 || objects->troubled);
	print(cli, out, objects, rows, troubles);
	return 0;
}

/* Files of -f that are not a cluster: one is asked. */
static int plan_files(const struct cli *cli, const json_t *given, struct plan_objects *objects,
		      struct strbuf *out, enum cli_status *ret_status, struct err *err)
{
	struct cli asking = *cli;
	json_auto_t *world = NULL;

	if (json_array_size(given) == 0)
		return nothing_in(cli->files[0], err);
	asking.files = NULL;
	world = source_read(&asking, plan_kinds, err);
	if (!world) {
		/* What stands in a kubeconfig is not a mistake of the command line. */
		err->class = ERR_TRANSIENT;
		return err_in(err, "%s has no nodes, so it is to be applied to a cluster",
			      cli->files[0]);
	}
	asking.world = world;
	return plan(&asking, given, objects, out, ret_status, err);
}

int plan_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	     struct err *err)
{
	struct plan_objects objects = {.rows = json_array(), .left_out = json_array()};
	json_auto_t *given = json_array();
	int result = -1;

	if (are_to_be_applied(cli))
		result = plan_files(cli, json_at(cli->world, CLI_GIVEN), &objects, out, ret_status,
				    err);
	else if (read_objects(cli, given, err) == 0)
		result = plan(cli, given, &objects, out, ret_status, err);
	plan_objects_done(&objects);
	return result;
}

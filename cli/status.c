// SPDX-License-Identifier: Apache-2.0
/*
 * Nothing is computed here that is not in a status already, except that no status was written, that
 * no operator leads, or that a Node is not Ready. Findings are gathered kind by kind; the report
 * and `plan` ask for the worst condition of an object here, too.
 */
#include "cli/status.h"

#include "cli/doctor/away.h"
#include "cli/leader.h"
#include "cli/print.h"
#include "lib/json/json.h"
#include "operator/cache/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/sriov/node_names.h"

const char *const status_kinds[] = {
	KIND_NODE_STATE,
	KIND_POLICY,
	KIND_POOL_CONFIG,
	KIND_SRIOV_NETWORK,
	KIND_SRIOV_IB_NETWORK,
	KIND_OVS_NETWORK,
	KIND_MULTUS_CONFIG,
	KIND_COORDINATOR,
	KIND_IP_POOL,
	KIND_RESERVED_IP,
	KIND_NODE, /* not ours: for what it offers of resources */
	NULL,
};

const struct cli_field status_fields[] = {
	{"kinds[].kind", "string", "a kind that there are objects of"},
	{"kinds[].count", "integer", "how many"},
	{"kinds[].ready", "integer", "of them, how many are Ready"},
	{"kinds[].troubled", "integer", "of them, how many have a finding"},
	{"nodes[].node", "string", "name of the Node"},
	{"nodes[].sync", "string", "status.syncStatus of its NodeState"},
	{"nodes[].vfs", "string", "VFs that are there, a slash, VFs that are wanted"},
	{"nodes[].rails", "string",
	 "rails whose NIC is there, a slash, all rails; absent without RDMA-capable NICs"},
	{"nodes[].rdma", "string", "RDMA namespace mode: shared or exclusive"},
	{"nodes[].resources", "string",
	 "each resource with its healthy and its wanted devices, as the agent last said; behind "
	 "them what the Node has allocatable when that is less"},
	{"nodes[].ready", "string",
	 "reason of the NodeState's condition Ready; NodeNotReady: Kubernetes says the Node is not "
	 "Ready"},
	{"findings[].kind", "string", "of the object"},
	{"findings[].name", "string", "NAMESPACE/NAME of the object, or NAME"},
	{"findings[].condition", "string",
	 "type of its worst condition; absent: of the operator's Lease"},
	{"findings[].reason", "string", "the condition's reason; see explain reason"},
	{"findings[].message", "string", "what is the matter, and what to do"},
	{0},
};

static const json_t *condition(const json_t *object, const char *type)
{
	return json_find(json_at(object, "status", "conditions"), "type", type);
}

static bool is_true(const json_t *object, const char *type)
{
	return str_eq(json_str_at(condition(object, type), "status"), "True");
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static json_t *resources_text(const json_t *node, const json_t *state)
{
	auto_strbuf struct strbuf text = {0};
	json_t *resource;
	size_t i;

	json_array_foreach (json_at(state, "status", "resources"), i, resource) {
		const char *name = json_str_or(json_at(resource, "name"), "?");
		int64_t healthy = json_integer_value(json_at(resource, "healthy"));
		int64_t there = node_allocatable(node, name);

		strbuf_addf(&text, "%s%s %lld/%lld", text.len > 0 ? ", " : "", name,
			    (long long)healthy,
			    (long long)json_integer_value(json_at(resource, "wanted")));
		if (there >= 0 && there < healthy)
			strbuf_addf(&text, " (allocatable: %lld)", (long long)there);
	}
	return text.len > 0 ? json_string(strbuf_str(&text)) : NULL;
}

static json_t *node_row(const json_t *node, const json_t *state)
{
	const json_t *status = json_at(state, "status");
	json_t *row = json_object(), *resources = resources_text(node, state);
	auto_free char *away = away_node(node);

	json_put_str(row, "node", json_name(state));
	json_put_str(row, "sync", json_str_at(status, "syncStatus"));
	if (json_at(status, "wantedVfs"))
		json_put(row, "vfs",
			 json_fmt("%lld/%lld",
				  (long long)json_integer_value(json_at(status, "presentVfs")),
				  (long long)json_integer_value(json_at(status, "wantedVfs"))));
	if (json_at(status, "rails"))
		json_put(row, "rails",
			 json_fmt("%lld/%zu",
				  (long long)json_integer_value(json_at(status, "rails", "count")),
				  json_array_size(json_at(status, "rails", "list"))));
	if (resources)
		json_put(row, "resources", resources);
	json_put_str(row, "rdma", json_str_at(status, "system", "rdmaMode"));
	json_put_str(row, "ready",
		     away ? "NodeNotReady" : json_str_at(condition(state, "Ready"), "reason"));
	return row;
}

/* ---- findings -------------------------------------------------------------------------------- */

/* The worst that an object says of itself, or NULL. Worst first. */
static const json_t *trouble(const json_t *object)
{
	static const char *const bad_when_true[] = {"Degraded", "Blocked", "RebootRequired"};
	const json_t *ready = condition(object, "Ready");

	for (size_t i = 0; i < ARRAY_LEN(bad_when_true); i++)
		if (is_true(object, bad_when_true[i]))
			return condition(object, bad_when_true[i]);
	return ready && !is_true(object, "Ready") ? ready : NULL;
}

const json_t *status_worst(const json_t *object)
{
	const json_t *found = trouble(object);

	return found ? found : condition(object, "Ready");
}

bool status_needs_somebody(const json_t *object)
{
	const json_t *ready = condition(object, "Ready");

	return is_true(object, "Degraded") ||
	       (ready && !is_true(object, "Ready") && !is_true(object, "Progressing"));
}

/*
 * Does the operator write conditions of this kind? The table of kinds that it writes decides. It
 * also writes those of a NodeState, but only once the agent has written the status.
 */
static bool has_operators_conditions(const char *kind)
{
	const struct operator_kind *row = operator_kind_find(kind);

	return row && row->writes & KIND_STATUS && !str_eq(kind, KIND_NODE_STATE);
}

/*
 * Message of OperatorSilent: the object has no condition Ready, or one of an older generation.
 * NULL: the operator has reconciled the object, or writes no conditions of this kind. Returns new.
 */
static char *silence(const json_t *object, const char *kind)
{
	static const char remedy[] =
		"wait; if this lasts, see whether the operator runs (kubectl get pods -n "
		"orbweaver-system) and whether it has its rights and definitions: kubectl apply -f "
		"crds/; kubectl apply -k manifests/";
	const json_t *ready = condition(object, "Ready");
	int64_t seen = json_integer_value(json_at(ready, "observedGeneration"));

	if (!has_operators_conditions(kind))
		return NULL;
	if (!ready)
		return str_printf("the operator has said nothing about it: %s", remedy);
	if (seen > 0 && seen < json_generation(object))
		return str_printf("the operator has said nothing since it was changed (generation "
				  "%lld of %lld): %s",
				  (long long)seen, (long long)json_generation(object), remedy);
	return NULL;
}

struct count {
	size_t all, ready, troubled;
};

static void add_finding(json_t *findings, const char *kind, const char *key, const char *type,
			const char *reason, const char *message)
{
	json_t *row = json_object();

	json_put_str(row, "kind", kind);
	json_put_str(row, "name", key);
	json_put_str(row, "condition", type);
	json_put_str(row, "reason", reason);
	json_put_str(row, "message", message);
	json_array_append_new(findings, row);
}

/* All objects of a kind. */
static void look(const json_t *world, const char *id, json_t *findings, struct count *ret)
{
	const char *kind = kind_find(id)->kind, *key;
	json_t *object;

	*ret = (struct count){0};
	json_each (world_kind(world, id), key, object) {
		auto_free char *silent = silence(object, id);
		const json_t *found = trouble(object);

		ret->all++;
		ret->ready += is_true(object, "Ready");
		if (!found && !silent)
			continue;
		ret->troubled++;
		/* What it said before is about another spec. */
		if (silent)
			add_finding(findings, kind, key, "Ready", "OperatorSilent", silent);
		else
			add_finding(findings, kind, key, json_str_at(found, "type"),
				    json_str_at(found, "reason"), json_str_at(found, "message"));
	}
}

/* The one finding that explains why others do not pass. */
static void add_leader_finding(const struct cli *cli, json_t *findings)
{
	auto_leader_finding struct leader_finding leader;
	auto_free char *message = NULL;

	leader_look(cli, &leader);
	if (!leader.seen)
		return;
	message = str_printf("%s: %s", leader.seen, leader.remedy);
	add_finding(findings, "Lease", leader.lease, NULL, "NoLeader", message);
}

/* A Node with a NodeState: what is said of it may be long ago. */
static void add_node_finding(const json_t *node, json_t *findings)
{
	auto_free char *away = away_node(node), *message = NULL;

	if (!away)
		return;
	message =
		str_printf("%s: see what ails it: kubectl describe node %s", away, json_name(node));
	add_finding(findings, kind_find(KIND_NODE)->kind, json_name(node), "Ready", "NodeNotReady",
		    message);
}

/* One row for each kind that there are objects of. */
static json_t *kind_row(const char *kind, const struct count *count)
{
	json_t *row = json_object();

	json_put_str(row, "kind", kind);
	json_put_int(row, "count", (int64_t)count->all);
	json_put_int(row, "ready", (int64_t)count->ready);
	json_put_int(row, "troubled", (int64_t)count->troubled);
	return row;
}

/* kinds: a row for each kind is appended; NULL: rows are not wanted. */
static json_t *findings_and_kinds(const struct cli *cli, json_t *kinds)
{
	json_t *findings = json_array(), *state;
	const char *key;

	add_leader_finding(cli, findings);
	for (size_t i = 0; status_kinds[i]; i++) {
		struct count count;

		/* add_node_finding() looks at those that have a NodeState. */
		if (str_eq(status_kinds[i], KIND_NODE))
			continue;
		look(cli->world, status_kinds[i], findings, &count);
		if (kinds && count.all > 0)
			json_array_append_new(kinds,
					      kind_row(kind_find(status_kinds[i])->kind, &count));
	}
	json_each (world_kind(cli->world, KIND_NODE_STATE), key, state)
		add_node_finding(world_get(cli->world, KIND_NODE, json_name(state)), findings);
	return findings;
}

json_t *status_findings(const struct cli *cli)
{
	return findings_and_kinds(cli, NULL);
}

int status_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	static const struct column kind_columns[] = {
		{"KIND", "kind"},
		{"OBJECTS", "count"},
		{"READY", "ready"},
		{"TROUBLED", "troubled"},
	};
	static const struct column node_columns[] = {
		{"NODE", "node"},   {"SYNC", "sync"}, {"VFS", "vfs"},
		{"RAILS", "rails"}, {"RDMA", "rdma"}, {"RESOURCES", "resources"},
		{"READY", "ready"},
	};
	static const struct column finding_columns[] = {
		{"KIND", "kind"},     {"NAME", "name"},       {"CONDITION", "condition"},
		{"REASON", "reason"}, {"MESSAGE", "message"},
	};
	json_auto_t *kinds = json_array(), *nodes = json_array();
	json_auto_t *findings = findings_and_kinds(cli, kinds);
	const char *key;
	json_t *state;

	json_each (world_kind(cli->world, KIND_NODE_STATE), key, state)
		json_array_append_new(
			nodes, node_row(world_get(cli->world, KIND_NODE, json_name(state)), state));

	*ret_status = json_array_size(findings) > 0 ? CLI_FOUND : CLI_OK;
	if (cli->output != CLI_TABLE) {
		json_auto_t *members = json_pack("{s:O, s:O, s:O}", "kinds", kinds, "nodes", nodes,
						 "findings", findings);

		print_document(cli, out, members);
		return 0;
	}
	print_part(out, kind_columns, ARRAY_LEN(kind_columns), kinds);
	print_part(out, node_columns, ARRAY_LEN(node_columns), nodes);
	print_part(out, finding_columns, ARRAY_LEN(finding_columns), findings);
	if (out->len == 0)
		strbuf_adds(out, "there are no objects of ours in this cluster: apply a "
				 "SriovNetworkNodePolicy or a SpiderMultusConfig\n");
	return 0;
}

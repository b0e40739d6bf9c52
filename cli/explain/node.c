// SPDX-License-Identifier: Apache-2.0
/* The chain of a node: operator, agent, what is wanted, what is there, what the kubelet offers. */

#include "cli/doctor/away.h"
#include "cli/explain/agent.h"
#include "cli/explain/chain.h"
#include "cli/explain/explain.h"
#include "cli/explain/resource.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/sriov/node_decision.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/roce_settings.h"

static void add_node(json_t *chain, const json_t *node)
{
	const json_t *labels = json_at(node, "metadata", "labels");
	const json_t *ready = json_find(json_at(node, "status", "conditions"), "type", "Ready");
	auto_free char *away = away_node(node);

	if (!node_runs_agent(labels))
		chain_add(chain, "node", LINK_BROKEN, NULL,
			  "no agent runs on such a node: it needs the label kubernetes.io/os=linux "
			  "and has %s",
			  json_str_or(json_at(labels, "kubernetes.io/os"), "none"));
	else if (away)
		chain_add(chain, "node", LINK_BROKEN, json_str_at(ready, "reason"),
			  "%s: see what ails it: kubectl describe node %s", away, json_name(node));
	else
		chain_add(chain, "node", LINK_HOLDS, NULL, "%s",
			  json_is_true(json_at(node, "spec", "unschedulable"))
				  ? "is there; cordoned, so new pods go elsewhere"
				  : "is there and Ready");
}

/* One link for each policy that selects the node; false when there is none. */
static bool add_policies(json_t *chain, const json_t *reports)
{
	const char *key;
	json_t *report;

	json_each (reports, key, report) {
		const char *reason = json_str_at(report, "reason");
		const struct policy_standing_info *info =
			policy_standing_info(policy_standing_find(reason));
		enum link_state state = info->degraded || str_eq(reason, "NoNicMatches")
						? LINK_BROKEN
					: info->ready ? LINK_HOLDS
						      : LINK_WAITS;

		chain_add(chain, "policy", state, policy_report_reason(report), "%s: %s", key,
			  json_str_or(json_at(report, "why"), "applied"));
	}
	return json_object_size(reports) > 0;
}

static void add_agent(json_t *chain, const json_t *world, const char *name, const json_t *state)
{
	const json_t *ready = json_find(json_at(state, "status", "conditions"), "type", "Ready");
	const char *sync = json_str_at(state, "status", "syncStatus");
	const char *version = json_str_or(json_at(state, "status", "agentVersion"), "?");
	int64_t seen = json_integer_value(json_at(state, "status", "observedGeneration"));
	auto_free char *missing = agent_pod_missing(world, name, state);

	if (str_eq(json_str_at(ready, "reason"), "NoAgent")) {
		chain_add(chain, "agent", LINK_BROKEN, "NoAgent", "%s",
			  json_str_or(json_at(ready, "message"), ""));
		return;
	}
	if (!sync) {
		chain_add(chain, "agent", LINK_BROKEN, "NoAgent",
			  "has written no status: if this lasts, see why its DaemonSet has no "
			  "running pod there");
		return;
	}
	if (missing)
		chain_add(chain, "agent", LINK_BROKEN, "NoAgent", "%s", missing);
	else if (seen != json_generation(state))
		chain_add(chain, "agent", LINK_WAITS, NULL,
			  "version %s has not seen the last change of the NodeState (generation "
			  "%lld of %lld): if this lasts, look at its log",
			  version, (long long)seen, (long long)json_generation(state));
	else
		chain_add(chain, "agent", LINK_HOLDS, NULL, "version %s follows the NodeState: %s",
			  version, sync);
}

static void add_conditions(json_t *chain, const json_t *state)
{
	static const struct {
		const char *type;
		enum link_state state;
	} bad_when_true[] = {
		{"Degraded", LINK_BROKEN},
		{"Blocked", LINK_WAITS},
		{"RebootRequired", LINK_WAITS},
	};
	const json_t *conditions = json_at(state, "status", "conditions");

	for (size_t i = 0; i < ARRAY_LEN(bad_when_true); i++) {
		const json_t *condition = json_find(conditions, "type", bad_when_true[i].type);

		if (str_eq(json_str_at(condition, "status"), "True"))
			chain_add(chain, "host", bad_when_true[i].state,
				  json_str_at(condition, "reason"), "%s: %s", bad_when_true[i].type,
				  json_str_or(json_at(condition, "message"), ""));
	}
	if (json_at(state, "status", "wantedVfs"))
		chain_add(chain, "VFs",
			  json_integer_value(json_at(state, "status", "presentVfs")) <
					  json_integer_value(json_at(state, "status", "wantedVfs"))
				  ? LINK_BROKEN
				  : LINK_HOLDS,
			  NULL, "%lld of %lld that are wanted are there",
			  (long long)json_integer_value(json_at(state, "status", "presentVfs")),
			  (long long)json_integer_value(json_at(state, "status", "wantedVfs")));
}

/* What is wrong with it is Degraded, too. */
static void add_networks(json_t *chain, const json_t *state)
{
	const json_t *condition =
		json_find(json_at(state, "status", "conditions"), "type", "PodNetworks");
	const char *reason = json_str_at(condition, "reason");
	bool holds = str_eq(json_str_at(condition, "status"), "True")
			     ? !str_eq(reason, "PluginsInUse")
			     : str_eq(reason, "DevicesOnly");

	if (condition)
		chain_add(chain, "networks", holds ? LINK_HOLDS : LINK_WAITS, reason, "%s",
			  json_str_or(json_at(condition, "message"), ""));
}

static void add_links(json_t *chain, const json_t *state)
{
	const json_t *ports = json_at(state, "status", "linkHealth", "ports"), *port;
	size_t i, n = 0;

	json_array_foreach (ports, i, port) {
		const char *verdict = json_str_at(port, "verdict");

		if (str_eq(verdict, "healthy"))
			continue;
		n++;
		chain_add(chain, "link", str_eq(verdict, "failed") ? LINK_BROKEN : LINK_WAITS,
			  json_str_at(port, "reason"), "%s (%s), since %s, lost %lld times in all",
			  json_str_or(json_at(port, "message"), "?"),
			  json_str_or(json_at(port, "pciAddress"), "?"),
			  json_str_or(json_at(port, "since"), "?"),
			  (long long)json_integer_value(json_at(port, "flaps")));
	}
	if (n == 0 && json_array_size(ports) > 0)
		chain_add(chain, "link", LINK_HOLDS, NULL, "all %zu ports are healthy",
			  json_array_size(ports));
}

/* Why one is not as wanted, Degraded and Blocked say. */
static void add_settings(json_t *chain, const json_t *state)
{
	json_t *nic;
	size_t i;

	json_array_foreach (json_at(state, "spec", "nicSettings"), i, nic) {
		const char *address = json_str_or(json_at(nic, "pciAddress"), "?"), *setting;
		const json_t *pf =
			json_find(json_at(state, "status", "interfaces"), "pciAddress", address);
		json_auto_t *unmet = roce_settings_unmet(nic, pf);
		auto_strbuf struct strbuf text = {0};
		json_t *wanted;

		json_each (json_at(nic, "settings"), setting, wanted) {
			const json_t *is = json_at(pf, "settings", setting);
			auto_free char *value = is ? json_text(is) : NULL;

			strbuf_addf(&text, "; %s %.80s%s", setting, value ? value : "not offered",
				    json_list_has(unmet, setting) ? " (not as wanted)" : "");
		}
		chain_add(chain, "settings", json_array_size(unmet) ? LINK_WAITS : LINK_HOLDS, NULL,
			  "%s (%s)%s", json_str_or(json_at(nic, "name"), "?"), address,
			  strbuf_str(&text));
	}
}

static void add_resources(json_t *chain, const json_t *world, const char *name, const json_t *state)
{
	json_t *offer;
	size_t i;

	json_array_foreach (json_at(state, "status", "resources"), i, offer) {
		const char *resource = json_str_or(json_at(offer, "name"), "?");
		json_auto_t *makers = resource_makers(world, resource);
		json_auto_t *row = resource_row(world, name, resource, makers);
		const char *broken = json_str_at(row, "broken");

		if (broken && node_state_resource_is_withheld(state, offer))
			chain_add(chain, "resource", LINK_HOLDS, "RdmaModeExclusive", "%s: %s",
				  resource, broken);
		else if (broken)
			chain_add(chain, "resource", LINK_BROKEN, json_str_at(row, "reason"),
				  "%s: %s: %s", resource, json_str_at(row, "link"), broken);
		else if (node_state_resource_is_given(offer))
			chain_add(chain, "resource", LINK_HOLDS, NULL, "%s: %lld for claims",
				  resource,
				  (long long)json_integer_value(json_at(offer, "offered")));
		else
			chain_add(chain, "resource", LINK_HOLDS, NULL,
				  "%s: %lld of %lld healthy, %lld in pods", resource,
				  (long long)json_integer_value(json_at(offer, "healthy")),
				  (long long)json_integer_value(json_at(offer, "wanted")),
				  (long long)json_integer_value(json_at(offer, "allocated")));
	}
}

json_t *explain_node_chain(const json_t *world, const char *name, struct err *err)
{
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), name);
	const json_t *node = world_get(world, KIND_NODE, name);
	const json_t *state = world_get(world, KIND_NODE_STATE, key);
	auto_decision struct decision decision = {0};
	json_auto_t *reports = NULL;
	json_t *chain;

	if (!node) {
		(void)err_set(err, ERR_INVALID, "NodeNotFound", "there is no node %.128s", name);
		return NULL;
	}
	chain = chain_new("node", name);
	add_node(chain, node);
	reports = node_state_reports(world, name, SIZE_MAX, &decision);
	if (!state && json_object_size(reports) == 0) {
		chain_add(chain, "policy", LINK_HOLDS, NULL,
			  "no SriovNetworkNodePolicy selects it, so nothing is done to its NICs");
		return chain;
	}
	if (!state) {
		chain_add(
			chain, "NodeState", LINK_BROKEN, NULL,
			"the operator has not made it: look whether the operator runs, and at its "
			"log");
		return chain;
	}
	add_agent(chain, world, name, state);
	if (!add_policies(chain, reports))
		chain_add(chain, "policy", LINK_HOLDS, NULL,
			  "no SriovNetworkNodePolicy selects it");
	add_conditions(chain, state);
	add_networks(chain, state);
	add_settings(chain, state);
	add_links(chain, state);
	add_resources(chain, world, name, state);
	return chain;
}

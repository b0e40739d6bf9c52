// SPDX-License-Identifier: Apache-2.0
/* Checks of a node by its NodeState, and what differs among nodes. See doctor.h. */
#include <string.h>

#include "cli/doctor/away.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/links.h"
#include "lib/json/json.h"
#include "nodeagent/model/findings.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/node_state.h"

/* ---- one node -------------------------------------------------------------------------------- */

/* Whatever its agent said before still stands in its NodeState. */
static void check_node(const json_t *node, json_t *findings)
{
	auto_free char *away = away_node(node);

	if (away)
		finding_add(findings, FINDING_ERROR, "NodeNotReady", NULL, "a Node that is Ready",
			    "kubectl describe node says more; until then nothing "
			    "else of the node may be up to date",
			    "%s", away);
}

/* What the agent says itself, beside the remedy that its message ends with. */
static void check_problems(const json_t *state, json_t *findings)
{
	json_t *problem;
	size_t i;

	json_array_foreach (json_at(state, "status", "problems"), i, problem)
		finding_add(findings,
			    str_eq(json_str_at(problem, "type"), "Degraded") ? FINDING_ERROR
									     : FINDING_WARNING,
			    json_str_at(problem, "reason"), json_str_at(problem, "pciAddress"),
			    NULL, "orbweaver explain reason says more", "%s",
			    json_str_or(json_at(problem, "message"), "?"));
}

/* The agent offers it, and the kubelet has reported less to the API server. */
static void check_allocatable(const json_t *node, const char *resource, int64_t healthy,
			      json_t *findings)
{
	int64_t there = node_allocatable(node, resource);

	if (there < 0 || there >= healthy)
		return;
	finding_add(findings, FINDING_ERROR, "ResourceShort", resource,
		    "as many allocatable as the agent offers",
		    "orbweaver explain resource says where it breaks",
		    "%lld allocatable, the agent last offered %lld", (long long)there,
		    (long long)healthy);
}

static void check_resources(const json_t *node, const json_t *state, json_t *findings)
{
	json_t *resource;
	size_t i;

	json_array_foreach (json_at(state, "status", "resources"), i, resource) {
		int64_t wanted = json_integer_value(json_at(resource, "wanted"));
		int64_t healthy = json_integer_value(json_at(resource, "healthy"));

		/* Claims have it, and the kubelet has nothing to say of it. */
		if (node_state_resource_is_given(resource))
			continue;
		if (json_is_true(json_at(resource, "registered")) && healthy >= wanted) {
			check_allocatable(node, json_str_or(json_at(resource, "name"), "?"),
					  healthy, findings);
			continue;
		}
		finding_add(findings, FINDING_ERROR, "ResourceShort", json_str_at(resource, "name"),
			    "registered, all devices healthy",
			    "orbweaver explain resource says where it breaks",
			    "%lld of %lld healthy%s: %s", (long long)healthy, (long long)wanted,
			    json_is_true(json_at(resource, "registered")) ? "" : ", not registered",
			    json_str_or(json_at(resource, "cause"), "no cause is said"));
	}
}

static void check_pf(const json_t *state, const json_t *pf, json_t *findings)
{
	const char *name = json_str_or(json_at(pf, "name"), "?");
	const char *speed = json_str_or(json_at(pf, "linkSpeed"), "");
	const json_t *wanted = json_find(json_at(state, "spec", "interfaces"), "pciAddress",
					 json_str_at(pf, "pciAddress"));
	const json_t *link = json_find(json_at(state, "status", "linkHealth", "ports"),
				       "pciAddress", json_str_at(pf, "pciAddress"));
	const char *verdict = json_str_or(json_at(link, "verdict"), "healthy");
	json_t *vf;
	size_t i;

	if (!str_eq(verdict, "healthy"))
		finding_add(findings, str_eq(verdict, "failed") ? FINDING_ERROR : FINDING_WARNING,
			    json_str_or(json_at(link, "reason"), "LinkErrors"), name, "a good link",
			    "orbweaver explain reason says more", "%s",
			    json_str_or(json_at(link, "message"), "the link is not well"));
	else if (wanted && (str_empty(speed) || str_starts(speed, "-1")))
		finding_add(findings, FINDING_ERROR, "RdmaLinkDown", name, "a link",
			    "check cable and switch; ip link set up", "no link%s",
			    str_eq(json_str_at(pf, "linkAdminState"), "down") ? ", it is set down"
									      : "");
	json_array_foreach (json_at(pf, "Vfs"), i, vf) {
		const char *guid = json_str_at(vf, "guid");

		if (json_integer_value(json_at(vf, "mtu")) > json_integer_value(json_at(pf, "mtu")))
			finding_add(findings, FINDING_ERROR, "MtuMismatch",
				    json_str_at(vf, "pciAddress"), "at most that of its PF",
				    "set mtu in the policy", "MTU %lld, its PF %s has %lld",
				    (long long)json_integer_value(json_at(vf, "mtu")), name,
				    (long long)json_integer_value(json_at(pf, "mtu")));
		if (guid && strspn(guid, "0:") == strlen(guid))
			finding_add(findings, FINDING_ERROR, "BadGuid",
				    json_str_at(vf, "pciAddress"), "a GUID of its own",
				    "a policy with isRdma: true sets one", "node GUID is zero");
	}
}

/*
 * NICs that networks lie over, and no policy wants: those are looked at as such. A warning, since
 * it is unknown whether pods of the network are meant to run here.
 */
static void check_masters(const json_t *state, const json_t *networks, json_t *findings)
{
	const char *name;
	json_t *network;

	json_each (networks, name, network) {
		const char *why = links_why_down(state, name);
		const char *address = json_str_at(links_nic(state, name), "pciAddress");

		if (why && !json_find(json_at(state, "spec", "interfaces"), "pciAddress", address))
			finding_add(findings, FINDING_WARNING, "RdmaLinkDown", name, "a link",
				    "check cable and switch; ip link set up",
				    "%s: pods of network %s have no traffic here", why,
				    json_string_value(network));
	}
}

json_t *doctor_check_node(const json_t *node, const json_t *state, const json_t *networks)
{
	json_t *findings = json_array(), *finding, *pf;
	size_t i;
	const json_t *ready;
	bool is_gone;
	const char *wanted;
	const char *mode;

	if (node_state_is_kept(state))
		return findings;
	check_node(node, findings);
	ready = json_find(json_at(state, "status", "conditions"), "type", "Ready");
	is_gone = str_eq(json_str_at(ready, "reason"), "NoAgent");
	if (is_gone || !json_at(state, "status", "syncStatus"))
		finding_add(findings, FINDING_ERROR, "NoAgent", NULL, "an agent that runs",
			    "see why its DaemonSet has no running pod there; "
			    "until then nothing else of the node is up to date",
			    "%s",
			    json_str_or(json_at(ready, "message"), "no agent wrote a status"));
	check_problems(state, findings);
	wanted = json_str_at(state, "spec", "system", "rdmaMode");
	mode = json_str_at(state, "status", "system", "rdmaMode");
	if (!str_empty(wanted) && !str_empty(mode) && !str_eq(wanted, mode))
		finding_add(findings, FINDING_ERROR, "RdmaModeDiffers", "rdma system", wanted,
			    "reboot the node when it suits you", "netns %s", mode);
	json_array_foreach (json_at(state, "status", "interfaces"), i, pf)
		check_pf(state, pf, findings);
	check_masters(state, networks, findings);
	check_resources(node, state, findings);
	/* As the agent judges its host. */
	json_array_foreach (json_at(state, "status", "hostFindings"), i, finding)
		json_array_append_new(findings, json_copy(finding));
	findings_sort(findings);
	json_array_foreach (findings, i, finding)
		json_put_str(finding, "node", json_name(state));
	return findings;
}

/* ---- what differs among nodes ---------------------------------------------------------------- */

/* { property: { value: [node, …] } } */
static void note(json_t *seen, const char *property, const char *value, const char *node)
{
	json_t *values = json_need_object(seen, property);
	json_t *nodes = json_object_get(values, value);

	if (!nodes) {
		nodes = json_array();
		json_put(values, value, nodes);
	}
	/* A node says the same of each of its NICs. */
	if (!str_eq(json_string_value(json_array_get(nodes, json_array_size(nodes) - 1)), node))
		json_array_append_new(nodes, json_string(node));
}

/* A member of NICs, by the resource that they are for: other NICs may well differ. */
static void note_pfs(json_t *seen, const json_t *state, const char *member, const char *what)
{
	json_t *entry, *group;
	size_t i, k;

	json_array_foreach (json_at(state, "spec", "interfaces"), i, entry) {
		const json_t *pf = json_find(json_at(state, "status", "interfaces"), "pciAddress",
					     json_str_at(entry, "pciAddress"));
		const json_t *value = json_at(pf, member);
		auto_free char *text =
			json_is_integer(value)
				? str_printf("%lld", (long long)json_integer_value(value))
				: str_dup(json_string_value(value));

		json_array_foreach (json_at(entry, "vfGroups"), k, group) {
			auto_free char *property =
				str_printf("%s of NICs for %s", what,
					   json_str_or(json_at(group, "resourceName"), "?"));

			if (text && !str_starts(text, "-1"))
				note(seen, property, text, json_name(state));
		}
	}
}

/* Rail by rail: pods of a job have the same ones on different nodes. */
static void note_rails(json_t *seen, const json_t *state)
{
	static const struct {
		const char *member, *what;
	} members[] = {{"vendor", NULL},
		       {"linkType", "link type"},
		       {"linkSpeed", "link speed"},
		       {"mtu", "MTU"}};
	const char *name = json_name(state);
	const json_t *rails = json_at(state, "status", "rails", "list"), *entry;
	size_t i;

	if (rails) {
		auto_free char *number = str_printf("%zu", json_array_size(rails));

		note(seen, "number of rails", number, name);
	}
	json_array_foreach ((json_t *)rails, i, entry) {
		const json_t *port = json_find(json_at(state, "status", "interfaces"), "pciAddress",
					       json_str_or(json_at(entry, "pciAddress"), ""));
		long long rail = (long long)json_integer_value(json_at(entry, "rail"));

		for (size_t m = 0; port && m < ARRAY_LEN(members); m++) {
			const json_t *value = json_at(port, members[m].member);
			auto_free char *property = NULL, *text = NULL;

			property = str_printf("%s of rail %lld",
					      members[m].what ? members[m].what : "model", rail);
			if (!members[m].what)
				text = str_printf("%s:%s", json_str_or(value, "?"),
						  json_str_or(json_at(port, "deviceID"), "?"));
			else if (json_is_integer(value))
				text = str_printf("%lld", (long long)json_integer_value(value));
			else
				text = str_dup(json_string_value(value));
			if (text && !str_starts(text, "-1"))
				note(seen, property, text, name);
		}
	}
}

static void note_node(json_t *seen, const json_t *world, const json_t *state)
{
	const char *name = json_name(state);
	const json_t *node = world_get(world, KIND_NODE, name);
	const char *kernel = json_str_at(node, "status", "nodeInfo", "kernelVersion");
	const char *agent = json_str_at(state, "status", "agentVersion");
	const char *mode = json_str_at(state, "status", "system", "rdmaMode");

	if (kernel)
		note(seen, "kernel", kernel, name);
	if (agent)
		note(seen, "agent", agent, name);
	if (mode)
		note(seen, "RDMA mode", mode, name);
	note_rails(seen, state);
	note_pfs(seen, state, "mtu", "MTU");
	note_pfs(seen, state, "linkSpeed", "link speed");
	note_pfs(seen, state, "linkType", "link type");
	note_pfs(seen, state, "deviceID", "model");
}

static void add_difference(json_t *findings, const char *property, const json_t *values)
{
	const char *value, *most = NULL;
	json_t *nodes, *item;
	size_t most_nodes = 0, i;

	json_each (values, value, nodes)
		if (json_array_size(nodes) > most_nodes) {
			most = value;
			most_nodes = json_array_size(nodes);
		}
	json_each (values, value, nodes) {
		auto_strbuf struct strbuf names = {0};

		if (value == most)
			continue;
		json_array_foreach (nodes, i, item)
			if (i < 8)
				strbuf_addf(&names, "%s%s", i > 0 ? ", " : "",
					    json_string_value(item));
		if (json_array_size(nodes) > 8)
			strbuf_addf(&names, " and %zu more", json_array_size(nodes) - 8);
		finding_add(findings, FINDING_WARNING, "NodesDiffer", property, most,
			    "make them alike, unless it is meant so", "%s on %s, %s on %zu others",
			    value, strbuf_str(&names), most, most_nodes);
	}
}

json_t *doctor_compare(const json_t *world)
{
	json_auto_t *seen = json_object();
	json_t *findings = json_array(), *state, *values;
	const char *key, *property;

	json_each (world_kind(world, KIND_NODE_STATE), key, state)
		if (!node_state_is_kept(state))
			note_node(seen, world, state);
	json_each (seen, property, values)
		add_difference(findings, property, values);
	return findings;
}

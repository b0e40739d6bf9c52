// SPDX-License-Identifier: Apache-2.0
/*
 * What the report shows, as JSON: nodes with NICs and devices, pools, policies, findings. `report`
 * puts it into its page; `report --serve` computes it again after each change.
 *
 * Rows are lists, not objects, since there may be ten thousand nodes.
 */
#include "cli/report_data.h"

#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/links.h"
#include "cli/explain/pool_usage.h"
#include "cli/ledger.h"
#include "cli/source.h"
#include "cli/status.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/sriov/policy_explain.h"

/* Lines of one policy's explanation. */
#define LINES_MAX 200

const char *const report_kinds[] = {
	KIND_NODE,
	KIND_NODE_STATE,
	KIND_POLICY,
	KIND_POOL_CONFIG,
	KIND_POD,
	KIND_SRIOV_NETWORK,
	KIND_SRIOV_IB_NETWORK,
	KIND_OVS_NETWORK,
	KIND_MULTUS_CONFIG,
	KIND_COORDINATOR,
	KIND_NAD,
	KIND_IP_POOL,
	KIND_RESERVED_IP,
	NULL,
};

const struct cli_field report_fields[] = {
	{"generated", "string", "when, RFC 3339"},
	{"version", "string", "of this program"},
	{"resources[]", "string", "names; others are their places in this list"},
	{"nodes[].name", "string", "name of the Node"},
	{"nodes[].state", "string", "ready, waits, broken, silent"},
	{"nodes[].reason", "string", "of the worst condition, or of Ready"},
	{"nodes[].mode", "string", "RDMA namespace mode"},
	{"nodes[].nics[].name", "string", "name of the PF"},
	{"nodes[].nics[].address", "string", "PCI address"},
	{"nodes[].nics[].rail", "integer", "index of its rail; absent: it has none"},
	{"nodes[].nics[].type", "string", "ETH or IB"},
	{"nodes[].nics[].speed", "string", "of the link; absent: it has none"},
	{"nodes[].nics[].link.reason", "string", "of its verdict; absent: it is not judged"},
	{"nodes[].nics[].link.since", "string", "of the verdict, RFC 3339"},
	{"nodes[].nics[].link.flaps", "integer", "losses that counted"},
	{"nodes[].nics[].link.changes", "array",
	 "lists, oldest first: time, up, how often, by the agent itself"},
	{"nodes[].nics[].mtu", "integer", "of the PF"},
	{"nodes[].nics[].vfs", "integer", "VFs that are there"},
	{"nodes[].nics[].most", "integer", "VFs that there can be"},
	{"nodes[].offers", "array",
	 "lists: place of the resource, wanted, healthy, allocated devices"},
	{"nodes[].held", "array",
	 "lists, one for each device of a pod: place of the resource, PCI address, VF, pod, RDMA "
	 "device, addresses, "
	 "doubt"},
	{"pools[].pool", "string", "name of the SpiderIPPool"},
	{"pools[].subnet", "string", "spec.subnet"},
	{"pools[].total", "integer or string", "as ipam show has it"},
	{"pools[].used", "integer", "addresses with a record"},
	{"pools[].free", "integer or string", "addresses that can be handed out"},
	{"pools[].resting", "integer", "addresses that were given back lately"},
	{"pools[].conflicts", "integer", "addresses that somebody else on the network has"},
	{"pools[].ready", "string", "reason of its condition"},
	{"policies[].policy", "string", "NAMESPACE/NAME"},
	{"policies[].resource", "string", "spec.resourceName"},
	{"policies[].ready", "boolean", "is it Ready?"},
	{"policies[].reason", "string", "of its condition"},
	{"policies[].message", "string", "of its condition"},
	{"policies[].nodes", "integer", "nodes with a NIC that it picks"},
	{"policies[].wanted", "integer", "VFs that it asks for"},
	{"policies[].present", "integer", "VFs that are there"},
	{"policies[].lines[]", "string", "node by node, where it is not as wanted"},
	{"test.bandwidth", "object",
	 "with --test: columns[] (networks), rows[] (from, to, network, cells[]: value in Gbit/s, "
	 "failed)"},
	{"test.latency", "object", "likewise, microseconds"},
	{"test.suspects[]", "object", "as orbweaver test has them"},
	{"test.ring", "number", "bus bandwidth of a ring, Gbit/s; absent: not known, or none"},
	{"findings[].level", "string", "error, warning, info"},
	{"findings[].reason", "string", "the one word for it"},
	{"findings[].object", "string", "what it is about"},
	{"findings[].text", "string", "what is the case, and what to do"},
	{0},
};

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Resource names, each once; a row has the place. */
static int64_t place_of(json_t *resources, json_t *places, const char *name)
{
	const json_t *place = json_object_get(places, name);

	if (place)
		return json_integer_value(place);
	json_put_int(places, name, (int64_t)json_array_size(resources));
	json_array_append_new(resources, json_string(name));
	return (int64_t)json_array_size(resources) - 1;
}

/* Of one port of status.linkHealth; NULL: it is not judged. New. */
static json_t *link_of(const json_t *port)
{
	json_t *link, *changes, *change;
	size_t i;

	if (!port)
		return NULL;
	link = json_object();
	changes = json_array();
	json_array_foreach (json_at(port, "changes"), i, change) {
		int64_t times = json_integer_value(json_at(change, "times"));

		json_array_append_new(changes, json_pack("[s, b, I, b]",
							 json_str_or(json_at(change, "time"), ""),
							 json_is_true(json_at(change, "up")),
							 (json_int_t)(times > 0 ? times : 1),
							 json_is_true(json_at(change, "own"))));
	}
	json_put_str(link, "reason", json_str_or(json_at(port, "reason"), ""));
	json_put_str(link, "since", json_str_at(port, "since"));
	json_put_int(link, "flaps", json_integer_value(json_at(port, "flaps")));
	json_put(link, "changes", changes);
	return link;
}

static json_t *nics_of(const json_t *state)
{
	json_t *nics = json_array(), *pf;
	size_t i;

	json_array_foreach (json_at(state, "status", "interfaces"), i, pf) {
		const char *speed = json_str_or(json_at(pf, "linkSpeed"), "-1");
		const char *address = json_str_at(pf, "pciAddress");
		json_t *nic = json_object();

		json_put_str(nic, "name", json_str_at(pf, "name"));
		json_put_str(nic, "address", address);
		json_put(
			nic, "link",
			link_of(address ? json_find(json_at(state, "status", "linkHealth", "ports"),
						    "pciAddress", address)
					: NULL));
		json_put(nic, "rail", json_incref(json_at(pf, "rail")));
		json_put_str(nic, "type", json_str_at(pf, "linkType"));
		json_put_str(nic, "speed", str_starts(speed, "-1") ? NULL : speed);
		json_put_int(nic, "mtu", json_integer_value(json_at(pf, "mtu")));
		json_put_int(nic, "vfs", json_integer_value(json_at(pf, "numVfs")));
		json_put_int(nic, "most", json_integer_value(json_at(pf, "totalvfs")));
		json_array_append_new(nics, nic);
	}
	return nics;
}

static json_t *offers_of(const json_t *state, json_t *resources, json_t *places)
{
	json_t *offers = json_array(), *offer;
	size_t i;

	json_array_foreach (json_at(state, "status", "resources"), i, offer)
		json_array_append_new(
			offers,
			json_pack("[I, I, I, I]",
				  (json_int_t)place_of(resources, places,
						       json_str_or(json_at(offer, "name"), "?")),
				  json_integer_value(json_at(offer, "wanted")),
				  json_integer_value(json_at(offer, "healthy")),
				  json_integer_value(json_at(offer, "allocated"))));
	return offers;
}

static const char *state_of(const json_t *state, const char **ret_reason)
{
	static const char *const waits[] = {"Blocked", "RebootRequired", "Progressing"};
	const json_t *conditions = json_at(state, "status", "conditions");
	const json_t *degraded = json_find(conditions, "type", "Degraded");
	const json_t *ready = json_find(conditions, "type", "Ready");

	*ret_reason = json_str_at(ready, "reason");
	if (!json_at(state, "status", "syncStatus"))
		return "silent";
	if (str_eq(json_str_at(degraded, "status"), "True")) {
		*ret_reason = json_str_at(degraded, "reason");
		return "broken";
	}
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		const json_t *condition = json_find(conditions, "type", waits[i]);

		if (str_eq(json_str_at(condition, "status"), "True")) {
			*ret_reason = json_str_at(condition, "reason");
			return "waits";
		}
	}
	return ready && !str_eq(json_str_at(ready, "status"), "True") ? "broken" : "ready";
}

/* { node: [rows of what its pods have] }, new. */
static json_t *held_by_node(const json_t *world, json_t *resources, json_t *places)
{
	static const char *const members[] = {"device", "vf", "pod", "rdma", "ips", "doubt"};
	json_auto_t *rows = ledger_rows(world);
	json_t *held = json_object(), *row;
	size_t i, k;

	json_array_foreach (rows, i, row) {
		const char *node = json_str_or(json_at(row, "node"), "");
		json_t *list = json_object_get(held, node), *entry = json_array();

		if (!list) {
			list = json_array();
			json_put(held, node, list);
		}
		json_array_append_new(
			entry, json_integer(place_of(resources, places,
						     json_str_or(json_at(row, "resource"), "?"))));
		for (k = 0; k < ARRAY_LEN(members); k++)
			json_array_append_new(
				entry, json_string(json_str_or(json_at(row, members[k]), "")));
		json_array_append_new(list, entry);
	}
	return held;
}

static json_t *nodes_of(const json_t *world, json_t *resources)
{
	json_auto_t *places = json_object();
	json_auto_t *held = held_by_node(world, resources, places);
	json_t *nodes = json_array(), *state;
	const char *key;

	json_each (world_kind(world, KIND_NODE_STATE), key, state) {
		json_t *of_node = json_object_get(held, json_name(state)), *node = json_object();
		const char *reason;

		json_put_str(node, "name", json_name(state));
		json_put_str(node, "state", state_of(state, &reason));
		json_put_str(node, "reason", reason);
		json_put_str(node, "mode", json_str_at(state, "status", "system", "rdmaMode"));
		json_put(node, "nics", nics_of(state));
		json_put(node, "offers", offers_of(state, resources, places));
		json_put(node, "held", of_node ? json_incref(of_node) : json_array());
		json_array_append_new(nodes, node);
	}
	return nodes;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static json_t *pools_of(const json_t *world)
{
	json_t *pools = json_array(), *pool;
	const char *name;

	json_each (world_kind(world, KIND_IP_POOL), name, pool)
		json_array_append_new(pools, pool_usage(world, pool));
	return pools;
}

static json_t *policies_of(const json_t *world)
{
	json_t *policies = json_array(), *policy, *line;
	const char *key;
	size_t i;

	json_each (world_kind(world, KIND_POLICY), key, policy) {
		json_auto_t *said = policy_explain(world, key, NULL);
		const json_t *status = json_at(said, "status");
		const json_t *ready = json_find(json_at(status, "conditions"), "type", "Ready");
		json_t *entry = json_object(), *lines = json_array();

		json_put_str(entry, "policy", key);
		json_put_str(entry, "resource", json_str_at(policy, "spec", "resourceName"));
		json_put_bool(entry, "ready", str_eq(json_str_at(ready, "status"), "True"));
		json_put_str(entry, "reason", json_str_at(ready, "reason"));
		json_put_str(entry, "message", json_str_at(ready, "message"));
		json_put_int(entry, "nodes", json_integer_value(json_at(status, "matchedNodes")));
		json_put_int(entry, "wanted", json_integer_value(json_at(status, "wantedVfs")));
		json_put_int(entry, "present", json_integer_value(json_at(status, "presentVfs")));
		json_array_foreach (json_at(status, "explanation"), i, line)
			if (i < LINES_MAX)
				json_array_append(lines, line);
		json_put(entry, "lines", lines);
		json_array_append_new(policies, entry);
	}
	return policies;
}

static void add_finding(json_t *findings, const char *level, const char *reason, json_t *object,
			json_t *text)
{
	json_t *finding = json_object();

	json_put_str(finding, "level", level);
	json_put_str(finding, "reason", reason);
	json_put(finding, "object", object);
	json_put(finding, "text", text);
	json_array_append_new(findings, finding);
}

/* What doctor finds: node by node, then what differs among nodes. Returns new. */
static json_t *doctors_findings(const json_t *world)
{
	json_auto_t *differences = doctor_compare(world);
	json_auto_t *networks = links_networks(world_kind(world, KIND_NAD));
	json_t *findings = json_array(), *state;
	const char *key;

	json_each (world_kind(world, KIND_NODE_STATE), key, state) {
		json_auto_t *of_node = doctor_check_node(
			world_get(world, KIND_NODE, json_name(state)), state, networks);

		json_array_extend(findings, of_node);
	}
	json_array_extend(findings, differences);
	return findings;
}

/* Has doctor found this, which status says of a Node or of its NodeState, in its own words? */
static bool is_doctors(const json_t *doctors, const json_t *said)
{
	const char *kind = json_str_or(json_at(said, "kind"), "");
	const char *name = json_str_or(json_at(said, "name"), ""), *slash = strrchr(name, '/');
	json_t *finding;
	size_t i;

	if (!str_eq(kind, kind_find(KIND_NODE_STATE)->kind) &&
	    !str_eq(kind, kind_find(KIND_NODE)->kind))
		return false;
	json_array_foreach (doctors, i, finding)
		if (str_eq(json_str_at(finding, "node"), slash ? slash + 1 : name) &&
		    str_eq(json_str_at(finding, "reason"), json_str_at(said, "reason")))
			return true;
	return false;
}

/* All that status finds, and what doctor finds besides. */
static json_t *findings_of(const struct cli *cli, const json_t *world)
{
	json_auto_t *of_status = status_findings(cli), *doctors = doctors_findings(world);
	json_t *findings = json_array(), *said;
	size_t i;
	json_t *finding;

	json_array_foreach (of_status, i, said)
		if (!is_doctors(doctors, said))
			add_finding(findings, "error", json_str_at(said, "reason"),
				    json_fmt("%s %s", json_str_or(json_at(said, "kind"), ""),
					     json_str_or(json_at(said, "name"), "")),
				    json_fmt("%s", json_str_or(json_at(said, "message"), "")));
	json_array_foreach (doctors, i, finding)
		add_finding(findings, json_str_at(finding, "level"), json_str_at(finding, "reason"),
			    json_fmt("%s%s%s", json_str_or(json_at(finding, "node"), "nodes"),
				     json_at(finding, "subject") ? ": " : "",
				     json_str_or(json_at(finding, "subject"), "")),
			    json_fmt("%s; %s", json_str_or(json_at(finding, "seen"), ""),
				     json_str_or(json_at(finding, "remedy"), "")));
	return findings;
}

json_t *report_data(const struct cli *cli)
{
	json_auto_t *world = source_world(cli);
	json_t *data = json_object(), *resources = json_array();

	json_put_str(data, "generated", world_env(world, "now"));
	json_put_str(data, "version", ORBWEAVER_VERSION);
	json_put(data, "resources", resources);
	json_put(data, "nodes", nodes_of(world, resources));
	json_put(data, "pools", pools_of(world));
	json_put(data, "policies", policies_of(world));
	json_put(data, "findings", findings_of(cli, world));
	return data;
}

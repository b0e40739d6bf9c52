// SPDX-License-Identifier: Apache-2.0
/*
 * Pools, addresses and findings come from reconcilers/ipam on the command's world: what the
 * operator would say is what is printed. `check --repair` writes the plan's repairs, with the
 * version that was read, so a pool that changed meanwhile is left alone.
 */
#include "cli/ipam.h"

#include <string.h>

#include "cli/explain/addresses.h"
#include "cli/explain/pool_usage.h"
#include "cli/print.h"
#include "cli/source.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/audit.h"
#include "reconcilers/ipam/allocate/release.h"

const char *const ipam_kinds[] = {
	KIND_IP_POOL,
	KIND_RESERVED_IP,
	KIND_ENDPOINT,
	KIND_POD,
	KIND_NODE,
	KIND_NAMESPACE,
	KIND_NAD,
	"configmaps",
	KIND_STATEFUL_SET,
	KIND_VIRTUAL_MACHINE_INSTANCE,
	KIND_VIRTUAL_MACHINE,
	NULL,
};

const struct cli_field ipam_show_fields[] = {
	{"items[].pool", "string", "name of the SpiderIPPool"},
	{"items[].subnet", "string", "spec.subnet"},
	{"items[].total", "integer or string",
	 "spec.ips without spec.excludeIPs; ~2^N beyond 2^32"},
	{"items[].used", "integer", "addresses with a record"},
	{"items[].free", "integer or string", "addresses that can be handed out"},
	{"items[].resting", "integer", "addresses that were given back lately"},
	{"items[].conflicts", "integer", "addresses that somebody else on the network has"},
	{"items[].ready", "string",
	 "reason of the condition Ready, or why the ledger cannot be used"},
	{0},
};
const struct cli_field ipam_who_fields[] = {
	{"items[].address", "string", "without prefix length"},
	{"items[].pool", "string", "name of the SpiderIPPool"},
	{"items[].pod", "string", "NAMESPACE/NAME"},
	{"items[].nic", "string", "name of the interface in the pod"},
	{"items[].node", "string", "name of the Node"},
	{"items[].state", "string", "InUse, or a finding of ipam check"},
	{0},
};
const struct cli_field ipam_check_fields[] = {
	{"items[].reason", "string", "the finding"},
	{"items[].pool", "string", "name of the SpiderIPPool"},
	{"items[].address", "string", "without prefix length"},
	{"items[].pod", "string", "NAMESPACE/NAME"},
	{"items[].message", "string", "what it means, and what mends it"},
	{0},
};
const struct cli_field ipam_explain_fields[] = {
	{"pod", "string", "NAMESPACE/NAME"},
	{"verdict", "string", "has its addresses, would get them, or why not"},
	{"reason", "string", "the one word for why not"},
	{"warning", "string", "what of the pod's annotations has no effect; absent: nothing"},
	{"unknown[]", "string", "what could not be foreseen"},
	{"nics[].nic", "string", "name of the interface in the pod"},
	{"nics[].network", "string", "NetworkAttachmentDefinition, NAMESPACE/NAME"},
	{"nics[].problem", "string", "why no pools can be named"},
	{"nics[].pools[].pool", "string", "name of a SpiderIPPool that is asked, in this order"},
	{"nics[].pools[].verdict", "string", "serves, or the first rule that keeps it from that"},
	{"nics[].ipv4", "string", "the address, with prefix length"},
	{"nics[].ipv6", "string", "the address, with prefix length"},
	{"nics[].result", "object", "result of the CNI call, version 1.0.0"},
	{0},
};

static void print(const struct cli *cli, struct strbuf *out, const struct column *columns, size_t n,
		  const json_t *rows)
{
	if (cli->output == CLI_TABLE) {
		table_print(out, columns, n, rows);
		return;
	}
	print_items(cli, out, rows);
}

/* ---- show ------------------------------------------------------------------------------------ */

int ipam_show(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	      struct err *err)
{
	static const struct column columns[] = {
		{"POOL", "pool"},           {"SUBNET", "subnet"}, {"TOTAL", "total"},
		{"USED", "used"},           {"FREE", "free"},     {"RESTING", "resting"},
		{"CONFLICTS", "conflicts"}, {"READY", "ready"},
	};
	json_auto_t *rows = json_array();
	const char *name;
	json_t *pool;

	for (size_t i = 0; i < cli->args_len; i++) {
		pool = (json_t *)world_get(cli->world, KIND_IP_POOL, cli->args[i]);
		if (!pool)
			return err_set(err, ERR_INVALID, "PoolNotFound",
				       "there is no SpiderIPPool %.64s", cli->args[i]);
		json_array_append_new(rows, pool_usage(cli->world, pool));
	}
	if (cli->args_len == 0)
		json_each (world_kind(cli->world, KIND_IP_POOL), name, pool)
			json_array_append_new(rows, pool_usage(cli->world, pool));
	print(cli, out, columns, ARRAY_LEN(columns), rows);
	return 0;
}

/* ---- who ------------------------------------------------------------------------------------- */

/* What the audit says about an address of a pool; "InUse" when it has nothing to say. Borrowed. */
static const char *state_of(const json_t *findings, const char *pool, const char *address)
{
	json_t *finding;
	size_t i;

	json_array_foreach (findings, i, finding)
		if (str_eq(json_str_at(finding, "pool"), pool) &&
		    str_eq(json_str_at(finding, "address"), address))
			return json_str_at(finding, "reason");
	return "InUse";
}

/* The NIC of the endpoint that has this address of this pool, and the node. */
static void add_nic(const struct cli *cli, json_t *row, const char *key, const char *address)
{
	const json_t *endpoint = world_get(cli->world, KIND_ENDPOINT, key);
	json_t *item;
	size_t i;

	json_put_str(row, "node", json_str_at(endpoint, "status", "current", "node"));
	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
		const char *v4 = json_str_or(json_at(item, "ipv4"), "");
		const char *v6 = json_str_or(json_at(item, "ipv6"), "");
		size_t len = strlen(address);

		if ((strncmp(v4, address, len) == 0 && v4[len] == '/') ||
		    (strncmp(v6, address, len) == 0 && v6[len] == '/'))
			json_put_str(row, "nic", json_str_at(item, "interface"));
	}
}

/* Records that say yes to an address or to a pod. */
static json_t *rows_of(const struct cli *cli, const json_t *findings, const char *address,
		       const char *pod)
{
	json_t *rows = json_array(), *pool, *record;
	const char *name, *of;

	json_each (world_kind(cli->world, KIND_IP_POOL), name, pool) {
		auto_ledger struct ledger ledger = {0};

		if (ledger_open(pool, NULL, NULL, &ledger, NULL) < 0)
			continue;
		json_each (ledger.records, of, record) {
			const char *key = json_str_or(json_at(record, "pod"), "");
			json_t *row;

			if (address ? !str_eq(of, address) : !str_eq(key, pod))
				continue;
			row = json_object();
			json_put_str(row, "address", of);
			json_put_str(row, "pool", name);
			json_put_str(row, "pod", key);
			add_nic(cli, row, key, of);
			json_put_str(row, "state", state_of(findings, name, of));
			json_array_append_new(rows, row);
		}
	}
	return rows;
}

static char *pod_key(const struct cli *cli, const char *name)
{
	return strchr(name, '/') ? str_dup(name) : str_printf("%s/%s", cli->ns, name);
}

int ipam_who(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	     struct err *err)
{
	static const struct column columns[] = {
		{"ADDRESS", "address"}, {"POOL", "pool"}, {"POD", "pod"},
		{"NIC", "nic"},         {"NODE", "node"}, {"STATE", "state"},
	};
	char canonical[IP_TEXT_SIZE];
	enum ip_family family;
	ip_number number;
	bool is_address = ip_parse_any(cli->args[0], &family, &number, NULL) == 0;
	auto_free char *pod = is_address ? NULL : pod_key(cli, cli->args[0]);
	json_auto_t *findings = NULL, *rows = NULL;
	struct ipam_settings settings;

	if (explain_settings(cli->world, cli->config_ns, &settings, err) < 0)
		return -1;
	if (is_address)
		ip_print(family, number, canonical);
	findings = ipam_audit(cli->world, &settings);
	rows = rows_of(cli, findings, is_address ? canonical : NULL, pod);
	if (json_array_size(rows) == 0)
		*ret_status = CLI_FOUND;
	if (json_array_size(rows) == 0 && cli->output == CLI_TABLE)
		strbuf_addf(out, "no pool has a record of %s\n", is_address ? canonical : pod);
	else
		print(cli, out, columns, ARRAY_LEN(columns), rows);
	return 0;
}

/* ---- check ----------------------------------------------------------------------------------- */

int ipam_check(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	static const struct column columns[] = {
		{"FINDING", "reason"}, {"POOL", "pool"},    {"ADDRESS", "address"},
		{"POD", "pod"},        {"WHAT", "message"},
	};
	struct ipam_settings settings;
	json_auto_t *findings = NULL;

	if (explain_settings(cli->world, cli->config_ns, &settings, err) < 0)
		return -1;
	findings = ipam_audit(cli->world, &settings);
	if (cli->repair) {
		auto_plan struct plan plan = {0};
		static const char *const repaired[] = {"RecordWithoutPod", "StaleEndpoint",
						       "WrongCount"};

		ipam_repair(cli->world, &settings, &plan);
		if (source_apply(cli, &plan, out, err) < 0)
			return -1;
		/* What ipam_repair() mends is not a finding any more. */
		for (size_t i = json_array_size(findings); i-- > 0;)
			for (size_t k = 0; k < ARRAY_LEN(repaired); k++)
				if (str_eq(json_str_at(json_array_get(findings, i), "reason"),
					   repaired[k])) {
					json_array_remove(findings, i);
					break;
				}
	}
	if (json_array_size(findings))
		*ret_status = CLI_FOUND;
	if (json_array_size(findings) == 0 && cli->output == CLI_TABLE)
		strbuf_addf(out, "%zu pools, %zu SpiderEndpoints: all agree\n",
			    json_object_size(world_kind(cli->world, KIND_IP_POOL)),
			    json_object_size(world_kind(cli->world, KIND_ENDPOINT)));
	else
		print(cli, out, columns, ARRAY_LEN(columns), findings);
	return 0;
}

/* ---- explain --------------------------------------------------------------------------------- */

int ipam_explain(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	auto_free char *key = pod_key(cli, cli->args[0]);
	json_auto_t *explanation = explain_addresses(cli->world, cli->config_ns, key, err);

	if (!explanation)
		return -1;
	if (json_at(explanation, "reason") || json_at(explanation, "warning"))
		*ret_status = CLI_FOUND;
	if (cli->output == CLI_TABLE) {
		json_t *nic, *pool, *sentence;
		size_t i, k;

		strbuf_addf(out, "pod %s: %s\n", json_str_at(explanation, "pod"),
			    json_str_at(explanation, "verdict"));
		json_array_foreach (json_at(explanation, "nics"), i, nic) {
			const char *v4 = json_str_at(nic, "ipv4"), *v6 = json_str_at(nic, "ipv6");

			strbuf_addf(out, "  %s (network %s)%s%s%s%s\n", json_str_at(nic, "nic"),
				    json_str_at(nic, "network"), v4 ? "  " : "", v4 ? v4 : "",
				    v6 ? "  " : "", v6 ? v6 : "");
			if (json_at(nic, "problem"))
				strbuf_addf(out, "    %s\n", json_str_at(nic, "problem"));
			json_array_foreach (json_at(nic, "pools"), k, pool)
				strbuf_addf(out, "    pool %s: %s\n", json_str_at(pool, "pool"),
					    json_str_at(pool, "verdict"));
		}
		if (json_at(explanation, "warning"))
			strbuf_addf(out, "  %s\n", json_str_at(explanation, "warning"));
		json_array_foreach (json_at(explanation, "unknown"), i, sentence)
			strbuf_addf(out, "  %s\n", json_string_value(sentence));
	} else {
		print_document(cli, out, explanation);
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Each command finds its object in the world that source.c gathered, has a pure function of
 * explain/ make a chain of links for it, and prints the chain: links that hold, then the first that
 * is broken and what to do. The exit status says whether one is broken.
 */
#include "cli/explain.h"

#include <string.h>

#include "cli/explain/chain.h"
#include "cli/explain/explain.h"
#include "cli/explain/resource.h"
#include "cli/print.h"
#include "cli/source.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/sriov/policy_explain.h"

const char *const explain_kinds[] = {
	KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG, NULL,
};
const char *const explain_chain_kinds[] = {
	KIND_NODE,
	KIND_NODE_STATE,
	KIND_POLICY,
	KIND_POOL_CONFIG,
	KIND_POD,
	KIND_NAD,
	KIND_SRIOV_NETWORK,
	KIND_SRIOV_IB_NETWORK,
	KIND_OVS_NETWORK,
	KIND_MULTUS_CONFIG,
	KIND_IP_POOL,
	KIND_RESERVED_IP,
	KIND_ENDPOINT,
	KIND_NAMESPACE,
	"configmaps",
	KIND_STATEFUL_SET,
	KIND_VIRTUAL_MACHINE_INSTANCE,
	KIND_VIRTUAL_MACHINE,
	NULL,
};

const struct cli_field explain_policy_fields[] = {
	{"status", "object", "of the policy, as the operator writes it, with all lines"},
	{"nodes.*.selected", "boolean", "does the policy select the Node of this name?"},
	{"nodes.*.why", "string", "why not: the first label that is missing; or what it reports"},
	{"nodes.*.pfs[].name", "string", "name of the NIC"},
	{"nodes.*.pfs[].pciAddress", "string", "of the NIC"},
	{"nodes.*.pfs[].picked", "boolean", "does the policy pick it?"},
	{"nodes.*.pfs[].why", "string", "the first selector that fails"},
	{"nodes.*.pfs[].vfGroups[].vfRange", "string", "FIRST-LAST"},
	{"nodes.*.pfs[].vfGroups[].policy", "string", "NAMESPACE/NAME of who has these VFs"},
	{"nodes.*.pfs[].lost[].vfRange", "string", "FIRST-LAST"},
	{"nodes.*.pfs[].lost[].policy", "string", "NAMESPACE/NAME of who wanted these VFs"},
	{"nodes.*.pfs[].lost[].to", "string", "NAMESPACE/NAME of who has them"},
	{"nodes.*.pfs[].fields", "object",
	 "numVfs, mtu, linkType, eSwitchMode, externallyManaged: value, the policy that decided, "
	 "those that were overruled"},
	{0},
};
const struct cli_field explain_resource_fields[] = {
	{"items[].node", "string", "name of the Node"},
	{"items[].wanted", "integer", "devices that its NodeState wants"},
	{"items[].offered", "integer", "of them, those that the agent offers to the kubelet"},
	{"items[].registered", "string", "yes or no: does the kubelet know the resource?"},
	{"items[].healthy", "integer", "of them, those that are healthy"},
	{"items[].allocated", "integer", "of them, those that pods have"},
	{"items[].allocatable", "integer", "what the Node has, by the API server"},
	{"items[].link", "string",
	 "the first link that is broken: policy, node, agent, nic, vfs, offer, kubelet, health, "
	 "allocatable"},
	{"items[].reason", "string", "the one word for why, where it has one"},
	{"items[].broken", "string", "what is the matter with it, and what mends it"},
	{"items[].excluded", "boolean",
	 "no policy selects the node, or its RDMA mode is exclusive; it may be meant so"},
	{0},
};
#define CHAIN_FIELDS                                                                               \
	{"of", "string", "KIND NAME of what is explained"},                                        \
		{"broken", "string", "the first link that is broken; absent: none is"},            \
		{"reason", "string", "the one word for why, where it has one"},                    \
		{"links[].link", "string",                                                         \
		 "what has to be, in the order in which it comes about"},                          \
		{"links[].state", "string",                                                        \
		 "holds, broken, waits (it passes by itself), unknown"},                           \
		{"links[].reason", "string", "the one word for it, where it has one"},             \
	{                                                                                          \
		"links[].what", "string", "what is the case, and what to do"                       \
	}
const struct cli_field explain_chain_fields[] = {CHAIN_FIELDS, {0}};
const struct cli_field explain_pod_fields[] = {
	CHAIN_FIELDS,
	{"interfaces[].interface", "string", "its name in the pod"},
	{"interfaces[].network", "string", "NAMESPACE/NAME of its NetworkAttachmentDefinition"},
	{"interfaces[].rail", "integer", "rail of its NIC, where the node reports one"},
	{"interfaces[].infiniband", "boolean", "true: the link layer of its NIC is InfiniBand"},
	{"interfaces[].rdmaDevice", "string", "name of its RDMA device"},
	{"interfaces[].trafficClass", "string", "NCCL_IB_TC, where a container of the pod sets it"},
	{"interfaces[].addresses[]", "string", "an IP address"},
	{"interfaces[].gids[].port", "integer", "port of the RDMA device"},
	{"interfaces[].gids[].index", "integer", "index in the GID table of the port"},
	{"interfaces[].gids[].version", "integer", "1: RoCE v1; 2: RoCE v2"},
	{"interfaces[].gids[].address", "string", "the address that the GID is of"},
	{"variables.*", "string", "an environment variable for jobs, and its value"},
	{"notes[]", "string", "what the variables cannot say, and what to do"},
	{0},
};

/* ---- a policy -------------------------------------------------------------------------------- */

static json_t *groups_text(const json_t *groups)
{
	auto_strbuf struct strbuf text = {0};
	json_t *group;
	size_t i;

	json_array_foreach (groups, i, group)
		strbuf_addf(&text, "%s%s %s", i > 0 ? ", " : "",
			    json_str_or(json_at(group, "vfRange"), "?"),
			    json_str_or(json_at(group, "policy"), "?"));
	return text.len > 0 ? json_string(strbuf_str(&text)) : NULL;
}

static void add_pf(json_t *rows, const char *node, const json_t *pf)
{
	json_t *row = json_object(), *groups = groups_text(json_at(pf, "vfGroups"));

	json_put_str(row, "node", node);
	json_put_str(row, "nic", json_str_at(pf, "name"));
	json_put_str(row, "picked", json_is_true(json_at(pf, "picked")) ? "yes" : "no");
	if (groups)
		json_put(row, "vfs", groups);
	json_put_str(row, "why", json_str_at(pf, "why"));
	json_array_append_new(rows, row);
}

int explain_policy(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		   struct err *err)
{
	static const struct column columns[] = {
		{"NODE", "node"}, {"NIC", "nic"}, {"PICKED", "picked"},
		{"VFS", "vfs"},   {"WHY", "why"},
	};
	json_auto_t *world = source_world(cli), *explanation = NULL, *rows = json_array();
	const char *node, *message;
	json_t *entry, *pf;
	size_t i;

	explanation = policy_explain(world, cli->args[0], err);
	if (!explanation)
		return -1;
	json_each (json_at(explanation, "nodes"), node, entry) {
		json_t *row;

		json_array_foreach (json_at(entry, "pfs"), i, pf)
			add_pf(rows, node, pf);
		if (json_array_size(json_at(entry, "pfs")) > 0 && !json_at(entry, "why"))
			continue;
		row = json_object();
		json_put_str(row, "node", node);
		json_put_str(row, "picked",
			     json_is_true(json_at(entry, "selected")) ? "selected"
								      : "not selected");
		json_put_str(row, "why", json_str_at(entry, "why"));
		json_array_append_new(rows, row);
	}
	entry = json_find(json_at(explanation, "status", "conditions"), "type", "Ready");
	message = json_str_or(json_at(entry, "message"), "");
	*ret_status = str_eq(json_str_at(entry, "status"), "True") ? CLI_OK : CLI_FOUND;
	if (cli->output != CLI_TABLE) {
		print_document(cli, out, explanation);
		return 0;
	}
	strbuf_addf(out, "policy %s: %s: %s\n", cli->args[0],
		    json_str_or(json_at(entry, "reason"), "nothing is known"), message);
	print_part(out, columns, ARRAY_LEN(columns), rows);
	return 0;
}

/* ---- a resource ------------------------------------------------------------------------------ */

/* Why there is no row. */
static int set_resource_unknown(struct err *err, const json_t *world, const char *asked)
{
	json_auto_t *makers = resource_makers(world, asked);
	void *first = json_object_iter(makers);

	if (first)
		return err_set(err, ERR_INVALID, "NoNodes",
			       "%.128s: policy %s makes it, but there are no Nodes here; in files, "
			       "add them with their SriovNetworkNodeStates",
			       asked, json_object_iter_key(first));
	return err_set(err, ERR_INVALID, "ResourceUnknown",
		       "%.128s: no SriovNetworkNodePolicy has this resourceName and no node "
		       "offers it; correct the name, or apply a policy that makes it",
		       asked);
}

int explain_resource(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		     struct err *err)
{
	static const struct column columns[] = {
		{"NODE", "node"},
		{"WANTED", "wanted"},
		{"OFFERED", "offered"},
		{"REGISTERED", "registered"},
		{"HEALTHY", "healthy"},
		{"ALLOCATED", "allocated"},
		{"ALLOCATABLE", "allocatable"},
		{"BROKEN", "link"},
		{"WHAT", "broken"},
	};
	json_auto_t *world = source_world(cli), *rows = NULL;
	bool is_meant = false;
	json_t *row;
	size_t i;

	rows = resource_rows(world, cli->args[0]);
	if (json_array_size(rows) == 0)
		return set_resource_unknown(err, world, cli->args[0]);
	json_array_foreach (rows, i, row) {
		is_meant = is_meant || !json_at(row, "excluded");
		if (json_at(row, "broken") && !json_at(row, "excluded"))
			*ret_status = CLI_FOUND;
	}
	/* A policy that selects no node at all is a mistake, most likely. */
	if (!is_meant)
		*ret_status = CLI_FOUND;
	if (cli->output != CLI_TABLE)
		print_items(cli, out, rows);
	else
		print_part(out, columns, ARRAY_LEN(columns), rows);
	return 0;
}

/* ---- chains of one object -------------------------------------------------------------------- */

static int print_chain(const struct cli *cli, const json_t *chain, struct strbuf *out,
		       enum cli_status *ret_status)
{
	static const struct column columns[] = {
		{"LINK", "link"},
		{"STATE", "state"},
		{"WHAT", "what"},
	};
	const json_t *broken = chain_broken_link(chain);

	if (broken)
		*ret_status = CLI_FOUND;
	if (cli->output != CLI_TABLE) {
		print_document(cli, out, chain);
		return 0;
	}
	strbuf_addf(out, "%s: ", json_str_at(chain, "of"));
	if (!broken)
		strbuf_adds(out, "no link is broken\n");
	else
		strbuf_addf(out, "%s%s%s: %s\n", json_str_at(broken, "link"),
			    json_at(broken, "reason") ? ": " : "",
			    json_str_or(json_at(broken, "reason"), ""),
			    json_str_at(broken, "what"));
	print_part(out, columns, ARRAY_LEN(columns), json_at(chain, "links"));
	return 0;
}

typedef json_t *chain_fn(const json_t *world, const char *name, struct err *err);

/* Let a function speak about the argument, in a world of its own. */
static int run_chain(const struct cli *cli, chain_fn *chain_of, const char *name,
		     struct strbuf *out, enum cli_status *ret_status, struct err *err)
{
	json_auto_t *world = source_world(cli), *chain = NULL;

	chain = chain_of(world, name, err);
	return chain ? print_chain(cli, chain, out, ret_status) : -1;
}

/* NAMESPACE/NAME of an argument that may be without its namespace. */
static char *full_name(const struct cli *cli)
{
	return strchr(cli->args[0], '/') ? str_dup(cli->args[0])
					 : str_printf("%s/%s", cli->ns, cli->args[0]);
}

int explain_node(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	return run_chain(cli, explain_node_chain, cli->args[0], out, ret_status, err);
}

int explain_network(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		    struct err *err)
{
	auto_free char *name = full_name(cli);

	return run_chain(cli, explain_network_chain, name, out, ret_status, err);
}

int explain_config(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		   struct err *err)
{
	auto_free char *name = full_name(cli);

	return run_chain(cli, explain_config_chain, name, out, ret_status, err);
}

int explain_pool(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	return run_chain(cli, explain_pool_chain, cli->args[0], out, ret_status, err);
}

/* One row for each GID, and for each interface whose GIDs are not known; then lines to copy. */
static void print_rdma(const json_t *chain, struct strbuf *out)
{
	static const struct column columns[] = {
		{"INTERFACE", "interface"},
		{"NETWORK", "network"},
		{"RAIL", "rail"},
		{"RDMA DEVICE", "rdmaDevice"},
		{"PORT", "port"},
		{"ADDRESS", "address"},
		{"GID INDEX", "index"},
		{"ROCE", "version"},
		{"TRAFFIC CLASS", "trafficClass"},
	};
	json_auto_t *rows = json_array();
	json_t *interface, *part;
	const char *name;
	size_t i, k;

	json_array_foreach (json_at(chain, "interfaces"), i, interface) {
		const json_t *gids = json_at(interface, "gids");

		json_array_foreach (gids ? gids : json_at(interface, "addresses"), k, part) {
			json_t *row = json_copy(interface);

			if (gids)
				json_object_update(row, part);
			else
				json_object_set(row, "address", part);
			json_array_append_new(rows, row);
		}
		if (k == 0)
			json_array_append(rows, interface);
	}
	print_part(out, columns, ARRAY_LEN(columns), rows);
	if (json_at(chain, "variables"))
		strbuf_adds(out, "\n");
	json_each (json_at(chain, "variables"), name, part)
		strbuf_addf(out, "export %s='%s'\n", name, json_string_value(part));
	json_array_foreach (json_at(chain, "notes"), i, part)
		strbuf_addf(out, "%s%s\n", i > 0 ? "" : "\n", json_string_value(part));
}

int explain_pod(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		struct err *err)
{
	auto_free char *name = full_name(cli);
	json_auto_t *world = source_world(cli), *chain = NULL;

	chain = explain_pod_chain(world, cli->config_ns, name, err);
	if (!chain || print_chain(cli, chain, out, ret_status) < 0)
		return -1;
	if (cli->output == CLI_TABLE)
		print_rdma(chain, out);
	return 0;
}

/* ---- a reason -------------------------------------------------------------------------------- */

/* docs/reasons.md, as it is when this program is built. */
__asm__(".pushsection .rodata\n"
	"reasons_page: .incbin \"docs/reasons.md\"\n"
	".byte 0\n"
	".popsection\n");
extern const char reasons_page[] __attribute__((visibility("hidden")));

/*
 * The entry of a reason behind its name, in one line; NULL: there is none. Returns new. No two
 * reasons differ by case alone. ret_name is the reason as we write it; new, too.
 */
static char *reason_entry(const char *reason, char **ret_name)
{
	auto_free char *head = str_printf("\n- `%.64s`", reason);
	const char *entry = strcasestr(reasons_page, head), *end;
	auto_strbuf struct strbuf text = {0};

	if (!entry)
		return NULL;
	*ret_name = str_ndup(entry + strlen("\n- `"), strlen(head) - strlen("\n- ``"));
	entry += strlen(head);
	/* It goes on in lines that are indented. */
	for (end = strchr(entry, '\n'); end && strncmp(end, "\n  ", 3) == 0;)
		end = strchr(end + 1, '\n');
	if (!end)
		end = entry + strlen(entry);
	while (entry < end) {
		size_t len = strcspn(entry, "\n");

		strbuf_add(&text, entry, len);
		strbuf_adds(&text, entry + len < end ? " " : "");
		entry += len + strspn(entry + len, "\n ");
	}
	return strbuf_take(&text);
}

int explain_reason(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		   struct err *err)
{
	static const char colon[] = ": ", mark[] = " **";
	auto_free char *name = NULL, *entry = reason_entry(cli->args[0], &name);
	char *means, *affects, *remedy;

	if (!entry)
		return err_set(err, ERR_INVALID, "ReasonUnknown",
			       "%.64s is no reason of ours; reasons are words like NoAgent, as "
			       "conditions and events have them",
			       cli->args[0]);
	/* hack/reasons: what it affects stands in bold between what it means and what to do. */
	means = strstr(entry, colon);
	affects = means ? strstr(means, mark) : NULL;
	remedy = affects ? strstr(affects + strlen(mark), "** ") : NULL;
	if (!remedy)
		return err_set(err, ERR_BUG, "BadFile", "%s: its entry lacks a part", name);
	means += strlen(colon);
	strbuf_addf(out,
		    "%s\n"
		    "means:   %.*s\n"
		    "affects: %.*s\n"
		    "to do:   %s\n",
		    name, (int)(affects - means), means,
		    (int)(remedy - affects - (ptrdiff_t)strlen(mark)), affects + strlen(mark),
		    remedy + strlen("** "));
	/* "(fault, warns)" in front of an entry; its words are those of docs/reasons.md. */
	static const struct {
		const char *sort, *text;
	} sorts[] = {
		{"well", "Ready is True with it"},
		{"waits", "Ready is False with it until it passes; not Degraded"},
		{"fault", "Ready is False with it and Degraded True, until somebody acts"},
		{"warns", "Degraded is True with it, whatever Ready is"},
		{"quiet", "Degraded, Progressing, Blocked or RebootRequired is False with it"},
		{"draining", "on the condition Draining"},
		{"injected", "on the condition Injected"},
		{"networks", "on the condition PodNetworks"},
		{"links", "on the condition LinksHealthy"},
	};

	for (size_t i = 0; *entry == ' ' && i < ARRAY_LEN(sorts); i++)
		if (memmem(entry, strcspn(entry, ")"), sorts[i].sort, strlen(sorts[i].sort)))
			strbuf_addf(out, "stands:  %s.\n", sorts[i].text);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A NodeState's status.topology as a matrix: GPUs first, then NICs by rail, and a line for each NIC
 * with its VFs and the pods that hold them. Distances are computed from the paths, by the function
 * that the agent uses.
 */
#include "cli/topo.h"

#include "cli/print.h"
#include "cli/source.h"
#include "lib/json/json.h"
#include "nodeagent/model/topology.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

const char *const topo_kinds[] = {KIND_NODE_STATE, NULL};

const struct cli_field topo_fields[] = {
	{"node", "string", "name of the Node"},
	{"from", "string", "where the order of rails comes from; absent without rails"},
	{"gpusUnknown", "string", "why GPUs may be missing here; absent: none is"},
	{"gpus[].label", "string", "GPU0, GPU1 and so on: the row of the matrix"},
	{"gpus[].pciAddress", "string", "of the GPU"},
	{"gpus[].vendor", "string", "four hex digits"},
	{"gpus[].deviceID", "string", "four hex digits"},
	{"gpus[].numaNode", "integer", "absent: not known"},
	{"gpus[].path", "string", "bridges above it, from the host bridge down"},
	{"nics[].label", "string", "RAIL0 and so on; NIC0 and so on: a port without a rail"},
	{"nics[].name", "string", "interface"},
	{"nics[].pciAddress", "string", "of the port"},
	{"nics[].rail", "integer", "absent without one"},
	{"nics[].numaNode", "integer", "absent: not known"},
	{"nics[].path", "string", "bridges above it, from the host bridge down"},
	{"nics[].vfs", "integer", "VFs that are there"},
	{"nics[].held", "integer", "of them, those that pods hold"},
	{"nics[].pods", "integer", "pods that hold them"},
	{"matrix.*", "object", "distances from the row of this label: {label: distance}"},
	{0},
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* VFs of a port, and the pods that hold some. */
static void put_use(json_t *row, const json_t *state)
{
	const json_t *port = json_find(json_at(state, "status", "interfaces"), "pciAddress",
				       json_str_at(row, "pciAddress"));
	const json_t *vfs = json_at(port, "Vfs"), *resource, *entry;
	json_auto_t *pods = json_object(), *held = json_object();
	size_t i, k;

	json_array_foreach (json_at(state, "status", "resources"), i, resource)
		json_array_foreach (json_at(resource, "pods"), k, entry) {
			const char *device = json_str_at(entry, "device");

			if (!device || !json_find(vfs, "pciAddress", device))
				continue;
			json_put_bool(held, device, true);
			json_put_bool(pods, json_str_or(json_at(entry, "pod"), "?"), true);
		}
	json_put_int(row, "vfs", json_integer_value(json_at(port, "numVfs")));
	json_put_int(row, "held", (int64_t)json_object_size(held));
	json_put_int(row, "pods", (int64_t)json_object_size(pods));
}

static json_t *rows_of(const json_t *state, const char *list)
{
	const json_t *items = json_at(state, "status", "topology", list), *item;
	bool are_nics = str_eq(list, "nics");
	json_t *rows = json_array();
	size_t i, others = 0;

	json_array_foreach ((json_t *)items, i, item) {
		const json_t *rail = json_at(item, "rail");
		json_t *row = json_copy((json_t *)item);

		(void)json_object_del(row, "gpus");
		if (!are_nics)
			json_put(row, "label", json_fmt("GPU%zu", i));
		else if (rail)
			json_put(row, "label",
				 json_fmt("RAIL%lld", (long long)json_integer_value(rail)));
		else
			json_put(row, "label", json_fmt("NIC%zu", others++));
		if (are_nics)
			put_use(row, state);
		json_array_append_new(rows, row);
	}
	return rows;
}

/* { label: { label: distance } } */
static json_t *matrix_of(const json_t *rows)
{
	json_t *matrix = json_object();
	const json_t *a, *b;
	size_t i, k;

	json_array_foreach ((json_t *)rows, i, a) {
		json_t *line = json_need_object(matrix, json_str_at(a, "label"));

		json_array_foreach ((json_t *)rows, k, b)
			json_put_str(line, json_str_at(b, "label"),
				     i == k ? "X" : topology_distance_name(topology_between(a, b)));
	}
	return matrix;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_matrix(struct strbuf *out, const json_t *rows, const json_t *matrix)
{
	enum { WIDTH = 8 };
	const json_t *a, *b;
	size_t i, k;

	strbuf_addf(out, "%-*s", WIDTH, "");
	json_array_foreach ((json_t *)rows, k, b)
		strbuf_addf(out, "%-*s", WIDTH, json_str_at(b, "label"));
	strbuf_adds(out, "NUMA\n");
	json_array_foreach ((json_t *)rows, i, a) {
		const json_t *line = json_object_get(matrix, json_str_at(a, "label"));
		const json_t *numa = json_at(a, "numaNode");

		strbuf_addf(out, "%-*s", WIDTH, json_str_at(a, "label"));
		json_array_foreach ((json_t *)rows, k, b)
			strbuf_addf(out, "%-*s", WIDTH, json_str_at(line, json_str_at(b, "label")));
		if (numa)
			strbuf_addf(out, "%lld\n", (long long)json_integer_value(numa));
		else
			strbuf_adds(out, "?\n");
	}
}

/* Rails whose NIC is away have no row. */
static void print_missing(struct strbuf *out, const json_t *state)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(state, "status", "rails", "list"), i, entry)
		if (json_at(entry, "missing"))
			strbuf_addf(out, "rail %lld: NIC %s is not there\n",
				    (long long)json_integer_value(json_at(entry, "rail")),
				    json_str_or(json_at(entry, "name"),
						json_str_or(json_at(entry, "pciAddress"), "?")));
}

static const char legend[] =
	"\n"
	"PIX  one PCIe switch or device    PXB  several switches, one root port\n"
	"PHB  one host bridge, by the CPU  NODE one NUMA node\n"
	"SYS  different NUMA nodes         ?    not known\n";

int topo_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	     struct err *err)
{
	static const struct column gpu_columns[] = {
		{"GPU", "label"},
		{"ADDRESS", "pciAddress"},
		{"VENDOR", "vendor"},
		{"DEVICE", "deviceID"},
	};
	static const struct column nic_columns[] = {
		{"NIC", "label"}, {"INTERFACE", "name"}, {"ADDRESS", "pciAddress"},
		{"VFS", "vfs"},   {"HELD", "held"},      {"PODS", "pods"},
	};
	json_auto_t *world = source_world(cli), *gpus = NULL, *nics = NULL, *rows = NULL;
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), cli->args[0]);
	const json_t *state = world_get(world, KIND_NODE_STATE, key);
	json_auto_t *matrix = NULL, *document = NULL;
	const char *unknown, *from;

	if (!state)
		return err_set(err, ERR_INVALID, "NodeNotFound",
			       "there is no SriovNetworkNodeState %.128s: no agent runs on the "
			       "node, or it is misspelt",
			       key);
	gpus = rows_of(state, "gpus");
	nics = rows_of(state, "nics");
	rows = json_copy(gpus);
	json_array_extend(rows, nics);
	matrix = matrix_of(rows);
	unknown = json_str_at(state, "status", "topology", "gpusUnknown");
	from = json_str_at(state, "status", "rails", "from");
	if (cli->output != CLI_TABLE) {
		document = json_pack("{s:s, s:O, s:O, s:O}", "node", cli->args[0], "gpus", gpus,
				     "nics", nics, "matrix", matrix);
		json_put_str(document, "gpusUnknown", unknown);
		json_put_str(document, "from", from);
		print_document(cli, out, document);
		return 0;
	}
	if (json_array_size(rows) == 0) {
		strbuf_addf(out, "node %s reports no PCIe topology: %s\n", cli->args[0],
			    json_at(state, "status", "agentVersion")
				    ? "sysfs of the host shows no paths"
				    : "its agent has not reported yet");
		return 0;
	}
	print_matrix(out, rows, matrix);
	strbuf_adds(out, legend);
	print_part(out, gpu_columns, ARRAY_LEN(gpu_columns), gpus);
	if (unknown)
		strbuf_addf(out, "\nGPUs may be missing: %s\n", unknown);
	else if (json_array_size(gpus) == 0)
		strbuf_adds(out, "\nthe node has no GPU\n");
	print_part(out, nic_columns, ARRAY_LEN(nic_columns), nics);
	if (from)
		strbuf_addf(out, "\nrails: %s\n", from);
	print_missing(out, state);
	return 0;
}

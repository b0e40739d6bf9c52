// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of all interfaces are collected first, one row each; variables follow from the rows
 * (reconcilers/core/rdma_variables.h).
 */
#include "cli/explain/pod_rdma.h"

#include <string.h>

#include "lib/base/gid.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/rdma_variables.h"
#include "reconcilers/core/reconcile.h"

/* ---- facts ----------------------------------------------------------------------------------- */

static json_t *need_row(json_t *rows, const char *interface)
{
	json_t *row = json_find(rows, "interface", interface);

	if (row)
		return row;
	row = json_pack("{s:s, s:[]}", "interface", interface, "addresses");
	json_array_append_new(rows, row);
	return row;
}

static void put_device(json_t *row, const char *device)
{
	if (rdma_name_is_plain(device) && !json_at(row, "rdmaDevice"))
		json_put_str(row, "rdmaDevice", device);
}

/* Without its prefix length; what is not an address is left out. */
static void add_addresses(json_t *row, const json_t *list)
{
	json_t *addresses = json_at(row, "addresses");
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *text = json_str_or(item, "");
		auto_free char *address = str_ndup(text, strcspn(text, "/"));
		char gid[GID_TEXT_SIZE];

		if (gid_of_address(address, gid) && !json_list_has(addresses, address))
			json_array_append_new(addresses, json_string(address));
	}
}

static void add_attachment(json_t *rows, const json_t *attachment)
{
	const char *interface = json_str_at(attachment, "interface");
	const json_t *gids = json_at(attachment, "gids"), *gid;
	json_t *row, *own;
	size_t i;

	if (!rdma_name_is_plain(interface))
		return;
	row = need_row(rows, interface);
	json_put_str(row, "function", json_str_at(attachment, "device"));
	add_addresses(row, json_at(attachment, "addresses"));
	put_device(row, json_str_at(attachment, "rdmaDevice"));
	put_device(row, json_str_at(json_array_get(gids, 0), "device"));
	json_array_foreach (gids, i, gid) {
		if (!str_eq(json_str_at(gid, "device"), json_str_at(row, "rdmaDevice")))
			continue;
		own = json_copy((json_t *)gid);
		(void)json_object_del(own, "device");
		if (!json_at(row, "gids"))
			json_put(row, "gids", json_array());
		json_array_append_new(json_at(row, "gids"), own);
	}
}

/* The pod's element of network-status; the cluster's own network is not one of a job. */
static void add_status(json_t *rows, const json_t *element)
{
	const char *interface = json_str_at(element, "interface");
	json_t *row;

	if (!rdma_name_is_plain(interface) ||
	    (json_is_true(json_at(element, "default")) && !json_find(rows, "interface", interface)))
		return;
	row = need_row(rows, interface);
	json_put_str(row, "network", json_str_at(element, "name"));
	if (json_array_size(json_at(row, "addresses")) == 0)
		add_addresses(row, json_at(element, "ips"));
	put_device(row, json_str_at(element, "device-info", "pci", "rdma-device"));
}

/* The NIC of the NodeState that the interface is on: by its function, else by its master. */
static const json_t *nic_of(const json_t *world, const json_t *state, const json_t *row)
{
	const char *network = json_str_at(row, "network");
	json_auto_t *masters =
		network_masters(network ? world_get(world, KIND_NAD, network) : NULL);
	const char *master = json_array_size(masters) == 1
				     ? json_string_value(json_array_get(masters, 0))
				     : NULL;
	const char *function = json_str_at(row, "function");
	const json_t *nic;
	size_t i;

	json_array_foreach (json_at(state, "status", "interfaces"), i, nic)
		if ((master && str_eq(json_str_at(nic, "name"), master)) ||
		    (function && (str_eq(json_str_at(nic, "pciAddress"), function) ||
				  json_find(json_at(nic, "Vfs"), "pciAddress", function))))
			return nic;
	return NULL;
}

/* Rows with a device or a network, in order. Returns new. */
static json_t *sorted_rows(const json_t *world, const json_t *state, const json_t *rows)
{
	json_t *sorted[LIMIT_NETWORKS + 1], *list = json_array(), *row;
	bool have_rails = true;
	size_t n = 0, i;

	json_array_foreach (rows, i, row) {
		const json_t *nic = nic_of(world, state, row);
		const json_t *rail = json_at(nic, "rail");

		if ((!json_at(row, "rdmaDevice") && !json_at(row, "network")) ||
		    n == ARRAY_LEN(sorted))
			continue;
		if (json_is_integer(rail))
			json_put_int(row, "rail", json_integer_value(rail));
		if (str_eq(json_str_at(nic, "linkType"), "IB"))
			json_put_bool(row, "infiniband", true);
		(void)json_object_del(row, "function");
		have_rails = have_rails && json_at(row, "rail");
		sorted[n++] = row;
	}
	/* Insertion keeps those of one rail as they came; a pod has few. */
	for (i = 1; i < n && have_rails; i++)
		for (size_t k = i; k > 0; k--) {
			json_t *other = sorted[k - 1];

			if (json_integer_value(json_at(other, "rail")) <=
			    json_integer_value(json_at(sorted[k], "rail")))
				break;
			sorted[k - 1] = sorted[k];
			sorted[k] = other;
		}
	for (i = 0; i < n; i++)
		json_array_append(list, sorted[i]);
	return list;
}

json_t *explain_pod_interfaces(const json_t *world, const json_t *pod)
{
	const char *node = json_str_or(json_at(pod, "spec", "nodeName"), "");
	auto_free char *place = str_printf("%s/%s", world_env(world, "namespace"), node);
	const json_t *state = world_get(world, KIND_NODE_STATE, place);
	const char *text =
		json_str_or(json_at(pod, "metadata", "annotations", NETWORK_STATUS_ANNOTATION), "");
	json_auto_t *status = limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, NULL);
	json_auto_t *rows = json_array();
	auto_free char *key = json_key(pod);
	const json_t *item;
	size_t i;

	json_array_foreach (json_at(state, "status", "attachments"), i, item)
		if (str_eq(json_str_at(item, "pod"), key) &&
		    json_array_size(rows) <= LIMIT_NETWORKS)
			add_attachment(rows, item);
	json_array_foreach (status, i, item)
		if (json_array_size(rows) <= LIMIT_NETWORKS)
			add_status(rows, item);
	return sorted_rows(world, state, rows);
}

/* ---- variables ------------------------------------------------------------------------------- */

/* A number that a container of the pod sets; "": none does. */
static const char *traffic_class_of(const json_t *pod)
{
	const json_t *container;
	int64_t class;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container) {
		const json_t *variable =
			json_find(json_at(container, "env"), "name", RDMA_TRAFFIC_CLASS);
		const char *value = json_str_at(variable, "value");

		if (str_to_int(value, 0, 255, &class))
			return value;
	}
	return "";
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* Does a container ask for a device plugin's? */
static bool has_devices(const json_t *pod)
{
	const json_t *container;
	const char *resource;
	json_t *quantity;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container)
		json_each (json_at(container, "resources", "limits"), resource, quantity)
			if (strchr(resource, '/'))
				return true;
	return false;
}

/* A command that finds them in the pod; NULL: its interfaces have no addresses. Returns new. */
static char *command_for(const json_t *rows, const json_t *pod)
{
	auto_strbuf struct strbuf text = {0};
	const json_t *row, *address;
	size_t i, k, n = 0;

	strbuf_addf(&text, "kubectl exec -n %s %s -- sh -c 'grep -F", json_namespace(pod),
		    json_name(pod));
	json_array_foreach (rows, i, row)
		json_array_foreach (json_at(row, "gids") ? NULL : json_at(row, "addresses"), k,
				    address) {
			char gid[GID_TEXT_SIZE];

			if (!gid_of_address(json_string_value(address), gid))
				continue;
			strbuf_addf(&text, " -e %s", gid);
			n++;
		}
	strbuf_adds(&text, " /sys/class/infiniband/*/ports/*/gids/*'");
	return n > 0 ? strbuf_take(&text) : NULL;
}

static json_t *notes_of(const struct rdma_summary *summary, const json_t *rows, const json_t *pod)
{
	json_t *notes = json_array();
	auto_free char *command = NULL;

	if (summary->is_infiniband)
		return notes;
	if (summary->without_v2)
		json_array_append_new(
			notes,
			json_fmt("%zu interfaces have RoCE v1 GIDs only: see orbweaver doctor",
				 summary->without_v2));
	if (rdma_summary_differs(summary))
		json_array_append_new(notes, json_string(RDMA_INDICES_DIFFER));
	/* Without a device of the pod there is nothing to look for. */
	if (summary->n > 0 ? summary->with_gid + summary->without_v2 == summary->n
			   : !has_devices(pod))
		return notes;
	command = command_for(rows, pod);
	if (command)
		json_array_append_new(
			notes,
			json_fmt("GID indices that are not shown here, and their devices: %s",
				 command));
	return notes;
}

void explain_pod_rdma(json_t *chain, const json_t *world, const json_t *pod)
{
	auto_call(rdma_summary_done) struct rdma_summary summary = {0};
	json_auto_t *rows = explain_pod_interfaces(world, pod), *notes = NULL;
	const char *traffic_class = traffic_class_of(pod);
	json_t *row;
	size_t i;

	if (json_array_size(rows) == 0)
		return;
	rdma_summarize(rows, &summary);
	json_array_foreach (rows, i, row)
		if (json_at(row, "rdmaDevice") && *traffic_class)
			json_put_str(row, "trafficClass", traffic_class);
	json_put(chain, "interfaces", json_incref(rows));
	if (summary.n > 0)
		json_put(chain, "variables", rdma_variables(&summary, traffic_class));
	notes = notes_of(&summary, rows, pod);
	if (json_array_size(notes))
		json_put(chain, "notes", json_incref(notes));
}

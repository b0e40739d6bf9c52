// SPDX-License-Identifier: Apache-2.0
/*
 * Of devices three sources are laid side by side: what the kubelet gave to pods
 * (NodeState.status.resources), what the NICs' VFs look like (NodeState.status.interfaces), and
 * what the pod's networks came to (annotation k8s.v1.cni.cncf.io/network-status with device-info;
 * Network Plumbing Working Group, multi-network specification 1.3). Interfaces of macvlan and
 * ipvlan are known from the last alone.
 */
#include "cli/ledger.h"

#include <string.h>

#include "cli/print.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/sriov/impact.h"

const char *const ledger_kinds[] = {KIND_NODE_STATE, KIND_POD, KIND_NAD, NULL};

const struct cli_field ledger_fields[] = {
	{"items[].pod", "string", "NAMESPACE/NAME"},
	{"items[].node", "string", "name of the Node"},
	{"items[].resource", "string", "the resource that the pod asked for"},
	{"items[].kind", "string",
	 "sriov, shared: a device of that kind of resource; macvlan, ipvlan: an interface over a "
	 "NIC "
	 "that pods share"},
	{"items[].device", "string",
	 "PCI address of the VF, the id of a shared device, or the NIC, bond or VLAN below macvlan "
	 "and ipvlan"},
	{"items[].vf", "string", "name of the PF, a slash, number of the VF"},
	{"items[].rail", "integer", "index of the PF among the rails of its node"},
	{"items[].gpuDistance", "string",
	 "from the VF to the nearest GPU of the pod: PIX, PXB, PHB, NODE, SYS; ?: not known; "
	 "absent "
	 "without a GPU"},
	{"items[].driver", "string", "of the VF"},
	{"items[].guid", "string", "node GUID of an InfiniBand VF"},
	{"items[].mac", "string", "MAC address in the pod, or of the VF"},
	{"items[].network", "string", "NetworkAttachmentDefinition, NAMESPACE/NAME"},
	{"items[].interface", "string", "its name in the pod"},
	{"items[].rdma", "string", "RDMA device"},
	{"items[].ips", "string", "addresses, joined by commas"},
	{"items[].doubt", "string", "in what the sources disagree, and what to do"},
	{0},
};

/* ---- what pods say --------------------------------------------------------------------------- */

/*
 * The element of the pod's network-status that has this PCI device, or NULL. `status` is the
 * annotation's text, read.
 */
static const json_t *attachment(const json_t *status, const char *device)
{
	json_t *element;
	size_t i;

	json_array_foreach (status, i, element)
		if (str_eq(json_str_at(element, "device-info", "pci", "pci-address"), device))
			return element;
	return NULL;
}

/* New, or NULL: a pod without it, or one whose text cannot be read. */
static json_t *network_status(const json_t *pod)
{
	const char *text = json_str_at(pod, "metadata", "annotations", NETWORK_STATUS_ANNOTATION);
	struct err err = {0};

	return text ? json_parse(text, strlen(text), &err) : NULL;
}

static json_t *joined(const json_t *list)
{
	auto_strbuf struct strbuf text = {0};
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		strbuf_addf(&text, "%s%s", i > 0 ? "," : "", json_str_or(item, "?"));
	return text.len > 0 ? json_string(strbuf_str(&text)) : NULL;
}

/* ---- one VF of a node ------------------------------------------------------------------------ */

struct place {
	const json_t *pf, *vf;
};

static struct place find_vf(const json_t *state, const char *device)
{
	json_t *pf, *vf;
	size_t i, k;

	json_array_foreach (json_at(state, "status", "interfaces"), i, pf)
		json_array_foreach (json_at(pf, "Vfs"), k, vf)
			if (str_eq(json_str_at(vf, "pciAddress"), device))
				return (struct place){pf, vf};
	return (struct place){0};
}

static void put_attachment(json_t *row, const json_t *element)
{
	json_t *ips = joined(json_at(element, "ips"));

	json_put_str(row, "network", json_str_at(element, "name"));
	json_put_str(row, "interface", json_str_at(element, "interface"));
	json_put_str(row, "rdma", json_str_at(element, "device-info", "pci", "rdma-device"));
	if (json_str_at(element, "mac"))
		json_put_str(row, "mac", json_str_at(element, "mac"));
	if (ips)
		json_put(row, "ips", ips);
}

/* ---- where they disagree --------------------------------------------------------------------- */

/* The first thing that is wrong with the row, or NULL: what is the case; what to do. */
static const char *doubt(const json_t *world, const json_t *seen, const json_t *row,
			 const json_t *pod, bool is_known)
{
	if (json_object_get(seen, json_str_or(json_at(row, "where"), "")))
		return "two pods have it: delete one of them";
	if (json_object_size(world_kind(world, KIND_POD)) > 0 && !pod)
		return "the pod is gone: if this stays for minutes, restart the kubelet";
	if (pod && !str_eq(json_str_at(pod, "spec", "nodeName"), json_str_at(row, "node")))
		return "the pod runs on another node: if this stays, restart the kubelet";
	if (!is_known)
		return "no NIC has this VF any more: restart the pod";
	return NULL;
}

static void add_row(const json_t *world, const json_t *state, const json_t *resource,
		    const json_t *entry, json_t *rows, json_t *seen)
{
	auto_free char *pod_key = node_holder_pod(json_str_or(json_at(entry, "pod"), ""), NULL);
	const json_t *pod = world_get(world, KIND_POD, pod_key);
	const char *device = json_str_or(json_at(entry, "device"), "");
	bool is_vf = str_eq(json_str_or(json_at(resource, "kind"), "sriov"), "sriov");
	struct place place = find_vf(state, device);
	json_auto_t *status = network_status(pod);
	json_t *row = json_object();
	const char *wrong;

	json_put_str(row, "pod", pod_key);
	json_put_str(row, "node", json_name(state));
	json_put_str(row, "resource", json_str_at(resource, "name"));
	json_put_str(row, "kind", json_str_or(json_at(resource, "kind"), "sriov"));
	json_put_str(row, "device", device);
	json_put(row, "where", json_fmt("%s %s", json_name(state), device));
	if (place.vf) {
		json_put(row, "vf",
			 json_fmt("%s/%lld", json_str_or(json_at(place.pf, "name"), "?"),
				  (long long)json_integer_value(json_at(place.vf, "vfID"))));
		json_put(row, "rail", json_incref(json_at(place.pf, "rail")));
		json_put_str(row, "gpuDistance", json_str_at(entry, "gpuDistance"));
		json_put_str(row, "driver", json_str_at(place.vf, "driver"));
		json_put_str(row, "guid", json_str_at(place.vf, "guid"));
		json_put_str(row, "mac", json_str_at(place.vf, "mac"));
	}
	put_attachment(row, attachment(status, device));
	wrong = is_vf ? doubt(world, seen, row, pod, place.vf != NULL) : NULL;
	json_put_str(row, "doubt", wrong);
	if (is_vf)
		json_put_bool(seen, json_str_or(json_at(row, "where"), ""), true);
	json_object_del(row, "where");
	json_array_append_new(rows, row);
}

json_t *ledger_rows(const json_t *world)
{
	json_auto_t *seen = json_object();
	json_t *rows = json_array(), *state, *resource, *entry;
	const char *key;
	size_t i, k;

	json_each (world_kind(world, KIND_NODE_STATE), key, state)
		json_array_foreach (json_at(state, "status", "resources"), i, resource)
			json_array_foreach (json_at(resource, "pods"), k, entry)
				add_row(world, state, resource, entry, rows, seen);
	return rows;
}

/* ---- interfaces over a NIC that pods share --------------------------------------------------- */

static bool is_shared(const json_t *plugin)
{
	const char *type = json_str_at(plugin, "type");

	return str_eq(type, "macvlan") || str_eq(type, "ipvlan");
}

/*
 * The plugin of a network that makes such an interface; ifacer may stand before it. Returns new;
 * NULL: there is none, or the network cannot be read.
 */
static json_t *shared_plugin(const json_t *nad)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_auto_t *config = json_parse(text, strlen(text), NULL);
	json_t *plugin;
	size_t i;

	json_array_foreach (json_at(config, "plugins"), i, plugin)
		if (is_shared(plugin))
			return json_incref(plugin);
	return is_shared(config) ? json_incref(config) : NULL;
}

static void add_shared(const json_t *world, const json_t *pod, const char *pod_key,
		       const json_t *element, json_t *rows)
{
	const json_t *nad = world_get(world, KIND_NAD, json_str_or(json_at(element, "name"), ""));
	json_auto_t *plugin = shared_plugin(nad);
	json_t *row;

	if (!plugin)
		return;
	row = json_object();
	json_put_str(row, "pod", pod_key);
	json_put_str(row, "node", json_str_at(pod, "spec", "nodeName"));
	json_put_str(row, "kind", json_str_at(plugin, "type"));
	json_put_str(row, "device", json_str_at(plugin, "master"));
	put_attachment(row, element);
	json_array_append_new(rows, row);
}

/*
 * Does the row have what was asked for: a pod, a node, a device, a GUID, a MAC address, an address?
 */
static bool is_asked_for(const struct cli *cli, const json_t *row)
{
	static const char *const members[] = {"pod",  "node", "device",  "rdma",
					      "guid", "mac",  "resource"};

	auto_free char *in_namespace = NULL;

	if (cli->args_len == 0)
		return true;
	in_namespace = str_printf("%s/%s", cli->ns, cli->args[0]);
	if (str_eq(json_str_at(row, "pod"), in_namespace))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (str_eq(json_str_at(row, members[i]), cli->args[0]))
			return true;
	for (const char *ip = json_str_at(row, "ips"); ip; ip = strchr(ip, ',')) {
		size_t len;

		ip += *ip == ',';
		len = strcspn(ip, ",");
		if (len == strlen(cli->args[0]) && strncmp(ip, cli->args[0], len) == 0)
			return true;
	}
	return false;
}

int ledger_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	static const struct column columns[] = {
		{"POD", "pod"},           {"NODE", "node"},
		{"RESOURCE", "resource"}, {"KIND", "kind"},
		{"DEVICE", "device"},     {"VF", "vf"},
		{"RAIL", "rail"},         {"GPU", "gpuDistance"},
		{"RDMA", "rdma"},         {"INTERFACE", "interface"},
		{"MAC", "mac"},           {"GUID", "guid"},
		{"IPS", "ips"},           {"DOUBT", "doubt"},
	};
	json_auto_t *rows = ledger_rows(cli->world), *asked = json_array();
	json_t *row;
	size_t i;
	json_t *pod, *element;
	const char *key;

	/* Pods whose network-status has macvlan or ipvlan: no device stands behind those. */
	json_each (world_kind(cli->world, KIND_POD), key, pod) {
		json_auto_t *status = network_status(pod);

		if (pod_has_terminated(pod))
			continue;
		json_array_foreach (status, i, element)
			add_shared(cli->world, pod, key, element, rows);
	}
	json_array_foreach (rows, i, row) {
		if (!is_asked_for(cli, row))
			continue;
		json_array_append(asked, row);
		if (json_at(row, "doubt"))
			*ret_status = CLI_FOUND;
	}
	if (cli->output != CLI_TABLE) {
		print_items(cli, out, asked);
		return 0;
	}
	print_part(out, columns, ARRAY_LEN(columns), asked);
	if (out->len == 0)
		strbuf_adds(out, cli->args_len > 0 ? "no pod has that\n"
						   : "no pod has a device of ours, nor macvlan or "
						     "ipvlan\n");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of all interfaces are collected first, one row each; variables follow from the rows.
 *
 * Source of what variables mean: NCCL user guide, "Environment Variables"; how NCCL chooses a GID
 * itself: ncclIbGetGidIndex() in src/transport/net_ib of github.com/NVIDIA/nccl.
 */
#include "cli/explain/pod_rdma.h"

#include <string.h>

#include "lib/base/gid.h"
#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/reconcile.h"

#define TRAFFIC_CLASS     "NCCL_IB_TC"
#define CLUSTER_INTERFACE "eth0"

enum { DEVICE_NAME_MAX = 63 };

/* ---- facts ----------------------------------------------------------------------------------- */

/* Letters, digits, '-', '_', '.': nothing that a shell, or a list with commas, would read. */
static bool is_plain(const char *name)
{
	size_t len = 0;

	for (; name && name[len]; len++)
		if (!name_is_alnum(name[len]) && !strchr("-_.", name[len]))
			return false;
	return len > 0 && len <= DEVICE_NAME_MAX;
}

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
	if (is_plain(device) && !json_at(row, "rdmaDevice"))
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

	if (!is_plain(interface))
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

	if (!is_plain(interface) ||
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

/* The GID to use: RoCE v2, of an IPv4 address if there is one, since switches route both. */
static const json_t *best_gid(const json_t *row)
{
	const json_t *best = NULL, *gid;
	size_t i;

	json_array_foreach (json_at(row, "gids"), i, gid) {
		bool is_v4 = !strchr(json_str_or(json_at(gid, "address"), ":"), ':');

		if (json_integer_value(json_at(gid, "version")) == 2 && (!best || is_v4))
			best = gid;
		if (best == gid && is_v4)
			break;
	}
	return best;
}

/* What is known of all rows with a device. */
struct rdma_summary {
	struct strbuf devices; /* "mlx5_0:1,mlx5_1:1" */
	size_t n, with_gid, without_v2;
	int64_t index; /* of all GIDs; -1: they differ */
	bool is_v6, is_infiniband;
};

static void rdma_summary_done(struct rdma_summary *summary)
{
	strbuf_done(&summary->devices);
}

static void sum_up(const json_t *rows, struct rdma_summary *ret)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const json_t *gid = best_gid(row), *addresses = json_at(row, "addresses");
		const char *address = json_str_at(gid, "address");
		int64_t port = gid ? json_integer_value(json_at(gid, "port")) : 1;
		int64_t index = json_integer_value(json_at(gid, "index"));

		if (!json_at(row, "rdmaDevice"))
			continue;
		strbuf_addf(&ret->devices, "%s%s:%lld", ret->n > 0 ? "," : "",
			    json_str_at(row, "rdmaDevice"), (long long)port);
		if (!address)
			address = json_string_value(json_array_get(addresses, 0));
		ret->n++;
		ret->is_v6 |= address && strchr(address, ':');
		ret->is_infiniband |= json_is_true(json_at(row, "infiniband"));
		ret->without_v2 += json_at(row, "gids") && !gid;
		if (!gid)
			continue;
		ret->index = ret->with_gid == 0 || ret->index == index ? index : -1;
		ret->with_gid++;
	}
}

/* A number that a container of the pod sets; "": none does. */
static const char *traffic_class_of(const json_t *pod)
{
	const json_t *container;
	int64_t class;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container) {
		const json_t *variable =
			json_find(json_at(container, "env"), "name", TRAFFIC_CLASS);
		const char *value = json_str_at(variable, "value");

		if (str_to_int(value, 0, 255, &class))
			return value;
	}
	return "";
}

static json_t *variables_of(const struct rdma_summary *summary, const json_t *pod)
{
	json_t *variables = json_object();
	const char *traffic_class = traffic_class_of(pod);

	json_put(variables, "NCCL_IB_HCA", json_fmt("=%s", strbuf_str(&summary->devices)));
	json_put_str(variables, "UCX_NET_DEVICES", strbuf_str(&summary->devices));
	if (summary->is_infiniband) {
		/* GIDs are not chosen there. */
	} else if (summary->with_gid == summary->n && summary->index >= 0) {
		json_put(variables, "NCCL_IB_GID_INDEX",
			 json_fmt("%lld", (long long)summary->index));
		json_put(variables, "UCX_IB_GID_INDEX",
			 json_fmt("%lld", (long long)summary->index));
	} else {
		json_put_str(variables, "NCCL_IB_ADDR_FAMILY",
			     summary->is_v6 ? "AF_INET6" : "AF_INET");
		json_put_str(variables, "NCCL_IB_ROCE_VERSION_NUM", "2");
	}
	/* To find each other they need no RDMA: the cluster's network is there in any pod. */
	json_put_str(variables, "NCCL_SOCKET_IFNAME", "=" CLUSTER_INTERFACE);
	json_put_str(variables, "GLOO_SOCKET_IFNAME", CLUSTER_INTERFACE);
	if (*traffic_class) {
		json_put_str(variables, TRAFFIC_CLASS, traffic_class);
		json_put_str(variables, "UCX_IB_TRAFFIC_CLASS", traffic_class);
	}
	return variables;
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
	if (summary->with_gid > 1 && summary->index < 0)
		json_array_append_new(
			notes,
			json_string(
				"the GID indices differ, and NCCL_IB_GID_INDEX is one for all "
				"devices: start a process for each device with its own "
				"NCCL_IB_HCA and NCCL_IB_GID_INDEX, or use RDMA mode exclusive"));
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

	if (json_array_size(rows) == 0)
		return;
	sum_up(rows, &summary);
	json_put(chain, "interfaces", json_incref(rows));
	if (summary.n > 0)
		json_put(chain, "variables", variables_of(&summary, pod));
	notes = notes_of(&summary, rows, pod);
	if (json_array_size(notes))
		json_put(chain, "notes", json_incref(notes));
}

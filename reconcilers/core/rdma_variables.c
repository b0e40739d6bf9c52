// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the interfaces of a pod, and the variables that follow: for `orbweaver explain pod`
 * and for the file in the pod (nodeagent/cni/worker/job_files.h).
 *
 * Source of what variables mean: NCCL user guide, "Environment Variables"; how NCCL chooses a GID
 * itself: ncclIbGetGidIndex() in src/transport/net_ib of github.com/NVIDIA/nccl.
 */
#include "reconcilers/core/rdma_variables.h"

#include <assert.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/json/json.h"

/* Without its end; IB_DEVICE_NAME_MAX of rdma/ib_verbs.h. */
enum { NAME_MAX_LEN = 63 };

bool rdma_name_is_plain(const char *name)
{
	size_t len = 0;

	for (; name && name[len]; len++)
		if (!name_is_alnum(name[len]) && !strchr("-_.", name[len]))
			return false;
	return len > 0 && len <= NAME_MAX_LEN;
}

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

void rdma_summary_done(struct rdma_summary *summary)
{
	strbuf_done(&summary->devices);
}

bool rdma_summary_differs(const struct rdma_summary *summary)
{
	return summary->with_gid > 1 && summary->index < 0;
}

void rdma_summarize(const json_t *rows, struct rdma_summary *ret)
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

json_t *rdma_variables(const struct rdma_summary *summary, const char *traffic_class)
{
	json_t *variables = json_object();

	assert(summary->n > 0);
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
	json_put_str(variables, "NCCL_SOCKET_IFNAME", "=" RDMA_CLUSTER_INTERFACE);
	json_put_str(variables, "GLOO_SOCKET_IFNAME", RDMA_CLUSTER_INTERFACE);
	if (*traffic_class) {
		json_put_str(variables, RDMA_TRAFFIC_CLASS, traffic_class);
		json_put_str(variables, "UCX_IB_TRAFFIC_CLASS", traffic_class);
	}
	return variables;
}

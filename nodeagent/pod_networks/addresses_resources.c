// SPDX-License-Identifier: Apache-2.0
/* What is read and written here, and which of it is this node's. */
#include "lib/base/str.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/endpoint.h"

const struct kube_resource addresses_endpoint = {"spiderpool.spidernet.io", "v2beta1",
						 KIND_ENDPOINT, "SpiderEndpoint", true};
const struct kube_resource addresses_pool = {"spiderpool.spidernet.io", "v2beta1", KIND_IP_POOL,
					     "SpiderIPPool", false};

const char *addresses_config_ns(const struct addresses *addresses)
{
	return addresses->leader_ns ? addresses->leader_ns : addresses->config.config_ns;
}

char *addresses_node_query(const struct addresses *addresses)
{
	auto_free char *label = endpoint_node_label(addresses->config.node);
	auto_strbuf struct strbuf query = {0};

	strbuf_adds(&query, "labelSelector=");
	kube_path_encode(&query, ENDPOINT_NODE_LABEL);
	strbuf_adds(&query, "%3D");
	kube_path_encode(&query, label);
	return strbuf_take(&query);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The kinds we know. Scopes and versions of what others define: NetworkAttachmentDefinition is
 * k8s.cni.cncf.io/v1 (Multus), the rest as in the CRDs that users have installed today
 * (sriovnetwork.openshift.io/v1, spiderpool.spidernet.io/v2beta1).
 */
#include "reconcilers/core/kinds.h"

#include "lib/base/str.h"
#include "lib/json/json.h"

#define MULTUS "k8s.cni.cncf.io"
#define SRIOV  "sriovnetwork.openshift.io"
#define SPIDER "spiderpool.spidernet.io"

#define CRD(plural_, group_) "crds/" plural_ "." group_ ".yaml"
/* Others have it installed, or need it too: made when absent, never changed. */
#define NAD "crds/nad/" KIND_NAD "." MULTUS ".yaml"

/* clang-format off */
static const struct kind_info kinds[] = {
	/* id group version kind namespaced crd_file */
	{ KIND_NODE,          "",     "v1",      "Node",                        false, NULL },
	{ KIND_NAMESPACE,     "",     "v1",      "Namespace",                   false, NULL },
	{ KIND_POD,           "",     "v1",      "Pod",                         true,  NULL },
	{ KIND_NAD,           MULTUS, "v1",      "NetworkAttachmentDefinition", true,  NAD },
	{ KIND_POLICY,        SRIOV,  "v1",      "SriovNetworkNodePolicy",      true,  CRD(KIND_POLICY, SRIOV) },
	{ KIND_NODE_STATE,    SRIOV,  "v1",      "SriovNetworkNodeState",       true,  CRD(KIND_NODE_STATE, SRIOV) },
	{ KIND_POOL_CONFIG,   SRIOV,  "v1",      "SriovNetworkPoolConfig",      true,  CRD(KIND_POOL_CONFIG, SRIOV) },
	{ KIND_SRIOV_NETWORK, SRIOV,  "v1",      "SriovNetwork",                true,  CRD(KIND_SRIOV_NETWORK, SRIOV) },
	{ KIND_SRIOV_IB_NETWORK, SRIOV, "v1",    "SriovIBNetwork",              true,  CRD(KIND_SRIOV_IB_NETWORK, SRIOV) },
	{ KIND_OVS_NETWORK,   SRIOV,  "v1",      "OVSNetwork",                  true,  CRD(KIND_OVS_NETWORK, SRIOV) },
	{ KIND_IP_POOL,       SPIDER, "v2beta1", "SpiderIPPool",                false, CRD(KIND_IP_POOL, SPIDER) },
	{ KIND_ENDPOINT,      SPIDER, "v2beta1", "SpiderEndpoint",              true,  CRD(KIND_ENDPOINT, SPIDER) },
	{ KIND_RESERVED_IP,   SPIDER, "v2beta1", "SpiderReservedIP",            false, CRD(KIND_RESERVED_IP, SPIDER) },
	{ KIND_MULTUS_CONFIG, SPIDER, "v2beta1", "SpiderMultusConfig",          true,  CRD(KIND_MULTUS_CONFIG, SPIDER) },
	{ KIND_COORDINATOR,   SPIDER, "v2beta1", "SpiderCoordinator",           false, CRD(KIND_COORDINATOR, SPIDER) },
	{ 0 },
};
/* clang-format on */

const struct kind_info *kind_find(const char *id)
{
	for (const struct kind_info *k = kinds; k->id; k++)
		if (str_eq(k->id, id))
			return k;
	return NULL;
}

const struct kind_info *kind_all(void)
{
	return kinds;
}

json_t *kind_api_version(const struct kind_info *kind)
{
	return json_fmt("%s%s%s", kind->group, *kind->group ? "/" : "", kind->version);
}

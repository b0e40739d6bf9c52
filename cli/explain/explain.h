// SPDX-License-Identifier: Apache-2.0
/*
 * Chains of one object each (chain.h), from what a person wrote to what a pod gets. Pure: they look
 * at the world and ask the functions that decide.
 *
 * Each returns new, or NULL with ERR_INVALID when there is no such object.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* name: of the Node. World: as node_state_reconcile, with "env". */
json_t *explain_node_chain(const json_t *world, const char *name, struct err *err);

/*
 * key: "namespace/name" of a SriovNetwork, SriovIBNetwork, OVSNetwork, or of the
 * NetworkAttachmentDefinition that a user made. World: those, KIND_MULTUS_CONFIG, KIND_IP_POOL,
 * KIND_NODE, KIND_POD.
 */
json_t *explain_network_chain(const json_t *world, const char *key, struct err *err);

/* key: "namespace/name" of a SpiderMultusConfig. World: as above. */
json_t *explain_config_chain(const json_t *world, const char *key, struct err *err);

/*
 * name: of a SpiderIPPool, or "namespace/name" of a SriovNetworkPoolConfig. World: as above, and
 * KIND_POOL_CONFIG, KIND_RESERVED_IP, KIND_NODE_STATE.
 */
json_t *explain_pool_chain(const json_t *world, const char *name, struct err *err);

/*
 * key: "namespace/name" of a Pod; config_ns: where the ConfigMap spiderpool-conf is. World: all of
 * the above, and what explain_addresses needs. With the members of pod_rdma.h.
 */
json_t *explain_pod_chain(const json_t *world, const char *config_ns, const char *key,
			  struct err *err);

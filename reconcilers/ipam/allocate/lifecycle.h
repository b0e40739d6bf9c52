// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a SpiderEndpoint: it is written once the ledgers say what it says, and ends when its
 * pod has ended and nothing of it is left on its node. A key stands for one name of a pod (or
 * virtual machine instance), whether an endpoint of that name exists or not: records that no
 * endpoint names end here, too.
 *
 * Nothing is given back on the word of a cache: what looks ended is read from the API server first
 * (BOX_LOOK), and only then posted to the next pass (BOX_ENDING, assign.h).
 */
#pragma once

#include "reconcilers/core/reconcile.h"

/* By SpiderEndpoint: what has to be read: [{"kind", "key"}, …]. */
/* By SpiderEndpoint: what was read, once: {kind: {key: object, or null when there is none}}. */
#define BOX_LIVE "live"
/*
 * By "namespace/name" of records: those that no endpoint names: [{"pool", "address", "uid",
 * "node"}]. Also, with "claimed": true, what an endpoint of that name says and no record does.
 */
#define BOX_STRAYS "strays"
/*
 * By "POOL NAMESPACE/NAME" of pool and SpiderEndpoint: what the endpoint says of the pool and no
 * record does. true: its pod was not looked at yet; then the key of the pod that waits for the
 * record, "" when there is none.
 */
#define BOX_CLAIMED "claimed"

/*
 * The taint of a node that somebody has declared dead: KEP-2268, node.kubernetes.io/out-of-service.
 */
#define OUT_OF_SERVICE_TAINT "node.kubernetes.io/out-of-service"

/*
 * How soon an endpoint is looked at again whose owner keeps its addresses, or whose pod is not
 * mirrored and lives, or waits for other addresses.
 */
enum { LIFECYCLE_AGAIN_MS = 60000 };

/* How soon an endpoint is looked at again that says down of a pod whose containers run. */
enum { LIFECYCLE_ENDING_MS = 5000 };

/* How soon an ask that has no answer is looked at again, whose pod is not mirrored. */
enum { LIFECYCLE_ASKS_MS = 2000 };

/* Is the node gone for good, or was declared so? node: NULL when there is none. */
bool node_is_gone(const json_t *node);

/*
 * Key: "namespace/name". World: KIND_ENDPOINT of that name; KIND_POD of that name, of the machine
 * of that name and of who asks there (endpoint_asker); KIND_NODE that it names; BOX_DECIDED,
 * BOX_LIVE, BOX_STRAYS, IPAM_CONFIG_MAP, KIND_RESOURCE_QUOTA of the namespace, and in "env" also
 * "configNamespace" and "endedSetPods": SpiderEndpoints of StatefulSets' pods in the namespace that
 * are not alive. Errors: ERR_INVALID "BadConfig" as ipam_settings_read().
 */
reconcile_fn endpoint_reconcile;

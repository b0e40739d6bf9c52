// SPDX-License-Identifier: Apache-2.0
/*
 * The networks of a simulated pod: what plugins would have answered that are not called. Pure.
 *
 * Delegates are those of nodeagent/cni/plan/delegates.h; addresses of SpiderIPPools are the pod's
 * own, as the operator has given them.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* The meta plugin's configuration on a simulated node: a cluster's network that is always there. */
json_t *pod_networks_config(void);

/* The plugin of this delegate that has addresses of SpiderIPPools; NULL: none. Borrowed. */
const json_t *pod_networks_plugin(const json_t *delegate);

/*
 * The results of all delegates, one each, new. status: of the pod's SpiderEndpoint, NULL where no
 * delegate needs it. ip: "10.128.0.5/24" on the cluster's network. seed: of MAC addresses, the
 * pod's UID.
 *
 * NULL with err: ERR_INVALID "NoAddressForNic", the endpoint has none for a NIC; "BadResult".
 */
json_t *pod_networks_results(const json_t *delegates, const json_t *status, const char *ip,
			     const char *seed, struct err *err);

/*
 * Entries for NodeState.status.attachments (nodeagent/host_plan/status.h) of all delegates but the
 * cluster's network; a new array. pod: its metadata.
 */
json_t *pod_networks_attachments(const json_t *pod, const json_t *delegates, const json_t *results);

// SPDX-License-Identifier: Apache-2.0
/*
 * Are the cluster's pods worth watching? At 100,000 pods nothing else that the operator does costs
 * as much, and this reads them for one purpose: to find those that run without the injection that
 * they asked for. Pods that are bound to a node are watched for their addresses by another kind
 * (KIND_BOUND_POD).
 *
 * They are, while pods are injected (--webhook-addr, and podResourceInject is enabled), or while a
 * SpiderMultusConfig is in a group that pods could ask for.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "operator/cache/mirror.h"

/* All zero at first, but for listening. */
struct pod_demand {
	bool listening; /* webhooks are served */
	bool injecting; /* podResourceInject is enabled */
	size_t grouped; /* SpiderMultusConfigs in a group */
	size_t pools;   /* SpiderIPPools: pods that name networks may need addresses of them */
};

/* An object of this kind in the cache changed: old and now as of cache_changed_fn. */
void pod_demand_changed(struct pod_demand *demand, const char *kind, const json_t *old,
			const json_t *now);

bool pod_demand_is_there(const struct pod_demand *demand);

/*
 * Have the mirror watch the pods that are worth it, and no others; with those that are bound, the
 * ResourceQuotas.
 */
void pod_demand_tell(const struct pod_demand *demand, struct mirror *mirror);

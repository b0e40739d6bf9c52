// SPDX-License-Identifier: Apache-2.0
/*
 * A NodeState names its agent's pod; that pod is looked up, and when it does not run its own status
 * says why. For the chains of nodes, resources and pods: without an agent nothing of what they
 * explain changes.
 */
#include "cli/explain/agent.h"

#include <stdbool.h>

#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

#define NAME_LABEL "app.kubernetes.io/name"

/* One that runs and is not Ready says itself what it waits for (node_agent.h). */
static bool runs(const json_t *pod)
{
	const json_t *container = json_array_get(json_at(pod, "status", "containerStatuses"), 0);
	const json_t *conditions = json_at(pod, "status", "conditions");

	return !json_at(pod, "metadata", "deletionTimestamp") &&
	       (str_eq(condition_status_of(conditions, "Ready"), "True") ||
		json_at(container, "state", "running"));
}

char *agent_pod_missing(const json_t *world, const char *node, const json_t *state)
{
	const char *ns = world_env(world, "namespace"), *key;
	bool knows_pods =
		json_is_true(json_at(world, "env", "readsCluster")) && json_at(world, KIND_POD);
	const json_t *there = NULL;
	json_t *pod;

	json_each (world_kind(world, KIND_POD), key, pod) {
		if (!str_eq(json_namespace(pod), ns) ||
		    !str_eq(json_str_at(pod, "metadata", "labels", NAME_LABEL), AGENT_NAME))
			continue;
		knows_pods = true;
		if (!str_eq(json_str_at(pod, "spec", "nodeName"), node))
			continue;
		if (runs(pod))
			return NULL;
		there = pod;
	}
	if (there)
		return str_printf("its pod on the node does not run: kubectl describe pod -n %s %s",
				  ns, json_name(there));
	if (!knows_pods || str_empty(json_str_at(state, "status", "agentPod")))
		return NULL;
	return str_printf("no agent pod runs on the node: kubectl get pods -n %s -l " NAME_LABEL
			  "=" AGENT_NAME " --field-selector spec.nodeName=%s",
			  ns, node);
}

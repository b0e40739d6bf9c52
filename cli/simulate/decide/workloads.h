// SPDX-License-Identifier: Apache-2.0
/*
 * The pods of DaemonSets, ReplicaSets and StatefulSets, and the ReplicaSet of a Deployment: what is
 * missing, what is too many, and what the status says. Pure.
 *
 * Less than the real controllers: an update replaces all pods at once, whatever the strategy; there
 * are no revisions to go back to. Source: k8s.io/kubernetes, pkg/controller.
 */
#pragma once

#include <jansson.h>

/*
 * kind: DaemonSet, ReplicaSet, StatefulSet or Deployment; object: one of them. owned: an array of
 * the pods (of a Deployment: the ReplicaSets) that it controls. nodes: an array of Nodes, for
 * DaemonSets.
 * now: RFC 3339.
 *
 * Returns new {"create": [object], "scale": [{"name", "replicas"}], "delete": [name], "status":
 * as it has to be}; all but "status" may be empty. An object that is being deleted gets nothing.
 */
json_t *workload_plan(const char *kind, const json_t *object, const json_t *owned,
		      const json_t *nodes, const char *now);

// SPDX-License-Identifier: Apache-2.0
/* Does a node's agent run? By its pod, where pods are there to look at. Pure. */
#pragma once

#include <jansson.h>

/*
 * Why there is no agent on the node, and what to do; NULL: one runs, or it is unknown. Returns new.
 *
 * It is unknown for an agent that never reported in which pod it is (status.agentPod of the
 * NodeState) and has none there, since people start them by hand, too; nor where the world lacks
 * pods: files that have no pod of any agent. World: KIND_POD, with "env": "namespace", and
 * "readsCluster".
 */
char *agent_pod_missing(const json_t *world, const char *node, const json_t *state);

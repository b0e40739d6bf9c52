// SPDX-License-Identifier: Apache-2.0
/*
 * Which node a pod is bound to. Pure.
 *
 * A subset of kube-scheduler's filters, in its words: unschedulable, taints, nodeSelector and
 * required node affinity, resources. Of the nodes that are left the one with the fewest pods is
 * taken, the first by name of several.
 *
 * Source: k8s.io/kubernetes, pkg/scheduler/framework/plugins.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/*
 * nodes: {name: {"node": Node, "used": {resource: number}}}, "used" by the pods that are bound to
 * it ("pods" among them). Returns the node's name, borrowed from `nodes`, or NULL with err
 * ERR_TRANSIENT "FailedScheduling", such as
 *
 *	0/2 nodes are available: 1 Insufficient spidernet.io/x, 1 node(s) were unschedulable.
 */
const char *scheduler_choose(const json_t *pod, const json_t *nodes, struct err *err);

/*
 * May the pod run there, its needs of resources apart? For a DaemonSet. NULL: it may; else why not,
 * as above, static.
 */
const char *scheduler_refusal(const json_t *pod, const json_t *node);

// SPDX-License-Identifier: Apache-2.0
/* From policy to allocatable, node by node. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What NodeState.status says of the resource; NULL: nothing. Borrowed. */
const json_t *resource_offer(const json_t *state, const char *asked);

/*
 * What the node has allocatable, by the API server; -1: nothing is said. Devices are whole numbers.
 */
int64_t resource_allocatable(const json_t *node, const char *asked);

/* Policies that make this resource, { key: policy }; new. */
json_t *resource_makers(const json_t *world, const char *asked);

/*
 * The row of one node, new; NULL when the resource has nothing to do with it:
 *
 *	{ "node", "wanted", "offered", "healthy", "allocated", "registered": "yes", "allocatable",
 *	  "link": the first that is broken, "reason", "broken": what is the matter and what to do,
 *	  "excluded": true	no policy selects the node: meant so, most likely }
 *
 * Links, in their order: policy, node, agent, nic, vfs, offer, kubelet, health, allocatable.
 * makers: resource_makers(). World: as node_state_reconcile, with "env".
 */
json_t *resource_row(const json_t *world, const char *node, const char *asked,
		     const json_t *makers);

/* Rows of all nodes; new. */
json_t *resource_rows(const json_t *world, const char *asked);

// SPDX-License-Identifier: Apache-2.0
/*
 * What is wrong with nodes, by their NodeStates. Pure: facts in, findings out
 * (nodeagent/model/findings.h).
 */
#pragma once

#include <jansson.h>

/*
 * What the NodeState of one node says, beside its Node (NULL: not known) and what networks lie over
 * (links_networks()); each finding has "node". Returns new, sorted.
 */
json_t *doctor_check_node(const json_t *node, const json_t *state, const json_t *networks);

/*
 * What differs among the nodes that have NICs for the same resource: kernel, agent, speed, MTU,
 * kind of NIC, RDMA mode; and rail by rail. World: KIND_NODE, KIND_NODE_STATE. Returns new.
 */
json_t *doctor_compare(const json_t *world);

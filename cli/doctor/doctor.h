// SPDX-License-Identifier: Apache-2.0
/*
 * What is wrong with a host for RDMA in pods. Pure: facts in, findings out (findings.h).
 *
 * What people do by hand with rdma link, rdma system, ibstat, ibv_devices, mlxconfig, lspci, lsmod
 * and /proc; and what else keeps RDMA from working or makes it slow.
 */
#pragma once

#include <jansson.h>

/*
 * observed: nodeagent/host/observe.h, with GIDs. facts: nodeagent/host/inspect.h. rdma_mode: what
 * is wanted, "shared" or "exclusive"; NULL: nothing. Returns new, sorted.
 */
json_t *doctor_check_host(const json_t *observed, const json_t *facts, const char *rdma_mode);

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

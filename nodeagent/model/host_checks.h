// SPDX-License-Identifier: Apache-2.0
/*
 * What is wrong with a host for RDMA in pods, for `orbweaver doctor --local` and the agent. Pure:
 * facts in, findings out (findings.h).
 *
 * What people do by hand with rdma link, rdma system, ibstat, ibv_devices, mlxconfig, lspci, lsmod
 * and /proc; and what else keeps RDMA from working or makes it slow.
 */
#pragma once

#include <jansson.h>

/* Of one NodeState, as the schema in crds/ has it. */
enum { HOST_CHECKS_MAX = 32 };

/*
 * observed: nodeagent/host/observe.h, with GIDs. facts: nodeagent/host/inspect.h. rdma_mode: what
 * is wanted, "shared" or "exclusive"; NULL: nothing. Returns new, sorted.
 */
json_t *host_checks_run(const json_t *observed, const json_t *facts, const char *rdma_mode);

/*
 * Those for a NodeState, where the host has an RDMA NIC: settings that stay as they are, and that
 * no other part of the NodeState shows. Returns new, sorted.
 */
json_t *host_checks_of_settings(const json_t *observed, const json_t *facts);

/*
 * What the NodeState lists from now on, new, at most HOST_CHECKS_MAX: of those that were found now,
 * those that were found the last time (before) or are listed already (shown). Either may be NULL.
 */
json_t *host_checks_settle(const json_t *found, const json_t *before, const json_t *shown);

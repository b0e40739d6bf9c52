// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's process: gives its privileges away, runs the loop, leaves in order.
 *
 * It follows the host and its NodeState, plans, orders steps of workers, and says what the kubelet
 * is to be offered. What it is made of is in the folders below; agent_wiring.c ties them together.
 */
#pragma once

#include "nodeagent/agent/agent_options.h"
#include "nodeagent/agent/container.h"
#include "nodeagent/process/supervisor.h"

/*
 * Run until told to end; returns the exit status. Takes the sockets; the rest is borrowed. What
 * keeps it from starting goes to standard error.
 */
int agent_process_run(const struct agent_options *options, const struct container_facts *container,
		      const struct supervisor_agent *sockets, const struct supervisor_past *past);

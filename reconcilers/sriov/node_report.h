// SPDX-License-Identifier: Apache-2.0
/* A decision and what the agent says → how each policy stands on the node (policy_report.h). */
#pragma once

#include "reconcilers/sriov/node_decision.h"

/*
 * Reports of the policies of the decision, by key; adds to what was reported of them.
 * `spec_is_written`: the NodeState carries the decision. `no_agent`: that there is no agent, and
 * why; NULL: there is one. Call once per decision. Returns new.
 */
json_t *node_reports(struct decision *d, bool spec_is_written, const char *no_agent);

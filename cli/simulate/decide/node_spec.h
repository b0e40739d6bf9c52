// SPDX-License-Identifier: Apache-2.0
/*
 * Which nodes with which NICs are simulated: --node 'gpu-[1-2]:1xconnectx-5,8xconnectx-7'. Pure.
 */
#ifndef ORBWEAVER_CLI_SIMULATE_DECIDE_NODE_SPEC_H
#define ORBWEAVER_CLI_SIMULATE_DECIDE_NODE_SPEC_H

#include <jansson.h>

#include "lib/base/err.h"

/* Of all specs together, and of one node. */
#define NODE_SPEC_NODES_MAX 5000
#define NODE_SPEC_NICS_MAX  32

#define NODE_SPEC_DEFAULT "gpu-[1-2]:1xconnectx-5,8xconnectx-7"

/*
 * Append to `nodes` what NAME[-RANGE]:COUNTxMODEL[,…] says, an array of
 *
 *	{"name": "gpu-1", "nics": ["connectx-5", "connectx-7", …]}
 *
 * A range is [FIRST-LAST] anywhere in the name; leading zeros stay. models: names of NICs, ends
 * with NULL. -1 with err ERR_INVALID "BadNode", a line that names the part, its value and what
 * would be right; `nodes` is unchanged then.
 */
int node_spec_add(json_t *nodes, const char *text, const char *const *models, struct err *err);

#endif

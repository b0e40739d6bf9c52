// SPDX-License-Identifier: Apache-2.0
/*
 * Which nodes with which NICs and GPUs are simulated:
 * --node 'gpu-[1-2]:1xconnectx-5,8xconnectx-7,8xh100'. Pure.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Of all specs together, and of one node. */
#define NODE_SPEC_NODES_MAX 5000
#define NODE_SPEC_NICS_MAX  32
#define NODE_SPEC_GPUS_MAX  16

/* What a spec may name; lists of names end with NULL. */
struct node_models {
	const char *const *nics, *const *gpus;
};

#define NODE_SPEC_DEFAULT "gpu-[1-2]:1xconnectx-5,8xconnectx-7"

/*
 * Append to `nodes` what NAME[-RANGE]:COUNTxMODEL[,…] says, an array of
 *
 *	{"name": "gpu-1", "nics": ["connectx-5", "connectx-7", …], "gpus": ["h100", …]}
 *
 * A range is [FIRST-LAST] anywhere in the name; leading zeros stay. -1 with err ERR_INVALID
 * "BadNode", a line that names the part, its value and what would be right; `nodes` is unchanged
 * then.
 */
int node_spec_add(json_t *nodes, const char *text, const struct node_models *models,
		  struct err *err);

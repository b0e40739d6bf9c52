// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins of a pod's networks, called as the meta plugin decides (cni/plan/meta_run.h).
 * Those of ours are called in this process, one after the other, once what takes long has begun for
 * all of them; programs of the node run beside them (external_ipam.h). In a worker: blocks.
 *
 * What waits for the network is shared by all NICs of a pod: attachment_shared.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/plan/meta_run.h"
#include "nodeagent/cni/worker/attachment.h"

struct own_plugins {
	/* Is this plugin one of ours, or a program of the node? */
	bool (*is_ours)(const struct attachment *attachment);
	/* Has one of ours something to begin before its turn? Then it begins that. */
	bool (*begins)(const char *plugin);
	int (*begin)(struct attachment *attachment, struct err *err);
	/* Call one of ours. command: of struct meta_step. */
	int (*call)(struct attachment *attachment, const char *command, json_t **ret_result,
		    struct err *err);
};

/*
 * Call plugins until the run has ended; it knows the results and the first failure, which names
 * network and interface. `of` is the meta plugin's own attachment. After a failure of ADD what has
 * not begun does not begin.
 */
void plugin_calls_run(const struct attachment *of, const json_t *delegates, struct meta_run *run,
		      const struct own_plugins *own);

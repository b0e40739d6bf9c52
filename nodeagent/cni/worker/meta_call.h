// SPDX-License-Identifier: Apache-2.0
/*
 * The meta plugin's calls carried out: asks the agent for the pod, its networks and devices, has
 * the plugins called as nodeagent/cni/plan decides, keeps what DEL needs on the disk. In a worker:
 * blocks, and may be killed at any line.
 *
 * What is kept: {"delegates": [nodeagent/cni/plan/delegates.h]} before the first plugin is called,
 * and with {"results": [each's of ADD]}, which DEL hands back (prevResult), when all have ended.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/worker/plugin_calls.h"

/* As which the runtime calls it. */
#define META_PLUGIN "orbweaver"

struct meta_services {
	void *context;
	/* As attach_services has it. */
	int (*save)(void *context, const json_t *state, struct err *err);
	/* The same, but a power cut may take it along: nothing is to be undone by it alone. */
	int (*save_more)(void *context, const json_t *state, struct err *err);
	struct own_plugins own;
};

/*
 * As attach_run(): saved is what the last save() of ADD left, or NULL. ADD of a pod that is gone
 * has a result that lets the runtime go on and remove the sandbox. Errors as of meta_delegates(),
 * ERR_HOST "PluginFailed", and those of our own plugins, each naming network and interface.
 */
int meta_call_run(struct attachment *attachment, enum attach_command command, const json_t *saved,
		  const struct meta_services *services, json_t **ret_result, struct err *err);

/*
 * GC or STATUS of the cluster's network, for its plugins, where its cniVersion has the command.
 * Errors as above: ERR_HOST or ERR_TRANSIENT "PluginFailed" is a plugin's own.
 */
int meta_call_pass(struct attachment *attachment, const char *command,
		   const struct meta_services *services, struct err *err);

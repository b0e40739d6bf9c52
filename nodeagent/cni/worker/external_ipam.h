// SPDX-License-Identifier: Apache-2.0
/*
 * Programs of others: plugins of a pod's networks, and IPAM plugins that ours call. The plugin that
 * waits on the host runs them or, for what is finished later, a child of the worker in the host's
 * root. In a worker: blocks.
 */
#pragma once

#include "nodeagent/cni/worker/attachment.h"

/* A program that runs. Several may, side by side. */
struct external_program;

/*
 * Begin to run a program with the attachment's environment but for CNI_COMMAND=command, and this
 * on stdin. By ourselves it is looked for in external_ipam_path(), and has a CNI_NETNS only when
 * that leads to the attachment's namespace.
 * NULL with err: it could not be run; "TooLarge"; ERR_TRANSIENT "PluginFailed": another program of
 * this worker has waited for its turn in vain. The attachment's line and limits outlive it.
 */
struct external_program *external_program_begin(struct attachment *attachment, const char *type,
						const char *command, const json_t *config,
						struct err *err);
/*
 * May one more begin now? Children of this worker are few at a time (external_ipam.c): one that has
 * to end first may be one of them.
 */
bool external_program_may_begin(const struct attachment *attachment);
/* Wait until one of these has ended, or its time is over; n is at least 1. Returns its place. */
size_t external_program_wait(struct external_program *const *runs, size_t n);
/*
 * Wait for its end, new: {"status", "stdout", "stderr"}; NULL with err. Frees it. A DEL that does
 * not end is stopped: ERR_TRANSIENT "PluginFailed" or "IpamFailed", which name it. So the worker
 * goes on with the pod's other interfaces before the server ends it.
 */
json_t *external_program_end(struct external_program *run, struct err *err);

/* All of these. */
json_t *external_ipam_program(struct attachment *attachment, const char *type, const char *command,
			      const json_t *config, struct err *err);

/*
 * Run `type` with CNI_COMMAND=command and this configuration. ADD: *ret_result is what it printed,
 * new. ERR_HOST "IpamFailed" with its own words; ERR_INVALID "BadResult": it printed no result.
 * attachment->has_no_ipam is set when it could not be started. DEL: ERR_TRANSIENT "IpamFailed"
 * when it takes too long.
 */
int external_ipam_run(struct attachment *attachment, const char *type, const char *command,
		      const json_t *config, json_t **ret_result, struct err *err);

/*
 * Where this program is looked for when no plugin waits on the host, as CNI_PATH has it; new, "":
 * nowhere. The folder where a plugin there found it last, and the runtime's as we know it; never
 * what the call says, which comes by a process without privileges.
 */
char *external_ipam_path(const struct attachment *attachment, const char *type);

/* ERR_INVALID "TooLarge": the program's call does not fit into a message. */
void external_ipam_too_large(const char *type, struct err *err);

/*
 * Pure: has the program run? Its end (as below, or with "unstarted": true) says when it could not
 * be started: it is not installed, or not executable. Of what has not run there is nothing to undo.
 */
bool external_ipam_has_run(const json_t *end);

/* Pure: what a program's end says: {"status", "stdout", "stderr"}. Errors as above. */
int external_ipam_read(const char *type, const json_t *end, json_t **ret_result, struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * What one plugin of a delegate (delegates.h) gets: its configuration on stdin and its arguments;
 * and how its answer is read. Pure.
 *
 * Sources: CNI specification 1.1.0, sections 2 to 5; containernetworking/cni libcni/api.go.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Bytes of one plugin's result. */
#define CNI_RESULT_MAX (1U << 20)

/*
 * CNI_ARGS for the plugins of a pod: who the pod is, then what the runtime sent, then `mac` and
 * `ips` (may be NULL), which older plugins read there. Pairs of the runtime that have not exactly
 * one '=' are left out: plugins refuse them. Empty without a pod. A new string.
 */
char *cni_args_for(const char *runtime_args, const char *container_id, const json_t *pod,
		   const char *mac, const json_t *ips);

/* Plugins of a delegate, and their types. Borrowed. */
size_t delegate_plugins(const json_t *delegate);
const char *delegate_plugin_type(const json_t *delegate, size_t plugin);

/*
 * stdin of a delegate's plugin, new. previous is the result of the plugin before it (ADD: NULL for
 * the first one), or the delegate's whole result (CHECK, DEL; NULL when it is not known). Plugins
 * get it in the delegate's version; DEL from 0.4.0 on, and not when it is no result: what was
 * attached has to go all the same.
 */
json_t *delegate_stdin(const json_t *delegate, size_t plugin, const char *command,
		       const json_t *previous);

/*
 * Does the delegate have this command at all? CHECK begins with 0.4.0 and can be switched off; GC
 * and STATUS with 1.1.0.
 */
bool delegate_has_command(const json_t *delegate, const char *command);

/*
 * Read what a plugin printed on ADD. Returns new: the result in the delegate's version, which is
 * also what it is taken for when the plugin gave none, and "dns" as that version has it. NULL with
 * err: ERR_HOST "PluginAnswer" and ERR_INVALID "BadResult", it is no result; "BadCniVersion".
 */
json_t *delegate_result(const json_t *delegate, const char *text, size_t len, struct err *err);

/*
 * Fill err with why a plugin failed, of what it left: ERR_HOST "PluginFailed", ERR_TRANSIENT for
 * the code that means "try again later". stdout is looked at first, then stderr, then the exit
 * status.
 */
int delegate_failure(const json_t *delegate, size_t plugin, const char *command, int exit_status,
		     const char *out, const char *errors, struct err *err);

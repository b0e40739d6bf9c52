// SPDX-License-Identifier: Apache-2.0
/* Runs one exec plugin beside the loop: no terminal, a deadline, bounded output. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/kube/auth/config.h"
#include "lib/loop/loop.h"

/* More on stdout is an error; of stderr only the end is kept, for the message. */
#define EXEC_PLUGIN_MAX_OUTPUT (1024 * 1024)
#define EXEC_PLUGIN_MAX_STDERR 200

/*
 * Called once: with what the plugin printed (borrowed, err NULL) when it ended with status 0, else
 * with err: ERR_TRANSIENT "ExecPluginFailed" or "ExecPluginTimeout". The run is over: do not stop
 * it any more.
 */
typedef void exec_plugin_fn(void *arg, const char *out, size_t len, const struct err *err);

/*
 * Start the plugin; exec is borrowed until this returns. NULL and err when it cannot be started:
 * ERR_INVALID "ExecPluginMissing" when there is no such program (with the kubeconfig's
 * installHint), else ERR_TRANSIENT "ExecPluginFailed".
 */
struct exec_plugin *exec_plugin_start(struct loop *loop, const struct kube_exec *exec,
				      int64_t timeout_ms, exec_plugin_fn *done, void *arg,
				      struct err *err);

/* Kill it with all that it started; no call comes any more. NULL is fine. */
void exec_plugin_stop(struct exec_plugin *plugin);

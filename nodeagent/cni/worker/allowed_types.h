// SPDX-License-Identifier: Apache-2.0
/*
 * May a worker have a CNI plugin of another program run? By what the worker knows for itself: its
 * command line and the node's own configurations, which only root writes. What a call says is not
 * enough: it comes by processes without privileges. In a worker.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "nodeagent/cni/worker/attachment.h"

/* All plugins of these delegates (cni/plan/delegates.h). ERR_INVALID "PluginNotAllowed". */
int allowed_types_check(const struct attachment *a, const json_t *delegates, struct err *err);

/*
 * All plugins that the plugin of `a` would call by this configuration of it: before that is
 * recorded, so that records name no others. Errors as above.
 */
int allowed_types_check_config(const struct attachment *a, const json_t *config, struct err *err);

/*
 * This program, which is about to be run with this command: an IPAM plugin, or one that the meta
 * plugin calls. What was added may be checked and deleted, whatever the list says by then. It is
 * also noted for the plugin that waits on the host, which runs no other (wire.h, WIRE_PROGRAMS).
 * Errors as above.
 */
int allowed_types_admit(const struct attachment *a, const char *type, const char *command,
			struct err *err);

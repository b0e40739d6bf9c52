// SPDX-License-Identifier: Apache-2.0
/*
 * Which CNI plugins may be run for networks that the agent names: it says what the pod's
 * NetworkAttachmentDefinitions are, and each plugin of them is a program that runs as root on the
 * node with the configuration that is in them. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/*
 * Is the type on the list of common plugins, or does it match a pattern of `more`? more: names with
 * commas, '*', '?' and '[' as in fnmatch(3); NULL: none.
 */
bool plugin_type_is_listed(const char *type, const char *more);

/* Can `more` be such a list? ERR_INVALID "BadFlag". */
int plugin_types_check_list(const char *more, struct err *err);

/* What the node's administrator allows. Borrowed. */
struct plugin_types {
	const char *more; /* of the command line; NULL: none */
	/*
	 * Configurations that are the node's own, as an array: types that are named in them may be
	 * run, whatever they are. NULL: none.
	 */
	const json_t *own;
};

/*
 * May all plugins of these delegates (delegates.h) be run? Those that a plugin calls itself count:
 * "ipam", "delegate", "delegates", "plugin" and "plugins" of its configuration, in whatever case,
 * as plugins in Go read them. ERR_INVALID "PluginNotAllowed" names network, interface, type and
 * flag.
 */
int plugin_types_check(const json_t *delegates, const struct plugin_types *types, struct err *err);

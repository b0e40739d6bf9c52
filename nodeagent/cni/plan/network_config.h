// SPDX-License-Identifier: Apache-2.0
/*
 * A network's configuration: the text of a NetworkAttachmentDefinition, or a file of the node, as
 * one list of plugins.
 *
 * Source: CNI specification 1.1.0, sections 1 and 3 (https://www.cni.dev/docs/spec/).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/*
 * Read one network's configuration: a plugin's object, or a list with "plugins". `name` is what it
 * is called when it has no name of its own. Returns new
 *
 *	{"cniVersion", "name", "plugins": [object, …], "single": true when it was one plugin's
 *	object, …}
 *
 * with all other members of a list. "cniVersion" is "" where a single object has none, which means
 * 0.1.0; a list gets `version` then.
 *
 * NULL with err: ERR_INVALID "BadNetworkConfig": no object, what cni_rules_network() refuses, a
 * name that CNI refuses.
 */
json_t *network_config_read(const json_t *config, const char *name, const char *version,
			    struct err *err);

/*
 * Is this key what encoding/json of Go, and so a plugin, takes for `name`? In any case; the long s
 * of Unicode is an s, the sign for kelvin a k (strings.EqualFold).
 */
bool network_key_is(const char *key, const char *name);

/* Is `version` ("0.4.0") at least major.minor? "" and text that is no version are 0.1. */
bool cni_version_at_least(const char *version, int major, int minor);

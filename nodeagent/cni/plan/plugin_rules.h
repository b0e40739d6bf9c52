// SPDX-License-Identifier: Apache-2.0
/*
 * What our plugins refuse in a configuration, whatever pod and node it is for. Pure.
 *
 * The reconcilers of networks call it for what they render, so that a network that no pod could
 * join is not Ready. It is the plugins' own readers: there is no second list of rules.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * Do our plugins refuse a network's configuration, a plugin's object or a list with "plugins"? What
 * a pod or a node brings along counts as given: devices, what the plugin before has made, values of
 * capabilities, the cluster's settings of the coordinator; and the name of the network. Of "ipam"
 * our static and host-local are asked, too. Plugins of other types are taken. ret_position, unless
 * it is NULL, is the refused plugin's place in the list, from 0.
 *
 * ERR_INVALID "NotSupported"  ours cannot do it; containernetworking's of the same name can
 * ERR_INVALID "BadField"      anything else; the text begins with the type
 */
int plugin_rules_check(const json_t *config, size_t *ret_position, struct err *err);

/* Options of bonds in the configuration that have no effect (bond_options.h): a new list. */
json_t *plugin_rules_ignored(const json_t *config);

// SPDX-License-Identifier: Apache-2.0
/*
 * What our meta plugin goes on with of a Multus' configuration that it takes the place of, key by
 * key (docs/cni.md has the table). Pure.
 *
 * Source: k8snetworkplumbingwg/multus-cni docs/configuration.md, docs/thick-plugin.md; keys count
 * in any case, as for Go.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Where Multus looks for configurations of the node, unless its own says another folder. */
#define TAKEOVER_CONF_DIR "/etc/cni/multus/net.d"

/*
 * Read Multus' configuration, a plugin's or a list with it. conf_dir and bin_dir are the runtime's
 * folders. Returns new:
 *
 *	settings   members of our plugin's configuration (delegates.h), an object
 *	file       the cluster's network is in the file of this name; absent: see the next ones
 *	network    it is the network of this name, in a NetworkAttachmentDefinition or a file
 *	delegates  it is the first of these; the others every pod has besides
 *
 * NULL with err: ERR_INVALID "MultusKey", naming a key that our plugin cannot obey, or does not
 * know.
 */
json_t *takeover_read(const json_t *multus, const char *conf_dir, const char *bin_dir,
		      struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * What all sandboxes of the node have, in memory: what the agent hears, and what says whether a pod
 * has anything left.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct attachment_index;

/*
 * Pure: what there is to tell of a sandbox's attachments, new: [{"pod", "container", "plugin",
 * "network", "ifname", "phase", "device", "rdmaDevice", "guid", "addresses", "mac"}], each where it
 * is known.
 */
json_t *attachment_index_describe(const json_t *sandbox);

struct attachment_index *attachment_index_new(void);
void attachment_index_free(struct attachment_index *ledger);

/* The attachments of this sandbox (attachment_index_describe), borrowed; none: forget it. */
void attachment_index_set(struct attachment_index *ledger, const char *container,
			  json_t *attachments);
/* Those of all, new, in the order in which sandboxes came. */
json_t *attachment_index_list(const struct attachment_index *ledger);
/* This one goes, though its sandbox' attachments do not say so yet. */
void attachment_index_mark(struct attachment_index *ledger, const char *container,
			   const char *plugin, const char *ifname);
/* Has this sandbox something of this plugin, whatever becomes of it? */
bool attachment_index_carries(const struct attachment_index *ledger, const char *container,
			      const char *plugin);
/* How many attachments of this sandbox have a device? */
size_t attachment_index_devices(const struct attachment_index *ledger, const char *container);
/* Has the pod with this UID, in whatever sandbox, something of this plugin that stays? */
bool attachment_index_has(const struct attachment_index *ledger, const char *plugin,
			  const char *uid);

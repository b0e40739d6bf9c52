// SPDX-License-Identifier: Apache-2.0
/*
 * What all sandboxes of the node have, in memory: what the agent hears, and what says whether a pod
 * has anything left.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_STATE_LEDGER_H
#define ORBWEAVER_NODEAGENT_CNI_STATE_LEDGER_H

#include <jansson.h>
#include <stdbool.h>

struct ledger;

/*
 * Pure: what there is to tell of a sandbox's attachments, new: [{"pod", "container", "plugin",
 * "network", "ifname", "phase", "device", "rdmaDevice", "guid", "addresses", "mac"}], each where it
 * is known.
 */
json_t *ledger_describe(const json_t *sandbox);

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger);

/* The attachments of this sandbox (ledger_describe), borrowed; none: forget it. */
void ledger_set(struct ledger *ledger, const char *container, json_t *attachments);
/* Those of all, new, in the order in which sandboxes came. */
json_t *ledger_list(const struct ledger *ledger);
/* This one goes, though its sandbox' attachments do not say so yet. */
void ledger_mark(struct ledger *ledger, const char *container, const char *plugin,
		 const char *ifname);
/* Has this sandbox something of this plugin, whatever becomes of it? */
bool ledger_carries(const struct ledger *ledger, const char *container, const char *plugin);
/* Has the pod with this UID, in whatever sandbox, something of this plugin that stays? */
bool ledger_has(const struct ledger *ledger, const char *plugin, const char *uid);

#endif

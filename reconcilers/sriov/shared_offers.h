// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of the shared device plugin's ConfigMap that no node has a device for. One ConfigMap
 * serves different nodes, so an entry that selects nothing on a node is not a fault there; that it
 * selects nothing anywhere is, which only a reader of all nodes can know.
 *
 * key: the ConfigMap of the agents, "<env namespace>/<SHARED_CONFIG_NAME>". World:
 * 	configmaps/<SHARED_CONFIG_NAME>[key]	absent: it is gone
 * 	sriovnetworknodestates			status.resources of the first by key that lacks one,
 * 						of one that has it for each that this one lacks, and
 * 						of one that has not reported
 *
 * All agents read the same ConfigMap, so what no node has the first one lacks, too: with these few
 * the answer is that of all, and ten thousand nodes cost what ten do.
 *
 * Plan: a finding OfferedNowhere on the ConfigMap, or that there is none. Nothing as long as a node
 * has not reported, or its agent is away or upstream's, which says nothing of resources: it may be
 * the one that has it. What was found stays so.
 *
 * Agents whose flag --shared-config names another ConfigMap have no such finding; the metric
 * orbweaver_resource_nodes counts theirs, too.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/core/reconcile.h"

#define SHARED_CONFIG_NAME "spiderpool-rdma-shared-device-plugin"

int shared_offers_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err);

/* Of status.resources: a shared one that is wanted and selects no NIC of the node. */
bool shared_offers_selects_nothing(const json_t *resource);

/*
 * What a NodeState says to decisions on the ConfigMap: for each shared resource that is wanted,
 * that claims have (docs/dra.md), or that the node's RDMA mode withholds, whether it offers
 * something, {} without any, null while the node has not reported them or its agent is away.
 * Returns new; NULL when the NodeState does not count: there is none, or its Node is gone.
 */
json_t *shared_offers_of(const json_t *state);

/* What an index of NodeStates has them under, by what shared_offers_of() returns. */
#define SHARED_OFFERS_SILENT "silent" /* null */
#define SHARED_OFFERS_LACKS  "lacks"  /* some resource is false */
#define SHARED_OFFERS_HAS    "has "   /* and the name of one that is true, each */

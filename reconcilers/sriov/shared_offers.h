/*
 * Entries of the shared device plugin's ConfigMap that no node has a device for. One ConfigMap
 * serves different nodes, so an entry that selects nothing on a node is no fault there; that it
 * selects nothing anywhere is, and only who knows all nodes can tell.
 *
 * key: the ConfigMap of the agents, "<env namespace>/<SHARED_CONFIG_NAME>". World:
 * 	configmaps/<SHARED_CONFIG_NAME>[key]	absent: it is gone
 * 	sriovnetworknodestates			all: status.resources
 *
 * Plan: a finding OfferedNowhere on the ConfigMap, or that there is none. Nothing as long as a node
 * with an agent has not reported: it may be the one that has it.
 *
 * Agents whose flag --shared-config names another ConfigMap have no such finding; the metric
 * orbweaver_resource_nodes counts theirs, too.
 */
#ifndef ORBWEAVER_RECONCILERS_SRIOV_SHARED_OFFERS_H
#define ORBWEAVER_RECONCILERS_SRIOV_SHARED_OFFERS_H

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/core/reconcile.h"

#define SHARED_CONFIG_NAME "spiderpool-rdma-shared-device-plugin"

int shared_offers_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err);

/* Of status.resources: a shared one that is wanted and selects no NIC of the node. */
bool shared_offers_selects_nothing(const json_t *resource);

/*
 * What a NodeState says to decisions on the ConfigMap: for each shared resource that is wanted
 * whether it selects something, {} without any, null while the node has not reported. Returns new;
 * NULL when the NodeState does not count: there is none, its Node is gone, or it has no agent.
 */
json_t *shared_offers_of(const json_t *state);

#endif

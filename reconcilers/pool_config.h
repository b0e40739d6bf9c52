/*
 * SriovNetworkPoolConfig: which nodes belong together, their RDMA network namespace mode, the GUIDs of their InfiniBand VFs.
 *
 * Source: reference/sriov-operator.md sections 1.3, 2.3, 5.5, 8.3.
 */
#ifndef ORBWEAVER_RECONCILERS_POOL_CONFIG_H
#define ORBWEAVER_RECONCILERS_POOL_CONFIG_H

#include "reconcilers/problems.h"
#include "reconcilers/reconcile.h"

/*
 * key: "namespace/name" of a pool. World: the pools of all namespaces, all nodes (their labels).
 * Plan: the pool's status: Ready, and Degraded when something in it is wrong or a node is in a second pool too. One that is
 * being deleted loses upstream's finalizer.
 */
int pool_config_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/* What is wrong with a pool by itself. */
void pool_config_check(const json_t *pool, struct problems *problems);

/* Can the pool be read, and is a node with these labels in it? NULL: false. */
bool pool_config_selects(const json_t *pool, const json_t *labels);

/*
 * The rdmaMode for a node with these labels: "shared", "exclusive" or "" (leave alone). `current` is what the node was told
 * last; it stays where no single answer exists: the node is in two pools, its pool says something unknown, or no readable pool
 * claims it while another pool's selector cannot be read. (Telling a node "" would make it undo its mode and reboot.)
 */
const char *pool_config_rdma_mode(const json_t *pools, const json_t *labels, const char *current);

/*
 * Likewise the block of GUIDs (sriov_guid.h) for the InfiniBand VFs of such a node: the pool's, GUID_BLOCK_NONE when there is no
 * pool or it says nothing, `current` where no single good answer exists.
 */
int pool_config_guid_block(const json_t *pools, const json_t *labels, int current);

#endif

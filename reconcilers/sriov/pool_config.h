// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetworkPoolConfig: which nodes belong together, their RDMA network namespace mode, the GUIDs
 * of their InfiniBand VFs, RoCE settings of their NICs (roce_settings.h).
 *
 * Source: github.com/k8snetworkplumbingwg/sriov-network-operator,
 * controllers/sriovnetworkpoolconfig_controller.go.
 */
#pragma once

#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"

/*
 * Upstream's operator puts it on pools for hardware offload, and leaves it there when the name is
 * cleared.
 */
#define POOL_CONFIG_FINALIZER "poolconfig.finalizers.sriovnetwork.openshift.io"

/*
 * key: "namespace/name" of a pool. World: the pools of all namespaces, all nodes (their labels),
 * what trust.h needs. Pools of namespaces that are not trusted say so, and count nowhere.
 * poolreports = { node: report }, one for each of its nodes that has a NodeState. Plan: the pool's
 * status: counts of nodes that follow, wait and need a boot; Ready, which says the same in words;
 * Degraded when something in it is wrong or a node is in a second pool too. One that is being
 * deleted loses upstream's finalizer.
 */
int pool_config_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/*
 * What a node with these labels says to the pool that it is in: put POOL_REPORT_PREFIX + key:
 * {"mode": its rdmaMode, "reboot": it waits for one, "unmet": true: RoCE settings of a NIC are not
 * as wanted} into reports. `state` is its NodeState.
 * Nothing when there is no single pool.
 */
void pool_config_put_report(const json_t *world, const json_t *labels, const json_t *state,
			    json_t *reports);

/* What is wrong with a pool by itself. */
void pool_config_check(const json_t *pool, struct problems *problems);

/* Can the pool be read, and is a node with these labels in it? NULL: false. */
bool pool_config_selects(const json_t *pool, const json_t *labels);

/*
 * The rdmaMode for a node with these labels: "shared", "exclusive" or "" (leave alone). `current`
 * is what the node got last; it stays where no single answer exists: the node is in two pools,
 * its pool says something unknown, or no readable pool claims it while another pool's selector
 * cannot be read. (Telling a node "" would make it undo its mode and reboot.)
 */
const char *pool_config_rdma_mode(const json_t *world, const json_t *labels, const char *current);

/*
 * Likewise the block of GUIDs (sriov_guid.h) for the InfiniBand VFs of such a node: the pool's,
 * GUID_BLOCK_NONE when there is no pool or it says nothing, `current` where no single good answer
 * exists.
 */
int pool_config_guid_block(const json_t *world, const json_t *labels, int current);

enum {
	/* Entries of spec.rails, and characters of one, as the schemas in crds/ have it. */
	POOL_RAILS_MAX = 32,
	POOL_RAIL_NAME_MAX = 64,
};

/*
 * Likewise the order of the node's NICs: *ret_list is spec.rails of *ret_pool, NULL where the node
 * has no pool or its pool gives none; both borrowed. False: no single good answer exists.
 */
bool pool_config_rails(const json_t *world, const json_t *labels, const json_t **ret_pool,
		       const json_t **ret_list);

/* Likewise spec.roce of the node's pool, which can be used; NULL: it has none. */
bool pool_config_roce(const json_t *world, const json_t *labels, const json_t **ret);

/* The one pool of a node with these labels; NULL: it is in none, in several, or it is unknown. */
const json_t *pool_config_of(const json_t *world, const json_t *labels);

/*
 * How many of so many nodes may be unavailable: the number, or the percentage rounded down, but one
 * at least. False: the pool does not say, or not so that it can be read.
 */
bool pool_config_max_unavailable(const json_t *pool, size_t nodes, size_t *ret);

/* On a pool, or a Node: "false" forbids reboots (reconcilers/maintenance). */
#define POOL_ALLOW_REBOOT "orbweaver.io/allow-reboot"

/* On a pool: how long the pods of a node may take to end, "90s", "30m" or "2h". */
#define POOL_DRAIN_TIMEOUT "orbweaver.io/drain-timeout"

/*
 * On a pool: so many of its nodes, or "10%", may have the taint, or the cordon, of health_taint.h
 * at a time. With both the smaller one counts.
 */
#define POOL_TAINT_DEGRADED  "orbweaver.io/taint-degraded"
#define POOL_CORDON_DEGRADED "orbweaver.io/cordon-degraded"

/*
 * On a pool, "true", and by it on the NodeStates of its nodes, whose agents do it: events on the
 * pods that use a bad port, a taint on its devices in ResourceSlices.
 */
#define POOL_POD_EVENTS    "orbweaver.io/pod-events-degraded"
#define POOL_DEVICE_TAINTS "orbweaver.io/taint-devices-degraded"

/* `annotation`: one of the two numbers. Of so many nodes, as pool_config_max_unavailable(). */
bool pool_config_taint_limit(const json_t *pool, const char *annotation, size_t nodes, size_t *ret);

/* In seconds. False: the pool does not say, or not so that it can be read. */
bool pool_config_drain_timeout(const json_t *pool, int64_t *ret_s);

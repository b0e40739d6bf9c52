// SPDX-License-Identifier: Apache-2.0
/*
 * When the node's folders are looked after: those of the runtime (cni/worker/profile_keeper.h)
 * when something changes in them, those with device files of RDMA devices
 * (cni/execute/rdma_files.h) when the kernel reports that a device came, went or moved; both once a
 * minute besides. Workers do it.
 *
 * Nothing is done to the runtime's folders before a profile was set: until the agent has read its
 * Node, all stays as the one before us left it.
 */
#pragma once

#include <jansson.h>

#include "lib/loop/loop.h"
#include "nodeagent/cni/plan/profile.h"
#include "nodeagent/process/orders.h"

struct watch;

struct node_keeper_config {
	struct loop *loop;
	struct orders *orders; /* borrowed */
	/* Of the kernel's events (host/watch.h); borrowed. NULL: looks once a minute. */
	struct watch *watch;
	/* Do pods have what plugins attached? {"isUsed", "isMetaUsed", "user"}, new. */
	json_t *(*usage)(void *arg);
	/* What the NodeState is to say (struct profile_decision), when it changes. Borrowed. */
	void (*said)(void *arg, const json_t *networks);
	void *arg;
};

struct node_keeper;

struct node_keeper *node_keeper_new(const struct node_keeper_config *config);
/* What was installed stays. Accepts NULL. */
void node_keeper_free(struct node_keeper *keeper);

/* From now on; looks soon, from the loop. */
void node_keeper_set(struct node_keeper *keeper, enum profile profile);

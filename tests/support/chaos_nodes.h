// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes for chaos.c: kubelets that run pods, and what each node's agent does about addresses
 * (nodeagent/pod_networks, the real code). What a pod's interfaces have on its node is written down
 * as a ConfigMap (address_history.h) before the pod runs, and deleted before its agent says that
 * nothing is left.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/kube/api.h"
#include "lib/loop/loop.h"

/* Where sandboxes are written down. */
#define CHAOS_NAMESPACE "chaos"

enum { CHAOS_NODES = 8 };

/* xorshift64*: the same everywhere for the same seed. A number below `bound`. */
int64_t chaos_below(uint64_t *state, int64_t bound);

struct chaos_nodes;

struct chaos_nodes_config {
	struct loop *loop;
	struct kube_client *users;  /* may do everything: kubelets */
	struct kube_client *agents; /* with the rights of the agents */
	uint64_t seed;
};

/* All borrowed. The nodes are created as objects at once. */
struct chaos_nodes *chaos_nodes_new(const struct chaos_nodes_config *config);
void chaos_nodes_free(struct chaos_nodes *nodes);

/* A pod, from its creation until nothing of it is left anywhere. */
struct chaos_pod;

struct chaos_pod_wish {
	const char *ns, *name;
	bool of_set;         /* of the StatefulSet "web" */
	bool bound_later;    /* by the scheduler, not by whoever creates it */
	bool is_rejected;    /* by its kubelet, before anything of it is set up */
	json_t *annotations; /* borrowed */
	json_t *asks;        /* what its NICs ask with: reconcilers/ipam/candidates.h; borrowed */
};

/* False when no node is there to take it. */
bool chaos_pod_create(struct chaos_nodes *nodes, const struct chaos_pod_wish *wish);
/* The one that has this name now; NULL: there is none, or a request about it is under way. */
struct chaos_pod *chaos_pod_find(struct chaos_nodes *nodes, const char *ns, const char *name);
/* Is there, or is about to be, an object of this name? */
bool chaos_pod_is_there(const struct chaos_nodes *nodes, const char *ns, const char *name);
/* One of those that have addresses; NULL: none has. */
struct chaos_pod *chaos_pod_any(struct chaos_nodes *nodes, uint64_t *random);
const char *chaos_pod_uid(const struct chaos_pod *pod);
/* "namespace/name" */
const char *chaos_pod_key(const struct chaos_pod *pod);
/* The first address that its interfaces have; "" while they have none. */
const char *chaos_pod_address(const struct chaos_pod *pod);

void chaos_pod_delete(struct chaos_pod *pod, bool by_force);
/* The kubelet ends it (phase Failed with this reason), or it is done (reason NULL: Succeeded). */
void chaos_pod_end(struct chaos_pod *pod, const char *reason);

/* The agent is killed; it comes back after this time. */
void chaos_agent_restart(struct chaos_nodes *nodes, int64_t node, int64_t after_ms);
/* Power off: no agent ever speaks for its pods, which go with it and the Node. It comes back. */
void chaos_node_die(struct chaos_nodes *nodes, int64_t node);

/* Nothing of any pod is left, and each node and agent is there. */
bool chaos_nodes_are_empty(const struct chaos_nodes *nodes);

/* {what: how often}: what kubelets and agents did. Borrowed. */
json_t *chaos_nodes_counts(struct chaos_nodes *nodes);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of the process share. Calls go down: nodes.c → pods.c, workload_writes.c,
 * node_writes.c → sim_node.c → sim_host.c; up they go as queue keys.
 */
#pragma once

#include "cli/simulate/nodes/nodes.h"
#include "cli/simulate/nodes/sim_host.h"
#include "lib/base/map.h"
#include "lib/kube/api.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/queue.h"
#include "lib/kube/recorder.h"
#include "nodeagent/agent/agent.h"
#include "nodeagent/agent/link_health.h"
#include "nodeagent/agent/pod_events.h"
#include "nodeagent/agent/pool_sources.h"
#include "nodeagent/pod_networks/addresses.h"
#include "nodeagent/pod_networks/networks.h"

#define NODES_MANAGER "orbweaver-simulate"

enum {
	/* Addresses on the cluster's network that one node has for pods. */
	SIM_POD_IPS = 254,
	SIM_POD_IP_LAST = SIM_POD_IPS - 1,
};

enum workload_kind {
	WORKLOAD_DEPLOYMENT,
	WORKLOAD_REPLICA_SET,
	WORKLOAD_DAEMON_SET,
	WORKLOAD_STATEFUL_SET,
	WORKLOAD_KINDS,
};
extern const struct kube_resource workload_resources[WORKLOAD_KINDS];
extern const struct kube_resource node_state_resource;

/* Indexes of the cache of pods. */
enum {
	PODS_BY_NODE,  /* those that are bound to none: PODS_UNBOUND */
	PODS_BY_OWNER, /* UID of the controller */
};
#define PODS_UNBOUND "-"

struct nodes;

/* ---- a node ---------------------------------------------------------------------------------- */

/* Node and NodeState on the API server: node_writes.c's. */
struct sim_node_objects {
	bool is_registered, is_beating, is_dirty;
	int64_t beat_ms;    /* the next heartbeat is due */
	json_t *devices;    /* what the Node says of them; NULL: nothing yet */
	json_t *node_state; /* as the server has it; NULL: it was not made yet, or deleted */
	int64_t absent_ms;  /* since when the server has no NodeState */
};

struct sim_node {
	struct nodes *nodes;
	const char *name; /* of the config */
	char ip[24];      /* of the node */
	unsigned int number;
	const json_t *spec;   /* of the config */
	struct sim_host host; /* from here on: NULL until it was started */
	struct hostd *hostd;
	struct agent *agent;
	struct timer *again; /* looks again when a broken link is believed */
	struct deferred *withdrawn;
	struct link_health *links;
	/* Of the agent's machine; made for the first pod. */
	struct addresses *addresses;
	struct networks *networks;

	json_t *pools;     /* of pools_compute(); NULL before the first look */
	json_t *offered;   /* the same without what is held back */
	json_t *kubelet;   /* the same with GPUs, which other plugins offer */
	json_t *held_back; /* devices that are being changed; NULL: none */
	json_t *allocated; /* decide/devices.h */
	json_t *given;
	json_t *attachments; /* {"ns/pod": list}, of NodeState.status.attachments */
	bool ips[SIM_POD_IPS];

	struct sim_node_objects server;
};

/* spec: an item of nodes_config.nodes. */
struct sim_node *sim_node_new(struct nodes *nodes, const json_t *spec, unsigned int number);
/*
 * Make its host and begin with its agent: once its Node is there, so that a thousand of them begin
 * one after the other.
 */
void sim_node_start(struct sim_node *node);
void sim_node_free(struct sim_node *node);
void sim_node_set_node_state(struct sim_node *node, const json_t *object);
/* Configurations of pools, or allocations, changed: recompute the pools. */
void sim_node_offer(struct sim_node *node);
/* The status of its NodeState as it should be, new; NULL: nothing can be said yet. */
json_t *sim_node_status(struct sim_node *node, const json_t *before, const char *now);
void sim_node_reported(struct sim_node *node, const char *uid);
/* False: that changes nothing. */
bool sim_node_set_fault(struct sim_node *node, const struct sim_nic *nic, enum tree_fault fault,
			bool is_broken);

/* ---- the process ----------------------------------------------------------------------------- */

struct nodes {
	const struct nodes_config *config;
	struct loop *loop;
	struct kube_config kube;
	struct kube_client *client;
	struct recorder *agent, *kubelet, *scheduler;
	struct pod_events *pod_events; /* of the agent */
	struct tree_texts *texts;
	char *folder;
	struct map all; /* name → struct sim_node */
	struct pool_sources *sources;
	struct queue *queue;
	struct cache *node_cache, *state_cache, *pod_cache, *workload_caches[WORKLOAD_KINDS];
	struct informer *node_informer, *state_informer, *pod_informer,
		*workload_informers[WORKLOAD_KINDS];
	/* For the scheduler (decide/scheduler.h): {name: {"node", "used"}}. */
	json_t *schedule;
	struct map pods; /* "ns/name" → struct sim_pod (pods.c) */
	struct timer *heart;
	size_t n_registered;
	bool is_ready; /* all nodes are registered */
	struct control *control;
	struct signal_watch *on_term, *on_int;
};

/* wants.c: queue keys. */
void nodes_want(struct nodes *nodes, const char *kind, const char *key, int64_t after_ms);
#define KEY_NODE     "node/"
#define KEY_POD      "pod/"
#define KEY_WORKLOAD "work/" /* then the plural and a slash */

/* node_writes.c: the next write of a node; it takes over the key until queue_done(). */
void node_write_next(struct sim_node *node, const char *key);

/* pods.c */
void pods_turn(struct nodes *nodes, const char *key);
void pods_look_at_unbound(struct nodes *nodes);
void pods_free_all(struct nodes *nodes);

/* workload_writes.c */
void workload_turn(struct nodes *nodes, enum workload_kind kind, const char *key);

/* control.c */
struct control *control_new(struct nodes *nodes, const char *path, struct err *err);
void control_free(struct control *control);

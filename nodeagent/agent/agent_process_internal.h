// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent's process consists of, for agent_process.c (beginning and end) and agent_wiring.c
 * (what goes from one part to another).
 */
#pragma once

#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "lib/loop/loop.h"
#include "nodeagent/agent/agent.h"
#include "nodeagent/agent/agent_options.h"
#include "nodeagent/agent/container.h"
#include "nodeagent/agent/counter_collector.h"
#include "nodeagent/agent/gid_reader.h"
#include "nodeagent/agent/host_checker.h"
#include "nodeagent/agent/host_events.h"
#include "nodeagent/agent/link_health.h"
#include "nodeagent/agent/node_state.h"
#include "nodeagent/agent/offers.h"
#include "nodeagent/agent/pod_events.h"
#include "nodeagent/agent/pod_owners.h"
#include "nodeagent/agent/readiness.h"
#include "nodeagent/agent/resource_claims.h"
#include "nodeagent/agent/resource_slices.h"
#include "nodeagent/agent/scrapes.h"
#include "nodeagent/pod_networks/addresses.h"
#include "nodeagent/pod_networks/attachments.h"
#include "nodeagent/process/client.h"
#include "nodeagent/process/supervisor.h"

/* Of the process; -1: not open, or passed on. */
struct agent_fds {
	int orders, meters, connections, kubeletd, lock, host_root;
};

/* Beginning and end, and which of two agents executes: agent_process.c's. */
struct agent_life {
	struct metric *executing;
	struct signal_watch *term, *interrupt;
	struct timer *lock_look, *giving_up, *heartbeat;
	bool waiting_for_lock, lock_refused; /* logged already */
	bool shutting_down;                  /* nothing more is begun */
	bool closing;                        /* sockets, after that */
};

/* What goes to and comes from the API server. */
struct agent_api {
	struct kube_config config;
	struct kube_client *client;
	struct recorder *recorder;
	struct pod_events *pod_events;
	struct node_state *node_state;
	bool heard; /* it has said whether there is a NodeState */
	bool reported_restart;
	bool pods_hear, taints_devices; /* of bad links; as the NodeState's annotations say */
};

/* Counters of devices, for scrapes of /metrics. */
struct agent_counters {
	struct scrapes *scrapes;
	struct pod_owners *owners;
	struct counter_collector *collector; /* NULL: of no device */
	struct link_health *links;           /* judged by them, among others */
};

struct agent_process {
	const struct agent_options *options;
	const struct container_facts *container;
	const struct supervisor_past *past;
	struct agent_fds fds;
	struct watch *watch; /* until host_events has it */
	struct loop *loop;
	struct metrics *metrics;
	struct readiness *readiness;
	int status;    /* for exit */
	bool executes; /* the node lock is ours */
	struct agent_life life;
	/* A process that the agent cannot do without has gone; may not free parts. */
	void (*lost)(struct agent_process *process);

	/* The parts. */
	struct agent_api api;
	struct hostd *hostd;
	struct host_events *events;
	struct agent *agent;
	struct offers *offers;
	struct resource_slices *slices; /* NULL: nothing is given by claims, as the next */
	struct resource_claims *claims;
	struct addresses *addresses;
	struct attachments *attachments;
	struct gid_reader *gids; /* of what is attached */
	struct agent_counters counters;
	struct timer *tidying;
	struct {
		struct host_checker *checker; /* settings of the host */
		json_t *bad_profile; /* profile_refused(); NULL: the label is good, or none */
		json_t *unfit;       /* container_findings() for the profile */
	} found;
};

/* Make the parts, host first. loop, metrics, readiness, config and descriptors are there. */
void agent_wiring_start(struct agent_process *p);
/* Free them; also of a process that could not start. */
void agent_wiring_done(struct agent_process *p);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent's process consists of, for agent_process.c (beginning and end) and agent_wiring.c
 * (what goes from one part to another).
 */
#ifndef ORBWEAVER_NODEAGENT_AGENT_AGENT_PROCESS_INTERNAL_H
#define ORBWEAVER_NODEAGENT_AGENT_AGENT_PROCESS_INTERNAL_H

#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "lib/loop/loop.h"
#include "nodeagent/agent/agent.h"
#include "nodeagent/agent/agent_options.h"
#include "nodeagent/agent/container.h"
#include "nodeagent/agent/counter_collector.h"
#include "nodeagent/agent/gid_reader.h"
#include "nodeagent/agent/host_events.h"
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

struct agent_process {
	const struct agent_options *options;
	const struct container_facts *container;
	const struct supervisor_past *past;
	/* Its own; -1: not open, or given away. */
	int orders, meters, connections, kubeletd, lock, host_root;
	struct watch *watch; /* until host_events has it */
	struct loop *loop;
	struct metrics *metrics;
	struct readiness *readiness;
	struct scrapes *scrapes;
	int status; /* for exit */

	/* Beginning and end. */
	struct metric *executing;
	struct signal_watch *term, *interrupt;
	struct timer *lock_look, *giving_up, *heartbeat;
	bool waiting_for_lock, lock_refused; /* logged already */
	bool executes;                       /* the node lock is ours */
	bool shutting_down;                  /* nothing more is begun */
	bool closing;                        /* sockets, after that */

	/* The parts. */
	struct kube_config config;
	struct kube_client *client;
	struct recorder *recorder;
	struct pod_events *pod_events;
	struct node_state *node_state;
	struct hostd *hostd;
	struct host_events *events;
	struct agent *agent;
	struct offers *offers;
	struct resource_slices *slices; /* NULL: nothing is given by claims, as the next */
	struct resource_claims *claims;
	struct addresses *addresses;
	struct attachments *attachments;
	struct gid_reader *gids; /* of what is attached */
	struct pod_owners *pod_owners;
	struct counter_collector *counting; /* NULL: of no device */
	struct timer *tidying;
	bool reported_restart;
	bool heard; /* the API server has said whether there is a NodeState */
	/* profile_refused(); NULL: the Node has no label, or a profile on it. */
	json_t *bad_profile;
	json_t *unfit; /* container_findings() for the profile */
	/* A process that the agent cannot do without has gone; may not free parts. */
	void (*lost)(struct agent_process *process);
};

/* Make the parts, host first. loop, metrics, readiness, config and descriptors are there. */
void agent_wiring_start(struct agent_process *p);
/* Free them; also of a process that could not start. */
void agent_wiring_done(struct agent_process *p);

#endif

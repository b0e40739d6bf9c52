// SPDX-License-Identifier: Apache-2.0
/*
 * The server of a node's CNI plugins: takes their calls, orders workers that carry them out, asks
 * the agent what only the API server knows. It has neither privileges nor the host's files: it
 * parses, decides on the order, and keeps in memory what workers tell it of the disk.
 *
 *	connection ──▶ call ──▶ queue ──▶ worker ──▶ answer
 *	                          ▲         │ asks: agent (channel) · programs (the plugin)
 *	notes, GC, what waits ────┘         ▼ state: one file per sandbox
 *
 * Sandboxes side by side, the calls of one in their order. A call has a deadline
 * (cni/plugin/deadlines.h). The agent is away: what needs it waits SERVER_AGENT_MS, then says to
 * try again; a DEL does not wait, and what it leaves is finished when the agent is back. A runtime
 * that gives up an ADD has it taken away again.
 *
 * With the agent (channel.h): to it requests of workers (lib/json/ask.h), {"attachments": […],
 * "adding": [UIDs]} whenever they change, {"adding"} alone before a call begins to give a pod
 * something, {"event": {"pod", "reason", "message"}}, {"metrics": "…"}; from it replies, and
 * {"profile": "auto"} once it has read its Node, and when that changes. "podNetworks"
 * (nodeagent/cni/plan/profile.h) stands beside "attachments".
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"
#include "nodeagent/cni/plan/profile.h"
#include "nodeagent/cni/plugin/deadlines.h"
#include "nodeagent/cni/state/notes.h"
#include "nodeagent/process/orders.h"

enum {
	/* Workers at the same time: RTNL is one lock. */
	SERVER_WORKERS_MAX = 32,
	SERVER_CALLS_MAX = 1024,
	/* Notes that are worked off side by side; who else calls waits for no more of them. */
	SERVER_NOTES_MAX = NOTES_AT_ONCE,
	/* What has to wait is tried again after this, twice as long each time, up to the last. */
	SERVER_AGAIN_MS = 5000,
	SERVER_AGAIN_MAX_MS = 300000,
	/*
	 * How often notes are looked for: also beside a server that runs, when it took no
	 * connection for a moment.
	 */
	SERVER_NOTES_MS = 60000,
};

struct cni_server;

struct cni_server_config {
	struct loop *loop;
	int listener;          /* a listening socket, the server's from now on */
	struct orders *orders; /* of workers (cni/worker/cni_worker.h); borrowed */
	uid_t caller;          /* whose plugins are answered */
	/*
	 * What an ADD may take; 0: SERVER_ADD_MS. On a node that is so much slower the other
	 * deadlines, cni_server_del_ms() and SERVER_AGENT_MS, are as many times longer.
	 */
	int64_t add_ms;
	int64_t again_ms; /* 0: SERVER_AGAIN_MS */
	int64_t notes_ms; /* 0: SERVER_NOTES_MS */
	/* The agent names the profile of this node. May be NULL. From the loop. */
	void (*profile)(void *arg, enum profile profile);
	void *arg;
};

/*
 * Pure: what the DEL of a sandbox with so many devices may take, which come back one after the
 * other. A worker that is killed in between leaves a device half way.
 */
int64_t cni_server_del_ms(size_t devices);

/*
 * Have a worker look at what is there, then serve; where that fails it is tried again. Sandboxes
 * that are gone are buried, calls that a crash cut off are taken away, notes are worked off.
 */
struct cni_server *cni_server_new(const struct cni_server_config *config);
/*
 * An agent is there, behind this connected stream socket, which is the server's from now on; the
 * one before is left. Nothing is said to it before all sandboxes are known.
 */
void cni_server_attach(struct cni_server *server, int fd);
/*
 * Do pods have what plugins attached, or are plugins at work for them? {"isUsed", "isMetaUsed",
 * "user": "namespace/pod"}, new. What the disk has besides, a worker knows.
 */
json_t *cni_server_usage(const struct cni_server *server);
/* For the agent, of now and later: struct profile_decision. Borrowed. */
void cni_server_set_networks(struct cni_server *server, const json_t *networks);
/* Workers that run are killed; the next server goes on with what they leave. Accepts NULL. */
void cni_server_free(struct cni_server *server);

// SPDX-License-Identifier: Apache-2.0
/*
 * The server of a node's CNI plugins: takes their calls, has workers carry them out, keeps the
 * state, asks the agent what only the API server knows.
 *
 *	connection ──▶ call ──▶ queue ──▶ worker ──▶ answer
 *	                          ▲         │ asks: agent (channel) · programs (the plugin)
 *	notes, GC, what waits ────┘         ▼ state: one file per sandbox
 *
 * Sandboxes side by side, the calls of one in their order. A call has a deadline. The agent is
 * away: what needs it waits SERVER_AGENT_MS, then says to try again; a DEL does not wait, and what
 * it leaves is finished when the agent is back. A runtime that gives up an ADD has it taken away
 * again.
 *
 * With the agent (channel.h): to it requests of workers (lib/json/ask.h), {"attachments": […],
 * "adding": [UIDs]} whenever they change, {"adding"} alone before a call begins to give a pod
 * something, {"event": {"pod", "reason", "message"}}, {"metrics": "…"}; from it replies, and
 * {"profile": "auto"} once it has read its Node, and when that changes. "podNetworks"
 * (nodeagent/cni/meta/profile.h) stands beside "attachments".
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_SERVER_CNI_SERVER_H
#define ORBWEAVER_NODEAGENT_CNI_SERVER_CNI_SERVER_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"
#include "nodeagent/cni/server/profile_keeper.h"

enum {
	/* Workers at the same time: RTNL is one lock. */
	SERVER_WORKERS_MAX = 32,
	SERVER_CALLS_MAX = 1024,
	/* Notes that are worked off side by side; who else calls waits for no more of them. */
	SERVER_NOTES_MAX = 64,
	SERVER_AGENT_MS = 10000,
	/* The kubelet gives a runtime two minutes. */
	SERVER_ADD_MS = 90000,
	SERVER_ADD_MIN_MS = 10000,
	SERVER_ADD_MAX_MS = 3600000,
	SERVER_DEL_MS = 60000,
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
	int listener; /* a listening socket, the server's from now on */
	int state;    /* folder of the state; borrowed */
	int root;     /* the host's root; borrowed */
	/*
	 * What an ADD may take; 0: SERVER_ADD_MS. On a node that is so much slower the other
	 * deadlines, SERVER_DEL_MS and SERVER_AGENT_MS, are as many times longer.
	 */
	int64_t add_ms;
	int64_t again_ms; /* 0: SERVER_AGAIN_MS */
	int64_t notes_ms; /* 0: SERVER_NOTES_MS */
	/* CNI plugins that may run besides (cni/meta/plugin_types.h); NULL: none. */
	const char *plugin_types;
	const char *kubelet_dir; /* allocated.h; NULL: no kubelet */
	/* The agent names the profile of this node. May be NULL. From the loop. */
	void (*profile)(void *arg, enum profile profile);
	void *arg;
};

/*
 * Look at what is there, and serve. Sandboxes that are gone are buried, calls that a crash cut off
 * are taken away, notes are worked off. ERR_HOST "StateUnusable".
 */
struct cni_server *cni_server_new(const struct cni_server_config *config, struct err *err);
/*
 * An agent is there, behind this connected stream socket, which is the server's from now on; the
 * one before is left.
 */
void cni_server_attach(struct cni_server *server, int fd);
/*
 * Do pods have what plugins attached, or are plugins at work for them? What waits in notes counts,
 * and a sandbox of which the file cannot be read is unknown.
 */
struct profile_usage cni_server_usage(const struct cni_server *server);
/* For the agent, of now and later: struct profile_decision. Borrowed. */
void cni_server_set_networks(struct cni_server *server, const json_t *networks);
/* Workers that run are killed; the next server goes on with what they leave. Accepts NULL. */
void cni_server_free(struct cni_server *server);

#endif

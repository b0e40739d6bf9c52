// SPDX-License-Identifier: Apache-2.0
/*
 * The first process of the program: the only one that rests with privileges. It starts the agent
 * and kubeletd, starts again what ends before its time or no longer turns, and keeps the workers of
 * agent and cnid (process/workers.h).
 *
 * kubeletd serves the kubelet, the agent does all the rest, without privileges. They end apart:
 * while the agent is gone, because of a bug, for want of memory, by hand, the kubelet
 * keeps every resource and gets every answer; pods come and go. The supervisor opens nothing,
 * decides little, reads packets of a few bytes and never waits for one process in particular.
 *
 * cnid serves CNI plugins (cni/server/cnid.h), and ends and starts for itself.
 *
 * It has no loop of libuv, so that what it forks finds none: in each child libuv's fork handlers
 * close the descriptors that its signal pipe had, whatever they are by then.
 *
 * Signals: SIGTERM and SIGINT end the agent in its own order, then kubeletd. The end of the
 * supervisor ends all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/process/allocation_epoch.h"
#include "nodeagent/process/workers.h"

/* Names in ps(1), at most 15 bytes; those of workers: workers.h. */
#define SUPERVISOR_NAME "ow-supervisor"
#define AGENT_NAME      "ow-agent"
#define KUBELETD_NAME   "ow-kubeletd"
#define CNID_NAME       "ow-cnid"

/* Packets of one byte to the supervisor: there is something to offer; heartbeats. */
#define KUBELETD_OFFERING "o"
#define KUBELETD_ALIVE    "h"
#define CNID_ALIVE        "h"

enum {
	/*
	 * Before an agent is started again: the first time at once, then after a second, twice as
	 * long each time up to this.
	 */
	SUPERVISOR_DELAY_MAX_MS = 60000,
	/* An agent that has lasted this long makes earlier ends forgotten. */
	SUPERVISOR_STABLE_MS = 10000,
	/* For kubeletd and cnid to end in order, and kubeletd to remove its sockets. */
	SUPERVISOR_CLOSING_MS = 2000,
	/* How often agent and kubeletd say that they turn. */
	SUPERVISOR_HEARTBEAT_MS = 15000,
	/* A process that says nothing for this long is suspected, and killed after half as long
	   again. */
	SUPERVISOR_WATCHDOG_MS = 60000,
};

/* What came before an agent. */
struct supervisor_past {
	unsigned int ends; /* of agents before it, since the supervisor started */
	int status;        /* how the last one ended, as of waitpid(2) */
	bool served;       /* the kubelet was served when it did */
	bool hung;         /* the watchdog ended it */
	/* Processes that the watchdog has ended, since the supervisor started. */
	unsigned int hung_agents, hung_kubeletds, hung_cnids;
};

/* Sockets of an agent, which are its own. */
struct supervisor_agent {
	int kubeletd; /* to the process that serves the kubelet (kubelet/kubeletd_client.h) */
	int orders;   /* to the supervisor: workers, heartbeats (process/workers.h) */
	int meters;   /* to the supervisor: meters, the workers that read counters */
	/* To the supervisor: supervisor_connect(). */
	int connections;
};

/*
 * What the processes do; each returns an exit status.
 *
 * serve: `control` is its end of a socket of packets. One with a descriptor brings the next agent
 * (kubelet/kubeletd_server.h); the end says to end. It sends the packets above. work: the agent;
 * heartbeats are orders (process/workers.h). worker, meter: what a worker does with its socket;
 * meter NULL: no agent asks for one.
 */
struct supervisor_config {
	/* Of the supervisor, kubeletd and the workers; the others leave it. May be NULL. */
	struct allocation_epoch *giving;
	int (*serve)(int control, void *arg);
	/*
	 * The process that serves CNI plugins (cni/server/cnid.h): the same, or NULL; orders: where
	 * it asks for workers, which do cni_worker.
	 */
	int (*serve_cni)(int control, int orders, void *arg);
	int (*work)(const struct supervisor_agent *sockets, const struct supervisor_past *past,
		    void *arg);
	worker_fn *worker, *meter, *cni_worker;
	/*
	 * In the supervisor: for probes: whether the agent is ready. It is not before each start of
	 * an agent and after its end. May be NULL.
	 */
	void (*ready)(void *arg, bool is_ready);
	/*
	 * In the supervisor: a connection to the kubelet, see supervisor_connect(). Does not wait.
	 */
	int (*connect)(void *arg);
	void *arg;
	int64_t watchdog_ms; /* 0: SUPERVISOR_WATCHDOG_MS */
};

/*
 * In the agent, which may not open the kubelet's folder: a new connection to its PodResources, as
 * the supervisor's `connect` makes it: a descriptor, non-blocking and close-on-exec, or -1 with its
 * errno; ETIMEDOUT when the supervisor does not answer for a second.
 */
int supervisor_connect(int connections);
/*
 * A line to the process that serves CNI plugins, in the same way. ENOTCONN: it does not run at the
 * moment.
 */
int supervisor_connect_cni(int connections);

/*
 * Run until told to end, or until there is no use in going on: an agent that ends with a status of
 * its own before anything was offered has an error for the container runtime. Returns the exit
 * status: the agent's. Before the first loop is made.
 */
int supervisor_run(const struct supervisor_config *config);

/*
 * The first process of the program: starts the two halves of the agent, and starts again what ends before its time.
 *
 * One half serves the kubelet (plugind/), the other does all the rest. They end apart: while the agent's half is gone, because
 * of a bug, for want of memory, by somebody's hand, the kubelet keeps every resource and gets every answer; pods come and go.
 * This process opens nothing, decides little and reads nothing foreign; it keeps the privileges that a new agent hands to its
 * keeper (hostd/keeper.h).
 *
 * Signals: SIGTERM and SIGINT end the agent in its own order, then the other half. Whoever kills the supervisor kills all.
 */
#ifndef ORBWEAVER_NODEAGENT_SUPERVISOR_H
#define ORBWEAVER_NODEAGENT_SUPERVISOR_H

#include <stdbool.h>

/* Name in ps(1), at most 15 bytes; the supervisor keeps the program's. */
#define SUPERVISOR_SERVER_NAME "orbweaver-plugd"
#define SUPERVISOR_AGENT_NAME  "orbweaver-node"

enum {
	/* Before an agent is started again: the first time at once, then after a second, twice as long each time up to this. */
	SUPERVISOR_DELAY_MAX_MS = 60000,
	/* An agent that has lasted so long makes earlier ends forgotten. */
	SUPERVISOR_STABLE_MS = 10000,
	/* For the half that serves the kubelet to remove its sockets. */
	SUPERVISOR_CLOSING_MS = 2000,
};

/* What came before an agent. */
struct supervisor_past {
	unsigned int ends; /* of agents before it, since the supervisor started */
	int status;        /* how the last one ended, as of waitpid(2) */
	bool served;       /* the kubelet was served when it did */
};

/*
 * What the processes do; each returns an exit status.
 *
 * serve: `control` is its end of a socket. A packet with a descriptor brings the next agent (plugind/server.h); the end says to
 * end. It sends one byte when it has something to offer.
 * work: `channel` is a socket to the server.
 */
struct supervisor_config {
	int (*serve)(int control, void *arg);
	int (*work)(int channel, const struct supervisor_past *past, void *arg);
	/* In the supervisor, before each start of an agent and after its end. May be NULL. */
	void (*down)(void *arg);
	void *arg;
};

/*
 * Run until told to end, or until there is no use in going on: an agent that ends with a status of its own before anything was
 * offered has something to say to whoever started it. Returns the exit status: the agent's. Before the first loop is made
 * (keeper.h).
 */
int supervisor_run(const struct supervisor_config *config);

#endif

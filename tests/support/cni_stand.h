// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of CNI plugins, for tests: server, workers and plugins are real; the test is
 * runtime, supervisor and agent. What planners do (attach_run) is the test's own.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* Seen by all processes. */
struct cni_shared {
	/* Process ids; 0: none. Workers are the supervisor's children. */
	atomic_int server, supervisor, plugin;
	atomic_int steps; /* for the test */
	int kill_at, victim;
};
extern struct cni_shared *cni_shared;

struct cni_stand {
	char *folder; /* the host's root, and the kubelet's folder */
	int control;
	int line; /* the agent's; -1: it is away */
	struct strbuf in;
	json_t *heard;       /* all that the agent was asked and told: [{…}] */
	bool has_given;      /* the pod has an address */
	bool is_refused;     /* the agent has no address */
	char *printed;       /* by the last plugin */
	const char *pod_uid; /* of the pod that plugins are called for; NULL: u1 */
	const char *netns;   /* CNI_NETNS; NULL: a namespace that the server takes for gone */
	const char *ifname;  /* CNI_IFNAME; NULL: net1 */
	/*
	 * The agent's answer to a request (lib/json/ask.h), new; NULL with err. NULL: one address,
	 * and {} to all else.
	 */
	json_t *(*answer)(const json_t *question, struct err *err);
	int64_t add_ms;   /* of servers that start from now on; 0: their own */
	int64_t notes_ms; /* the same */
	/*
	 * The plugin that a profile installs, into /bin of the root, beside /net.d for the
	 * runtime's configuration.
	 */
	const char *program;
	const char *plugin_types; /* of workers; NULL: all */
	const char *job_files;    /* of workers; NULL: none */
	uint64_t node_netns;      /* the same: the node's network namespace; 0: not known */
};

/* All but the server, for files that it is to find. */
void cni_stand_prepare(struct cni_stand *s);
/* With a server, and an agent if so. */
void cni_stand_open(struct cni_stand *s, bool with_agent);
void cni_stand_close(struct cni_stand *s);

void cni_stand_start_server(struct cni_stand *s, bool with_agent);
void cni_stand_kill_server(struct cni_stand *s);

/* Play agent and supervisor for a moment. */
void cni_stand_turn(struct cni_stand *s);

/*
 * A call of the plugin for the interface of container `container`. Answers what comes meanwhile.
 * Returns the exit status, -1 after a signal; what it printed is in s->printed.
 */
int cni_stand_call(struct cni_stand *s, const char *plugin, const char *command,
		   const char *container, const char *config);
/* The same in two parts. */
pid_t cni_stand_start(struct cni_stand *s, const char *plugin, const char *command,
		      const char *container, const char *config);
int cni_stand_finish(struct cni_stand *s, pid_t pid);

/* The agent's word. Borrowed. */
void cni_stand_say(struct cni_stand *s, const json_t *message);

/* The last message to the agent that has this member; borrowed, NULL: none. */
const json_t *cni_stand_heard(const struct cni_stand *s, const char *key);

/* Files below folders of the root that somebody would have to remove, new; "": none. */
char *cni_stand_leftovers(const struct cni_stand *s);

// SPDX-License-Identifier: Apache-2.0
/*
 * Does an agent run on a node? By the pods of its DaemonSet there, which is cheaper to know of ten
 * thousand nodes than a sign of life from each agent.
 *
 * Only of an agent that said in which pod it is (status.agentPod of the NodeState), or that has a
 * pod there: one that was started by hand, or that another installation brought, has none to go.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "lib/base/rfc3339.h"

/* Not an API kind: pods of the agent's DaemonSet, trimmed by node_agent_project. */
#define KIND_AGENT_POD "agentpods"

/*
 * Under a node's name: {"since": when it was first seen without any pod of the agent}; or, with
 * "cutOff": true, since when it was said to be out of reach, as its Node is.
 */
#define BOX_NO_AGENT_POD "noagentpod"

/* What stands before node_agent.message in the NodeState's condition. */
#define NODE_AGENT_SAID "the agent is "

/*
 * An agent that is away for less has nothing said of it: it is being updated. Not where the kubelet
 * is silent, too, which takes 40 s to show: the two would be added.
 */
#define NODE_AGENT_GRACE_S 60

struct node_agent {
	bool is_gone;     /* for longer than the grace time */
	int64_t since_us; /* there is none since then; 0: there is one, as far as is known */
	bool remember;    /* since_us and cut_off, in the box: they are known from nothing else */
	bool cut_off;     /* its Node is out of reach; one that writes all the same lives */
	bool has_no_pod;  /* pods are looked at, and its DaemonSet has none on the node */
	char *message;    /* "away since …", one line; NULL while is_gone is false */
	int64_t look_again_ms; /* 0: nothing will change by time alone */
};

void node_agent_done(struct node_agent *agent);
#define auto_node_agent auto_call(node_agent_done)

/*
 * Judge the agent of `node`, whose NodeState is `state` (NULL: only has_no_pod is set). World:
 * KIND_NODE and KIND_AGENT_POD of the node, the box, env.now. Where the world has no such kind,
 * what the NodeState says stands. ERR_BUG "NoClock": env.now is not a time.
 */
int node_agent_judge(const json_t *world, const char *node, const json_t *state,
		     struct node_agent *ret, struct err *err);

/*
 * Keep of a pod: names, its node, whether it is Ready since when; of one that is not, what its
 * container is at. In place.
 */
void node_agent_project(json_t *pod);

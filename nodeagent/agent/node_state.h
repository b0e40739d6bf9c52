// SPDX-License-Identifier: Apache-2.0
/*
 * Our NodeState and our Node on the API server: what is wanted comes from there, the status goes
 * there.
 *
 * The status is written when it differs, one write at a time, the first at once and more than one a
 * second never: a fresh status is asked for at the moment of writing. A conflict is looked at
 * again. A server that stores less than we say (an older CRD) is not written to for ever. Where a
 * Node has no NodeState we make one, so that people see which NICs there are; what it asks for is
 * the operator's business. Nothing is written while a Node that was there is gone.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"

/* Field manager of our writes, component of our events. */
#define NODE_STATE_MANAGER "orbweaver-agent"

enum {
	/*
	 * One status write a second, but two may follow each other: work that is done at once is
	 * reported at once.
	 */
	NODE_STATE_WRITE_MS = 1000,
	/* The operator mostly makes it sooner. */
	NODE_STATE_CREATE_MS = 2000,
	NODE_STATE_RETRY_MAX_MS = 60000,
};

struct node_state;

struct node_state_config {
	struct loop *loop;
	struct kube_client *client;
	const char *ns, *node; /* borrowed */
	/*
	 * The NodeState is not what it was (our own writes included), or is known for the first
	 * time; NULL: there is none.
	 */
	void (*changed)(void *arg, const json_t *object);
	/* The addresses of our Node, a list of strings; once it is known, and when they change. */
	void (*addresses)(void *arg, const json_t *addresses);
	/*
	 * Our Node's uid, and its annotation of nodeagent/devices/dra_names.h, NULL without: once
	 * it is known, and when they change. May be NULL.
	 */
	void (*node_is)(void *arg, const char *uid, const char *dra);
	/*
	 * The label of nodeagent/cni/plan/profile.h on our Node, NULL without it or without a Node:
	 * once the server has said, and when it changes. A Node that is gone leaves it as it was.
	 * May be NULL.
	 */
	void (*profile)(void *arg, const char *label);
	/*
	 * The status as it should be, new; NULL: nothing can be said now. `before`: what the server
	 * has.
	 */
	json_t *(*compose)(void *arg, const json_t *before, const char *now);
	/* A status of ours is stored in the NodeState of this uid. */
	void (*reported)(void *arg, const char *uid);
	/* "nodestate" or "node" cannot be had, once per text; err NULL: it can again. */
	void (*trouble)(void *arg, const char *what, const struct err *err);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

/* All callbacks come from the loop. */
struct node_state *node_state_new(const struct node_state_config *config);
/* Before the client. */
void node_state_free(struct node_state *state);

/* The status may differ from what is stored. */
void node_state_report(struct node_state *state);
/* Statuses are written only while this is the agent that executes; at the start it is not. */
void node_state_may_write(struct node_state *state, bool may);

/* What events are about; strings are valid until the loop turns. */
struct event_object node_state_event_object(const struct node_state *state);

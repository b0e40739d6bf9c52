// SPDX-License-Identifier: Apache-2.0
/*
 * The state machine of a node: look, plan, keep how it was found, execute step by step, look again,
 * until nothing is left to do or nothing more can be done.
 *
 * Level-triggered: it is notified that something changed, never what to do. It looks, or saves, or
 * executes steps, as many side by side as workers may run. It changes the host only; what it knows
 * is read with agent_view() by those who report and offer.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/process/client.h"

/*
 * On a NodeState, written by the operator: the reboot that is allowed, "BOOT-ID CAUSE"; worth
 * nothing in another boot. And, written by people: the boot in which what was rebooted for in vain
 * is tried once more.
 */
#define AGENT_REBOOT_ANNOTATION "orbweaver.io/reboot"
#define AGENT_RETRY_ANNOTATION  "orbweaver.io/retry-reboot"

enum {
	/*
	 * Between a first event and the look that it causes: one change of a host makes many
	 * events.
	 */
	AGENT_DEBOUNCE_MS = 100,
	/*
	 * What seems wrong is believed when it still is after that: devices vanish for a moment
	 * while they are renamed.
	 */
	AGENT_CONFIRM_MS = 500,
	/* A look without any event, and up to a quarter more. */
	AGENT_SCAN_MS = 60000,
};

struct agent;

struct agent_config {
	struct loop *loop;
	struct hostd *hostd;
	/*
	 * So many steps are under way side by side, 1 to HOSTD_PARALLEL_MAX
	 * (host_plan/parallel_nics.h).
	 */
	size_t parallel;
	/* Look that long after the last look, and up to a quarter more; 0: AGENT_SCAN_MS. */
	int64_t scan_ms;
	/*
	 * The view's spec or observed changed: what is offered to the kubelet may. From the loop.
	 */
	void (*looked)(void *arg);
	/*
	 * Devices, {"0000:3b:00.2": true}, borrowed, are about to be changed: make the kubelet give
	 * none of them away, and call agent_withdrawn() once agent_set_held() has what it gave
	 * away until then. NULL: nothing is changed any more. From the loop.
	 */
	void (*withdraw)(void *arg, const json_t *devices);
	/* Anything in the view changed: the status may. From the loop. */
	void (*changed)(void *arg);
	/* Emit an event: reason and message as for a condition. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

/* Begins with the state file. */
struct agent *agent_new(const struct agent_config *config);
/* No callback comes after it. */
void agent_free(struct agent *agent);

/*
 * The NodeState as the server has it; NULL: there is none. Before the first call it is unknown.
 * Borrowed.
 */
void agent_set_node_state(struct agent *agent, const json_t *object);
/* Our first status for this NodeState is stored; it is of that uid. */
void agent_set_reported(struct agent *agent, const char *uid);
/* Node.status.addresses as strings; borrowed. */
void agent_set_addresses(struct agent *agent, const json_t *addresses);
/*
 * Devices that pods hold, {"0000:3b:00.2": "ns/pod"}; NULL, as before the first call: not known.
 * Then nothing is done to VFs that are there. Borrowed.
 */
void agent_set_held(struct agent *agent, const json_t *held);
/* What pods were given (pools_given()): kept in the state file. Borrowed. */
void agent_set_given(struct agent *agent, const json_t *given);
/* What config.withdraw was called for has happened. */
void agent_withdrawn(struct agent *agent);
/*
 * Only one agent of a node executes; at the start it may not. Who may reads the state file again,
 * then begins.
 */
void agent_set_may_execute(struct agent *agent, bool may);

/* Something happened on the host. */
void agent_wake(struct agent *agent);
/*
 * A port's link is lost or back, as history_with_link() has it: not to wait for the next look,
 * which waits for steps. Borrowed.
 */
void agent_set_link(struct agent *agent, const char *address, bool is_up, int64_t carrier_changes);
/* Does this interface name belong to a NIC of the last look? For events that name nothing else. */
bool agent_knows_interface(const struct agent *agent, const char *name);

/*
 * Start nothing more. done(arg) once the step that runs has ended, from a later turn of the loop;
 * at once when none runs.
 */
void agent_stop(struct agent *agent, void (*done)(void *arg), void *arg);

/* Borrowed until the loop turns. */
struct agent_view {
	int64_t generation;     /* of the NodeState that plan was made for; 0: none */
	const json_t *observed; /* of history_merge(); NULL before the first look */
	const json_t *plan;     /* the last one whose troubles are sure; NULL: there is none */
	const json_t *failures; /* [{"pf", "reason", "message"}] */
	const char *activity;   /* what is being done, NULL when nothing */
	/* The kubelet gives none of the devices away that the plan waits for. */
	bool withdrawn;
	const json_t *given; /* agent_set_given(), of us or an agent before us; NULL: nothing yet */
	const json_t *acted; /* of history_is_ours(), by clock_ms() */
	const json_t *offered; /* spec whose resources are offered; NULL: none */
};

struct agent_view agent_view(struct agent *agent);

// SPDX-License-Identifier: Apache-2.0
/*
 * The links of the node's NIC ports as they go: keeps their history
 * (nodeagent/host_plan/link_history.h), judges the ports that are wanted, and says when a verdict
 * changes.
 */
#pragma once

#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/host/watch.h"
#include "nodeagent/host_plan/link_history.h"

/*
 * On a NodeState, "true" (POOL_POD_EVENTS and POOL_DEVICE_TAINTS of the operator): pods that use a
 * port have events when it is bad; devices of ports that are bad have a taint in ResourceSlices.
 */
#define LINK_HEALTH_POD_EVENTS    "orbweaver.io/pod-events-degraded"
#define LINK_HEALTH_DEVICE_TAINTS "orbweaver.io/taint-devices-degraded"

/* Does the NodeState (NULL: none) have one of these? */
bool link_health_is_asked_for(const json_t *node_state, const char *annotation);

enum {
	/* Counters are read that often without a scrape. */
	LINK_HEALTH_COUNT_MS = 60000,
	/*
	 * Details of each port: of its card and, under the kernel's lock for interfaces, of its
	 * module; after a failure of one of them that one twice as long each time, up to a day.
	 */
	LINK_HEALTH_DETAILS_MS = 300000,
	LINK_HEALTH_DETAILS_MAX_MS = 86400000,
};

struct link_health;

struct link_health_config {
	struct loop *loop;
	const char *node; /* name of the Node, for metrics; borrowed */
	struct link_limits limits;
	/* What link_health_status() says is another. From the loop. */
	void (*changed)(void *arg);
	/* Emit an event: the reason and message of a verdict. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	/* A port, by its PCI address, is bad, or good again: its pods may have to know. */
	void (*turned)(void *arg, const char *port, bool warning, const char *reason,
		       const char *message);
	/* Read counters: link_health_counted() is due. */
	void (*count)(void *arg);
	/*
	 * Read details of a port (port_details_read()): link_health_details() is due. False: not
	 * now. One at a time.
	 */
	bool (*details)(void *arg, const json_t *port);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct link_health *link_health_new(const struct link_health_config *config);
/* Accepts NULL. */
void link_health_free(struct link_health *health);

/* status.linkHealth of an agent before us, at the first call; NULL: none. Borrowed. */
void link_health_heard(struct link_health *health, const json_t *status);

/*
 * A look; all borrowed. wanted: link_history_wanted(). acted: of history_is_ours(), by clock_ms();
 * kept, as steps that begin after the look change it.
 */
struct link_health_look {
	const json_t *observed, *wanted, *acted;
};
void link_health_looked(struct link_health *health, const struct link_health_look *look);

/*
 * A notification of the kernel about any interface. The PCI address of the port whose link it
 * changes, borrowed until the next call; NULL: of none.
 */
const char *link_health_event(struct link_health *health, const struct watch_event *event);

/* exposition_input.devices, borrowed; NULL: could not be had. */
void link_health_counted(struct link_health *health, const json_t *devices);

/* What config.details asked for, borrowed; NULL: could not be had. */
void link_health_details(struct link_health *health, const json_t *details);

/* status.linkHealth; NULL: nothing is judged. Borrowed until the loop turns. */
const json_t *link_health_status(const struct link_health *health);

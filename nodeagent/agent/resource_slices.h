// SPDX-License-Identifier: Apache-2.0
/*
 * The node's ResourceSlices on the API server: written when they differ, by the agent that
 * executes, one change a second at most, and repaired when another client changes or removes them
 * (kubelets remove those of a driver that was away for 30 s).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"

enum {
	RESOURCE_SLICES_WRITE_MS = 1000,
	RESOURCE_SLICES_RETRY_MAX_MS = 60000,
	/* Between questions to a server that has no such kind. */
	RESOURCE_SLICES_ABSENT_MS = 60000,
};

struct resource_slices;

struct resource_slices_config {
	struct loop *loop;
	struct kube_client *client;
	const char *node; /* borrowed */
	/* Emit an event. From the loop. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct resource_slices *resource_slices_new(const struct resource_slices_config *config);
/* Before the client. Accepts NULL. */
void resource_slices_free(struct resource_slices *slices);

/* The Node's uid, which owns them; before it is known nothing is written. */
void resource_slices_set_owner(struct resource_slices *slices, const char *uid);
/* What is to be published (dra_choice_claims()) of this host; borrowed. */
void resource_slices_set(struct resource_slices *slices, const json_t *pools,
			 const json_t *observed);
/* link_health_status(), borrowed; whether devices of bad links have a taint. */
void resource_slices_set_links(struct resource_slices *slices, const json_t *links,
			       bool taints_degraded);
/* Only the agent that executes writes; at the start it may not. */
void resource_slices_may_write(struct resource_slices *slices, bool may);

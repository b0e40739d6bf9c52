// SPDX-License-Identifier: Apache-2.0
/* The engine: events wake keys, keys become worlds, worlds become plans, plans are carried out. */
#pragma once

#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "operator/controllers/controllers.h"
#include "operator/dependency_health.h"

enum {
	/*
	 * A turn of decisions ends after this time: an admission review may be waiting for the
	 * loop.
	 */
	MANAGER_TURN_US = 100,
	/* Failures that are remembered, for the debug pages. */
	MANAGER_ERRORS_MAX = 256,
	/* What could not be read from the API server is read again after this. */
	MANAGER_LOOK_AGAIN_MS = 1000,
	/* While our namespace is being deleted, keys without an object are kept at this pace. */
	MANAGER_KEEP_MS = 30000,
};

struct manager;

/* All borrowed. */
struct manager_config {
	struct loop *loop;
	struct kube_client *client;
	struct recorder *recorder;
	struct metrics *metrics;
	struct dependency_health *troubles; /* gets one subject per kind */
	const struct event_object *self;    /* this operator: what events about itself are about */
	const char *ns;                     /* of the NodeStates */
	const char *resource_prefix;        /* of extended resources */
	const char *config_ns;              /* of the ConfigMap spiderpool-conf */
	const char *cilium_config;          /* as in controller_sources */
	json_t *policy_namespaces; /* array of names, see reconcilers/core/trust.h; NULL: none */
	const struct webhook_settings *webhook;
	unsigned int writes_max; /* in flight; mostly SCHEDULE_WINDOW */
	/*
	 * An object changed in a cache; now is NULL when it went. Restrictions as for
	 * cache_changed_fn. May be NULL.
	 */
	void (*changed)(void *arg, const char *kind, const json_t *now);
	void *arg;
};

/* Mirrors at once; decides only while it leads. */
struct manager *manager_new(const struct manager_config *config);
void manager_free(struct manager *manager);

/*
 * Start or stop deciding. What changes meanwhile is remembered, so that a new leader begins with
 * what is due. Plans at work when it stops fail by themselves (the client's fence).
 */
void manager_lead(struct manager *manager, bool leading);

/* Plans at work. 0 after manager_lead(false): nothing of ours is in flight. */
size_t manager_working(const struct manager *manager);

/* The caches, for others who decide (operator/server/webhook.h). */
const struct controller_sources *manager_sources(const struct manager *manager);

/* For the debug pages; all borrowed. */
const struct queue *manager_queue(const struct manager *manager, enum controller_id id);
const struct dependency_health *manager_troubles(const struct manager *manager);
/*
 * { "CONTROLLER KEY": { reason, message, time, id, failures } } of keys whose last attempt failed,
 * MANAGER_ERRORS_MAX at most.
 */
const json_t *manager_errors(const struct manager *manager);

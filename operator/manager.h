/*
 * The engine: events wake keys, keys become worlds, worlds become plans, plans are carried out.
 */
#ifndef ORBWEAVER_OPERATOR_MANAGER_H
#define ORBWEAVER_OPERATOR_MANAGER_H

#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/http/health.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "operator/controllers.h"

enum {
	/* Plans being carried out at a time: writes in flight on the one connection. */
	MANAGER_WINDOW = 64,
	/* Decisions are made for so long before the loop gets its turn: an admission review may be waiting. */
	MANAGER_TURN_US = 100,
	/* What follows from our own writes waits for so long a quiet moment, but not longer than … */
	MANAGER_QUIET_MS = 250,
	MANAGER_LATER_MS = 10000,
	/* A summary waits for what it sums up, but not longer than this. */
	MANAGER_SUMMARY_MS = 30000,
};

struct manager;

/* All borrowed. */
struct manager_config {
	struct loop *loop;
	struct kube_client *client;
	struct recorder *recorder;
	struct metrics *metrics;
	struct health *ready;        /* gets one check per kind */
	const char *ns;              /* of the NodeStates */
	const char *resource_prefix; /* of extended resources */
	const char *config_ns;       /* of the ConfigMap spiderpool-conf */
	const struct webhook_settings *webhook;
	bool stream_lists;
	/* An object changed in a cache; now is NULL when it went. Restrictions as for cache_changed_fn. May be NULL. */
	void (*changed)(void *arg, const char *kind, const json_t *now);
	void *arg;
};

/* Mirrors at once; decides only while it is told to lead. */
struct manager *manager_new(const struct manager_config *config);
void manager_free(struct manager *manager);

/*
 * Start or stop deciding. What changes meanwhile is remembered, so that a new leader begins with what is due. Plans at work
 * when it stops fail by themselves (the client's fence).
 */
void manager_lead(struct manager *manager, bool leading);

/* Plans at work. 0 after manager_lead(false): nothing of ours is in flight. */
size_t manager_working(const struct manager *manager);

/* The caches, for others who decide (operator/webhook.h). */
const struct controller_sources *manager_sources(const struct manager *manager);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The table of controllers: what each one decides, and what it looks at. Who is woken by what is in
 * the table of kinds (kinds.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/kube/queue.h"
#include "operator/cache/findings.h"
#include "operator/cache/mirror.h"
#include "operator/cache/policy_reports.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/ip_pool_index.h"
#include "reconcilers/sriov/node_names.h"

enum controller_id {
	CONTROLLER_MULTUS_CONFIG,
	CONTROLLER_INJECT_POD,
	CONTROLLER_INJECT_GROUP,
	CONTROLLER_INJECT_CONFIG,
	CONTROLLER_IP_POOL,
	CONTROLLER_NODE_STATE,
	CONTROLLER_POLICY_STATUS,
	CONTROLLER_POOL_CONFIG,
	CONTROLLER_SRIOV_NETWORK,
	CONTROLLER_SRIOV_IB_NETWORK,
	CONTROLLER_OVS_NETWORK,
	CONTROLLER_RESERVED_IP,
	CONTROLLER_COORDINATOR,
	CONTROLLER_WEBHOOK_SETUP,
	CONTROLLER_ADDRESSES,
	CONTROLLER_ENDPOINT,
	CONTROLLER_STRAYS,
	CONTROLLER_LEFTOVER,
	CONTROLLER_SHARED_OFFERS,
	CONTROLLER_DRAIN,
	CONTROLLER_HEALTH_TAINT,
	CONTROLLER_COUNT,
};

enum { CONTROLLER_MAX_NEEDS = 10 };

struct address_metrics;  /* operator/cache/address_metrics.h */
struct ipam_book;        /* operator/controllers/ipam_book.h */
struct webhook_settings; /* operator/controllers/webhook_setup.h */

/* Look at the key. In QUEUE_LATER: its status only has something new to say. */
typedef void controller_wake_fn(void *arg, enum controller_id id, const char *key,
				enum queue_lane lane);

/* What worlds are made of. */
struct controller_sources {
	const struct mirror *mirror;
	controller_wake_fn *wake; /* when something in here changes */
	void *wake_arg;
	int64_t (*now_ms)(void); /* a clock that never goes back */
	/* What is kept in memory: controller_sources_init. */
	struct policy_reports *reports;
	struct findings *findings;
	struct ip_pool_index *pools;
	struct node_names *resources; /* that nodes offer */
	struct node_names *links;     /* interfaces of nodes */
	struct ipam_book *addresses;
	struct address_metrics *address_metrics;
	json_t *notes; /* { box: { key: value } }: what controllers post to themselves */
	/* While it is true changes are the answers to writes of our own; NULL: never. */
	const bool *own_write;
	const char *ns;              /* the operator's namespace */
	const char *resource_prefix; /* "spidernet.io" */
	json_t *policy_namespaces;   /* array of names, trusted beside our own; NULL: none */
	const char *config_ns;       /* of the ConfigMap spiderpool-conf */
	const char *cilium_config;   /* "namespace/name" of Cilium's ConfigMap; NULL: the usual */
	const struct webhook_settings *webhook;
};

/* Make what is kept in memory, empty. The rest is the caller's; metrics may be NULL. */
void controller_sources_init(struct controller_sources *from, struct metrics *metrics);
void controller_sources_done(struct controller_sources *from);

static inline void controller_wake(const struct controller_sources *from, enum controller_id id,
				   const char *key, enum queue_lane lane)
{
	from->wake(from->wake_arg, id, key, lane);
}

struct controller;

/* Add to the world what a decision on `key` may look at. */
typedef void controller_gather_fn(const struct controller_sources *from,
				  const struct controller *self, const char *key, json_t *world);

typedef void controller_gathered_fn(const struct controller_sources *from, const char *key,
				    const json_t *world);
/* as_of: see ipam_book_posted(). */
typedef void controller_posted_fn(const struct controller_sources *from, const char *box,
				  const char *key, json_t *value, uint64_t as_of);
typedef void controller_reported_fn(const struct controller_sources *from, const char *node,
				    const json_t *policies);
/* The answer to an eviction (evictions.h); the callback may keep it. */
typedef void controller_evicted_fn(const struct controller_sources *from, const char *key,
				   json_t *answer);
/*
 * What was read for the key (live_reads.h); the callback may change and keep it. With err it could
 * not be read, and the key is looked at again.
 */
typedef void controller_read_fn(const struct controller_sources *from, const char *key,
				json_t *found, const struct err *err);
/* A write of a group was carried out, err NULL, or was refused (plan_group). */
typedef void controller_group_ended_fn(const struct controller_sources *from, const char *kind,
				       const char *group, const struct err *err);

struct controller {
	const char *name; /* in logs and metrics */
	const char *kind; /* of the object that a key names */
	reconcile_fn *reconcile;
	/* On objects of the kind, ours or that of the software that we replace; NULL: none. */
	const char *finalizer;
	/* Kinds that must have been listed before a key runs. */
	const char *needs[CONTROLLER_MAX_NEEDS];
	controller_gather_fn *gather; /* NULL: nothing */
	/*
	 * Aggregates: run at most once in this time per key, and not before `after` has looked at
	 * all its keys once.
	 */
	int64_t every_ms;
	enum controller_id after;
	/* The key does not wait for every_ms: pods wait for it. NULL: all keys do. */
	bool (*is_urgent)(const struct controller_sources *from, const char *key);
	/* Its statuses and events are for people: in a crowd of objects they wait. */
	bool status_waits;
	/*
	 * The sandbox of a pod waits for what it writes: it need not keep to the pace
	 * (write_limit.h).
	 */
	bool awaited;
	/*
	 * What comes of its decisions, and is kept for the next ones. gather changes nothing; what
	 * a decision uses up goes in `gathered`. NULL: never happens, but for `posted`: then a post
	 * is for the same controller, and is kept in from->notes.
	 */
	controller_gathered_fn *gathered;
	controller_posted_fn *posted;
	controller_reported_fn *reported;
	controller_evicted_fn *evicted;
	controller_read_fn *read;
	bool reads_once; /* a read that is under way serves (live_reads.h) */
	controller_group_ended_fn *group_ended;
	void (*overtaken)(const struct controller_sources *from); /* by another writer */
};

/* The one key of CONTROLLER_ADDRESSES: all pods that wait. */
#define ADDRESSES_KEY "all"

extern const struct controller controllers[CONTROLLER_COUNT];

/* Users write objects of this kind, and one of these reports the result in its status. */
bool controllers_are_for(const char *kind);

/*
 * An object changed: wake each key that has to be looked at. old or now is NULL when it
 * appeared or went. Keeps from->pools, from->resources and from->links up to date.
 */
void controllers_map(const struct controller_sources *from, const char *kind, const char *key,
		     const json_t *old, const json_t *now);

/* What the controller is to look at for a decision: gather, then gathered. Adds to world. */
void controllers_gather(const struct controller_sources *from, enum controller_id id,
			const char *key, json_t *world);

/*
 * A plan of the controller says this: a "report", "post" or "finding" (plan.h); object: that of the
 * finding, NULL when it is gone; as_of: see ipam_book_posted(). True for a finding that is another
 * one than before.
 */
bool controllers_remember(const struct controller_sources *from, enum controller_id id,
			  const json_t *op, const json_t *object, uint64_t as_of);

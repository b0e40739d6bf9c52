// SPDX-License-Identifier: Apache-2.0
/*
 * The table of controllers: what each one decides, and what it looks at. Who is woken by what is in
 * the table of kinds (kinds.h).
 */
#ifndef ORBWEAVER_OPERATOR_CONTROLLERS_H
#define ORBWEAVER_OPERATOR_CONTROLLERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "operator/boxes.h"
#include "operator/findings.h"
#include "operator/mirror.h"
#include "operator/reports.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/spider/ip_pool_index.h"
#include "reconcilers/sriov/node_names.h"

enum controller_id {
	CONTROLLER_MULTUS_CONFIG,
	CONTROLLER_INJECT_POD,
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
	CONTROLLER_COUNT,
};

enum { CONTROLLER_MAX_NEEDS = 10 };

struct webhook_settings; /* operator/webhook_setup.h */

/* What worlds are made of. */
struct controller_sources {
	const struct mirror *mirror;
	const struct reports *reports;
	const struct findings *findings;
	struct ip_pool_index *pools;
	struct node_names *resources; /* that nodes offer */
	struct node_names *links;     /* interfaces of nodes */
	struct boxes *boxes;
	/* While it is true changes are the answers to writes of our own; NULL: never. */
	const bool *own_write;
	const char *ns;              /* the operator's namespace */
	const char *resource_prefix; /* "spidernet.io" */
	json_t *policy_namespaces;   /* array of names, trusted beside our own; NULL: none */
	const char *config_ns;       /* of the ConfigMap spiderpool-conf */
	const char *cilium_config;   /* "namespace/name" of Cilium's ConfigMap; NULL: the usual */
	const struct webhook_settings *webhook;
};

struct controller;

/* Add to the world what a decision on `key` may look at. */
typedef void controller_gather_fn(const struct controller_sources *from,
				  const struct controller *self, const char *key, json_t *world);

struct controller {
	const char *name; /* in logs and metrics */
	const char *kind; /* of the object that a key names */
	reconcile_fn *reconcile;
	/* On objects of the kind, ours or that of the software that we replace; NULL: none. */
	const char *finalizer;
	/* Kinds that must have been listed before a key runs. */
	const char *needs[CONTROLLER_MAX_NEEDS];
	controller_gather_fn *gather;
	/*
	 * Aggregates: run at most once in this time per key, and not before `after` has looked at
	 * all its keys once.
	 */
	int64_t every_ms;
	enum controller_id after;
	/* A key that this box lacks does not wait for every_ms: pods wait for it. NULL: all do. */
	const char *urgent_without;
	/* Its statuses and events are for people: in a crowd of objects they wait. */
	bool status_waits;
	/* The sandbox of a pod waits for what it writes: it need not keep to the pace (pace.h). */
	bool awaited;
};

/* The one key of CONTROLLER_ADDRESSES: all pods that wait. */
#define ADDRESSES_KEY "all"

extern const struct controller controllers[CONTROLLER_COUNT];

/* Users write objects of this kind, and one of these tells them in its status what came of it. */
bool controllers_are_for(const char *kind);

/*
 * An object changed: call wake for each key that has to be looked at. old or now is NULL when it
 * appeared or went. Keeps from->pools, from->resources and from->links up to date.
 */
void controllers_map(const struct controller_sources *from, const char *kind, const char *key,
		     const json_t *old, const json_t *now,
		     void (*wake)(void *arg, enum controller_id id, const char *key), void *arg);

/* The same when something else than before is found wrong with an object (from->findings). */
void controllers_map_finding(const struct controller_sources *from, const char *kind,
			     const char *key,
			     void (*wake)(void *arg, enum controller_id id, const char *key),
			     void *arg);

/* The same when a pass has seen all pods that wait for addresses: pools that say some do. */
void controllers_map_passed(const struct controller_sources *from,
			    void (*wake)(void *arg, enum controller_id id, const char *key),
			    void *arg);

#endif

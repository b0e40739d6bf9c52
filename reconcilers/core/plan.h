// SPDX-License-Identifier: Apache-2.0
/*
 * What a reconciler wants: a list of operations on the cluster, as data.
 *
 * A reconciler appends in the order in which things must happen; the applier
 * (operator/writer/applier.c) compares each operation with what its cache holds, sends only real
 * differences, and keeps the order per object. A plan is JSON, so that golden tests can write it
 * down:
 *
 *	{ "op": "apply",  "kind": ID, "key": KEY, "object": {metadata, spec, …} }
 *	{ "op": "status", "kind": ID, "key": KEY, "status": {…} }
 *	{ "op": "status-part", "kind": ID, "key": KEY, "status": {…} }
 *	{ "op": "meta",   "kind": ID, "key": KEY, "metadata": {labels/annotations/finalizers, null
 *                        removes}, "subresource": "status" or absent, "status":
 *                        {"conditions": [one]} or absent }
 *	{ "op": "cordon", "kind": ID, "key": KEY, "spec": {unschedulable, null removes it, or
 *                        taints}, "metadata": as above }
 *	{ "op": "delete", "kind": ID, "key": KEY, "uid": UID }
 *	{ "op": "evict",  "kind": ID, "key": KEY, "uid": UID }
 *	{ "op": "event",  "kind": ID, "key": KEY, "type": "Normal"|"Warning", "reason": …,
 *                        "message": … }
 *	{ "op": "finding", "kind": ID, "key": KEY, "reason": …, "message": … } (without the last
 *	two: there is none)
 *	{ "op": "requeue", "after_ms": N }
 *	{ "op": "post", "box": BOX, "key": KEY, "value": … }	(null: take out what is there)
 *	{ "op": "report", "node": NODE, "policies": { POLICY KEY: {…} } }
 *
 * Operations may have "group": NAME and "needs": [NAME, …] (plan_group()).
 *
 * ID is the kind's id as in reconcilers/core/kinds.h (the plural resource name), KEY is
 * "namespace/name" or "name".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/own.h"

struct plan {
	json_t *ops; /* array, NULL while empty */
};

void plan_done(struct plan *plan);
#define auto_plan auto_call(plan_done)

bool plan_is_empty(const struct plan *plan);

/* Append all operations of another plan, which keeps them, too. */
void plan_join(struct plan *plan, const struct plan *more);

/*
 * The object must exist with exactly these fields: top-level members other than metadata are ours
 * as a whole (spec, data; status of a kind that has no subresource for it);
 * of metadata we own the labels and annotations named here, those we set before (the server's field
 * managers remember), and ownerReferences and finalizers when given. Takes object; it must carry
 * metadata.name. An object that exists and is controlled by someone else is never overwritten: the
 * reconciler looks at the world first.
 */
void plan_apply(struct plan *plan, const char *kind, json_t *object);

/* .status must equal this, as a whole. Takes status. */
void plan_status(struct plan *plan, const char *kind, const char *key, json_t *status);

/*
 * These members of .status must be so, null removes one; the others are another writer's. Takes it.
 */
void plan_status_part(struct plan *plan, const char *kind, const char *key, json_t *status);

/* Merge into metadata of an object that exists; null removes a key. Takes metadata. */
void plan_meta(struct plan *plan, const char *kind, const char *key, json_t *metadata);

/*
 * Labels of the Node `key`, merged as by plan_meta(), by way of its subresource status: the right
 * to patch nodes/status lets the operator label Nodes, and neither cordon nor drain them
 * (pkg/registry/core/node/strategy.go, nodeStatusStrategy: spec stays as it is). Takes labels.
 */
void plan_node_labels(struct plan *plan, const char *key, json_t *labels);

/*
 * Annotations of the Node `key`, merged as by plan_meta(), and a condition of it, which replaces
 * the one of its type ("$patch": "delete" removes that), in the same way. Takes both; either may be
 * NULL.
 */
void plan_node_status(struct plan *plan, const char *key, json_t *annotations, json_t *condition);
/* The condition of such an operation, put into the object that it is about, as a server does. */
void plan_put_condition(json_t *object, const json_t *op);

/*
 * Whether new pods may come to the Node `key`, in one write with what is said about it in its
 * metadata: who did it. Takes metadata.
 */
void plan_cordon(struct plan *plan, const char *key, bool is_cordoned, json_t *metadata);

/* All taints of the Node `key`, in the same way. Takes taints. */
void plan_taints(struct plan *plan, const char *key, json_t *taints);

/* Take this one out of the object's finalizers, if it is among them; others stay. */
void plan_release(struct plan *plan, const char *kind, const char *key, const json_t *object,
		  const char *finalizer);

/* Delete, if the object's uid is still this one. */
void plan_delete(struct plan *plan, const char *kind, const char *key, const char *uid);

/*
 * Ask the pod of this uid to end, by the eviction API: budgets and its own grace period hold. The
 * answer is not a failure of the plan; the applier puts a refusal where the next decision sees it.
 */
void plan_evict(struct plan *plan, const char *key, const char *uid);

/*
 * Emit an event. Appended only when something changed (see conditions.h), so an idle cluster has no
 * events from us.
 */
void plan_event(struct plan *plan, const char *kind, const char *key, bool warning,
		const char *reason, const char *message);

/*
 * What one node contributes to the status of policies: replaces all that was reported for the node
 * before. Kept in the operator's memory only (it follows from node, NodeState and policies); a
 * policy whose report changed is queued. `policies` maps policy keys to {"matched": bool, "ready":
 * bool, "wantedVfs": int, "presentVfs": int, "why": string or absent}. The reports of one policy
 * appear in that policy's world as kind KIND_POLICY_REPORT, by node. A key behind
 * POOL_REPORT_PREFIX is that of a pool config, which sees its reports as KIND_POOL_REPORT. Takes
 * policies.
 */
void plan_report(struct plan *plan, const char *node, json_t *policies);

/*
 * What is found wrong with an object that has no status of ours to say it in (a pod). It replaces
 * what was found on the object before; reason NULL: all is well. Kept in the operator's memory:
 * what is new becomes an event (Warning) on the object, and how many there are of each reason
 * becomes a metric. So it can be planned as often as the object is looked at.
 */
void plan_finding(struct plan *plan, const char *kind, const char *key, const char *reason,
		  const char *message);

/*
 * A box that the operator takes from: [{"kind", "key"}, …] are read of the API server, each by
 * itself, and what is found is put where the key's decision sees it.
 */
#define BOX_LOOK "look"
/* As a kind there: all pods that are bound to the node `key`, {"ns/name": pod}. */
#define BOX_PODS_OF_NODE "podsofnode"

/*
 * Leave a message for another decision: what an operation of this plan that was carried out before
 * it has made true, or what has to be read before it can be decided. Kept in the operator's memory
 * only, so it must follow from the cluster again after a start. Who is woken, and finds it in its
 * world as a kind of the box's name, is the operator's business. Takes value; NULL takes out what
 * is there.
 */
void plan_post(struct plan *plan, const char *box, const char *key, json_t *value);

/*
 * The operations from the `first` on are about one of many objects that the plan decides on. One
 * that the server refuses fails its group alone: operations that need a group that failed are left
 * out, and the rest of the plan goes on. group NULL: an operation that fails ends the plan, as
 * without groups. needs, an array of names, is borrowed; NULL: none.
 */
void plan_group(struct plan *plan, size_t first, const char *group, json_t *needs);

/* Look at this key again after so many milliseconds, whatever happens before. */
void plan_requeue(struct plan *plan, int64_t after_ms);

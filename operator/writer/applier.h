// SPDX-License-Identifier: Apache-2.0
/*
 * Carries out plans: compares each operation with the cache, sends only real differences, one at a
 * time per plan.
 *
 * Objects that are missing are created (POST: an object that a user made meanwhile is never
 * overwritten); objects that differ get a merge patch of just the difference. Every write is
 * conditional on the version of its object when the plan was made (applier_run), or on its absence;
 * an own write of the same plan moves that version on. A decision that was overtaken fails with
 * ERR_CONFLICT and is made again. Why not server-side apply: it cannot say "only if it does not
 * exist" or cheaply "only if nothing changed", and costs the API server more per write
 * (docs/operator.md has the figures); what it gives, removing what we no longer want without
 * touching what others set, comes from the same field-manager records (projection.h).
 */
#pragma once

#include "lib/base/metrics.h"
#include "lib/kube/recorder.h"
#include "operator/cache/mirror.h"
#include "reconcilers/core/plan.h"

struct applier;

/*
 * After HTTP 403 for labels of a Node (plan_node_labels()) no Node is labelled for this long. One
 * refusal is reported in that time.
 */
enum { APPLIER_LABELS_PAUSE_MS = 600000 };

/* All borrowed. */
struct applier_config {
	struct kube_client *client;
	struct mirror *mirror;
	struct recorder *recorder;
	struct metrics *metrics; /* orbweaver_writes_total{kind,verb,outcome} */
	/*
	 * What plans say beside writes; arg is that of applier_run. "report", "post" and "finding"
	 * operations: remember it. object: that of a finding, NULL when it is gone. True when the
	 * finding is news: it becomes an event.
	 */
	bool (*remember)(void *arg, const json_t *op, const json_t *object);
	/* "post" operations with BOX_LOOK: read this of the API server. */
	void (*look)(void *arg, const char *key, const json_t *wanted);
	/*
	 * "evict" operations: what the API server answered (evictions.h), with the pod's "uid".
	 * Borrowed.
	 */
	void (*evicted)(void *arg, const char *key, json_t *answer);
	/*
	 * A write of a group (plan_group()) was carried out, err NULL, or was refused. Operations
	 * that need the group are left out then. All is borrowed. May be NULL.
	 */
	void (*group_ended)(void *arg, const char *group, const json_t *op, const struct err *err);
	/*
	 * Of all plans, with the arg below. A write has ended, after this time; kind and verb are
	 * static. May be NULL.
	 */
	void (*answered)(void *arg, const char *kind, const char *verb, int64_t took_us,
			 const struct err *err);
	/* Before and after the cache learns the answer to our own write. */
	void (*learning)(void *arg, bool begins);
	void *arg;
};

struct applier *applier_new(const struct applier_config *config);
/*
 * Plans at work end with ERR_TRANSIENT "ShuttingDown"; a request that is under way may still be
 * carried out by the server.
 */
void applier_free(struct applier *applier);

struct applier_result {
	bool wrote;       /* something was sent */
	bool left;        /* statuses and events were left out: to be planned again */
	const char *did;  /* "create KIND KEY, patch KIND KEY", without statuses; "" when nothing */
	int64_t again_ms; /* the plan wants to be made again after this; -1: no */
};

/*
 * err is NULL when all operations are done, or left out with their groups; else the rest of the
 * plan was not tried. May come before applier_run returns. Errors: those of client.h; ERR_CONFLICT
 * "Overtaken": an object moved since the plan was made.
 */
typedef void applier_done_fn(void *arg, const struct applier_result *result, const struct err *err);

/*
 * Takes the plan's content. To be called in the turn in which the plan was made: the versions that
 * the caches hold now are those that were decided on. id names the decision in log lines.
 * statuses_wait: leave out statuses, and the events that come with them.
 */
void applier_run(struct applier *applier, uint64_t id, struct plan *plan, bool statuses_wait,
		 applier_done_fn *done, void *arg);

/*
 * Is a write under way that makes the object's status what it is here? A watch may bring our own
 * write before its response comes.
 */
bool applier_is_writing(const struct applier *applier, const char *kind, const json_t *object);

/*
 * Carries out plans: compares each operation with the cache, sends only real differences, one at a time per plan.
 *
 * Objects that are missing are created (POST: an object that somebody made meanwhile is never overwritten); objects that
 * differ get a merge patch of just the difference, on the condition of the resourceVersion that the decision was made with. A
 * decision that was overtaken fails with ERR_CONFLICT and is made again. Why not server-side apply: it cannot say "only
 * if it does not exist" or cheaply "only if nothing changed", and costs the API server more per write (operator/README.md
 * has the figures); what it gives, removing what we no longer want without touching what others set, comes from the same
 * field-manager records (projection.h).
 */
#ifndef ORBWEAVER_OPERATOR_APPLIER_H
#define ORBWEAVER_OPERATOR_APPLIER_H

#include "lib/base/metrics.h"
#include "lib/kube/recorder.h"
#include "operator/mirror.h"
#include "reconcilers/plan.h"

struct applier;

/* All borrowed. */
struct applier_config {
	struct kube_client *client;
	struct mirror *mirror;
	struct recorder *recorder;
	struct metrics *metrics; /* orbweaver_writes_total{kind,verb,outcome} */
	/* "report" operations. */
	void (*report)(void *arg, const char *node, const json_t *policies);
	/* "finding" operations: remember it (object NULL: it is gone), and say whether it is news. What is becomes an event. */
	bool (*found)(void *arg, const json_t *op, const json_t *object);
	/* Before and after the cache learns the answer to our own write. */
	void (*learning)(void *arg, bool begins);
	void *arg;
};

struct applier *applier_new(const struct applier_config *config);
/* Plans at work end with ERR_TRANSIENT "ShuttingDown"; a request that is under way may still be carried out by the server. */
void applier_free(struct applier *applier);

struct applier_result {
	bool wrote;       /* something was sent */
	int64_t again_ms; /* the plan wants to be made again after this; -1: no */
};

/* err is NULL when all operations are done; else the rest of the plan was not tried. May come before applier_run returns. */
typedef void applier_done_fn(void *arg, const struct applier_result *result, const struct err *err);

/* Takes the plan's content. */
void applier_run(struct applier *applier, struct plan *plan, applier_done_fn *done, void *arg);

/*
 * The merge patch that makes `present` (as it is in the cache) what an "apply" operation wants; NULL when it is so already.
 * Includes metadata.resourceVersion. Returns new. Pure; here for tests.
 */
json_t *applier_patch(const json_t *present, const json_t *wanted);

#endif

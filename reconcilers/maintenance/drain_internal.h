/*
 * What the drain*.c files share. For them only; drain.h is the contract.
 */
#ifndef ORBWEAVER_RECONCILERS_MAINTENANCE_DRAIN_INTERNAL_H
#define ORBWEAVER_RECONCILERS_MAINTENANCE_DRAIN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/map.h"
#include "lib/base/str.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/sriov/node_state.h"

/* ---- drain_budget.c: who is away ------------------------------------------------------------- */

struct budget {
	char *pool; /* "namespace/name" */
	size_t nodes, limit, away;
};

struct budgets {
	struct map by_pool; /* struct budget, owned */
};

void budgets_init(struct budgets *budgets);
void budgets_done(struct budgets *budgets);

/*
 * The budget of a pool that has maxUnavailable. Away are nodes that are being drained, not Ready,
 * or cordoned. Borrowed.
 */
struct budget *budget_of(struct budgets *budgets, const json_t *world, const json_t *pool);

/* Is the node away for another reason than us? NULL: it is not. Static text. */
const char *budget_down(const json_t *node);

/* May one more go? A node that is away already costs nothing. */
bool budget_allows(const struct budget *budget, bool is_down);
/* It goes. */
void budget_take(struct budget *budget, bool is_down);

/* ---- drain_pods.c: who is asked to end ------------------------------------------------------- */

enum pod_fate {
	POD_UNKNOWN, /* was not read yet */
	POD_GONE,    /* nothing is to be done */
	POD_ENDING,  /* was asked, and has not ended */
	POD_REFUSED, /* the eviction was refused, and is tried again */
	POD_KEPT,    /* may not be evicted at all */
	POD_EVICTED, /* may be asked now */
};

struct pod_verdict {
	enum pod_fate fate;
	const char *reason; /* of ENDING, REFUSED, KEPT: CamelCase */
	char *message;      /* the same; owned */
	const char *uid;    /* of EVICTED */
};

void pod_verdict_done(struct pod_verdict *verdict);
#define auto_pod_verdict auto_call(pod_verdict_done)

/*
 * What was read of the API server, if that is not too long ago to decide on; NULL: nothing.
 * Borrowed.
 */
const json_t *drain_looked(const json_t *world);

/* Pods of NodeState.status.impact, once each, {"ns/name": device}; new. */
json_t *drain_pods_of(const json_t *state);

/* The pod `key` of `node`, which is in `pool`. */
struct pod_verdict drain_judge_pod(const json_t *world, const json_t *pool, const char *node,
				   const char *key);

#endif

// SPDX-License-Identifier: Apache-2.0
/* What the drain*.c files share. For them only; drain.h is the contract. */
#pragma once

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

/*
 * All pods of the node that have to end before a reboot, as drain_pods_of(); NULL: they were not
 * read yet. Those of DaemonSets, static ones and the operator's own come back with the node.
 */
json_t *drain_pods_on(const json_t *world, const char *node);

/* The pod `key` of `node`, which is in `pool`. looked: {"ns/name": pod}, NULL: nothing was read. */
struct pod_verdict drain_judge_pod(const json_t *world, const json_t *looked, const json_t *pool,
				   const char *node, const char *key);

/* What DRAIN_STOP_ANNOTATION says when the pool's time was over. */
#define DRAIN_TIMED_OUT "timed-out"

/* ---- drain_boot.c: reboots ------------------------------------------------------------------- */

/* What the node has to boot for, and its pool and itself allow; NULL: nothing. Borrowed. */
const char *boot_wanted(const json_t *state, const json_t *pool, const json_t *node);
/* What allows its agent to reboot for that, in the boot that runs. New. */
char *boot_permission(const json_t *state, const char *cause);
/* Is it allowed to? */
bool boot_is_permitted(const json_t *state, const char *cause);
/* Why its agent cannot get on with the reboot, in its words; NULL: nothing is wrong. */
const char *boot_trouble(const json_t *state);
/* Did a reboot not help? */
bool boot_was_in_vain(const json_t *state);
/* looked: the Node as it was read. It is Ready, in the boot that its agent speaks of. */
bool boot_is_back(const json_t *state, const json_t *looked);

/* ---- what is decided about a node ------------------------------------------------------------ */

enum phase {
	PHASE_NONE,
	PHASE_WAITING,
	PHASE_GIVEN_BACK, /* its time was over */
	PHASE_EVICTING,
	PHASE_REBOOTING,
	PHASE_WORKING,
	PHASE_STOPPED,
};

struct candidate {
	const char *name; /* of the node */
	char *key;        /* of the NodeState */
	const json_t *state, *node, *pool;
	const char *cause; /* boot_wanted(); NULL: it is not to be rebooted */
	json_t *pods;      /* that have to end; of a reboot NULL until they were read */
	/* Pods that its agent names: who comes first may not hang on what was just read. */
	size_t holders;
	bool begun;        /* it has a slot */
	bool is_external;  /* another drainer drains it, when we ask */
	bool needs_cordon; /* and it is not */
	bool frees_node;   /* uncordon it although it is not through */
	const char *down;
	enum phase phase;
	const char *reason;
	struct strbuf message;
	json_t *left; /* pods that have not ended, with what keeps them */
};

struct drain {
	const json_t *world;
	struct plan *plan;
	struct budgets budgets;
	struct candidate *nodes;
	size_t n;
	json_t *asked; /* what has to be read, {"pods": {key: true}, "nodes": …} */
	bool is_disabled, is_missing;
};

/* It has a slot by this decision. */
static inline bool is_draining(const struct candidate *c)
{
	return c->phase > PHASE_GIVEN_BACK;
}

/* ---- drain_write.c: writing it down ---------------------------------------------------------- */

/* Seconds since its phase, as its status has it, began; 0 when it is in another. */
int64_t drain_age_s(const struct drain *d, const struct candidate *c, enum phase phase);

/*
 * The operations from the `first` on are about this node: where the server refuses to store one,
 * those behind it that are about the node are left out, and other nodes are not concerned.
 */
void drain_group(struct plan *plan, size_t first, const char *node);

/* Annotations and cordons; what follows from them comes behind in the plan. */
void drain_plan_states(struct drain *d);
/* Status and events. */
void drain_plan_status(struct drain *d);

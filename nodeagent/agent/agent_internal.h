// SPDX-License-Identifier: Apache-2.0
/* What the files of the state machine share. For agent*.c only. */
#pragma once

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/agent.h"
#include "nodeagent/host_plan/attempts.h"
#include "nodeagent/host_plan/desired.h"
#include "nodeagent/host_plan/history.h"
#include "nodeagent/host_plan/parallel_nics.h"
#include "nodeagent/host_plan/status.h"

/* Keys of failures that are not a PF's. */
#define KEY_LOOK  "look"
#define KEY_STATE "state"
#define KEY_SPEC  "spec"

enum doing {
	LOADING, /* the state file; nothing else may happen before it is known */
	IDLE,
	LOOKING,
	SAVING,
	WITHDRAWING, /* the kubelet may not allocate what is going to be changed */
	STEPPING,
};

/* Only one agent of a node executes, with a state file that was read since it may. */
enum authority {
	AUTHORITY_NONE,
	AUTHORITY_GIVEN,   /* the state file has to be read again */
	AUTHORITY_LOADING, /* that is under way */
	AUTHORITY_EXECUTING,
};

/* Devices that are about to be changed: the kubelet may not give them away. */
enum withdrawal {
	WITHDRAWAL_NONE,
	WITHDRAWAL_ASKED,
	WITHDRAWAL_DONE, /* it gives none of them away */
};

/* What is reported once at the end of it. */
struct round {
	bool began;
	bool repairs; /* the same generation was done before: another program changed the host */
	size_t steps;
	int64_t begin_ms;
	json_t *made; /* entries of its plans whose steps have changed something */
};

/* A step under way. */
struct stepping {
	struct agent *agent;
	const json_t *entry; /* of the plan; NULL: none */
	size_t index;        /* in the plan */
};

/* What is known of the host, and when it is looked at next. */
struct agent_seen {
	unsigned int how; /* HOST_OBSERVE_…: what the look sees that runs, or ran last */
	json_t *earlier;  /* before the first look: what history_merge() starts from */
	json_t *observed;
	int64_t look_ms; /* an event asks for a look then; INT64_MAX: none does */
	int64_t scan_ms; /* the next safety scan */
	json_t *acted;   /* of history_is_ours() */
};

/* The plan that is carried out, or was last. */
struct agent_planned {
	json_t *plan;
	int64_t generation;
	json_t *held;                /* what agent.held was when it was made */
	json_t *skipped;             /* PFs of which a step failed */
	struct parallel_nics *lanes; /* of its steps */
	struct stepping stepping[HOSTD_PARALLEL_MAX];
	enum withdrawal withdrawal;
	json_t *withdrawn; /* NULL exactly when withdrawal is NONE */
	bool must_replan;  /* what is wanted changed while steps ran */
};

/* What was reported last: agent_report.c's, and the report that the API server has. */
struct agent_report {
	char *activity;
	char *text;    /* what was blocked, wrong or waiting for a reboot */
	char *doubted; /* the same, seen once; NULL: there is no doubt */
	int64_t doubted_ms;
	json_t *waiting; /* blocked entries that were logged last */
	json_t *shown;   /* the last plan whose troubles were sure */
	int64_t shown_generation;
	char *uid; /* of the NodeState that has it */
	int64_t at_ms;
	bool has_earlier; /* what an earlier agent has reported was taken */
};

struct agent {
	struct agent_config config;
	struct attempts *attempts;
	struct timer *due;
	struct deferred *turn;
	enum doing doing;
	enum authority authority;
	struct round round;
	struct agent_seen seen;
	struct agent_planned planned;
	struct agent_report report;

	/* the state file on disk: {"found", "nodeState", "addresses", "node", "given"} */
	json_t *state;
	json_t *object, *addresses, *held, *given;
	json_t *failures;
	json_t *saving; /* on its way to the disk */
	struct desired desired;
	int64_t done_generation; /* done completely in this process; 0: none */
	int64_t started_ms;
	/* a pause ends or the spec in force changes by time; INT64_MAX: neither */
	int64_t retry_ms;
	bool stopping;
	void (*stopped)(void *arg);
	void *stopped_arg;

	struct {
		struct metric *looks, *steps, *seconds, *failed;
	} metrics;
};

/* ---- agent_schedule.c ------------------------------------------------------------------------ */

/* Set the timer for the next thing that is due; after each change while nothing runs. */
void agent_schedule(struct agent *agent);
/* Look at that time, or earlier. */
void agent_look_at(struct agent *agent, int64_t at_ms);
/* What is wanted changed: look closely, at once. */
void agent_want_round(struct agent *agent);
/* Find out which spec is in force; after each change of what it is made from. */
void agent_decide_desired(struct agent *agent);
/* Put a look together with those before it. Takes observed. */
void agent_take_observed(struct agent *agent, json_t *observed);

/* agent_reconcile.c: look, and whatever follows from it until nothing runs. */
void agent_start_look(struct agent *agent, bool closely);

/* agent_report.c: what failed, what the view shows, which events are emitted. */
void agent_note_failure(struct agent *agent, const char *name, const struct err *err);
void agent_note_failed_step(struct agent *agent, const json_t *entry, const struct err *err);
void agent_forget_failure(struct agent *agent, const char *name);
/* The list for the status, after the plan or a failure changed. */
void agent_list_failures(struct agent *agent);
/*
 * What a new plan says is shown, and what is wrong is reported, as far as it is sure; else a second
 * look is due.
 */
void agent_show_plan(struct agent *agent);
/* entry: the first step. */
void agent_begin_round(struct agent *agent, const json_t *entry);
void agent_end_round(struct agent *agent);

static inline int64_t agent_soonest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The server has said whether there is a NodeState. */
static inline bool agent_has_heard(const struct agent *agent)
{
	return agent->desired.source == DESIRED_WAITING || agent->desired.source == DESIRED_SERVER;
}

/*
 * Are pods evicted that have what the plan waits for? The operator does it, or another drainer: the
 * annotation is the one of the SR-IOV network operator, so that its drainers are understood, too.
 */
static inline bool agent_is_vacating(const json_t *node_state)
{
	const char *state = json_str_at(node_state, "metadata", "annotations",
					"sriovnetwork.openshift.io/current-state");

	return str_eq(state, "Draining") || str_eq(state, "DrainComplete");
}

/* For pauses: 0 to 999. */
static inline int agent_chance(void)
{
	return (int)clock_jitter(1000);
}

static inline const json_t *agent_steps(const struct agent *agent)
{
	return json_at(agent->planned.plan, "steps");
}

/* For people: the PF of a plan's entry, or "node". */
static inline const char *agent_where(const json_t *entry)
{
	return json_str_or(json_at(entry, "pf"), "node");
}

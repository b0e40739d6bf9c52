// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of the CNI server, for cni_server.c: tasks, their workers, what these ask, and their
 * plugins' connections. Calls go from cni_server.c down.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/cni/server/cni_server.h"
#include "nodeagent/cni/server/plugin_connection.h"
#include "nodeagent/cni/server/worker_process.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/worker/cni_job.h"
#include "nodeagent/process/channel.h"

enum task_state {
	TASK_WAITS,    /* for its turn */
	TASK_RUNS,     /* it has a worker */
	TASK_ANSWERED, /* holds no place: its answer is on its way, or its call has yet to come */
};

/* Something to be done for one sandbox; in the order in which they came. */
struct task {
	struct cni_server *server;
	struct task *next;
	enum task_state state;
	enum cni_job_kind kind;
	struct plugin_connection *conversation; /* of the plugin that waits; NULL: nobody does */
	struct cni_call call;
	bool has_call;
	char *container;
	char *note;                 /* the file of it; NULL: none */
	struct worker_process *run; /* NULL: none runs */
	int64_t came_us;
	/* What its worker has asked of the agent and not heard yet; new. */
	json_t *question;
	int64_t question_id; /* 0: not sent, the agent is away */
	struct timer *patience;
	struct err failed; /* CNI_JOB_UNDO: what the answer will be */
};

/* What plugins have noted, as far as it is known. */
struct notes_turn {
	struct worker_process *worker; /* NULL: none is at them now */
	bool lists;                    /* that one reads those behind `last` */
	struct timer *next;
	char *last;   /* all before it were read in this turn; NULL: the turn is over */
	json_t *bad;  /* names of those that the next worker removes */
	json_t *kept; /* names of those that another version may read: true */
};

struct server_metrics {
	struct metrics *all;
	struct metric *calls, *seconds, *steps, *waiting;
};

struct cni_server {
	struct cni_server_config config;
	struct poller *listening;
	struct timer *accepting; /* runs while the listener waits for descriptors */
	bool accept_complained;
	struct worker_process *survey; /* NULL: none runs */
	json_t *surveyed;              /* what the survey has told; NULL: it is over */
	int waiting_agent;             /* its line, until the survey is over; -1 */
	bool is_listening;             /* notes that were there at the start come before any call */
	struct task *tasks;            /* the oldest first */
	size_t n_tasks, n_running;
	struct channel *agent; /* NULL: away */
	int64_t last_id;
	struct attachment_index *ledger;
	json_t *containers; /* that have a file, or may have one: true */
	json_t *unfinished; /* containers of which something waits: true */
	json_t *networks;   /* cni_server_set_networks(); NULL: not said yet */
	struct notes_turn notes;
	struct timer *again, *telling;
	struct deferred *rested; /* after the end of each worker */
	int64_t again_ms;
	struct server_metrics metrics;
};

/* ---- one task -------------------------------------------------------------------------------- */

/* Behind the others; it waits. Its container is copied. */
struct task *task_new(struct cni_server *server, enum cni_job_kind kind, const char *container);
/* Out of the queue, with its worker and its connection. */
void task_free(struct task *task);
/* A DEL, which would keep its pod from ending if it waited for the agent. */
bool task_is_del(const struct task *task);
bool task_may_wait(const struct task *task);
/* The agent is there: ask it what the task's worker has asked. */
void task_send_question(struct task *task);
/* Takes the reply, which has the worker's id. */
void task_answer_question(struct task *task, json_t *reply);
/* The answer is "AgentAway". */
void task_fail_without_agent(struct task *task);

/* ---- all of them ----------------------------------------------------------------------------- */

/* Start what may start. */
void tasks_schedule(struct cni_server *server);
/* A plugin has connected, its descriptor is taken: a task without a place until it has its call. */
void tasks_accept(struct cni_server *server, int fd);
/* A task of a sandbox without a call, unless such a one waits already. */
void tasks_look_after(struct cni_server *server, enum cni_job_kind kind, const char *container);
/* The same for all sandboxes of which something waits; starts what may start. */
void tasks_finish_all(struct cni_server *server);
/* What a sandbox has by its file; attachments NULL: not known, it may have one. */
void tasks_remember(struct cni_server *server, const char *container, json_t *attachments);
/* Is a note worked off? */
bool tasks_have_notes(const struct cni_server *server);
/* Tell the agent what there is, after a moment. arg: the server. */
void tasks_tell_soon(struct cni_server *server);
void tasks_tell(void *arg);
/* A deadline that is `ms` where an ADD has SERVER_ADD_MS. */
int64_t tasks_scaled_ms(const struct cni_server *server, int64_t ms);

// SPDX-License-Identifier: Apache-2.0
/*
 * A worker as the server sees it: forked, heard, ended.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_SERVER_WORKER_PROCESS_H
#define ORBWEAVER_NODEAGENT_CNI_SERVER_WORKER_PROCESS_H

#include "lib/loop/loop.h"
#include "nodeagent/cni/worker/cni_worker.h"

struct worker_process;

struct worker_process_config {
	struct loop *loop;
	const struct worker_job
		*job; /* borrowed while worker_process_new() runs: the worker has a copy */
	int64_t deadline_ms;
	/*
	 * The worker's requests (worker_channel.h), from the loop, borrowed:
	 * worker_process_answer() is due.
	 */
	void (*asked)(void *arg, const json_t *request);
	/*
	 * Once, from the loop, after which the run may be freed. done: the worker's last frame,
	 * borrowed; NULL: it ended without, was killed, or took longer than the deadline.
	 */
	void (*ended)(void *arg, const json_t *done);
	void *arg;
};

/* NULL with err ERR_HOST "WorkerEnded": none could be started. */
struct worker_process *worker_process_new(const struct worker_process_config *config,
					  struct err *err);
/* A reply with the id of a request; taken. */
void worker_process_answer(struct worker_process *run, json_t *reply);
/* ended(NULL) comes from the loop. */
void worker_process_kill(struct worker_process *run);
/* A worker that runs is killed. Not from `asked`. Accepts NULL. */
void worker_process_free(struct worker_process *run);

#endif

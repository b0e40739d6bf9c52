// SPDX-License-Identifier: Apache-2.0
/* A worker as the server sees it: ordered from the supervisor, given its job, heard, ended. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"
#include "nodeagent/process/orders.h"

struct worker_process;

struct worker_process_config {
	struct loop *loop;
	struct orders *orders; /* to the supervisor; borrowed */
	json_t *job;           /* cni_job.h; taken */
	int fd;              /* a copy goes along with the job; borrowed until `ended`; -1: none */
	int64_t deadline_ms; /* from now, the start included */
	/*
	 * The worker's requests (worker_channel.h), from the loop, borrowed:
	 * worker_process_answer() is due. NULL: it has none.
	 */
	void (*asked)(void *arg, const json_t *request);
	/* Messages that are no requests, likewise; NULL: they are passed over. */
	void (*told)(void *arg, const json_t *message);
	/*
	 * Once, from the loop, after which the run may be freed. done: the worker's last frame,
	 * borrowed. NULL: it ended without, was killed, or took longer than the deadline; with
	 * `failed`, borrowed, it never had its job: ERR_HOST "WorkerEnded", ERR_INVALID "TooLarge".
	 */
	void (*ended)(void *arg, const json_t *done, const struct err *failed);
	void *arg;
};

struct worker_process *worker_process_new(const struct worker_process_config *config);
/* A reply with the id of a request; taken. */
void worker_process_answer(struct worker_process *run, json_t *reply);
/* ended(NULL, NULL) comes from the loop. */
void worker_process_kill(struct worker_process *run);
/* A worker that runs is killed. Not from `asked`, `told`. Accepts NULL. */
void worker_process_free(struct worker_process *run);

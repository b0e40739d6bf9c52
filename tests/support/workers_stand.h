// SPDX-License-Identifier: Apache-2.0
/*
 * A process that keeps workers and nothing else: the supervisor's half of hostd, for tests of the
 * agent's.
 */
#pragma once

#include <sys/types.h>

#include "nodeagent/process/workers.h"

#define WORKERS_STAND_NAME "workers-stand"

/*
 * Fork it; its workers are worker_run() on `root`. It ends when the returned socket closes. Returns
 * that socket, or -1. Before the first loop (supervisor.h).
 */
int workers_stand_fork(const char *root, pid_t *ret_pid);
/* The same with workers of this kind, that do something else; arg is of the moment of the fork. */
int workers_stand_fork_as(enum workers_kind kind, worker_fn *work, void *arg, pid_t *ret_pid);

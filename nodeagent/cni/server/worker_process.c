// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/server/worker_process.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/process/channel.h"

struct worker_process {
	struct worker_process_config config;
	struct channel *channel;
	struct timer *deadline;
	pid_t pid;
	bool has_ended;
};

static void end(struct worker_process *run, const json_t *done)
{
	if (run->has_ended)
		return;
	run->has_ended = true;
	timer_stop(run->deadline);
	run->config.ended(run->config.arg, done);
}

static void on_heard(void *arg, const json_t *message)
{
	struct worker_process *run = arg;

	if (json_at(message, "kind"))
		run->config.asked(run->config.arg, message);
	else if (json_object_get(message, "done"))
		end(run, json_object_get(message, "done"));
}

static void on_lost(void *arg, const struct err *err)
{
	end(arg, NULL);
}

/* One that hangs in the kernel does not end by that; nobody waits for it any longer. */
static void on_deadline(void *arg)
{
	struct worker_process *run = arg;

	(void)kill(run->pid, SIGKILL);
	end(run, NULL);
}

struct worker_process *worker_process_new(const struct worker_process_config *config,
					  struct err *err)
{
	const struct worker_job *job = config->job;
	struct worker_process *run;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)err_sys(err, "WorkerEnded",
			      "start a process for the call: make a socket pair");
		return NULL;
	}
	pid = child_fork(&(struct child_config){
		.name = CNI_WORKER_NAME,
		.dies_by = SIGKILL,
		.resets_handlers = true,
		.keep = (int[]){pair[1], job->state, job->root, job->call ? job->call->netns : -1},
		.n_keep = 4,
	});
	if (pid == 0) {
		cni_worker_run(pair[1], job);
		_exit(0);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		(void)err_sys(err, "WorkerEnded", "start a process for the call");
		(void)close(pair[0]);
		return NULL;
	}
	run = mem_new(struct worker_process);
	run->config = *config;
	run->config.job = NULL;
	run->pid = pid;
	run->channel = channel_new(&(struct channel_config){
		.loop = config->loop,
		.fd = pair[0],
		.heard = on_heard,
		.lost = on_lost,
		.arg = run,
	});
	run->deadline = timer_new(config->loop, on_deadline, run);
	timer_start(run->deadline, config->deadline_ms);
	return run;
}

void worker_process_answer(struct worker_process *run, json_t *reply)
{
	channel_send(run->channel, reply);
	json_decref(reply);
}

void worker_process_kill(struct worker_process *run)
{
	/* Its end closes the line; if it can end. */
	(void)kill(run->pid, SIGKILL);
	timer_start(run->deadline, 1000);
}

void worker_process_free(struct worker_process *run)
{
	if (!run)
		return;
	if (!run->has_ended)
		(void)kill(run->pid, SIGKILL);
	channel_free(run->channel);
	timer_free(run->deadline);
	mem_free(run);
}
